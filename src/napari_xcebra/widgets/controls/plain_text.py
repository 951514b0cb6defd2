"""Shows texts as they are: names come from files, and Qt would obey markup in them.

Qt guesses whether a text is markup. One such as `<img src="file://server/x">` as the name of a
variable would have it open that file, over the network too.
"""

from __future__ import annotations

from html import escape

from qtpy.QtCore import Qt
from qtpy.QtWidgets import QLabel


class PlainLabel(QLabel):
    """A label that takes nothing for markup, and wraps if `wrap`."""

    def __init__(self, text: str = "", *, wrap: bool = False) -> None:
        super().__init__()
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setWordWrap(wrap)
        self.setText(text)


def plain(text: str) -> str:
    """Text for a tooltip or a message, for which Qt can only be told in markup that it is none."""
    if not Qt.mightBeRichText(text):
        return text
    return f"<span>{in_markup(text)}</span>"


def in_markup(text: str) -> str:
    """Text for a place that takes markup, such as the axis of a plot."""
    return escape(text, quote=False).replace("\n", "<br>")
