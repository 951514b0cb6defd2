"""What to do next, at the foot of a dock, with a button to the dock where it is done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qtpy.QtWidgets import QHBoxLayout, QLabel, QPushButton, QWidget

from napari_xcebra.widgets.workspace import is_there, open_dock

if TYPE_CHECKING:
    from napari_xcebra.widgets.session import Session


class NextStep(QWidget):
    """A sentence and a button.

    Parameters
    ----------
    session : Session
    dock : str
        Name of the dock that comes next.
    """

    def __init__(self, session: Session, dock: str) -> None:
        super().__init__()
        self._dock = dock
        self.sentence = QLabel()
        self.sentence.setWordWrap(True)
        self.button = QPushButton(f"{dock} ▸")
        self.button.setToolTip(f"Go on to the {dock} dock.")
        self.button.clicked.connect(lambda _=False: open_dock(session.viewer, dock))
        row = QHBoxLayout(self)
        row.setContentsMargins(9, 4, 9, 4)
        row.addWidget(self.sentence, 1)
        row.addWidget(self.button)

    def say(self, sentence: str, *, there: bool) -> None:
        """Say what to do; `there` tells whether it is done in the dock that comes next."""
        self.sentence.setText(sentence)
        self.button.setVisible(there and is_there(self._dock))
