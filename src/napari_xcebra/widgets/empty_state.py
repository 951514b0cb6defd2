"""What to do first, where a dock has nothing to show yet."""

from __future__ import annotations

from qtpy.QtCore import Signal
from qtpy.QtWidgets import QLabel, QPushButton, QVBoxLayout, QWidget


class EmptyState(QWidget):
    """A sentence, and a button to the dock where the step is done."""

    asked = Signal(str)
    """Name of the dock."""

    def __init__(self) -> None:
        super().__init__()
        self._dock = ""
        self.sentence = QLabel()
        self.sentence.setWordWrap(True)
        self.go = QPushButton()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.sentence)
        layout.addWidget(self.go)
        self.go.clicked.connect(lambda _=False: self.asked.emit(self._dock))

    def show_step(self, sentence: str, dock: str) -> None:
        """Say what to do in which dock; hidden if there is nothing to say."""
        self._dock = dock
        self.sentence.setText(sentence)
        self.go.setText(f"Go to {dock}")
        self.go.setToolTip(f"Open the {dock} dock, or bring it to the front.")
        self.setVisible(bool(sentence))
