"""A part of a dock that can be folded away."""

from __future__ import annotations

from qtpy.QtWidgets import QPushButton, QSizePolicy, QVBoxLayout, QWidget


class Fold(QWidget):
    """A title to click on, and what it shows or hides."""

    def __init__(self, title: str, help: str = "", *, unfolded: bool = False) -> None:
        super().__init__()
        self._title = title
        self.button = QPushButton()
        # a long title is cut off rather than making the dock wide
        self.button.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.button.setStyleSheet("text-align: left; padding: 3px 4px;")
        self.button.setToolTip(help)
        self._inside = QWidget()
        column = QVBoxLayout(self._inside)
        column.setContentsMargins(0, 0, 0, 0)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.button)
        layout.addWidget(self._inside)
        self.button.clicked.connect(self._turn)
        self.unfolded = unfolded

    def addWidget(self, widget: QWidget) -> None:
        """Put a widget below those that are inside."""
        layout = self._inside.layout()
        assert layout is not None
        layout.addWidget(widget)

    @property
    def title(self) -> str:
        """What the button says."""
        return self._title

    @title.setter
    def title(self, title: str) -> None:
        self._title = title
        self.unfolded = self.unfolded

    @property
    def unfolded(self) -> bool:
        """Whether the inside is shown."""
        return not self._inside.isHidden()

    @unfolded.setter
    def unfolded(self, unfolded: bool) -> None:
        # arrows as text have the colour of the theme
        self.button.setText(f"{'▾' if unfolded else '▸'} {self._title}")
        self._inside.setVisible(unfolded)

    def _turn(self) -> None:
        self.unfolded = not self.unfolded
