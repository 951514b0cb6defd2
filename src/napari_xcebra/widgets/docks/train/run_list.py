"""Lists the runs of a recording: select, rename, delete, compare, save and load."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import (
    QAbstractItemView,
    QFileDialog,
    QHeaderView,
    QMenu,
    QMessageBox,
    QPushButton,
    QTableWidget,
    QTableWidgetItem,
    QWidget,
)
from superqt.utils import signals_blocked

from napari_xcebra.errors import InputError
from napari_xcebra.io.opening import Opening
from napari_xcebra.runs import Run, free_name
from napari_xcebra.widgets.controls.boxes import SMALL, plain
from napari_xcebra.widgets.controls.layouts import in_column, in_row
from napari_xcebra.widgets.controls.napari_window import follow
from napari_xcebra.widgets.services.jobs import in_background
from napari_xcebra.widgets.services.run_jobs import HELP, RunWriter
from napari_xcebra.widgets.state.shown import best_factor, best_method
from napari_xcebra.widgets.window import Services

NAME, TIME, VERDICT = range(3)
ROW, MOST_ROWS = 26, 5
WAYS = {
    "statistics": (
        "The same cells, under the same ids",
        "No training. Cells are matched by id: right if the days were registered to each "
        "other, wrong if the extractor renumbered the cells.",
    ),
    "input-layer": (
        "Other cells: train the input layer",
        "For another animal, or renumbered cells. All other layers stay as they are.",
    ),
}
"""How a run may be carried over, by the name in the library: title and help."""


class RunList(QWidget):
    """One row per run; the selected run is painted."""

    said = Signal(str, str, str)
    """A sentence for the dock's notice, its tone, and details."""
    comparing = Signal(str)
    """Name of a run to show next to the selected one."""
    carrying = Signal(str, object, str)
    """A run of another recording to bring to this one, the name of that recording, and how."""

    def __init__(self, services: Services) -> None:
        super().__init__()
        self._state = services.state
        self._writer = RunWriter(services, self.said.emit, self)
        self._table = QTableWidget(0, 3)
        self._table.setHorizontalHeaderLabels(["Run", "Time", "Verdict"])
        self._table.setToolTip("Click a run to paint it; double-click its name to rename it.")
        self._table.verticalHeader().hide()
        header = self._table.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(VERDICT, QHeaderView.ResizeMode.Stretch)
        self._table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self._table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self._table.verticalHeader().setDefaultSectionSize(ROW)
        self._table.itemSelectionChanged.connect(self._chosen)
        self._table.itemChanged.connect(self._renamed)
        self._save = _button("Save…", "Write the selected run to a folder.", self.save)
        self._load = _button("Load…", "Open a saved run.", self.load)
        self._report = _button("Report…", HELP, self.report)
        self._delete = _button("Delete", "Remove the selected run from this list.", self._ask)
        self._compare = QPushButton("Compare")
        self._compare.setToolTip("Show another run next to the selected one.")
        self._others = QMenu(self._compare)
        self._others.triggered.connect(lambda action: self.comparing.emit(action.text()))
        self._compare.setMenu(self._others)
        self._of_runs = (self._compare, self._report, self._save, self._delete)
        for button in (*self._of_runs, self._load):
            button.setStyleSheet(SMALL)  # side by side they must not widen the dock
        self._carry = QPushButton("Carry a run over")
        self._carry.setToolTip(
            "Apply a run from another recording to this one: the same cells on another day, or "
            "other cells. It is evaluated again here."
        )
        self._elsewhere = QMenu(self._carry)
        self._carry.setMenu(self._elsewhere)
        buttons = in_row(*self._of_runs, 1, self._load, spacing=4)
        in_column(self._table, buttons, self._carry, of=self)
        follow(self, self._state.runs_changed, self.refresh)
        follow(self, self._state.shown_changed, self._mark_shown)
        self.refresh()

    @property
    def selected(self) -> Run | None:
        """The run whose row is selected."""
        row, runs = self._table.currentRow(), self._state.runs
        return runs[row] if 0 <= row < len(runs) else None

    def refresh(self) -> None:
        """Show the runs of the current recording."""
        runs = self._state.runs
        with signals_blocked(self._table):
            self._table.setRowCount(len(runs))
            for row, run in enumerate(runs):
                texts = (run.name, run.created[11:16], run.verdict)
                for column, text in enumerate(texts):
                    item = QTableWidgetItem(text)
                    item.setToolTip(plain(_tooltip(run)))
                    if column != NAME:
                        item.setFlags(item.flags() & ~Qt.ItemFlag.ItemIsEditable)
                    self._table.setItem(row, column, item)
        # as tall as its rows, so that what is below needs no scrolling
        for part in (self._table, *self._of_runs):
            part.setVisible(bool(runs))
        self._load.setText("Load…" if runs else "Load a run…")
        header = self._table.horizontalHeader().sizeHint().height()
        self._table.setFixedHeight(header + min(len(runs), MOST_ROWS) * ROW + 4)
        self._mark_shown()
        self._load.setEnabled(self._state.current is not None)
        self._list_elsewhere()

    def _list_elsewhere(self) -> None:
        """Runs of other recordings, if there are any."""
        self._elsewhere.clear()
        for opened in self._state.opened:
            if opened is self._state.current:
                continue
            for run in opened.runs:
                ways = self._elsewhere.addMenu(f"{opened.name} · {run.name}")
                ways.setToolTipsVisible(True)
                for how, (title, help) in WAYS.items():
                    action = ways.addAction(title, partial(self._carry_over, opened.name, run, how))
                    action.setToolTip(plain(help))
        self._carry.setVisible(bool(self._elsewhere.actions()))

    def _carry_over(self, recording: str, run: Run, how: str) -> None:
        self.carrying.emit(recording, run, how)

    def save(self, folder: str | Path | None = None) -> None:
        """Write the selected run to a folder that the user names."""
        run, opened = self.selected, self._state.current
        if run is None or opened is None:
            return
        if not folder:
            start = Path(opened.recording.source or ".").parent / f"{opened.name}-{run.name}"
            folder, _ = QFileDialog.getSaveFileName(self, "Save run as a folder", str(start))
        if folder:

            def saved(path: Path) -> None:
                self._state.saved_runs.mark([run])
                self.said.emit(f"Saved {run.name} to {path}.", "good", "")

            in_background(
                lambda: _saved(run, folder, opened.opening),
                saved,
                lambda sentence, details: self.said.emit(sentence, "problem", details),
            )

    def report(self, path: str | Path | None = None) -> None:
        """Write a page about the selected run, and open it in the browser."""
        run, opened = self.selected, self._state.current
        if run is not None and opened is not None:
            self._writer.report(opened, run, path)

    def load(self, folder: str | Path | None = None) -> None:
        """Add a run from a folder that the user names."""
        opened = self._state.current
        if opened is None:
            return
        if not folder:
            folder = QFileDialog.getExistingDirectory(self, "Open a saved run")
        if folder:

            def loaded(run: Run) -> None:
                self._state.saved_runs.mark([run])
                self._state.add_run(run, opened)

            in_background(
                lambda: _fitting_run(folder, opened.recording),
                loaded,
                lambda sentence, details: self.said.emit(sentence, "problem", details),
            )

    def _ask(self) -> None:
        run = self.selected
        if run is None:
            return
        answer = QMessageBox.question(
            self, "Delete run", plain(f"Delete {run.name}? Unsaved results will be lost.")
        )
        if answer == QMessageBox.StandardButton.Yes:
            self.delete()

    def delete(self) -> None:
        """Remove the selected run."""
        if (run := self.selected) is not None:
            self._state.remove_run(run.name)

    def _chosen(self) -> None:
        run, shown = self.selected, self._state.shown
        self._mark_buttons()
        if run is not None and run.name != shown.run:
            factor = shown.factor if shown.factor in run.fit.factors else best_factor(run)
            # runs are compared by one method, except for the first one painted
            first = self._state.shown_run is None
            method = best_method(run, shown.method) if first else shown.method
            self._state.shown = replace(
                shown, run=run.name, factor=factor, latent=None, method=method
            )

    def _renamed(self, item: QTableWidgetItem) -> None:
        runs = self._state.runs
        if item.column() != NAME or item.row() >= len(runs):
            return
        run = runs[item.row()]
        others = [other.name for other in runs if other is not run]
        name = free_name(item.text().strip() or run.name, others)
        if name != run.name:
            self._state.replace_run(run.name, replace(run, name=name))
        else:
            item.setText(name)

    def _mark_shown(self) -> None:
        names = [run.name for run in self._state.runs]
        with signals_blocked(self._table):
            if self._state.shown.run in names:
                self._table.selectRow(names.index(self._state.shown.run))
        self._mark_buttons()

    def _mark_buttons(self) -> None:
        run = self.selected
        for button in (self._report, self._save, self._delete):
            button.setEnabled(run is not None)
        self._others.clear()
        for other in self._state.runs if run is not None else ():
            if other is not run and other.attributions:
                self._others.addAction(other.name)
        self._compare.setEnabled(bool(self._others.actions()))


def _saved(run: Run, folder: str | Path, opening: Opening | None) -> Path:
    """Folder that a run was written to, with how its recording was opened."""
    written = run.save(folder)
    if opening is not None:
        opening.save(written)
    return written


def _fitting_run(folder: str | Path, recording: object) -> Run:
    run = Run.load(folder, recording)  # type: ignore[arg-type]
    try:
        run.fit.inputs.columns(recording)  # type: ignore[arg-type]
    except InputError as error:
        raise InputError(f"{Path(folder).name} does not fit this recording. {error}") from error
    return run


def _tooltip(run: Run) -> str:
    lines = [f"{run.name}, {run.created.replace('T', ' ')}"]
    lines += [goodness.verdict for goodness in run.fit.goodness.values()]
    return "\n".join(lines)


def _button(text: str, tooltip: str, clicked: object) -> QPushButton:
    button = QPushButton(text)
    button.setToolTip(tooltip)
    button.clicked.connect(lambda _=False: clicked())  # type: ignore[operator]
    return button
