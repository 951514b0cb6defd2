"""Computes the example; torch is imported only here."""

from collections.abc import Iterator

from torch import Tensor

from napari_xcebra.attribution.stream import Stream


def squared_gradient(stream: Stream) -> Iterator[Tensor]:
    """J² at every frame: (frames in chunk, latents, cells)."""
    for inputs in stream.chunks():
        yield stream.encoder.jacobian(inputs).detach() ** 2


def failing(stream: Stream) -> Iterator[Tensor]:
    """A mistake."""
    yield from (1 / 0 for _ in stream.chunks())
