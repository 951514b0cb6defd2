"""Opens a menu on a right click on a cell: decide, copy, show its trace, export it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from napari.utils.notifications import show_error, show_info
from qtpy.QtGui import QCursor
from qtpy.QtWidgets import QApplication, QFileDialog, QMenu

from napari_xcebra.curation import STATUSES, Status
from napari_xcebra.files import whole
from napari_xcebra.recording.cell_shapes import correlations
from napari_xcebra.spreadsheets import write_csv
from napari_xcebra.widgets.controls.boxes import menu_of
from napari_xcebra.widgets.controls.napari_window import canvas_of
from napari_xcebra.widgets.layers.picking import Picking, is_click
from napari_xcebra.widgets.state.of_state import OfState
from napari_xcebra.widgets.state.shown import shown_map
from napari_xcebra.widgets.work.background import in_background

if TYPE_CHECKING:
    from napari_xcebra.recording import Recording
    from napari_xcebra.widgets.state.deciding import Deciding

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
        if event.button != RIGHT or not (yield from is_click(event)):
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
                lambda: write_traces(recording, cells, Path(path)),
                lambda written: show_info(f"Wrote {written}."),
                lambda sentence, _: show_error(sentence),
            )


def write_traces(recording: Recording, cells: np.ndarray, path: Path) -> Path:
    """Write traces as a table: frame, time in seconds, and a column for each cell."""
    import pandas as pd

    names = [f"cell_{number}" for number in np.asarray(recording.cell_ids)[cells]]
    table = pd.DataFrame(np.asarray(recording.traces[:, cells]), columns=names)
    table.insert(0, "time_s", np.asarray(recording.times))
    table.insert(0, "frame", np.arange(recording.n_frames))
    with whole(path) as file:
        write_csv(table, file)
    return path
