"""Discovers what nobody recorded: a table of hidden factors, their maps and their courses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyqtgraph
from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import (
    QAbstractItemView,
    QCheckBox,
    QFileDialog,
    QHeaderView,
    QPushButton,
    QTableWidget,
    QTableWidgetItem,
    QWidget,
)
from superqt.utils import signals_blocked

from napari_xcebra.attribution.discovery.hidden import METHOD, HiddenFactors
from napari_xcebra.errors import InputError
from napari_xcebra.jobs import Job, tasks
from napari_xcebra.text import duration
from napari_xcebra.widgets.controls.boxes import SMALL, PlainLabel
from napari_xcebra.widgets.controls.layouts import Fold, in_row
from napari_xcebra.widgets.controls.napari_window import follow
from napari_xcebra.widgets.controls.notice import WorkBar
from napari_xcebra.widgets.layers.scores import score_layer
from napari_xcebra.widgets.plots.plot_style import dress, plain_plot, style_of
from napari_xcebra.widgets.services.jobs import Work, in_background
from napari_xcebra.widgets.state.state import KEY

if TYPE_CHECKING:
    from napari_xcebra.widgets.window import Services
    from napari_xcebra.workspace_file import Opened


HELP = (
    "Finds what several cells share and nobody recorded: how many hidden factors, the course of "
    "each, and its cells. Needs no training."
)
NAME, SCALE, CELLS, GOES_WITH = range(4)
ROW, MOST_ROWS = 26, 6
COURSE_HEIGHT = 110
JOB = "discover"


class HiddenPanel(Fold):
    """A button, a table of what was found, and the map and course of the selected factor."""

    said = Signal(str, str, str)
    """A sentence for the dock's notice, its tone, and details."""

    def __init__(self, services: Services) -> None:
        super().__init__("Discover what nobody recorded", HELP)
        self._services, self._state, self._jobs = services, services.state, services.jobs
        self._found: dict[str, HiddenFactors] = {}
        """What was found, by the token of the recording."""
        self._make_parts()
        self.follow_theme(self._state.viewer.theme)
        for part in (
            self.beyond,
            _in_widget((self.start, 1), self.stop),
            self.progress,
            self.table,
            self.sentence,
            self.course,
            _in_widget(self.use, self.save_button, self.load_button, 1, spacing=4),
        ):
            self.addWidget(part)
        self._connect()
        self.show_recording()

    def _make_parts(self) -> None:
        self.beyond = QCheckBox("Beyond the recorded variables")
        self.beyond.setToolTip(
            "First remove what the recorded variables explain, so that only what is left is found."
        )
        self.start = QPushButton("Discover")
        self.start.setToolTip(HELP)
        self.stop = QPushButton("Cancel")
        self.stop.setToolTip("End the search for hidden factors; nothing is kept of it.")
        self.progress = WorkBar("How much is done, and the time left.")
        self.table = QTableWidget(0, 4)
        self.table.setHorizontalHeaderLabels(["Hidden factor", "Scale", "Cells", "Goes with"])
        self.table.setToolTip("Click a factor to paint its cells; double-click to name it.")
        self.table.verticalHeader().hide()
        self.table.verticalHeader().setDefaultSectionSize(ROW)
        header = self.table.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(GOES_WITH, QHeaderView.ResizeMode.Stretch)
        self.table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.sentence = PlainLabel(wrap=True)
        self.course = plain_plot()
        self.course.setFixedHeight(COURSE_HEIGHT)
        self.course.setToolTip("Course of the selected factor, over the recording.")
        self.use = _small("Use as variable", "Add the courses to the behaviour, for training.")
        self.save_button = _small("Save…", "Write tables and a file that can be loaded again.")
        self.load_button = _small("Load…", "Open hidden.npz that was saved for this recording.")

    def _connect(self) -> None:
        self.start.clicked.connect(lambda _=False: self.discover())
        self.stop.clicked.connect(lambda _=False: self._jobs.cancel())
        self.table.itemSelectionChanged.connect(self._show_selected)
        self.table.itemChanged.connect(self._rename)
        self.use.clicked.connect(lambda _=False: self.use_as_variables())
        self.save_button.clicked.connect(lambda _=False: self.save())
        self.load_button.clicked.connect(lambda _=False: self.load())
        follow(self, self._jobs.changed, self._show_work)
        follow(self, self._state.recording_changed, self.show_recording)

    # ------------------------------------------------------------ doing

    @property
    def found(self) -> HiddenFactors | None:
        """What was found in the recording in front."""
        opened = self._state.current
        return None if opened is None else self._found.get(opened.token)

    @property
    def busy(self) -> bool:
        """Whether it is under way."""
        return self._jobs.awaits(JOB)

    def discover(self) -> Job | None:
        """Look for hidden factors in the recording in front; returns the job."""
        opened = self._state.current
        if opened is None or self.busy:
            return None
        given = tuple(opened.recording.behavior) if self.beyond.isChecked() else ()
        return self._jobs.ask(
            Work(
                f"hidden factors of {opened.name}",
                tasks.DISCOVER(opened.recording, given=given),
                lambda found: self._keep(found, opened),
                key=JOB,
                say=self.said.emit,
                long=True,
            )
        )

    def use_as_variables(self) -> None:
        """Add the courses to the recording, as behaviour that can be ticked as factors."""
        opened, found = self._state.current, self.found
        if opened is None or found is None or not len(found):
            return
        self._state.change_recording(opened.recording.with_behavior(*found.variables()))
        self.said.emit(
            f"{', '.join(found.names)}: now variables of this recording; tick them as factors. "
            "A test of them on the same cells is circular.",
            "plain",
            "",
        )

    def save(self, folder: str | Path | None = None) -> None:
        """Write what was found to a folder that the user names."""
        opened, found = self._state.current, self.found
        if opened is None or found is None:
            return
        if folder is None:
            folder = QFileDialog.getExistingDirectory(self, "Save hidden factors in a folder")
        if folder:
            target, times = Path(folder), opened.recording.times
            in_background(
                lambda: found.write(target, times),
                lambda paths: self.said.emit(f"Saved {len(paths)} files in {target}.", "plain", ""),
                lambda sentence, details: self.said.emit(sentence, "problem", details),
                self,
            )

    def load(self, path: str | Path | None = None) -> None:
        """Open what was saved, if it is of the recording in front."""
        opened = self._state.current
        if opened is None:
            return
        if path is None:
            path, _ = QFileDialog.getOpenFileName(self, "Open hidden factors", "", "(*.npz)")
        if path:
            recording, chosen = opened.recording, path
            in_background(
                lambda: HiddenFactors.load(chosen, recording),
                lambda found: self._keep(found, opened),
                lambda sentence, details: self.said.emit(sentence, "problem", details),
                self,
            )

    def _keep(self, found: HiddenFactors, opened: Opened) -> None:
        self._found[opened.token] = found
        if opened is self._state.current:
            self.unfolded = True
            self.show_recording()
            if len(found):
                self.table.selectRow(0)

    # ------------------------------------------------------------ showing

    def show_recording(self) -> None:
        """Show what was found in the recording in front."""
        opened, found = self._state.current, self.found
        self.beyond.setEnabled(opened is not None and bool(opened.recording.behavior))
        self._fill(found)
        self.sentence.setText("" if found is None else found.summary().split("\n")[0])
        self.course.setVisible(False)
        self.sentence.setVisible(found is not None)
        for button in (self.use, self.save_button):
            button.setEnabled(found is not None and len(found) > 0)
        self._show_work()

    def _fill(self, found: HiddenFactors | None) -> None:
        names = () if found is None else found.names
        with signals_blocked(self.table):
            self.table.clearSelection()
            self.table.setRowCount(len(names))
            for row, name in enumerate(names):
                assert found is not None
                factor = found.factors[row]
                perhaps = f"perhaps {factor.may_follow}" if factor.may_follow else ""
                sure = factor.suspicion or ", ".join(factor.follows)
                goes_with = sure or perhaps or "nothing recorded"
                cells = f"{len(found.cells(name))}"
                texts = (name, duration(factor.seconds), cells, goes_with)
                for column, text in enumerate(texts):
                    item = QTableWidgetItem(text)
                    item.setToolTip(found.sentence(name))
                    if column != NAME:
                        item.setFlags(item.flags() & ~Qt.ItemFlag.ItemIsEditable)
                    self.table.setItem(row, column, item)
        self.table.setVisible(bool(names))
        self.table.setFixedHeight((min(len(names), MOST_ROWS) + 1) * ROW + 4)

    def _show_work(self) -> None:
        here = self.busy
        running = self._jobs.runs(JOB)
        self.start.setEnabled(self._state.current is not None and not here)
        self.stop.setEnabled(running)
        self.progress.setVisible(here)
        if here:
            at = self._jobs.progress if running else None
            waits = "" if at else self._jobs.waits_for
            self.progress.show_words(at, waits) if waits else self.progress.show_progress(at)

    def _show_selected(self) -> None:
        """Paint the map of the selected factor, and draw its course."""
        opened, found = self._state.current, self.found
        rows = self.table.selectionModel().selectedRows()
        if opened is None or found is None or not rows:
            return
        name = found.names[rows[0].row()]
        self.sentence.setText(f"{found.sentence(name)}.\n{found.comparison()}")
        self._draw(found.course(name))
        self._paint(opened, found, name)

    def _draw(self, course: np.ndarray) -> None:
        recording = self._state.recording
        assert recording is not None
        self.course.clear()
        times = np.asarray(recording.times)
        for number, values in enumerate(course.T):
            pen = pyqtgraph.mkPen(self._style.lines[number])
            line = pyqtgraph.PlotDataItem(times, values, pen=pen, connect="finite")
            line.setDownsampling(auto=True, method="peak")
            self.course.addItem(line)
        self.course.setLabel("bottom", "seconds")
        self.course.setVisible(True)

    def _paint(self, opened: Opened, found: HiddenFactors, name: str) -> None:
        """Show the layer of a factor alone among those of hidden factors; made if there is none."""
        if opened.recording.footprints is None:
            return
        viewer, shown, told = self._state.viewer, None, f"{found.sentence(name)}."
        for layer in self._state.layers.of(opened, "scores"):
            entry = layer.metadata[KEY]
            if entry.get("method") == METHOD:
                same = entry.get("factor") == name and entry.get("verdict") == told
                shown = layer if same else shown
            layer.visible = False
        if shown is None:
            scores = found.attribution(opened.recording)
            shown = score_layer(opened.recording, scores, name, token=opened.token)
            viewer.add_layer(shown)
        shown.visible = True

    def _rename(self, item: QTableWidgetItem) -> None:
        opened, found = self._state.current, self.found
        if opened is None or found is None or item.column() != NAME:
            return
        try:
            self._found[opened.token] = found.renamed(found.names[item.row()], item.text())
        except InputError as error:
            self.said.emit(str(error), "problem", "")
        row = item.row()
        self.show_recording()
        self.table.selectRow(row)

    def follow_theme(self, theme: str) -> None:
        """Draw in the colours of a theme of napari."""
        self._style = style_of(theme)
        dress(self.course, self._style)


def _in_widget(*parts: Any, spacing: int | None = None) -> QWidget:
    line = QWidget()
    in_row(*parts, of=line, spacing=spacing)
    return line


def _small(text: str, tooltip: str) -> QPushButton:
    button = QPushButton(text)
    button.setStyleSheet(SMALL)
    button.setToolTip(tooltip)
    return button
