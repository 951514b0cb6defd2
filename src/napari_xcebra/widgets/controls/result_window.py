"""Gives what a dock computes a window of its own: what to ask, a notice, and the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from qtpy.QtWidgets import QDialog, QVBoxLayout, QWidget

from napari_xcebra.widgets.controls.layouts import Part, fill_layout
from napari_xcebra.widgets.controls.napari_window import follow
from napari_xcebra.widgets.controls.notice import Notice


class ResultWindow(QDialog):
    """A window that follows the state, and says what went wrong.

    Parameters
    ----------
    title : str
    size : (int, int)
        Pixels.
    parent : QWidget
    lasting : bool
        Whether its notice stays until the next one.
    """

    def __init__(
        self, title: str, size: tuple[int, int], parent: QWidget, *, lasting: bool = False
    ) -> None:
        super().__init__(parent)
        self.notice = Notice(lasting=lasting)
        self.setWindowTitle(title)
        self.resize(*size)

    def lay_out(self, *parts: Part) -> None:
        """Put its parts below each other."""
        layout = QVBoxLayout(self)
        margins = layout.contentsMargins()
        fill_layout(layout, parts)
        layout.setContentsMargins(margins)

    def follow(self, *pairs: tuple[Any, Callable[..., object]]) -> None:
        """Call methods at each emission of their signals, for as long as it exists."""
        for signal, method in pairs:
            follow(self, signal, method)

    def refresh(self) -> None:
        """Show what changed while it was closed."""

    def showEvent(self, event: Any) -> None:
        """Bring it up to date."""
        super().showEvent(event)
        self.refresh()

    def say_problem(self, sentence: str, details: str = "") -> None:
        """Say what went wrong."""
        self.notice.say(sentence, "problem", details)
