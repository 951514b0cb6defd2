"""Two views beside each other on the canvas, by napari's grid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from napari.layers import Image, Layer

from napari_xcebra.widgets.layers import KEY, metadata, role_of
from napari_xcebra.widgets.per_session import OfSession

if TYPE_CHECKING:
    from napari_xcebra.widgets.session import Session

TITLE = "background of the second view"


class SecondView(OfSession):
    """Puts one layer, over a copy of the background image, into a view of its own on the right.

    napari's grid fills its views with layers by their order, a fixed number in each: the layers of
    the second view are kept at the end of the list, and all others share the first.

    Parameters
    ----------
    session : Session
    """

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._layer: Layer | None = None
        self._before: tuple[bool, int, tuple[int, int]] | None = None
        self._arranging = False
        events = session.viewer.layers.events
        for event in (events.inserted, events.removed, events.reordered):
            event.connect(self._arrange)

    @property
    def _grid(self) -> Any:
        viewer = self.session.viewer
        return viewer.canvas.grid if hasattr(viewer, "canvas") else viewer.grid  # napari < 0.9

    def show(self, layer: Layer | None) -> None:
        """Show a layer on the right; None to go back to one view."""
        self._layer = layer
        if layer is None:
            self._close()
            return
        beginning = self._before is None
        if beginning:
            grid = self._grid
            self._before = (grid.enabled, grid.stride, grid.shape)
        self._arrange()
        if beginning:
            self.session.viewer.reset_view()

    def _arrange(self) -> None:
        layers = self.session.viewer.layers
        if self._arranging or self._layer is None or self._layer not in layers:
            return
        self._arranging = True
        try:
            right = [*self._background(), self._layer]
            for own in right:
                own.visible = True
            if list(layers[-len(right) :]) != right:
                for own in right:
                    layers.move(layers.index(own), len(layers))
            grid = self._grid
            grid.shape = (1, 2)
            grid.stride = max(1, len(layers) - len(right))
            grid.enabled = True
        finally:
            self._arranging = False

    def _close(self) -> None:
        if self._before is None:
            return
        grid = self._grid
        grid.enabled, grid.stride, grid.shape = self._before
        self._before = None
        self.session.viewer.reset_view()
        layers = self.session.viewer.layers
        for layer in [layer for layer in layers if _is_copy(layer)]:
            layers.remove(layer)

    def _background(self) -> list[Layer]:
        """Copy of the background image of the recording, if it has one."""
        opened = self.session.current
        if opened is None:
            return []
        images = [image for image in self.session.layers_of(opened) if role_of(image) == "image"]
        copies = [image for image in images if _is_copy(image)]
        originals = [image for image in images if image not in copies]
        shown = [image for image in originals if image.visible] or originals
        if copies or not shown:
            return copies[:1]
        copy = Image(
            shown[0].data,
            name=TITLE,
            colormap=shown[0].colormap,
            contrast_limits=shown[0].contrast_limits,
            metadata=metadata("image", opened.recording, opened.token, second=True),
        )
        layers = self.session.viewer.layers
        active = layers.selection.active
        layers.append(copy)
        layers.selection.active = active
        return [copy]


def _is_copy(layer: Layer) -> bool:
    return role_of(layer) == "image" and bool(layer.metadata[KEY].get("second"))
