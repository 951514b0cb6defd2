"""Binds the keys of the Curate dock: one table for bindings, help and the user's choice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from qtpy.QtCore import QObject, Qt
from qtpy.QtGui import QKeySequence
from qtpy.QtWidgets import QMainWindow, QMenu, QShortcut, QWidget

from napari_xcebra.curation import Status
from napari_xcebra.errors import InputError
from napari_xcebra.widgets.controls.napari_window import canvas_of, main_window
from napari_xcebra.widgets.state.preferences import KEYS, prefer, preferred

MOST_TAGS = 9


@dataclass(frozen=True)
class KeyAction:
    """Something that a key does; `key` is the default, as Qt writes keys."""

    name: str
    key: str
    meaning: str
    repeats: bool = False
    """Whether holding the key down repeats it."""
    also: str = ""
    """A second key, as other programs have it; it cannot be changed."""
    on_image: str = ""
    """A key that does so while the image has the focus; elsewhere it moves through lists."""

    @property
    def setting(self) -> str:
        """What napari's Preferences know it by."""
        return self.name.replace(" ", "_")


ACTIONS = (
    KeyAction("accept", "A", "Accept, then go to the next cell"),
    KeyAction("reject", "R", "Reject, then go to the next cell"),
    KeyAction("undecided", "U", "Leave undecided, then go to the next cell"),
    KeyAction("previous", "Left", "Previous cell", repeats=True, on_image="Up"),
    KeyAction("next", "Right", "Next cell", repeats=True, on_image="Down"),
    KeyAction("undo", "Ctrl+Z", "Undo", repeats=True),
    KeyAction("redo", "Ctrl+Shift+Z", "Redo", repeats=True, also="Ctrl+Y"),
    KeyAction("close up", "C", "Close-up of the cell, or the whole field"),
    KeyAction("note", "N", "Write a note (Enter ends it)"),
    KeyAction("lasso", "L", "Draw a lasso around cells"),
    KeyAction("rectangle", "Shift+L", "Draw a rectangle around cells"),
    *(KeyAction(f"tag {i}", str(i), f"Tag {i} on or off") for i in range(1, MOST_TAGS + 1)),
)
"""The table. None of the letters but L means anything in napari's image and Labels layers."""

RESERVED = {
    "Tab": "moves to the next control",
    "Shift+Tab": "moves to the previous control",
    "Backtab": "moves to the previous control",
    "Space": "presses the button that has the focus, and moves the image while it is held",
    "Return": "presses a button or ends a note",
    "Enter": "presses a button or ends a note",
    "Esc": "cancels the lasso",
    "Up": "moves through lists",
    "Down": "moves through lists",
}
"""Keys that keep the meaning they have all over the window."""

Keys = Mapping[str, str]
"""Key of each action, by its name."""


def default_keys() -> dict[str, str]:
    """Keys before the user changes any."""
    return {action.name: action.key for action in ACTIONS}


def chosen_keys() -> dict[str, str]:
    """As the user chose them; invalid or clashing keys fall back to the defaults."""
    keys = {
        action.name: _valid(preferred(KEYS, action.setting)) or action.key for action in ACTIONS
    }
    return keys if len(set(keys.values())) == len(keys) else default_keys()


def _valid(typed: str) -> str:
    """A key as Qt writes it, of one that was typed in napari's Preferences; empty if it is none."""
    key = QKeySequence(typed).toString()
    return "" if key in RESERVED or "," in key.rstrip(",") else key


def with_key(
    keys: Keys, name: str, wanted: str, menus: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The table with another key, as Qt writes keys, for the action `name`.

    Raises InputError if the key has a meaning already: for another action, all over the window, or
    in `menus` (titles of entries by their keys).
    """
    shown = readable(wanted)
    if not wanted:
        raise InputError("That key cannot be recognised: choose another one.")
    if wanted in RESERVED:
        raise InputError(f"{shown} {RESERVED[wanted]}: choose another key.")
    if title := (menus or {}).get(wanted):
        raise InputError(f"{shown} is “{title}” in napari's menus: choose another key.")
    meanings = {action.name: action.meaning for action in ACTIONS}
    for other, key in keys.items():
        if key == wanted and other != name:
            raise InputError(
                f"{shown} already means “{meanings[other]}”: choose another key, or change that "
                "one first."
            )
    return {**keys, name: wanted}


def keep_keys(keys: Keys) -> None:
    """Remember the keys, also for napari's Preferences."""
    for action in ACTIONS:
        if keys[action.name] != (preferred(KEYS, action.setting) or action.key):
            prefer(KEYS, action.setting, keys[action.name])


def readable(key: str) -> str:
    """A key as the user's system writes it; arrows as arrows."""
    arrows = {"Left": "←", "Right": "→", "Up": "↑", "Down": "↓"}
    if key in arrows:
        return arrows[key]
    return QKeySequence(key).toString(QKeySequence.SequenceFormat.NativeText)


def pressed(event: Any) -> str:
    """The key of a key press as Qt writes it; empty for a modifier alone."""
    alone = (
        Qt.Key.Key_Shift,
        Qt.Key.Key_Control,
        Qt.Key.Key_Alt,
        Qt.Key.Key_Meta,
        Qt.Key.Key_AltGr,
    )
    if event.key() in alone or event.key() == Qt.Key.Key_unknown:
        return ""
    # a 1 of the number pad is a 1
    modifiers = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
    held = getattr(modifiers, "value", modifiers)  # plain numbers in older bindings
    return QKeySequence(int(held) | int(event.key())).toString()


def keys_of_menus(window: QWidget) -> dict[str, str]:
    """Keys of the entries of a window's menus, with their titles."""
    found: dict[str, str] = {}
    bar = window.menuBar() if isinstance(window, QMainWindow) else None
    for action in _entries(bar.actions() if bar else []):
        for key in action.shortcuts():
            found[key.toString()] = action.text().replace("&", "")
    return found


def _entries(actions: list[Any]) -> Iterator[Any]:
    for action in actions:
        menu = action.menu()
        if isinstance(menu, QMenu):
            yield from _entries(menu.actions())
        else:
            yield action


def resting_in_napari(keys: Keys) -> dict[str, str]:
    """What napari uses these keys for, by key."""
    from napari.settings import get_settings

    ours = set(keys.values())
    resting: dict[str, str] = {}
    for name, bindings in get_settings().shortcuts.shortcuts.items():
        for binding in bindings:
            key = str(binding)
            if key in ours:
                what = name.removeprefix("napari:").replace("_", " ")
                resting[key] = f"{resting[key]}, {what}" if key in resting else what
    return resting


DECISIONS: dict[str, Status] = {
    "accept": "accepted",
    "reject": "rejected",
    "undecided": "undecided",
}
"""What the actions that decide make of a cell."""


class KeyBindings(QObject):
    """Binds keys in a window while a dock in it can be seen.

    A shortcut of Qt comes before the keys of napari's canvas and layers, works wherever the focus
    is, and lets fields of text have what is typed into them. Disabled, it leaves no trace:
    napari's own keys work as usual.

    The main window has the keys: shortcuts of a floating dock would not reach the canvas. `act` is
    called with the name of an action.
    """

    def __init__(self, dock: QWidget, viewer: Any, act: Callable[[str], object]) -> None:
        super().__init__(dock)
        self._act = act
        window, canvas = main_window(viewer), canvas_of(viewer)
        self._shortcuts = {action.name: self._shortcut(action, window) for action in ACTIONS}
        self._on_image = []
        for action in ACTIONS:
            if action.on_image and canvas is not None:
                shortcut = self._shortcut(action, canvas)
                shortcut.setContext(Qt.ShortcutContext.WidgetShortcut)
                shortcut.setKey(QKeySequence(action.on_image))
                self._on_image.append(shortcut)

    def _shortcut(self, action: KeyAction, where: QWidget | None) -> QShortcut:
        shortcut = QShortcut(where)
        shortcut.setAutoRepeat(action.repeats)
        shortcut.setEnabled(False)
        shortcut.activated.connect(lambda: self._act(action.name))
        self.parent().destroyed.connect(shortcut.deleteLater)
        return shortcut

    def bind(self, keys: Keys) -> None:
        """Give the actions their keys."""
        for action in ACTIONS:
            also = [action.also] if action.also and action.also not in keys.values() else []
            wanted = [QKeySequence(key) for key in (keys[action.name], *also)]
            self._shortcuts[action.name].setKeys(wanted)

    def rest(self, resting: bool) -> None:
        """Give all keys back to napari, or take them again."""
        for shortcut in (*self._shortcuts.values(), *self._on_image):
            shortcut.setEnabled(not resting)
