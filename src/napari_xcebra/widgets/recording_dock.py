"""Recording: open one, see what was found, and say what its variables are."""

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
    QHBoxLayout,
    QMenu,
    QMessageBox,
    QProgressBar,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from napari_xcebra.errors import InputError
from napari_xcebra.io.kinds import with_kinds
from napari_xcebra.readers import recognised
from napari_xcebra.recording import Recording
from napari_xcebra.sample_data import SAMPLES
from napari_xcebra.widgets.background import in_background
from napari_xcebra.widgets.canvas_drops import CanvasDrops
from napari_xcebra.widgets.fold import Fold
from napari_xcebra.widgets.found_panel import FoundPanel
from napari_xcebra.widgets.layers import lacks_layers
from napari_xcebra.widgets.lifetime import end_with_dock, follow
from napari_xcebra.widgets.loading import Loaded, is_from, put_into, read, simulate
from napari_xcebra.widgets.next_step import NextStep
from napari_xcebra.widgets.notice import Notice
from napari_xcebra.widgets.open_form import OpenForm
from napari_xcebra.widgets.path_fields import dropped_paths
from napari_xcebra.widgets.recent import recent_paths, remember
from napari_xcebra.widgets.session import Opened, session_of
from napari_xcebra.widgets.wheel import spare_from_wheel

if TYPE_CHECKING:
    import napari

    from napari_xcebra.opening import Opening


class RecordingDock(QWidget):
    """Everything about opening a recording, top to bottom."""

    def __init__(self, napari_viewer: napari.viewer.Viewer) -> None:
        super().__init__()
        self.session = session_of(napari_viewer)
        self._loading: object | None = None
        self._shown: Opened | None = None
        self._added: tuple[str, ...] = ()
        self.opened_box = QComboBox()
        self.opened_box.setToolTip("Recordings that are open; all docks work on this one.")
        self.close_button = QPushButton("Close")
        self.close_button.setToolTip("Close this recording and remove its layers.")
        self.layers_button = QPushButton("Show layers again")
        self.layers_button.setToolTip("Add the images and cells that were removed from the viewer.")
        self.form = OpenForm()
        self.open_button = QPushButton("Open")
        self.cancel_button = QPushButton("Cancel")
        self.cancel_button.setToolTip("Stop waiting for the files.")
        self.sample_button = _sample_button(self.open_sample)
        self.busy = QProgressBar()
        self.busy.setRange(0, 0)
        self.busy.setToolTip("The files are being read; the window can be used meanwhile.")
        self.notice = Notice()
        self.found = FoundPanel()
        self.next = NextStep(self.session, "Train")
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
        current = self.session.current
        if current and current.opening and is_from(current, opening):
            opening = replace(opening, kinds=current.opening.kinds)
        remember(str(opening.path))
        self.form.path.offer(recent_paths())
        self._load(lambda: read(opening), opening.path.name)

    def ask(self, opening: Opening, sentence: str) -> None:
        """Show what could not be opened and why, so that what is missing can be filled in."""
        self.form.opening = opening
        self._failed(sentence, "")

    def take(self, paths: Sequence[str]) -> None:
        """Put files where they belong: a recording above, behaviour below it."""
        self.fold.unfolded = True
        if self._opens_current() and any(recognised(Path(path)) for path in paths):
            # behaviour of the recording that is open is not that of the next
            self.form.behavior.paths, self.form.footprints.path = (), None
        self.form.take(paths)

    def take_and_open(self, paths: Sequence[str]) -> None:
        """Open what was dropped on the image, as napari does with pictures."""
        if self.is_busy:
            self.notice.say(f"{Path(paths[0]).name} can be dropped once this is read.", "warning")
            return
        dock = self.parent()
        if isinstance(dock, QDockWidget):
            dock.show()
            dock.raise_()
        self.take(paths)
        recordings = [path for path in paths if recognised(Path(path))]
        if recordings or self._opens_current():
            self._added = () if recordings else tuple(Path(path).name for path in paths)
            self.open()

    def open_sample(self, key: str) -> None:
        """Simulate a recording, in the background."""
        self._load(lambda: simulate(key), SAMPLES[key].title)

    def cancel(self) -> None:
        """Stop waiting; what is read by then is thrown away."""
        self._loading = None
        self._mark_ready()
        self.notice.say("Stopped.")

    @property
    def is_busy(self) -> bool:
        """Whether something is being read."""
        return self._loading is not None

    def _load(self, work: Callable[[], Loaded], name: str) -> None:
        self._loading = attempt = object()
        self.notice.say(f"Reading {name} …")
        self._mark_ready()

        def if_wanted(then: Callable[..., None], *outcome: Any) -> None:
            if self._loading is attempt:
                self._loading = None
                self._mark_ready()
                then(*outcome)

        done, failed = partial(if_wanted, self._loaded), partial(if_wanted, self._failed)
        in_background(work, done, failed, owner=self)

    def _loaded(self, loaded: Loaded) -> None:
        self.notice.clear()
        put_into(self.session, loaded)
        self._fold_form()
        if self._added:
            self.notice.say(
                f"{' and '.join(self._added)} went to the behaviour of this recording. "
                "Not meant so? Remove it above, in “Open a recording”, and press Open again.",
                "good",
            )
            self._added = ()

    def _failed(self, sentence: str, details: str) -> None:
        self._added = ()
        self.notice.say(sentence, "problem", details)
        self.fold.unfolded = True
        # once it has its place in the layout
        QTimer.singleShot(0, self._scroll_to_notice)

    def _scroll_to_notice(self) -> None:
        self.area.ensureWidgetVisible(self.notice)

    def _say_taken(self, name: str) -> None:
        self.notice.say(
            f"{name} is taken as the traces of the cells. If it is behaviour, drop the recording "
            "as well: this file then goes under Behaviour."
        )

    # ------------------------------------------------------------ changing

    def choose_kind(self, name: str, kind: str) -> None:
        """Take a variable for another kind."""
        opened = self.session.current
        if opened is None or opened.recording.variable(name).kind == kind:
            return
        try:
            changed = with_kinds(opened.recording, {name: kind})  # type: ignore[dict-item]
        except InputError as error:
            self.notice.say(str(error), "problem")
            self._show_recording()
            return
        if opened.opening is not None:
            kinds = {**opened.opening.kinds, name: kind}
            opened.opening = replace(opened.opening, kinds=kinds)  # type: ignore[arg-type]
            # an angle that was averaged as a plain number has to be averaged anew
            self._read_behavior_again(opened, opened.opening)
        self.session.change_recording(changed)

    def _read_behavior_again(self, opened: Opened, opening: Opening) -> None:
        def done(recording: Recording) -> None:
            if self.session.current is opened and opened.opening is opening:
                now = replace(opened.recording, behavior=recording.behavior)
                self.session.change_recording(now)

        def failed(sentence: str, details: str) -> None:
            self.notice.say(sentence, "warning", details)

        in_background(opening.open, done, failed, owner=self)

    def close_recording(self) -> None:
        """Close the current recording, after asking if runs would be lost."""
        opened = self.session.current
        if opened is None:
            return
        if opened.runs:
            several = len(opened.runs) > 1
            runs = f"{len(opened.runs)} trained runs" if several else "a trained run"
            them = "them" if several else "it"
            answer = QMessageBox.question(
                self,
                "Close recording",
                f"{opened.name} has {runs}. What was not saved of {them} is lost. Close it all the "
                "same?",
            )
            if answer != QMessageBox.StandardButton.Yes:
                return
        self.session.forget(opened)

    # ------------------------------------------------------------ showing

    def _show_recording(self) -> None:
        opened = self.session.current
        self._list_opened()
        if opened is not self._shown:
            self._shown = opened
            self._fold_form()
            # behaviour that was added while it was being read stays chosen
            if opened and opened.opening and not self.form.goes_beyond(opened.opening):
                self.form.opening = opened.opening
        self.found.show_recording(opened.recording if opened else None)
        self._mark_layers()
        self._say_next()
        self._mark_ready()

    def _fold_form(self) -> None:
        """Away once it is done with, which it is not as long as behaviour is missing."""
        recording = self.session.recording
        self.fold.unfolded = recording is None or not recording.behavior

    def _list_opened(self) -> None:
        self.opened_box.blockSignals(True)
        self.opened_box.clear()
        self.opened_box.addItems([opened.name for opened in self.session.opened])
        if self.session.current is not None:
            self.opened_box.setCurrentText(self.session.current.name)
        self.opened_box.blockSignals(False)
        self.top.setVisible(bool(self.session.opened))

    def _turn_to(self, number: int) -> None:
        self.session.current = self.session.opened[number]

    def _mark_layers(self, event: Any = None) -> None:
        """Offer to add layers that the user has removed."""
        opened = self.session.current
        lacking = opened and lacks_layers(opened.recording, self.session.layers_of(opened))
        self.layers_button.setVisible(bool(lacking))

    def _add_layers(self) -> None:
        if self.session.current is not None:
            self.session.add_layers(self.session.current)
            self._mark_layers()

    def _mark_ready(self) -> None:
        reason = "A recording is being read." if self.is_busy else self.form.problem()
        self.open_button.setEnabled(not reason)
        self.open_button.setToolTip(reason or "Read the files in the background.")
        self.open_button.setText("Open again" if self._opens_current() else "Open")
        self.sample_button.setEnabled(not self.is_busy)
        self.busy.setVisible(self.is_busy)
        self.cancel_button.setVisible(self.is_busy)

    def _opens_current(self) -> bool:
        current = self.session.current
        return bool(current and current.opening and current.opening.path == self.form.path.path)

    def _say_next(self) -> None:
        recording = self.session.recording
        if recording is None:
            text = "Next: choose a recording and press Open, or open a sample."
        elif not recording.behavior:
            text = "Next: add a behaviour file above and press Open again, or drop it on the image."
        else:
            text = "Next: choose variables in Train."
        self.next.say(text, there=recording is not None)

    # ------------------------------------------------------------ putting together

    def _connect(self) -> None:
        self.open_button.clicked.connect(self.open)
        self.cancel_button.clicked.connect(self.cancel)
        self.close_button.clicked.connect(self.close_recording)
        self.layers_button.clicked.connect(self._add_layers)
        self.opened_box.activated.connect(self._turn_to)
        self.form.changed.connect(self._mark_ready)
        self.form.table_taken.connect(self._say_taken)
        self.found.kind_chosen.connect(self.choose_kind)
        spare_from_wheel(self.opened_box)
        layers = self.session.viewer.layers.events
        follow(self, self.session.recording_changed, self._show_recording)
        follow(self, layers.inserted, self._mark_layers)
        follow(self, layers.removed, self._mark_layers)
        self.setAcceptDrops(True)
        CanvasDrops(self, self.session.viewer, lambda: self.session.recording, self.take_and_open)

    def _lay_out(self) -> None:
        self.top = QWidget()
        row = QHBoxLayout(self.top)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self.opened_box, 1)
        row.addWidget(self.close_button)
        self.fold = Fold("Open a recording", "Choose files and how to read them.", unfolded=True)
        self.fold.addWidget(self.form)
        buttons = QWidget()
        row = QHBoxLayout(buttons)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self.open_button, 1)
        row.addWidget(self.sample_button)
        self.fold.addWidget(buttons)
        waiting = QHBoxLayout()
        waiting.addWidget(self.busy, 1)
        waiting.addWidget(self.cancel_button)
        inside = QWidget()
        column = QVBoxLayout(inside)
        column.addWidget(self.top)
        column.addWidget(self.layers_button)
        column.addWidget(self.fold)
        column.addLayout(waiting)
        column.addWidget(self.notice)
        column.addWidget(self.found)
        column.addStretch(1)
        self.area = QScrollArea()
        self.area.setWidgetResizable(True)
        self.area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.area.setWidget(inside)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.area)
        layout.addWidget(self.next)
        self.setMinimumWidth(340)

    def sizeHint(self) -> QSize:
        """Wide enough for the table of variables."""
        return QSize(400, 640)

    def dragEnterEvent(self, event: Any) -> None:
        """Welcome files anywhere on the dock."""
        if dropped_paths(event):
            event.acceptProposedAction()

    def dropEvent(self, event: Any) -> None:
        """Put them where they belong."""
        self.take(dropped_paths(event))


def _sample_button(open_sample: Callable[[str], None]) -> QPushButton:
    button = QPushButton("Open a sample")
    button.setToolTip("No data at hand? Simulated recordings to try everything with.")
    menu = QMenu(button)
    menu.setToolTipsVisible(True)
    for key, sample in SAMPLES.items():
        action = menu.addAction(sample.title, partial(open_sample, key))
        action.setToolTip(sample.help)
    button.setMenu(menu)
    return button
