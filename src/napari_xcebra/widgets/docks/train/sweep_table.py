"""Summarises a sweep, one row per run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from qtpy.QtCore import Qt, Signal
from qtpy.QtGui import QColor, QPainter, QPixmap
from qtpy.QtWidgets import QAbstractItemView, QHeaderView, QTableWidget, QTableWidgetItem

from napari_xcebra.sweeps.plan import knob_name
from napari_xcebra.sweeps.summary import decoded_in, found_in
from napari_xcebra.text import two
from napari_xcebra.widgets.controls.boxes import plain
from napari_xcebra.widgets.controls.notice import EDGES

if TYPE_CHECKING:
    import pandas as pd

MARK = 10
"""Pixels across a mark."""
_KNOBS = {"lambda": "lambda_", "shift_s": "shift"}
_LAST = {
    "lambda found": (
        "λ found",
        "Final λ of the run, given or found; the largest over its factors.",
    ),
    "seconds": ("seconds", "Duration of the run."),
    "failure": ("failure", "Why the run failed."),
}
COLORS = {"clear": EDGES["good"], "weak": EDGES["warning"], "failed": EDGES["problem"]}


@dataclass(frozen=True)
class Column:
    """Title, help, and the text and colour of each cell."""

    title: str
    help: str
    cells: list[tuple[str, str]]


class SweepTable(QTableWidget):
    """What was varied, the status, and goodness and verdict of every factor."""

    opened = Signal(str)
    """Id of the run that was double-clicked."""

    def __init__(self) -> None:
        super().__init__(0, 0)
        self.setToolTip("Double-click a finished run to open it.")
        self.verticalHeader().hide()
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        self._ids: list[str] = []
        self._finished: list[bool] = []
        self.itemDoubleClicked.connect(lambda item: self._open(item.row()))

    @property
    def selected(self) -> str:
        """Id of the selected run, if it is finished; else empty."""
        # not the current row: the keyboard's, which Qt sets without selecting it
        rows = {index.row() for index in self.selectedIndexes()}
        found = (self._ids[row] for row in rows if row < len(self._ids) and self._finished[row])
        return next(found, "")

    @property
    def any_finished(self) -> bool:
        """Whether any run shown is finished."""
        return self.rowCount() > 0 and any(self._finished)

    def show_summary(self, summary: pd.DataFrame) -> None:
        """Show the table of `SweepFolder.summary`."""
        selected = self.selected
        self._ids = [str(each) for each in summary["id"]]
        self._finished = [status == "finished" for status in summary["status"]]
        columns = _columns(summary)
        self.setColumnCount(len(columns))
        self.setHorizontalHeaderLabels([column.title for column in columns])
        self.setRowCount(len(summary))
        for place, column in enumerate(columns):
            self.horizontalHeaderItem(place).setToolTip(plain(column.help))
            for row, (text, color) in enumerate(column.cells):
                self.setItem(row, place, _item(text, color))
        if selected in self._ids:
            self.selectRow(self._ids.index(selected))

    def _open(self, row: int) -> None:
        if self._finished[row]:
            self.opened.emit(self._ids[row])


def _columns(summary: pd.DataFrame) -> list[Column]:
    names = [str(name) for name in summary]
    before = names[1 : names.index("status")]
    varied = [name for name in before if summary[name].nunique() > 1] or ["recording"]
    columns = [
        _plain(
            summary, name, knob_name(_KNOBS.get(name, name)), "Setting that differs between runs."
        )
        for name in varied
    ]
    status = [(str(value), COLORS.get(str(value), "")) for value in summary["status"]]
    columns.append(Column("status", "Failed runs are tried again at the next start.", status))
    for factor in (name.removeprefix("verdict ") for name in names if name.startswith("verdict ")):
        columns.append(_verdicts(summary, factor))
        if f"auroc {factor}" in names:
            help = "How well the scores find the cells known to carry it."
            columns.append(_plain(summary, f"auroc {factor}", f"auROC of {factor}", help))
    for name, (title, help) in _LAST.items():
        if name in names:
            columns.append(_plain(summary, name, title, help))
    return columns


def _plain(summary: pd.DataFrame, name: str, title: str, help: str) -> Column:
    return Column(title, help, [(_text(value), "") for value in summary[name]])


def _verdicts(summary: pd.DataFrame, factor: str) -> Column:
    """Goodness and verdict of a factor; empty where a run has none yet."""
    cells = []
    for _, row in summary.iterrows():
        verdict = row[f"verdict {factor}"]
        known = isinstance(verdict, str)
        nats = f"{two(row[f'goodness {factor}'])} nats"
        words = [nats, decoded_in(row, factor), verdict if known else "", found_in(row, factor)]
        told = ", ".join(filter(None, words)) if known else ""
        cells.append((told, COLORS.get(str(verdict), "")))
    help = (
        f"Goodness of {factor} above chance on held-out blocks, how well it is decoded "
        "(compared with ridge regression on the cells), the verdict, and cells at q ≤ 0.1."
    )
    return Column(factor, help, cells)


def _item(text: str, color: str) -> QTableWidgetItem:
    item = QTableWidgetItem(text)
    item.setToolTip(plain(text))
    if color:
        # a coloured mark, since the text must be readable on any theme
        item.setData(Qt.ItemDataRole.DecorationRole, _mark(color))
    item.setTextAlignment(Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft)
    return item


def _mark(color: str) -> QPixmap:
    """A dot."""
    picture = QPixmap(MARK, MARK)
    picture.fill(Qt.GlobalColor.transparent)
    painter = QPainter(picture)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setBrush(QColor(color))
    painter.setPen(Qt.PenStyle.NoPen)
    painter.drawEllipse(1, 1, MARK - 2, MARK - 2)
    painter.end()
    return picture


def _text(value: Any) -> str:
    import pandas as pd

    if isinstance(value, float):
        return "" if pd.isna(value) else f"{value:.3g}"
    return "" if value is None else str(value)
