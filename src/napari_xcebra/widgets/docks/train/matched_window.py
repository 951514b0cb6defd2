"""Compares the scores of cells that CellReg or ROICaT found on several days."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from qtpy.QtCore import Qt
from qtpy.QtWidgets import (
    QAbstractItemView,
    QComboBox,
    QDialog,
    QFileDialog,
    QLabel,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from napari_xcebra.attribution.matched import MatchedScores
from napari_xcebra.attribution.methods import title_of_method
from napari_xcebra.recording.matching import MISSING
from napari_xcebra.recording.session_names import session_names
from napari_xcebra.widgets.controls.boxes import PlainLabel
from napari_xcebra.widgets.controls.forms import PathField
from napari_xcebra.widgets.controls.layouts import in_form, in_row
from napari_xcebra.widgets.controls.napari_window import follow
from napari_xcebra.widgets.controls.notice import Notice
from napari_xcebra.widgets.docks.train.matched_days import compare_days
from napari_xcebra.widgets.services.jobs import in_background
from napari_xcebra.workspace_file import Opened

if TYPE_CHECKING:
    from napari_xcebra.widgets.window import Services

HELP = (
    "Choose the file in which your program says which cells are the same: CellReg "
    "(cellRegistered….mat), ROICaT (….results_clusters.json), or a table with a column for each "
    "session. Each session is scored by its newest run."
)
ORDER = (
    "Sessions in the order in which they were matched. Drag to reorder, double-click to rename, "
    "untick to leave one out."
)


class MatchedWindow(QDialog):
    """The matching file, the sessions, and a table with a row for each cell found twice or more."""

    def __init__(self, services: Services, parent: QWidget) -> None:
        super().__init__(parent)
        self.state = services.state
        self.found: MatchedScores | None = None
        self._opened: list[Opened] = []
        # the columns of the table, whatever was opened, closed or dragged since
        self._compared: list[Opened] = []
        self.setWindowTitle("The same cells, day by day")
        self.resize(720, 640)
        self.file = PathField("matched cells", HELP, "CellReg, ROICaT or a table")
        self.sessions = QListWidget()
        self.sessions.setDragDropMode(QAbstractItemView.DragDropMode.InternalMove)
        self.sessions.setToolTip(ORDER)
        self.sessions.setMaximumHeight(120)
        self.compare = QPushButton("Compare")
        self.compare.setToolTip("Match the cells of these sessions, and compare their scores.")
        self.factor = QComboBox()
        self.factor.setToolTip("The factor whose scores are compared.")
        self.summary = PlainLabel(wrap=True)
        self.table = QTableWidget()
        self.table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.table.setToolTip("Score of each cell and its id; select a row to see it in the image.")
        self.save = QPushButton("Save table…")
        self.save.setToolTip("Write a row for each cell, session and factor as .csv.")
        self.notice = Notice(lasting=True)
        self._lay_out()
        self.compare.clicked.connect(lambda _=False: self.begin())
        self.save.clicked.connect(lambda _=False: self._save())
        self.factor.currentTextChanged.connect(lambda _: self._show_factor())
        self.table.itemSelectionChanged.connect(self._select)
        self.file.changed.connect(self._show_ready)
        follow(self, self.state.recording_changed, self.show_sessions)
        self.show_sessions()

    def _lay_out(self) -> None:
        layout = QVBoxLayout(self)
        layout.addWidget(PlainLabel(HELP, wrap=True))
        layout.addLayout(in_form(("Matched cells", self.file), ("Sessions", self.sessions)))
        layout.addLayout(in_row(QLabel("Factor"), (self.factor, 1), self.compare))
        layout.addWidget(self.notice)
        layout.addWidget(self.summary)
        layout.addWidget(self.table, 1)
        layout.addWidget(self.save, 0, Qt.AlignmentFlag.AlignRight)
        self._show_ready()

    def show_sessions(self, *_: object) -> None:
        """List the recordings of the window under the names of their days."""
        opened = list(self.state.opened)
        if opened == self._opened:
            return
        self._opened = opened
        self.sessions.clear()
        names = session_names([each.recording.source or each.name for each in opened])
        for name, each in sorted(zip(names, opened, strict=True), key=lambda pair: pair[0]):
            item = QListWidgetItem(name)
            item.setFlags(
                item.flags() | Qt.ItemFlag.ItemIsUserCheckable | Qt.ItemFlag.ItemIsEditable
            )
            item.setCheckState(Qt.CheckState.Checked)
            item.setData(Qt.ItemDataRole.UserRole, each.token)
            item.setToolTip(f"{each.name}. {ORDER}")
            self.sessions.addItem(item)

    @property
    def chosen(self) -> dict[str, Opened]:
        """Ticked recordings by the names of their sessions, in their order."""
        by_token = {each.token: each for each in self._opened}
        items = [self.sessions.item(row) for row in range(self.sessions.count())]
        ticked = [item for item in items if item.checkState() == Qt.CheckState.Checked]
        return {item.text(): by_token[item.data(Qt.ItemDataRole.UserRole)] for item in ticked}

    def begin(self) -> None:
        """Read the file, match the cells and compare them."""
        path, chosen = self.file.path, self.chosen
        if path is None:
            return
        self.notice.clear()
        self.compare.setEnabled(False)
        show = partial(self._show, list(chosen.values()))
        compare_days(path, chosen, self.state.viewer, show, self._failed, self)

    def _failed(self, sentence: str, details: str) -> None:
        self.notice.say(sentence, "problem", details)
        self.found = None
        self.summary.clear()
        self.table.setRowCount(0)
        self._show_ready()

    def _show(self, compared: list[Opened], found: MatchedScores) -> None:
        self.found, self._compared = found, compared
        self.factor.blockSignals(True)
        self.factor.clear()
        self.factor.addItems(found.factors)
        self.factor.blockSignals(False)
        self._show_ready()
        self._show_factor()

    def _show_ready(self) -> None:
        self.compare.setEnabled(self.file.path is not None)
        self.save.setEnabled(self.found is not None)

    def _show_factor(self) -> None:
        found, factor = self.found, self.factor.currentText()
        if found is None or not factor:
            return
        self.summary.setText(f"{found.summary()}\nBy {title_of_method(found.method)}.")
        scores, ids = found.scores[factor], found.matching.ids
        order = np.argsort(-np.nan_to_num(scores, nan=0.0).sum(axis=1), kind="stable")
        self.table.setColumnCount(len(found.sessions))
        self.table.setHorizontalHeaderLabels(list(found.sessions))
        self.table.setRowCount(len(ids))
        self.table.setVerticalHeaderLabels([str(match) for match in order])
        for row, match in enumerate(order):
            for column, (cell, score) in enumerate(zip(ids[match], scores[match], strict=True)):
                item = QTableWidgetItem(_cell_text(int(cell), float(score)))
                item.setData(Qt.ItemDataRole.UserRole, int(cell))
                self.table.setItem(row, column, item)
        self.table.resizeColumnsToContents()

    def _select(self) -> None:
        """Select the cells of the chosen rows in the recording that is in front."""
        current = self.state.current
        if current is None or current not in self._compared:
            return
        column = self._compared.index(current)
        rows = sorted({index.row() for index in self.table.selectedIndexes()})
        cells = [self.table.item(row, column).data(Qt.ItemDataRole.UserRole) for row in rows]
        places = {int(cell): i for i, cell in enumerate(np.asarray(current.recording.cell_ids))}
        self.state.select([places[cell] for cell in cells if cell != MISSING])

    def _save(self) -> None:
        path, _ = QFileDialog.getSaveFileName(self, "Save table", "matched.csv", "Tables (*.csv)")
        if path and self.found is not None:
            found = self.found
            in_background(
                lambda: found.to_csv(path),
                lambda _: self.notice.say(f"Saved {path}.", "good"),
                lambda sentence, details: self.notice.say(sentence, "problem", details),
                self,
            )


def _cell_text(cell: int, score: float) -> str:
    if cell == MISSING:
        return "–"
    return f"{score:.3f} (cell {cell})" if np.isfinite(score) else f"no score (cell {cell})"
