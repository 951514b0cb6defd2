"""Lets the mouse act on cells in the image: clicks, a lasso, a menu, and their names on the way.

The pointer names the cell under it in the status bar, with the score that is painted.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from napari.utils.notifications import show_error, show_info
from qtpy.QtCore import QPointF, Qt
from qtpy.QtGui import QColor, QCursor, QPainter, QPen, QPolygonF
from qtpy.QtWidgets import QApplication, QFileDialog, QMenu, QWidget
from skimage.measure import points_in_poly

from napari_xcebra.curation import STATUSES, Status
from napari_xcebra.files import whole
from napari_xcebra.recording.footprints import correlations
from napari_xcebra.spreadsheets import write_csv
from napari_xcebra.widgets.controls.boxes import menu_of
from napari_xcebra.widgets.controls.napari_window import canvas_of, view_direction
from napari_xcebra.widgets.layers.camera import camera_of, labels_layer
from napari_xcebra.widgets.layers.layers import add_quietly, outline, outlines_layer
from napari_xcebra.widgets.plots.plot_style import style_of
from napari_xcebra.widgets.services.jobs import in_background
from napari_xcebra.widgets.state.shown import painted_map, shown_map
from napari_xcebra.widgets.state.signals import OfState, Signal
from napari_xcebra.widgets.state.state import role_of

if TYPE_CHECKING:
    from napari.layers import Layer

    from napari_xcebra.recording import Recording
    from napari_xcebra.widgets.state.cell_queue import Deciding
    from napari_xcebra.widgets.state.curations import Curations
    from napari_xcebra.widgets.state.state import State
    from napari_xcebra.workspace_file import Opened


STILL = 4.0
"""Pixels on the screen that a click may move before it is a drag."""
PICKING_MODES = ("pan_zoom", "pick")
"""In all others the mouse draws, and a click is a stroke."""


def _is_click(event: Any) -> Generator[None, None, bool]:
    """Whether the mouse stays where it was pressed until it is released; yields at every move."""
    start = np.asarray(event.pos, float)
    yield
    while event.type == "mouse_move":
        if np.linalg.norm(np.asarray(event.pos, float) - start) > STILL:
            return False
        yield
    return True


class Picking:
    """Selects cells with the mouse, and shows which are selected."""

    def __init__(self, state: State, curations: Curations) -> None:
        self._state = state
        self._curations = curations
        viewer = state.viewer
        viewer.mouse_drag_callbacks.append(self._on_press)
        # after napari's own, which would otherwise overwrite what is said here
        viewer.events.status.connect(self._add_to_status, position="last")
        viewer.tooltip.events.text.connect(self._add_to_tooltip, position="last")
        viewer.layers.events.inserted.connect(self._keep_on_top, position="last")
        state.selection_changed.connect(self._outline)
        viewer.events.theme.connect(self._outline)

    # ------------------------------------------------------------ clicks

    def _on_press(self, viewer: Any, event: Any) -> Iterator[None]:
        if event.button == 1 and self._mouse_is_free(viewer) and (yield from _is_click(event)):
            self.click(
                event.position,
                add="Shift" in event.modifiers or "Control" in event.modifiers,
                view_direction=event.view_direction,
            )

    def click(self, position: Any, *, add: bool = False, view_direction: Any = None) -> None:
        """Select the cell at a place in the world; with `add`, keep the others.

        A click on the background selects nothing, and with `add` changes nothing.
        """
        cell = self.cell_at(position, view_direction)
        if cell is not None:
            self._state.select([cell], toggle=add)
        elif not add:
            self._state.select([])

    def _mouse_is_free(self, viewer: Any) -> bool:
        active = viewer.layers.selection.active
        return str(getattr(active, "mode", "pan_zoom")) in PICKING_MODES

    def cell_at(self, position: Any, view_direction: Any = None) -> int | None:
        """Position of the cell of the recording in front that is at a place in the world."""
        state = self._state
        layers = state.layers.of(state.current)
        if not any(layer.visible for layer in layers):
            return None
        label = _label_at(layers, position, view_direction, state.viewer.dims)
        return label - 1 if label else None

    # ------------------------------------------------------------ what is selected

    def _outline(self, *_: Any) -> None:
        """Outline the selected cells of the current recording in the colours of their traces."""
        state, opened = self._state, self._state.current
        if opened is None or opened not in state.opened:  # its layers are being removed
            return
        layer = state.layers.one(opened, "selection")
        if layer is None and len(state.selection):
            layer = outlines_layer(opened, "selection", "selected cells", width=1.5)
            add_quietly(state, layer)
            layer.events.visible.connect(self._outline)
        if layer is not None:
            lines = style_of(state.viewer.theme).lines
            outline(layer, opened, state.selection.tolist(), lines)

    def _keep_on_top(self, event: Any) -> None:
        layers = self._state.viewer.layers
        if role_of(event.value) == "selection":
            return
        for layer in [x for x in layers if role_of(x) == "selection"]:
            layers.move(layers.index(layer), len(layers))

    # ------------------------------------------------------------ the cell under the pointer

    def _add_to_status(self, event: Any) -> None:
        said = event.value
        before = said.get("coordinates", "") if isinstance(said, dict) else str(said)
        text = self._under_pointer()
        if not text or text in before:
            return
        after = f"{before}; {text}" if before else text
        viewer = self._state.viewer
        viewer.status = {**said, "coordinates": after} if isinstance(said, dict) else after

    def _add_to_tooltip(self, event: Any) -> None:
        tooltip = self._state.viewer.tooltip
        text = self._under_pointer() if tooltip.visible else ""
        if text and text not in event.value:
            tooltip.text = f"{event.value}\n{text}" if event.value else text

    def _under_pointer(self) -> str:
        """What the active layer does not itself say about the cell under the pointer."""
        viewer = self._state.viewer
        if not viewer.mouse_over_canvas:
            return ""
        role = role_of(viewer.layers.selection.active) if viewer.layers.selection.active else None
        if role == "scores":
            return ""
        opened, cell = (
            self._state.current,
            self.cell_at(viewer.cursor.position, view_direction(viewer)),
        )
        if opened is None or cell is None:
            return ""
        status = STATUSES[self._curations.status(opened)[cell]]
        named = "" if role == "cells" else _naming(opened, cell, status)
        return ", ".join(filter(None, [named, self._painted(cell)]))

    def _painted(self, cell: int) -> str:
        """Score and z of what is painted."""
        painted = painted_map(self._state)
        if painted is None or not painted.known[cell]:
            return ""
        return f"{painted.factor} {painted.scores[cell]:.3g} (z {painted.z[cell]:.1f})"


def _naming(opened: Opened, cell: int, status: Status = "undecided") -> str:
    """A cell by the id and name of its source, and whether it was accepted.

    It is given by its position in the recording. A `status` that somebody decided comes before
    what the extractor says.
    """
    recording = opened.recording
    words = [f"cell {np.asarray(recording.cell_ids)[cell]}"]
    if "name" in recording.cells:
        words.append(str(recording.cells["name"][cell]))
    if status == "undecided":
        words.append("accepted" if np.asarray(recording.accepted)[cell] else "not accepted")
    else:
        words.append(f"{status} in curation")
    return ", ".join(words)


def _label_at(layers: list[Layer], position: Any, view_direction: Any, dims: Any) -> int:
    """Label of the uppermost cells or scores at a place in the world; 0 where there is none."""
    labelled = [layer for layer in layers[::-1] if role_of(layer) in ("cells", "scores")]
    if dims.ndisplay == 3:
        for layer in (x for x in labelled if x.visible):
            value = layer.get_value(
                position,
                view_direction=view_direction,
                dims_displayed=list(dims.displayed),
                world=True,
            )
            return int(value or 0)
        return 0
    # those in view first: the user may have moved one of them
    for layer in sorted(labelled, key=lambda x: not x.visible):
        place = np.round(layer.world_to_data(position)[-layer.ndim :]).astype(int)
        inside = all(0 <= at < size for at, size in zip(place, layer.data.shape, strict=True))
        return int(layer.data[tuple(place)]) if inside else 0
    return 0


Form = Literal["lasso", "rectangle"]


class Lasso(OfState):
    """Once armed, the next drag draws around cells instead of moving the image."""

    changed = Signal()
    """It was armed or disarmed."""
    drawn = Signal(object, bool)
    """Positions of the cells inside, and whether to add them to the selection."""

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self._form: Form | None = None
        self._before: tuple[bool, str] = (True, "standard")
        state.viewer.mouse_drag_callbacks.append(self._on_press)

    @property
    def form(self) -> Form | None:
        """What the next drag draws; None if it moves the image."""
        return self._form

    def arm(self, form: Form | None) -> None:
        """Let the next drag draw this; None puts it down."""
        if form == self._form:
            return
        viewer = self.state.viewer
        camera = camera_of(viewer)
        if self._form is None:
            self._before = camera.mouse_pan, viewer.cursor.style
            camera.mouse_pan, viewer.cursor.style = False, "cross"
        elif form is None:
            camera.mouse_pan, viewer.cursor.style = self._before
        self._form = form
        self.changed.emit()

    def put_down(self) -> None:
        """Let drags move the image again."""
        if self._form is not None and self._state() is not None:
            self.arm(None)

    def _on_press(self, viewer: Any, event: Any) -> Iterator[None]:
        if self._form is None or event.button != 1:
            return
        world = [np.asarray(event.position, float)]
        screen = [np.asarray(event.pos, float)]
        line = _LassoLine(canvas_of(viewer))
        try:
            yield
            while event.type == "mouse_move":
                world.append(np.asarray(event.position, float))
                screen.append(np.asarray(event.pos, float))
                line.show_points(_corners(screen, self._form))
                yield
        finally:
            line.close()
            line.deleteLater()
        if np.ptp(screen, axis=0).max() > STILL and self._form is not None:
            add = "Shift" in event.modifiers or "Control" in event.modifiers
            cells = self.cells_within(_corners(world, self._form))
            self.arm(None)
            self.drawn.emit(cells, add)

    def cells_within(self, around: np.ndarray) -> np.ndarray:
        """Positions of the cells whose centre lies in a polygon, (corners, axes) float.

        It is in world coordinates; if the field has planes, only cells of its plane count.
        """
        opened, layer = self.state.current, labels_layer(self.state)
        if opened is None or layer is None or len(around) < 3:
            return np.zeros(0, np.int64)
        places = np.array([layer.world_to_data(corner)[-layer.ndim :] for corner in around])
        centers = opened.centers
        inside = points_in_poly(np.nan_to_num(centers[:, -2:], nan=-1e9), places[:, -2:])
        if layer.ndim > 2:
            inside &= np.round(centers[:, 0]) == np.round(places[0, 0])
        return np.flatnonzero(inside)


def _corners(points: list[np.ndarray], form: Form | None) -> np.ndarray:
    """Corners of what was drawn: all points of a lasso, four of a rectangle.

    >>> _corners([np.array([0.0, 0.0]), np.array([2.0, 1.0])], "rectangle").tolist()
    [[0.0, 0.0], [0.0, 1.0], [2.0, 1.0], [2.0, 0.0]]
    """
    if form != "rectangle":
        return np.stack(points)
    first, last = points[0], points[-1]
    around = np.stack([first, first, last, last])
    around[1, -1], around[3, -1] = last[-1], first[-1]
    return around


class _LassoLine(QWidget):
    """Draws the outline over the canvas; mouse events pass through."""

    def __init__(self, canvas: QWidget | None) -> None:
        super().__init__(canvas)
        self._points = np.zeros((0, 2))
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        if canvas is not None:
            self.setGeometry(canvas.rect())

    def show_points(self, points: np.ndarray) -> None:
        self._points = points
        self.show()
        self.update()

    def paintEvent(self, event: Any) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        around = QPolygonF([QPointF(*map(float, point[:2])) for point in self._points])
        painter.setBrush(QColor(255, 255, 255, 30))
        # a dark line below a bright one can be seen on any image
        for color, width in ((QColor(0, 0, 0, 160), 3.0), (QColor(255, 255, 255), 1.4)):
            painter.setPen(QPen(color, width))
            painter.drawPolygon(around)
        painter.end()


RIGHT = 2
LIMITS = (0.3, 0.5, 0.7)
"""Correlations that similar cells are offered by."""


class CellMenu(OfState):
    """Acts on the selected cells; a right click on another cell selects it first.

    A right drag zooms, as ever in napari.
    """

    def __init__(
        self, picking: Picking, deciding: Deciding, open_dock: Callable[[str], object]
    ) -> None:
        super().__init__(deciding.state)
        self._picking, self._deciding, self._open_dock = picking, deciding, open_dock
        self.menu: QMenu | None = None
        self.state.viewer.mouse_drag_callbacks.append(self._on_press)

    def _on_press(self, viewer: Any, event: Any) -> Iterator[None]:
        if event.button != RIGHT or not (yield from _is_click(event)):
            return
        cell = self._picking.cell_at(event.position, event.view_direction)
        if cell is None:
            return
        if cell not in self.state.selection:
            self.state.select([cell])
        self._pop_up()

    def _pop_up(self) -> None:
        canvas = canvas_of(self.state.viewer)
        if canvas is None:
            return
        cells, recording = self.state.selection, self.state.recording
        assert recording is not None, "a cell was clicked"
        one = f"cell {np.asarray(recording.cell_ids)[cells[0]]}"
        named = one if len(cells) == 1 else f"{len(cells)} cells"
        self.menu = menu_of(
            canvas,
            (
                (f"Accept {named}", "", lambda: self.decide("accepted")),
                (f"Reject {named}", "", lambda: self.decide("rejected")),
                (f"Leave {named} undecided", "", lambda: self.decide("undecided")),
                ("Undo", "Undo the last decision.", lambda: self._deciding.step_in_time("undo")),
                ("Copy", "Copy ids and facts as a table.", self.copy),
                ("Show trace", "Show it in the Cells dock.", lambda: self._open_dock("Cells")),
                ("Export trace …", "Save as a table, one column a cell.", self.export),
            ),
        )
        if len(cells) == 1:
            self._offer_similar(self.menu, one)
        for before in (4, 3):
            self.menu.insertSeparator(self.menu.actions()[before])
        self.menu.aboutToHide.connect(self.menu.deleteLater)
        self.menu.popup(QCursor.pos())

    def decide(self, status: Status) -> None:
        """Decide on the selected cells, and stay there."""
        self._deciding.decide(status, step_on=False)
        if self._deciding.curations.refused:
            self._open_dock("Curate")  # which says what to choose first

    def _offer_similar(self, menu: QMenu, one: str) -> None:
        help = f"Select cells whose traces correlate with that of {one}."
        similar = menu_of(menu, (
            (f"r ≥ {limit}", help, partial(self.select_similar, limit)) for limit in LIMITS
        ))  # fmt: skip
        similar.setTitle("Select similar cells")
        menu.addMenu(similar)

    def select_similar(self, limit: float) -> None:
        """Select the cells whose traces correlate with the selected one's, the most alike first."""
        recording, cell = self.state.recording, int(self.state.selection[0])
        assert recording is not None, "a cell is selected"

        def select(r: np.ndarray) -> None:
            if not self.state_open or self.state.recording is not recording:
                return
            r[cell] = np.inf  # the trace may be constant
            found = [int(other) for other in np.argsort(-r, kind="stable") if r[other] >= limit]
            self.state.select(found)
            if len(found) == 1:
                show_info(f"No other cell has a similar trace (r ≥ {limit}).")

        in_background(
            lambda: correlations(recording.traces, cell),
            select,
            lambda sentence, _: show_error(sentence),
        )

    def copy(self) -> None:
        """Copy a table of the selected cells."""
        clipboard = QApplication.clipboard()
        if clipboard is not None:
            clipboard.setText(self.table())

    def table(self) -> str:
        """Facts of the selected cells, with tabs between columns, for a spreadsheet."""
        opened, painted = self.state.current, shown_map(self.state)
        assert opened is not None, "cells are those of a recording"
        curations = self._deciding.curations
        status, extractor = curations.status(opened), curations.extractor(opened)
        trusted = painted is not None and not painted.at_chance
        head = ["cell", "decision", "extractor", "row", "column"]
        head += [f"{painted.factor} score", f"{painted.factor} z"] if painted and trusted else []
        rows = ["\t".join(head)]
        for cell in self.state.selection:
            row, column = opened.centers[cell][-2:]
            facts = [np.asarray(opened.recording.cell_ids)[cell], STATUSES[status[cell]]]
            facts += ["cell" if extractor[cell] else "not a cell", f"{row:.1f}", f"{column:.1f}"]
            if painted and trusted:
                facts += [f"{painted.scores[cell]:.4g}", f"{painted.z[cell]:.2f}"]
            rows.append("\t".join(map(str, facts)))
        return "\n".join(rows)

    def export(self, path: str = "") -> None:
        """Save the traces of the selected cells."""
        recording, cells = self.state.recording, self.state.selection.copy()
        if not path:
            window = canvas_of(self.state.viewer)
            path, _ = QFileDialog.getSaveFileName(window, "Export trace", "trace.csv", "*.csv")
        if path and recording is not None:
            in_background(
                lambda: _write_traces(recording, cells, Path(path)),
                lambda written: show_info(f"Wrote {written}."),
                lambda sentence, _: show_error(sentence),
            )


def _write_traces(recording: Recording, cells: np.ndarray, path: Path) -> Path:
    """Write traces as a table: frame, time in seconds, and a column for each cell."""
    import pandas as pd

    names = [f"cell_{number}" for number in np.asarray(recording.cell_ids)[cells]]
    table = pd.DataFrame(np.asarray(recording.traces[:, cells]), columns=names)
    table.insert(0, "time_s", np.asarray(recording.times))
    table.insert(0, "frame", np.arange(recording.n_frames))
    with whole(path) as file:
        write_csv(table, file)
    return path
