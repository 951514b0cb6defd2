"""Opens recordings, samples and projects in the background, and what is dropped on the image."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import ref

import numpy as np
from qtpy.QtCore import QEvent, QObject, QSize, Qt, QTimer, Signal
from qtpy.QtGui import QDragLeaveEvent, QIcon
from qtpy.QtWidgets import (
    QApplication,
    QLabel,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QTableWidget,
    QTableWidgetItem,
)

from napari_xcebra.batch import SweepFolder
from napari_xcebra.batch.running import ComputePlace
from napari_xcebra.errors import InputError
from napari_xcebra.io.containers.npy import mapped_header
from napari_xcebra.io.containers.video import is_video
from napari_xcebra.io.kinds import with_kinds
from napari_xcebra.io.orientation import LayoutUnclear
from napari_xcebra.jobs import tasks
from napari_xcebra.learn.data.factors import TIME
from napari_xcebra.readers import SAMPLES
from napari_xcebra.text import counted
from napari_xcebra.widgets.controls.boxes import plain, primary_button
from napari_xcebra.widgets.controls.forms import PathField, dropped_paths
from napari_xcebra.widgets.controls.layouts import in_row, keep_room
from napari_xcebra.widgets.controls.napari_window import (
    before_opening,
    main_window,
    parts_that_take_drops,
    real_viewer,
)
from napari_xcebra.widgets.controls.notice import ResultWindow, WorkBar, time_left
from napari_xcebra.widgets.layers.layers import recording_layers
from napari_xcebra.widgets.services.jobs import ActivityBar, in_background
from napari_xcebra.widgets.services.reading import (
    Openings,
    add_kept_size,
    has_movie,
    has_poses,
    recognised,
    result_of,
)
from napari_xcebra.widgets.state.preferences import keep_pixel_size, preferred_settings
from napari_xcebra.widgets.state.state import LayerTuple, State, collect_while_waiting, shown_by
from napari_xcebra.workspace_file import Opened, is_workspace

if TYPE_CHECKING:
    import pandas as pd
    from qtpy.QtWidgets import QWidget

    from napari_xcebra.batch.project import Session
    from napari_xcebra.io.opening import Opening
    from napari_xcebra.jobs import Job
    from napari_xcebra.recording import Recording
    from napari_xcebra.widgets.window import Services

TABLES = (".csv", ".tsv", ".txt", ".parquet", ".xlsx")
"""Files that hold traces as often as behaviour."""


class _Loaded(NamedTuple):
    """A recording that is ready to be shown.

    Parameters
    ----------
    recording : Recording
    layers : list of (data, arguments, type)
        Making them involves reading traces and drawing cells.
    opening : Opening or None
    """

    recording: Recording
    layers: list[LayerTuple]
    opening: Opening | None = None


def read(job: Job, opening: Opening) -> _Loaded | LayoutUnclear:
    """Wait until a recording is read from its files, or a question about it; in a thread."""
    try:
        recording = result_of(job)
    except LayoutUnclear as unclear:
        return unclear
    return _Loaded(recording, recording_layers(recording), opening)


def _simulate(key: str) -> _Loaded:
    """Make one of the samples."""
    recording = SAMPLES[key].make()
    return _Loaded(recording, recording_layers(recording))


def _put_into(state: State, loaded: _Loaded) -> None:
    """Show a recording; one that was opened again replaces the earlier one."""
    before = state.current
    again = before if before and _is_from(before, loaded.opening) else None
    if again is not None and _same_cells(again, loaded.recording):
        again.opening = loaded.opening
        state.change_recording(loaded.recording)
        _adjust_contrast(state, again, loaded.layers)
        return
    state.show(loaded.recording, loaded.opening, loaded.layers)
    if again is not None and not again.runs:
        state.forget(again)
    collect_while_waiting()


def _with_kind(opened: Opened, name: str, kind: str) -> Recording:
    """Recording with a variable of another kind, which is noted in how it was opened."""
    changed = with_kinds(opened.recording, {name: kind})  # type: ignore[dict-item]
    if opened.opening is not None:
        kinds = {**opened.opening.kinds, name: kind}
        opened.opening = replace(opened.opening, kinds=kinds)  # type: ignore[arg-type]
    return changed


def _with_pixel_size(opened: Opened, size: float) -> Recording:
    """Recording with pixels of another size, in micrometres; remembered for its path.

    0 gives back what the file says once it is opened again, and none until then.
    """
    if opened.opening is not None:
        settings = replace(opened.opening.settings, pixel_size=size)
        opened.opening = replace(opened.opening, settings=settings)
        keep_pixel_size(opened.opening.path, size)
    return replace(opened.recording, pixel_size=size or None)


def _take_behavior(state: State, opened: Opened, opening: Opening, recording: Recording) -> None:
    """Give a recording the behaviour that was read anew, unless it was opened again since."""
    if opened.opening is opening:
        state.change_recording(replace(opened.recording, behavior=recording.behavior), opened)


def _is_from(opened: Opened, opening: Opening | None) -> bool:
    """Whether a recording was opened from the same path."""
    return bool(opening and opened.opening and opened.opening.path == opening.path)


def _same_cells(opened: Opened, recording: Recording) -> bool:
    """Whether a recording can take the place of another under the same layers and runs."""
    before = opened.recording
    if before.traces.shape != recording.traces.shape:
        return False
    if not np.array_equal(np.asarray(before.cell_ids), np.asarray(recording.cell_ids)):
        return False
    return np.array_equal(opened.labels, Opened("", recording, "").labels)


def _adjust_contrast(state: State, opened: Opened, layers: list[LayerTuple]) -> None:
    """Give layers in the viewer the contrast of newly made ones: traces have another scale."""
    limits = {
        shown_by(arguments["metadata"]): arguments["contrast_limits"]
        for _, arguments, _ in layers
        if "contrast_limits" in arguments
    }
    for layer in state.layers.of(opened):
        if (shown := shown_by(layer.metadata)) in limits:
            layer.reset_contrast_limits_range()
            layer.contrast_limits = limits[shown]


class Opener(QObject):
    """What is read takes the front; what is cancelled meanwhile is thrown away."""

    changed = Signal()
    """It began to read, or ended."""
    began = Signal(str)
    """Name of what is read."""
    shown = Signal(object)
    """A recording was read, and is in front now."""
    failed = Signal(str, str)
    """A sentence, and details."""
    asked = Signal(object, object)
    """Which axis is cells (`LayoutUnclear`), and a function of the layout that is the answer."""

    def __init__(self, services: Services, owner: QWidget) -> None:
        super().__init__(owner)
        self._services, self._state, self._owner = services, services.state, owner
        self._reading: ActivityBar | None = None
        self._openings = Openings(owner, services.state.viewer)
        owner.destroyed.connect(self._end)

    @property
    def busy(self) -> bool:
        """Whether something is being read."""
        return self._reading is not None

    def open(self, opening: Opening, *, replacing: bool) -> None:
        """Read a recording; `replacing`, it takes the place of the one in front."""
        opening = self._with_size(opening)
        job = self._openings.submit(opening)

        def answer(layout: str) -> None:
            settings = replace(opening.settings, layout=layout)  # type: ignore[arg-type]
            self.open(replace(opening, settings=settings), replacing=replacing)

        self._load(lambda: read(job, opening), opening.path.name, replacing, answer)

    def open_sample(self, key: str, *, replacing: bool) -> None:
        """Simulate a recording."""
        self._load(lambda: _simulate(key), SAMPLES[key].title, replacing)

    def cancel(self) -> None:
        """Stop reading, and discard what was read."""
        self._openings.cancel()
        self._end()
        self.changed.emit()

    def again(self, opening: Opening) -> Opening | None:
        """How to open the recording in front again, if that is what is to be opened."""
        current = self._state.current
        if current is None or current.opening is None or not _is_from(current, opening):
            return None
        return replace(opening, kinds=current.opening.kinds)

    def change_kind(
        self, opened: Opened, name: str, kind: str, failed: Callable[[str, str], None]
    ) -> None:
        """Give a variable of the recording in front another kind, and read behaviour again.

        An angle that was averaged as a plain number must be averaged again.
        """
        changed = _with_kind(opened, name, kind)
        if opened.opening is not None:
            take = partial(_take_behavior, self._state, opened, opened.opening)
            job = self._openings.submit(opened.opening)
            in_background(partial(result_of, job), take, failed, owner=self._owner)
        self._state.change_recording(changed)

    def change_pixel_size(self, opened: Opened, size: float) -> None:
        """Give the recording in front pixels of so many micrometres; 0: not known."""
        self._state.change_recording(_with_pixel_size(opened, size))

    def _with_size(self, opening: Opening) -> Opening:
        """The size of a pixel as it was given before, unless the form says otherwise."""
        size, current = opening.settings.pixel_size, self._state.current
        if size or (current is not None and _is_from(current, opening)):
            keep_pixel_size(opening.path, size)
        return add_kept_size(opening)

    def _end(self) -> None:
        if self._reading is not None:
            self._reading.close()
        self._reading = None

    def _load(
        self,
        work: Callable[[], _Loaded | LayoutUnclear],
        name: str,
        replacing: bool,
        answer: Callable[[str], None] | None = None,
    ) -> None:
        before = self._state.current if replacing else None
        self._end()
        self._reading = attempt = self._services.processes.activity.begin(f"Reading {name}")
        self.began.emit(name)
        self.changed.emit()

        def if_wanted(then: Callable[..., None], *outcome: Any) -> None:
            if self._reading is attempt:
                self._end()
                self.changed.emit()
                then(*outcome)

        done = partial(if_wanted, partial(self._show, before, answer))
        in_background(work, done, partial(if_wanted, self.failed.emit), owner=self._owner)

    def _show(
        self,
        before: Opened | None,
        answer: Callable[[str], None] | None,
        loaded: _Loaded | LayoutUnclear,
    ) -> None:
        if isinstance(loaded, LayoutUnclear):
            self.asked.emit(loaded, answer)
            return
        _put_into(self._state, loaded)
        if before in self._state.opened:
            self._state.forget(before)
        self._services.processes.warm_up()
        self.shown.emit(loaded.recording)


NAPARIS_COLUMN = "axis-0"
"""In the header of every table that napari itself writes: points, shapes, their features."""
FOR_NAPARI = Qt.KeyboardModifier.AltModifier | Qt.KeyboardModifier.ShiftModifier
"""Keys with which napari asks for a reader, or makes a stack."""


class CanvasDrops(QObject):
    """Takes what belongs in the Recording dock, for as long as that is open; the rest is napari's.

    napari would ask which reader to use for a folder, its own first, and fail on tables. A reader
    for tables would make it ask about every table.

    Parameters
    ----------
    owner : QWidget
        Widget it ends with.
    viewer : napari.Viewer
    current : callable
        Gives the recording that is open, if any.
    take : callable
        Called with the paths.
    """

    def __init__(
        self,
        owner: QWidget,
        viewer: Any,
        current: Callable[[], Recording | None],
        take: Callable[[Sequence[str]], object],
    ) -> None:
        super().__init__(owner)
        self._current, self._take = current, take
        self._dropping = False
        self._viewer = ref(real_viewer(viewer))
        window = main_window(viewer)
        if window is None:
            return
        for widget in parts_that_take_drops(window):
            widget.installEventFilter(self)
        before_opening(viewer, self._take_from_menu, self)

    def eventFilter(self, watched: QObject | None, event: Any) -> bool:
        """Take a drop of files that belong in the dock."""
        if event is None or event.type() != QEvent.Type.Drop:
            return False
        # napari opens what is left to it at once, as from its menu
        self._dropping = True
        QTimer.singleShot(0, self._end_drop)
        paths = dropped_paths(event)
        if event.modifiers() & FOR_NAPARI or len(paths) != len(event.mimeData().urls()):
            return False
        if not self._take_if_ours(paths):
            return False
        event.acceptProposedAction()
        if watched is not None:  # napari has marked where the drop would go
            QApplication.sendEvent(watched, QDragLeaveEvent())
        return True

    def _end_drop(self) -> None:
        self._dropping = False

    def _take_from_menu(self, paths: list[str]) -> bool:
        return not self._dropping and self._take_if_ours(paths)

    def _take_if_ours(self, paths: list[str]) -> bool:
        viewer = self._viewer()
        if not belong(list(map(Path, paths)), self._current(), viewer):
            return False
        if viewer is not None:  # where napari has said which keys to hold
            viewer.status = "Passed to the Recording dock"
        self._take(paths)
        return True


def belong(paths: Sequence[Path], recording: Recording | None, viewer: Any) -> bool:
    """Whether all are workspaces, recordings, behaviour or a movie, as far as can be told."""
    return bool(paths) and all(
        is_workspace(path)
        or recognised(path, viewer)
        or (path.is_file() and _may_be_behavior(path, recording, viewer))
        or has_movie(path, viewer, recording)
        or (recording is not None and (is_video(path) or path.suffix.lower() == ".pt"))
        for path in paths
    )


def _may_be_behavior(path: Path, recording: Recording | None, viewer: Any) -> bool:
    suffix = path.suffix.lower()
    if suffix in TABLES:
        return not _is_naparis(path)
    if suffix == ".npy":
        return recording is not None and _has_frames_of(path, recording)
    if suffix in (".mat", ".npz"):
        return recording is not None
    return suffix in (".h5", ".hdf5") and has_poses(path, viewer)


def _is_naparis(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return NAPARIS_COLUMN.encode() in file.readline(10_000)
    except OSError:
        return False


def _has_frames_of(path: Path, recording: Recording) -> bool:
    """Whether an array holds values per frame rather than a picture."""
    try:
        shape = mapped_header(path).shape
    except InputError:
        return False
    return len(shape) == 1 or (len(shape) == 2 and recording.n_frames in shape)


class ProjectWindow(ResultWindow):
    """A folder of animals: what is found, one button that runs all, and every painted field."""

    def __init__(self, services: Services, opener: Opener, parent: QWidget) -> None:
        super().__init__("Project: many animals and days", (980, 720), parent)
        self._services, self._opener, self.sweeper = services, opener, services.sweeper
        self._sessions: list[Session] = []
        self._wanted: tuple[Session, str] | None = None
        self._done = ""
        self.where = PathField(
            "a table of recordings",
            "A table with the columns path, animal, day, condition and behaviour (.csv, .xlsx), a "
            "folder to search, or a pattern such as data/*/plane0.",
            "table, folder, or data/*/plane0",
        )
        self.folder = PathField(
            "a folder for the results",
            "Runs, grid, cohort and report are written here. What is finished is not run again.",
            "folder to write to",
            folders=True,
        )
        self.found = QTableWidget(0, 3)
        self.found.setHorizontalHeaderLabels(["recording", "behaviour", "file"])
        self.found.verticalHeader().hide()
        self.found.setEditTriggers(QTableWidget.EditTrigger.NoEditTriggers)
        self.found.horizontalHeader().setStretchLastSection(True)
        self.found.setMaximumHeight(170)
        self.run_button = primary_button("Run all")
        self.cancel_button = QPushButton("Cancel")
        self.cancel_button.setToolTip("Stop. Finished runs are kept; Run all continues.")
        self.report_button = QPushButton("Report")
        self.report_button.setToolTip("Open the page about all recordings, with grid and cohort.")
        self.progress = WorkBar("Finished runs, and the time left.")
        keep_room(self.progress)
        self.grid = QListWidget()
        self.grid.setIconSize(QSize(620, 190))
        self.grid.setToolTip("Double-click a recording to open it with its run.")
        self.grid.setWordWrap(True)
        self.lay_out(
            in_row(QLabel("Recordings"), (self.where, 1)),
            self.found,
            in_row(QLabel("Results"), (self.folder, 1)),
            in_row(self.run_button, self.cancel_button, (self.progress, 1), self.report_button),
            self.notice,
            (self.grid, 1),
        )
        self._look = QTimer(self, singleShot=True, interval=400)
        self._look.timeout.connect(self.look)
        self.where.changed.connect(self._look.start)
        self.folder.changed.connect(self._show_folder)
        self.run_button.clicked.connect(lambda _=False: self.run())
        self.cancel_button.clicked.connect(lambda _=False: self.sweeper.cancel())
        self.report_button.clicked.connect(lambda _=False: self._report())
        self.grid.itemDoubleClicked.connect(lambda item: self.open(self.grid.row(item)))
        opener.shown.connect(self._add_run)
        self.follow((self.sweeper.changed, self.refresh), (self.sweeper.said, self.notice.say))
        self.refresh()

    def look(self) -> None:
        """List what is found; nothing is opened yet."""
        from napari_xcebra.batch.project import (
            find_sessions,
        )  # draws: imported when it is asked for

        path = self.where.path
        if path is None:
            return
        if self.folder.path is None:
            stem = re.split(r"[*{]", str(path))[0].rstrip("/\\")
            base = Path(stem) if Path(stem).is_dir() else Path(stem).parent
            self.folder.path = base / "napari-xcebra-project"
        in_background(lambda: find_sessions(str(path)), self._show_found, self.say_problem, self)

    def _show_found(self, sessions: list[Session]) -> None:
        self.notice.clear()
        self._sessions = sessions
        self.found.setRowCount(len(sessions))
        for row, each in enumerate(sessions):
            behavior = ", ".join(file.name for file in each.opening.behavior)
            note = each.missing or each.note or behavior or "in the recording itself"
            for column, text in enumerate((each.name, note, str(each.opening.path))):
                item = QTableWidgetItem(text)
                item.setToolTip(plain(text))
                self.found.setItem(row, column, item)
        self.found.resizeColumnsToContents()
        missing = sum(bool(each.missing) for each in sessions)
        if missing:
            self.notice.say(f"{missing} of {counted(len(sessions), 'recording')} will be left out.",
                            "warning")  # fmt: skip
        self.refresh()

    def run(self) -> None:
        """Run all that is not finished yet, in the background."""
        folder, path = self.folder.path, self.where.path
        if folder is not None and path is not None:
            self.notice.clear()
            call = tasks.PROJECT(str(path), folder, ComputePlace(), preferred_settings())
            self.sweeper.begin(call, folder)

    def refresh(self) -> None:
        """Show what is under way and what is finished."""
        busy, at = self.sweeper.busy, self.sweeper.progress
        self.progress.setVisible(busy)
        words = (at.phase, time_left(at)) if at else ("opening recordings",)
        self.progress.show_words(at, *(("stopping",) if self.sweeper.stopping else words))
        ready = bool(self._sessions) and self.folder.path is not None and not busy
        self.run_button.setEnabled(ready)
        count = counted(len(self._sessions), "recording") if self._sessions else "all"
        self.run_button.setText(f"Run {count}")
        self.cancel_button.setEnabled(busy and not self.sweeper.stopping)
        state = f"{busy} {at.phase if at else ''}"
        if state != self._done:
            self._done = state
            self._show_folder()

    def _show_folder(self) -> None:
        folder = self.folder.path
        there = folder is not None and (folder / "sweep.json").exists()
        self.report_button.setEnabled(there)
        if folder is None or not there:
            self.grid.clear()
            return
        in_background(SweepFolder(folder).summary, self._show_grid, lambda *_: None, self)

    def _show_grid(self, summary: pd.DataFrame) -> None:
        from napari_xcebra.batch.project import picture_of

        folder = self.folder.path
        self.grid.clear()
        for row in summary.to_dict("records") if folder is not None else ():
            factors = [
                str(n).removeprefix("verdict ") for n in row if str(n).startswith("verdict ")
            ]
            told = [f"{name} {row[f'verdict {name}']}" for name in factors
                    if name != TIME and isinstance(row[f"verdict {name}"], str)]  # fmt: skip
            words = ", ".join(told) or str(row.get("failure") or row["status"])
            item = QListWidgetItem(f"{row['recording']}\n{words}")
            item.setData(Qt.ItemDataRole.UserRole, (str(row["recording"]), str(row["id"])))
            if (picture := picture_of(folder, str(row["id"]))).exists():  # type: ignore[arg-type]
                item.setIcon(QIcon(str(picture)))
            self.grid.addItem(item)

    def open(self, row: int) -> None:
        """Open the recording of a row, with its run if that is finished."""
        name, member = self.grid.item(row).data(Qt.ItemDataRole.UserRole)
        session = next((each for each in self._sessions if each.name == name), None)
        if session is None:
            self.say_problem(f"{name} is not among the recordings above: name their table.")
            return
        self._wanted = (session, member)
        self._opener.open(session.opening, replacing=False)

    def _add_run(self, _: object) -> None:
        """Give the recording that was asked for its run, once it is in front."""
        opened, folder, wanted = self._services.state.current, self.folder.path, self._wanted
        if wanted is None or folder is None or opened is None or opened.opening is None:
            return
        session, member = wanted
        if opened.opening.path == session.opening.path:
            self._wanted = None
            in_background(
                lambda: SweepFolder(folder).run(member, opened.recording),
                lambda run: self._services.state.add_run(run, opened),
                self.say_problem,
                self,
            )

    def _report(self) -> None:
        if self.folder.path is not None:
            self.sweeper.report(self.folder.path)
