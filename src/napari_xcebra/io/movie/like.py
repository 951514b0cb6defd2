"""Says what is known of a recording before its movie is opened."""

from __future__ import annotations

from dataclasses import dataclass

from napari_xcebra.recording import Recording


@dataclass(frozen=True)
class Like:
    """What a movie has to be like.

    Parameters
    ----------
    n_frames : int
    field : (height, width) or None
        None: not known.
    planes : int
        0 if the field of view has no planes.
    """

    n_frames: int
    field: tuple[int, int] | None = None
    planes: int = 0

    @classmethod
    def of(cls, recording: Recording) -> Like:
        """What is known from footprints and images."""
        shapes = [image.shape for image in recording.images.values()]
        if recording.footprints is not None:
            shapes.insert(0, recording.footprints.shape)
        if not shapes:
            return cls(recording.n_frames)
        *planes, height, width = shapes[0]
        return cls(recording.n_frames, (height, width), planes[0] if planes else 0)

    def axes(self, shape: tuple[int, ...]) -> tuple[str, str, str]:
        """Which of three axes are frames "t", rows "y" and columns "x".

        Frames come first, unless only another order has the size of the field of view.
        """
        orders = ("tyx", "txy", "yxt", "xyt")
        for order in orders if self.field else ():
            sizes = dict(zip(order, shape, strict=True))
            if (sizes["y"], sizes["x"]) == self.field:
                return tuple(order)  # type: ignore[return-value]
        return ("t", "y", "x")
