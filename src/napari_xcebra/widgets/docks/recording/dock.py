"""Opens a recording, shows what was found, and sets the kinds of its variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qtpy.QtCore import QSize, Qt, QTimer
from qtpy.QtWidgets import (
    QComboBox,
    QDockWidget,
    QPushButton,
    QScrollArea,
    QWidget,
)
from superqt.utils import signals_blocked

from napari_xcebra.errors import InputError
from napari_xcebra.io.orientation import LayoutUnclear
from napari_xcebra.widgets.controls.boxes import plain, primary_button
from napari_xcebra.widgets.controls.forms import dropped_paths, model_among
from napari_xcebra.widgets.controls.layouts import (
    Fold,
    in_column,
    in_row,
    spare_from_wheel,
)
from napari_xcebra.widgets.controls.napari_window import end_with_dock, follow
from napari_xcebra.widgets.docks.recording.open_form import OpenForm
from napari_xcebra.widgets.docks.recording.opener import SAMPLES, CanvasDrops, Opener
from napari_xcebra.widgets.docks.recording.panels import (
    DropTarget,
    Footer,
    FoundPanel,
    LayersButton,
    sample_button,
)
from napari_xcebra.widgets.window import services_of

if TYPE_CHECKING:
    import napari

    from napari_xcebra.io.opening import Opening
    from napari_xcebra.recording import Recording


class RecordingDock(QWidget):
    """Everything about opening a recording, top to bottom."""

    def __init__(self, napari_viewer: napari.viewer.Viewer) -> None:
        super().__init__()
        self.services = services_of(napari_viewer)
        self.state = self.services.state
        self.opener = Opener(self.services, self)
        self._shown: object = None
        self._added: tuple[str, ...] = ()
        self.opened_box = QComboBox()
        self.opened_box.setToolTip("Open recordings; all docks show the one chosen here.")
        self.close_button = QPushButton("Close")
        self.close_button.setToolTip("Close this recording and remove its layers.")
        self.layers_button = LayersButton(self.state)
        self.form = OpenForm(napari_viewer)
        self.open_button = primary_button("Open")
        self.empty = DropTarget(self.open_sample)
        self.sample_button = sample_button(self.open_sample)
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
        else:
            self._replace_or_add(
                opening.path.name, lambda replacing: self._open(opening, replacing)
            )

    def _open(self, opening: Opening, replacing: bool) -> None:
        self.form.remember(opening.path)
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
            box.setFocus()
            QTimer.singleShot(0, self._scroll_to_focus)  # once all is in its place
        if "`array`" in sentence:
            self.form.offer_arrays()

    def _scroll_to_focus(self) -> None:
        if (box := self.focusWidget()) is not None:
            self._area.ensureWidgetVisible(box)

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
        parts = (self.top, self.layers_button, (self.empty, 10), self.found, self.fold)
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
