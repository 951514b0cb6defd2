"""Lists facts about a recording, and asks for the size of its pixels."""

from __future__ import annotations

from collections.abc import Sequence

from qtpy.QtCore import Qt
from qtpy.QtWidgets import QGridLayout, QLabel, QWidget
from superqt.utils import signals_blocked

from napari_xcebra.recording import Recording
from napari_xcebra.widgets.controls.boxes import DecimalBox, PlainLabel, slim

LAST = 99
"""Row below all facts; rows without any take no room."""


class PixelSize(DecimalBox):
    """Micrometres per pixel; 0 if it is not known."""

    def __init__(self) -> None:
        super().__init__()
        self.setToolTip(
            "Micrometres per pixel: type it for a scale bar on the image and in figures. It is "
            "remembered for this recording."
        )
        self.setRange(0, 1e4)
        self.setDecimals(6)
        self.setSuffix(" µm")
        self.setSpecialValueText("unknown")
        # a half-typed number must not take effect
        self.setKeyboardTracking(False)
        slim(self, 90)
        self.setAlignment(Qt.AlignmentFlag.AlignLeft)

    def textFromValue(self, value: float) -> str:
        """No more digits than it has."""
        return f"{value:g}"

    def show_size(self, size: float | None) -> None:
        """Show a size without a change signal."""
        with signals_blocked(self):
            self.setValue(size or 0)


class FactList(QWidget):
    """Rows of text that can be copied, and last the size of a pixel, which can be changed."""

    def __init__(self) -> None:
        super().__init__()
        # a form would give lines of text that wrap the height of others
        self._rows = QGridLayout(self)
        self._rows.setContentsMargins(0, 0, 0, 0)
        self._rows.setColumnStretch(1, 1)
        self._texts: dict[str, tuple[QLabel, QLabel]] = {}
        self.pixel_size = PixelSize()
        self._size_title = QLabel("Pixel size:")
        self._size_title.setBuddy(self.pixel_size)
        self._rows.addWidget(self._size_title, LAST, 0)
        # aligned, it does not keep the column as narrow as itself
        self._rows.addWidget(self.pixel_size, LAST, 1, Qt.AlignmentFlag.AlignLeft)

    def show_facts(self, facts: Sequence[tuple[str, str]]) -> None:
        """Show these and no others."""
        if [what for what, _ in facts] != list(self._texts):
            for label in (label for row in self._texts.values() for label in row):
                label.hide()
                label.deleteLater()
            self._texts = {what: self._add_row(i, what) for i, (what, _) in enumerate(facts)}
        for what, how_much in facts:
            self._texts[what][1].setText(how_much)
        # longer texts may need more lines
        self.updateGeometry()

    def show_pixel_size(self, recording: Recording) -> None:
        """Show how large a pixel is; cells on a grid have no pixels."""
        self.pixel_size.show_size(recording.pixel_size)
        for part in (self._size_title, self.pixel_size):
            part.setVisible(recording.footprints is not None)

    @property
    def facts(self) -> dict[str, str]:
        """What is shown."""
        return {what: text.text() for what, (_, text) in self._texts.items()}

    def _add_row(self, row: int, what: str) -> tuple[QLabel, QLabel]:
        title, text = QLabel(f"{what}:"), PlainLabel(wrap=True)
        title.setAlignment(Qt.AlignmentFlag.AlignTop)
        text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._rows.addWidget(title, row, 0)
        self._rows.addWidget(text, row, 1)
        return title, text
