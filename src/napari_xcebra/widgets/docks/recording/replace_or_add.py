"""Asks whether a recording replaces the one in front or is added to it."""

from __future__ import annotations

from collections.abc import Callable

from qtpy.QtWidgets import QFrame, QPushButton

from napari_xcebra.text import counted
from napari_xcebra.widgets.controls.boxes import PlainLabel
from napari_xcebra.widgets.controls.layouts import in_column, in_row
from napari_xcebra.widgets.controls.notice import EDGES

Answer = Callable[[bool], None]
"""Called with whether the recording in front is to be replaced."""


class ReplaceOrAdd(QFrame):
    """A question with three buttons; hidden until something is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("question")
        self.setStyleSheet(f"#question {{ border-left: 3px solid {EDGES['warning']}; }}")
        self._then: Answer | None = None
        self.sentence = PlainLabel(wrap=True)
        self.replace = QPushButton("Replace")
        self.replace.setToolTip("Close the open recording once the new one is read.")
        self.add = QPushButton("Keep both")
        self.add.setToolTip("Add it; choose which one is in front at the top of this dock.")
        self.cancel = QPushButton("Cancel")
        self.cancel.setToolTip("Open nothing.")
        buttons = in_row((self.replace, 1), (self.add, 1), self.cancel)
        in_column(self.sentence, buttons, of=self).setContentsMargins(8, 6, 8, 6)
        self.replace.clicked.connect(lambda _=False: self._answer(True))
        self.add.clicked.connect(lambda _=False: self._answer(False))
        self.cancel.clicked.connect(lambda _=False: self.withdraw())
        self.hide()

    def ask(self, name: str, opened: str, unsaved: int, then: Answer) -> None:
        """Ask about opening `name` while `opened` is in front, with so many unsaved runs."""
        self._then = then
        lost = f" Replacing it loses {counted(unsaved, 'unsaved run')}." if unsaved else ""
        self.sentence.setText(f"{opened} is open. Replace it with {name}, or keep both?{lost}")
        self.show()
        (self.add if unsaved else self.replace).setFocus()

    def withdraw(self) -> None:
        """Ask no longer."""
        self._then = None
        self.hide()

    def forget_recording(self) -> None:
        """Ask no longer: the recording that was named is not in front."""
        self.withdraw()

    def _answer(self, replacing: bool) -> None:
        then = self._then
        self.withdraw()
        if then is not None:
            then(replacing)
