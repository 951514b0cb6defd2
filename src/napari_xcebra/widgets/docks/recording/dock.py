"""Opens a recording, shows what was found, and sets the kinds of its variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import ref

from npe2 import PluginManager
from qtpy.QtCore import QSize, Qt, QTimer, Signal
from qtpy.QtWidgets import (
    QAbstractSpinBox,
    QComboBox,
    QCompleter,
    QDockWidget,
    QDoubleSpinBox,
    QLabel,
    QPushButton,
    QScrollArea,
    QWidget,
)
from superqt.utils import signals_blocked

from napari_xcebra.errors import InputError
from napari_xcebra.io.containers.video import is_video
from napari_xcebra.io.formats.array_roles import names_of_arrays
from napari_xcebra.io.guard import reading
from napari_xcebra.io.opening import Opening
from napari_xcebra.io.orientation import LayoutUnclear
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.recording import Recording
from napari_xcebra.widgets.controls.boxes import plain, primary_button
from napari_xcebra.widgets.controls.forms import (
    PathField,
    PathList,
    SettingsForm,
    dropped_paths,
    in_dock,
    model_among,
)
from napari_xcebra.widgets.controls.layouts import (
    Fold,
    in_column,
    in_form,
    in_row,
    spare_from_wheel,
)
from napari_xcebra.widgets.controls.napari_window import end_with_dock, follow, real_viewer
from napari_xcebra.widgets.docks.recording.opener import (
    SAMPLES,
    TABLES,
    CanvasDrops,
    Opener,
    ProjectWindow,
)
from napari_xcebra.widgets.docks.recording.panels import (
    DropTarget,
    Footer,
    FoundPanel,
    LayersButton,
    sample_button,
)
from napari_xcebra.widgets.services.jobs import in_background
from napari_xcebra.widgets.services.reading import has_movie, reader_of, recognised, result_of
from napari_xcebra.widgets.state.preferences import recent_paths, remember
from napari_xcebra.widgets.window import services_of
from napari_xcebra.workspace_file import is_workspace

if TYPE_CHECKING:
    import napari

    from napari_xcebra.io.opening import Opening
    from napari_xcebra.recording import Recording


AT_LEAST = {
    "rate": "from the file",
    "behavior_rate": "one sample per frame",
    "pixel_size": "from the file",
    "neuropil": "from the source",
    "video_rate": "from the file",
    "gap": "automatic",
}
"""What the lowest value of a setting stands for."""
HINTS = {
    "trigger": "column, or file of frame times",
    "behavior_times": "file, if behaviour has no times",
    "video": "if a camera saw the animal",
    "video_times": "file, if its clock is another",
    "array": "find it",
}
"""What empty fields of settings say."""
WAYS = {
    "behavior": "What it looks like",
    "trials": "Trials, a row each",
    "events": "Events, a row each",
}
"""Ways to read a file beside the recording: fields of an `Opening`, and the words for each."""


class _OpenForm(QWidget):
    """Fields of an `Opening`.

    Parameters
    ----------
    viewer : napari.Viewer
        For whose window files are looked into.
    """

    changed = Signal()
    table_taken = Signal(str)
    """Name of a dropped table that is used as the recording, as there is no other."""
    cleared = Signal(str)
    """Name of the recording whose behaviour and settings were cleared for another one."""

    def __init__(self, viewer: Any) -> None:
        super().__init__()
        self._viewer = ref(real_viewer(viewer))
        self._filled: Opening | None = None
        self._emptied = False
        self._make_fields()
        self._lay_out()
        for part in (self.path, self.behavior, self.footprints, self.movie, self.settings):
            part.changed.connect(self.changed)
        self.path.dropped.connect(self.take)
        self.path.changed.connect(self._follow_path)

    def _make_fields(self) -> None:
        self.path = PathField(
            "the recording",
            "Folder or file from your extractor: suite2p, CaImAn, NWB, Minian, EXTRACT, "
            "CNMF-E, Inscopix, or an array of traces. You can drop it here.",
            "suite2p folder, CaImAn, NWB …",
            folders=True,
        )
        self.path.offer(recent_paths())
        self.behavior = PathList(
            "behaviour files",
            "Tables, arrays, poses or NWB files of behaviour, trials and events; you can drop them "
            "here. Times are matched to the frames by the clock in the file.",
            WAYS,
        )
        self.footprints = PathField(
            "footprints",
            "Only for traces without footprints: a label image (cell 1, 2, 3 …) or an ImageJ "
            "RoiSet.zip.",
            "only if the recording has none",
        )
        self.movie = PathField(
            "the movie",
            "What was imaged: data.bin of suite2p, TIFF, HDF5, zarr, .mmap of CaImAn, or a folder "
            "of TIFF files. Left empty, one beside the recording is used. You can drop it here.",
            "found by itself beside the recording",
            folders=True,
        )
        self.settings: SettingsForm[OpenSettings] = SettingsForm(OpenSettings())
        for name, text in AT_LEAST.items():
            for box in _spin_boxes(self.settings.widget(name)):
                box.setSpecialValueText(text)
        for name, hint in HINTS.items():
            self.settings.widget(name).setPlaceholderText(hint)

    def _lay_out(self) -> None:
        rows = in_form(
            ("Recording", self.path),
            ("Behaviour", self.behavior),
            ("Footprints", self.footprints),
            ("Movie", self.movie),
        )
        in_column(rows, self.settings, of=self)

    @property
    def opening(self) -> Opening:
        """The current choice; raises `InputError` if it is invalid."""
        if self.path.path is None:
            raise InputError("Choose a recording first.")
        return Opening(
            self.path.path,
            footprints=self.footprints.path,
            movie=self.movie.path,
            settings=self.settings.value,
            behavior=self.behavior.read_as("behavior"),
            trials=self.behavior.read_as("trials"),
            events=self.behavior.read_as("events"),
        )

    @opening.setter
    def opening(self, opening: Opening) -> None:
        self._filled, self._emptied = opening, False
        self.path.path = opening.path
        self.behavior.paths = ()
        self._fill_from(opening)

    def _fill_from(self, opening: Opening) -> None:
        for way in WAYS:
            self.behavior.add(getattr(opening, way), way)
        self.footprints.path, self.movie.path = opening.footprints, opening.movie
        self.settings.value = opening.settings

    def _follow_path(self) -> None:
        """Clear what belongs to the recording that the form was filled with, or bring it back.

        What the user has chosen since then stays.
        """
        filled = self._filled
        if filled is None or (other := self.path.path != filled.path) == self._emptied:
            return
        self._emptied = other
        if not other:
            self._fill_from(filled)
            return
        own = {path for way in WAYS for path in getattr(filled, way)}
        given = bool(own or filled.footprints or filled.movie)
        given = given or filled.settings != OpenSettings()
        self.behavior.remove(own)
        for field, before in (
            (self.footprints, filled.footprints),
            (self.movie, filled.movie),
        ):
            if field.path == before:
                field.path = None
        self.settings.reset_where(filled.settings)
        if given:
            self.cleared.emit(filled.path.name)

    def offer_arrays(self) -> None:
        """Offer the arrays of the file to choose the traces from, once they are read."""
        path, viewer = self.path.path, self._viewer()
        if path is None or viewer is None:
            return
        job = reader_of(viewer).submit(reading(names_of_arrays, path, paths=[path]))
        in_background(lambda: result_of(job), self._show_arrays, lambda *_: None, self)

    def _show_arrays(self, names: list[str]) -> None:
        field = self.settings.widget("array")
        choices = QCompleter(names, field)
        choices.setCompletionMode(QCompleter.CompletionMode.UnfilteredPopupCompletion)
        field.setCompleter(choices)
        field.setPlaceholderText(f"one of {len(names)}: type to choose")
        field.setFocus()
        if field.isVisible():
            choices.complete()

    def remember(self, path: Path) -> None:
        """Put a path first in the list of recent ones."""
        remember(str(path))
        self.path.offer(recent_paths())

    def problem(self) -> str:
        """Why it cannot be opened yet; empty if it can."""
        try:
            _ = self.opening
        except InputError as error:
            return in_dock(str(error))
        return ""

    def goes_beyond(self, opening: Opening) -> bool:
        """Whether the form names the same recording with more behaviour."""
        more = set(self.behavior.paths) > {p for way in WAYS for p in getattr(opening, way)}
        return self.path.path == opening.path and more

    def recordings_among(self, paths: Sequence[str]) -> list[Path]:
        """Those paths that are known to be recordings."""
        viewer = self._viewer()
        return [path for path in map(Path, paths) if recognised(path, viewer)]

    def take(self, paths: Sequence[str], recording: Recording | None = None) -> None:
        """Put dropped paths where they belong: a recording above, behaviour below it.

        What may be the movie of the recording in front becomes its movie, and a video that of
        the animal.
        """
        known, viewer = self.recordings_among(paths), self._viewer()
        rest = list(map(Path, paths))
        for path in list(rest):
            if is_video(path):
                self.settings.value = replace(self.settings.value, video=str(path))
            elif has_movie(path, viewer, recording):
                self.movie.path = path
            else:
                continue
            rest.remove(path)
        recordings = [path for path in rest if path.is_dir() or path in known]
        others = [path for path in rest if path not in recordings]
        for path in recordings:
            before, self.path.path = self.path.path, path
            # a table that stood in for the recording is behaviour, then
            if before is not None and before.suffix.lower() in TABLES:
                others.append(before)
        for path in others:
            if self.path.path is not None:
                self.behavior.add([path])
                continue
            self.path.path = path
            if path.suffix.lower() in TABLES:
                self.table_taken.emit(path.name)


def _spin_boxes(widget: QWidget) -> list[QDoubleSpinBox]:
    own = [widget] if isinstance(widget, QDoubleSpinBox) else []
    return [*own, *widget.findChildren(QDoubleSpinBox)]


class RecordingDock(QWidget):
    """Everything about opening a recording, top to bottom."""

    def __init__(self, napari_viewer: napari.viewer.Viewer) -> None:
        super().__init__()
        self.services = services_of(napari_viewer)
        self.state = self.services.state
        self.opener = Opener(self.services, self)
        self._shown: object = None
        self._added: tuple[str, ...] = ()
        self._begun: tuple[Path, bool] | None = None
        """What was read last, and whether it replaces the recording in front."""
        self._lacking = False
        """Whether that failed because a setting was not given."""
        self.opened_box = QComboBox()
        self.opened_box.setToolTip("Open recordings; all docks show the one chosen here.")
        self.close_button = QPushButton("Close")
        self.close_button.setToolTip("Close this recording and remove its layers.")
        self.layers_button = LayersButton(self.state)
        self.form = _OpenForm(napari_viewer)
        self.open_button = primary_button("Open")
        self.empty = DropTarget(self.open_sample)
        self.sample_button = sample_button(self.open_sample)
        self.project_button = QPushButton("Project…")
        self.project_button.setToolTip("Open a folder or table of many animals, and run them all.")
        self._project: ProjectWindow | None = None
        self.footer = footer = Footer()
        self.notice, self.question, self.next = footer.notice, footer.question, footer.next
        self.busy, self.cancel_button = footer.busy, footer.cancel_button
        self.found = FoundPanel()
        self._lay_out()
        self._connect()
        self._show_recording()
        self._mark_ready()
        end_with_dock(self)

    # ------------------------------------------------------------ opening

    def open(self) -> None:
        """Read what is chosen, in the background."""
        try:
            opening = self.form.opening
        except InputError as error:
            self.notice.say(str(error), "problem")
            return
        if (again := self.opener.again(opening)) is not None:
            self._open(again, replacing=False)
        elif self._lacking and self._begun is not None and self._begun[0] == opening.path:
            self._open(opening, replacing=self._begun[1])
        else:
            self._replace_or_add(
                opening.path.name, lambda replacing: self._open(opening, replacing)
            )

    def _open(self, opening: Opening, replacing: bool) -> None:
        self.form.remember(opening.path)
        self._begun, self._lacking = (opening.path, replacing), False
        self.opener.open(opening, replacing=replacing)

    def _replace_or_add(self, name: str, then: Callable[[bool], None]) -> None:
        """Ask whether a recording replaces the one in front, if there is one."""
        current = self.state.current
        if current is None:
            then(False)
            return
        self.notice.clear()
        unsaved = len(self.state.saved_runs.lacking(current))
        self.question.ask(name, current.name, unsaved, then)

    def ask(self, opening: Opening, error: InputError) -> None:
        """Show what could not be opened and why, so that the user can fill in what is missing."""
        self.form.opening = opening
        if isinstance(error, LayoutUnclear):
            self.ask_which_axis(error, partial(self._open_as, opening))
        else:
            self._failed(str(error), "")

    def ask_which_axis(self, unclear: LayoutUnclear, then: Callable[[str], None]) -> None:
        """Show an array in both readings, and open it in the one that is chosen."""
        self.notice.clear()
        self.footer.which_axis.ask(unclear, then)

    def _open_as(self, opening: Opening, layout: str) -> None:
        settings = replace(opening.settings, layout=layout)  # type: ignore[arg-type]
        self.form.settings.value = settings
        self.open()

    def open_path(self, path: str) -> None:
        """Open what was browsed for, whatever it is."""
        self.form.path.path = path
        self.open()

    def take(self, paths: Sequence[str]) -> None:
        """Put files where they belong: a recording above, behaviour below it."""
        self.fold.unfolded = True
        current = self.state.recording if self._opens_current() else None
        self.form.take(paths, current)

    def take_and_open(self, paths: Sequence[str]) -> None:
        """Open what was dropped, as napari does with pictures; models go to the Train dock."""
        if model := model_among(paths):
            train: Any = self.services.open_dock("Train").widget()
            train.open_model(model)
            return
        if self.is_busy:
            self.notice.say(
                f"Still reading: drop {Path(paths[0]).name} again once this is done.", "warning"
            )
            return
        dock = self.parent()
        if isinstance(dock, QDockWidget):
            dock.show()
            dock.raise_()
        if is_workspace(Path(paths[0])):
            # by its command, as docks know nothing of what opens them
            command = PluginManager.instance().commands.get("napari-xcebra.open_saved_workspace")
            command(self.state.viewer, paths[0])
            return
        self.take(paths)
        recordings = self.form.recordings_among(paths)
        if recordings or self._opens_current():
            self._added = () if recordings else tuple(Path(path).name for path in paths)
            self.open()

    def open_sample(self, key: str) -> None:
        """Simulate a recording, in the background."""
        ask = partial(self.opener.open_sample, key)
        self._replace_or_add(SAMPLES[key].title, lambda replacing: ask(replacing=replacing))

    def cancel(self) -> None:
        """Stop reading, and discard what was read."""
        self.opener.cancel()
        self.notice.say("Stopped.")

    def open_project(self) -> ProjectWindow:
        """Show the window of many animals and days."""
        if self._project is None:
            self._project = ProjectWindow(self.services, self.opener, self)
        self._project.show()
        self._project.raise_()
        return self._project

    @property
    def is_busy(self) -> bool:
        """Whether something is being read."""
        return self.opener.busy

    def _loaded(self, recording: Recording) -> None:
        self.notice.say(" ".join(recording.warnings), "warning")
        self._fold_form()
        if recording.video is not None:
            self.services.open_dock("Video")
        if self._added:
            self.footer.say_added(self._added)
            self._added = ()

    def _failed(self, sentence: str, details: str) -> None:
        self._added = ()
        self.notice.say(sentence, "problem", details)
        self.fold.unfolded = True
        self.empty.hide()  # the form needs the room; files can be dropped anywhere on the dock
        if (box := self.form.settings.reveal(sentence)) is not None:
            self._lacking = True
            box.setFocus()
            if isinstance(box, QAbstractSpinBox):
                box.selectAll()  # what is typed takes the place of "from the file"
            QTimer.singleShot(0, self._scroll_to_focus)  # once all is in its place
        if "`array`" in sentence:
            self.form.offer_arrays()

    def _scroll_to_focus(self) -> None:
        if (box := self.focusWidget()) is not None:
            self._area.ensureWidgetVisible(self.open_button)
            self._area.ensureWidgetVisible(box)

    def keyPressEvent(self, event: Any) -> None:
        """Open on Enter once what was missing is typed; its field hands the key on."""
        if self._lacking and event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.open()
        else:
            super().keyPressEvent(event)

    # ------------------------------------------------------------ changing

    def choose_kind(self, name: str, kind: str) -> None:
        """Change the kind of a variable."""
        opened = self.state.current
        if opened is None or opened.recording.variable(name).kind == kind:
            return
        try:
            self.opener.change_kind(opened, name, kind, self._warn)
        except InputError as error:
            self.notice.say(str(error), "problem")
            self._show_recording()

    def choose_pixel_size(self, size: float) -> None:
        """Say how many micrometres a pixel has; 0: not known."""
        opened = self.state.current
        if opened is None or (opened.recording.pixel_size or 0.0) == size:
            return
        self.opener.change_pixel_size(opened, size)
        if opened.opening is not None:
            self.form.opening = opened.opening

    def _warn(self, sentence: str, details: str) -> None:
        self.notice.say(sentence, "warning", details)

    def close_recording(self) -> None:
        """Close the current recording, after asking if runs would be lost."""
        opened = self.state.current
        if opened is not None and self.footer.may_close(opened):
            self.state.forget(opened)

    # ------------------------------------------------------------ showing

    def _show_recording(self) -> None:
        opened = self.state.current
        self._list_opened()
        if opened is not self._shown:
            self._shown = opened
            self._fold_form()
            # behaviour that was added while it was being read stays chosen
            if opened and opened.opening and not self.form.goes_beyond(opened.opening):
                self.form.opening = opened.opening
        self.found.show_recording(opened.recording if opened else None)
        self.layers_button.mark()
        self.footer.say_next(self.state.recording)
        self._mark_ready()

    def _fold_form(self) -> None:
        """Fold the form away, unless behaviour is still missing."""
        recording = self.state.recording
        self.fold.unfolded = recording is not None and not recording.behavior

    def _list_opened(self) -> None:
        with signals_blocked(self.opened_box):
            self.opened_box.clear()
            self.opened_box.addItems([opened.name for opened in self.state.opened])
            if self.state.current is not None:
                self.opened_box.setCurrentText(self.state.current.name)
        self.top.setVisible(bool(self.state.opened))
        self.empty.setVisible(not self.state.opened)
        self.fold.title = "Open or add files" if self.state.opened else "Choose files and settings"
        self.sample_button.setVisible(bool(self.state.opened))

    def _turn_to(self, number: int) -> None:
        self.state.current = self.state.opened[number]

    def _mark_ready(self) -> None:
        reason = "A recording is being read." if self.is_busy else self.form.problem()
        self.open_button.setEnabled(not reason)
        self.open_button.setToolTip(plain(reason) or "Read the files in the background.")
        self.open_button.setText("Open again" if self._opens_current() else "Open")
        for button in (self.sample_button, self.empty.browse, self.empty.sample):
            button.setEnabled(not self.is_busy)
        self.footer.show_busy(self.is_busy)

    def _opens_current(self) -> bool:
        current = self.state.current
        return bool(current and current.opening and current.opening.path == self.form.path.path)

    # ------------------------------------------------------------ putting together

    def _connect(self) -> None:
        self.open_button.clicked.connect(self.open)
        self.project_button.clicked.connect(lambda _=False: self.open_project())
        self.empty.chosen.connect(self.open_path)
        self.cancel_button.clicked.connect(self.cancel)
        self.close_button.clicked.connect(self.close_recording)
        self.opened_box.activated.connect(self._turn_to)
        self.opener.began.connect(self.footer.say_begun)
        self.opener.changed.connect(self._mark_ready)
        self.opener.shown.connect(self._loaded)
        self.opener.failed.connect(self._failed)
        self.opener.asked.connect(self.ask_which_axis)
        self.form.changed.connect(self._mark_ready)
        self.form.table_taken.connect(self.footer.say_taken)
        self.form.cleared.connect(self.footer.say_cleared)
        for question in (self.question, self.footer.which_axis):
            self.form.changed.connect(question.withdraw)
        self.found.kind_chosen.connect(self.choose_kind)
        self.found.pixel_size_chosen.connect(self.choose_pixel_size)
        self.next.asked.connect(self.services.open_dock)
        spare_from_wheel(self.opened_box)
        follow(self, self.state.recording_changed, self._show_recording)
        self.setAcceptDrops(True)
        CanvasDrops(self, self.state.viewer, lambda: self.state.recording, self.take_and_open)

    def _lay_out(self) -> None:
        self.top = QWidget()
        in_row((self.opened_box, 1), self.close_button, of=self.top)
        buttons = QWidget()
        in_row((self.open_button, 1), self.sample_button, of=buttons)
        self.fold = Fold("", "Recording, behaviour, and how to read them.", self.form, buttons)
        inside = QWidget()
        several = in_row(QLabel("Many animals or days?"), 1, self.project_button)
        parts = (self.top, self.layers_button, (self.empty, 10), self.found, self.fold, several)
        in_column(*parts, 1, of=inside).setContentsMargins(9, 9, 9, 9)
        self._area = area = QScrollArea()
        area.setWidgetResizable(True)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setWidget(inside)
        in_column((area, 1), self.footer, of=self, spacing=0)
        self.setMinimumWidth(340)

    def sizeHint(self) -> QSize:
        """Wide enough for the table of variables."""
        return QSize(400, 640)

    def dragEnterEvent(self, event: Any) -> None:
        """Welcome files anywhere on the dock."""
        if dropped_paths(event):
            event.acceptProposedAction()

    def dropEvent(self, event: Any) -> None:
        """Open them, or put them where they belong."""
        self.take_and_open(dropped_paths(event))
