"""Says below the Recording dock what was read, asks what to do with it, and what comes next."""

from __future__ import annotations

from collections.abc import Sequence

from qtpy.QtWidgets import QMessageBox, QProgressBar, QPushButton, QWidget

from napari_xcebra.recording import Recording
from napari_xcebra.text import counted, listed
from napari_xcebra.widgets.controls.boxes import plain
from napari_xcebra.widgets.controls.layouts import in_column, in_row, keep_room
from napari_xcebra.widgets.controls.notice import NextStep, Notice
from napari_xcebra.widgets.docks.recording.questions import ReplaceOrAdd, WhichAxis
from napari_xcebra.workspace_file import Opened


class Footer(QWidget):
    """Below the dock, where what is said moves nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.question = ReplaceOrAdd()
        self.which_axis = WhichAxis()
        self.notice = Notice()
        self.busy = QProgressBar()
        self.busy.setRange(0, 0)
        self.busy.setToolTip("Reading the files; you can keep working.")
        self.cancel_button = QPushButton("Cancel")
        self.cancel_button.setToolTip("Stop reading the files.")
        self.next = NextStep()
        for part in (self.busy, self.cancel_button):
            keep_room(part)
        waiting = in_row((self.busy, 1), self.cancel_button)
        said = QWidget()
        column = in_column(self.question, self.which_axis, self.notice, waiting, of=said)
        column.setContentsMargins(9, 4, 9, 0)
        in_column(said, self.next, of=self, spacing=0)

    def show_busy(self, busy: bool) -> None:
        """Show that something is being read, with a way to stop it."""
        self.busy.setVisible(busy)
        self.cancel_button.setVisible(busy)

    def say_begun(self, name: str) -> None:
        """Say what is being read."""
        self.which_axis.withdraw()
        self.notice.say(f"Reading {name} …")

    def say_taken(self, name: str) -> None:
        """Say that a table is taken for the recording, as there is no other."""
        self.notice.say(
            f"{name} will be read as cell traces. If it is behaviour, drop the recording as "
            "well: the file then moves to Behaviour."
        )

    def say_cleared(self, name: str) -> None:
        """Say that the form no longer holds what belonged to another recording."""
        self.notice.say(f"Cleared the behaviour and settings of {name}: they belong to it alone.")

    def say_added(self, names: Sequence[str]) -> None:
        """Say which files were added to the recording, and how to undo that."""
        self.notice.say(
            f"Added {listed(names)} to this recording. To undo this, remove it in “Open "
            "or add files”, and press Open again.",
            "good",
        )

    def say_next(self, recording: Recording | None) -> None:
        """Say what to do next."""
        if recording is None:
            text = "Next: drop a recording, or open a sample."
        elif not recording.behavior:
            text = "Next: add a behaviour file and press Open again, or drop it on the image."
        else:
            text = "Next: choose variables in Train."
        self.next.say(text, "Train" if recording is not None else "")

    def may_close(self, opened: Opened) -> bool:
        """Ask whether a recording is closed, if runs would be lost with it."""
        if not opened.runs:
            return True
        runs = counted(len(opened.runs), "trained run")
        answer = QMessageBox.question(
            self,
            "Close recording",
            plain(f"{opened.name} has {runs}. Unsaved results will be lost. Close it anyway?"),
        )
        return answer == QMessageBox.StandardButton.Yes
