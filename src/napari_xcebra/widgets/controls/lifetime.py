"""Notices docks that come and go, and ties connections and widgets to their lifetime."""

from __future__ import annotations

import atexit
import gc
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from weakref import WeakMethod

from qtpy.QtCore import QEvent, QObject, Signal
from qtpy.QtWidgets import QDockWidget, QWidget

# At its exit PyQt walks over all objects and deletes those that are left, and crashes where one
# takes others with it, as plots of a closed window do. What is garbage by then is collected first.
atexit.register(gc.collect)


def follow(owner: QWidget, signal: Any, method: Callable[..., object]) -> None:
    """Call a method at each emission of a signal, for as long as its widget exists.

    Signals of psygnal and napari know nothing of Qt: they would keep calling a widget whose window
    is gone.
    """
    signal.connect(method)
    weak = WeakMethod(method)

    def let_go(*_: object) -> None:
        alive = weak()
        # a viewer that is being collected has taken its emitters apart already
        with suppress(AttributeError):
            if alive is not None:
                signal.disconnect(alive)

    owner.destroyed.connect(let_go)


def when_docked(window: QWidget, tell: Callable[[QDockWidget], object]) -> None:
    """Call `tell` with each dock that is shown in a main window for the first time."""
    _Arrival(window, tell)


class _Arrival(QObject):
    """Watches a main window for new docks."""

    def __init__(self, window: QWidget, tell: Callable[[QDockWidget], object]) -> None:
        super().__init__(window)
        self._tell = tell
        window.installEventFilter(self)

    def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:
        """Tell of a dock that Qt is about to show."""
        if event is not None and event.type() == QEvent.Type.ChildPolished:
            dock = event.child()
            if isinstance(dock, QDockWidget):
                self._tell(dock)
        return False


def end_with_dock(widget: QWidget) -> None:
    """Delete a widget once napari has taken it out of its dock.

    napari only detaches it: it would live on unseen, and listen.
    """
    _Departure(widget)


class _Departure(QObject):
    """Watches for a widget losing the parent it had."""

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget)
        self._docked = False
        widget.installEventFilter(self)

    def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:
        """Note docking; delete when undocked."""
        if event is not None and event.type() == QEvent.Type.ParentChange and watched is not None:
            if watched.parent() is not None:
                self._docked = True
            elif self._docked:
                watched.deleteLater()
        return False


class Presence(QObject):
    """Whether the dock around a widget can be seen: neither closed nor behind another tab.

    Qt says of a widget behind a tab that it is visible.
    """

    changed = Signal(bool)

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget)
        self.now = True
        self._dock: QDockWidget | None = None
        widget.installEventFilter(self)

    def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:
        """Listen to the dock into which the widget is put."""
        if event is not None and event.type() == QEvent.Type.ParentChange and watched is not None:
            dock = watched.parent()
            if isinstance(dock, QDockWidget) and dock is not self._dock:
                self._dock = dock
                dock.visibilityChanged.connect(self._hear)
        return False

    def _hear(self, visible: bool) -> None:
        if visible != self.now:
            self.now = visible
            self.changed.emit(visible)
