"""Facts, one under the other: what, and how much."""

from __future__ import annotations

from collections.abc import Sequence

from qtpy.QtCore import Qt
from qtpy.QtWidgets import QFormLayout, QLabel, QWidget


class FactList(QWidget):
    """Rows of text that can be copied."""

    def __init__(self) -> None:
        super().__init__()
        self._rows = QFormLayout(self)
        self._rows.setContentsMargins(0, 0, 0, 0)
        self._texts: dict[str, QLabel] = {}

    def show_facts(self, facts: Sequence[tuple[str, str]]) -> None:
        """Show these and no others."""
        if [what for what, _ in facts] != list(self._texts):
            while self._rows.rowCount():
                self._rows.removeRow(0)
            self._texts = {what: self._add_row(what) for what, _ in facts}
        for what, how_much in facts:
            self._texts[what].setText(how_much)
        # longer texts may need more lines
        self.updateGeometry()

    @property
    def facts(self) -> dict[str, str]:
        """What is shown."""
        return {what: text.text() for what, text in self._texts.items()}

    def _add_row(self, what: str) -> QLabel:
        text = QLabel()
        text.setWordWrap(True)
        text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._rows.addRow(f"{what}:", text)
        return text
