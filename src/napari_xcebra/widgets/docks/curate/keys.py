"""Binds the keys of the Curate dock: one table for bindings, help and the user's choice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from qtpy.QtCore import QEvent, QObject, Qt, Signal
from qtpy.QtGui import QKeySequence
from qtpy.QtWidgets import (
    QAbstractButton,
    QApplication,
    QGridLayout,
    QLabel,
    QLineEdit,
    QMainWindow,
    QMenu,
    QPushButton,
    QShortcut,
    QSizePolicy,
    QWidget,
)

from napari_xcebra.curation import Status
from napari_xcebra.errors import InputError
from napari_xcebra.widgets.controls.layouts import Fold, in_column, in_row
from napari_xcebra.widgets.controls.napari_window import canvas_of, follow, main_window
from napari_xcebra.widgets.controls.notice import Notice
from napari_xcebra.widgets.state.preferences import (
    KEYS,
    changes_of,
    keep,
    kept_list,
    prefer,
    preferred,
)
from napari_xcebra.widgets.state.state import State

MOST_TAGS = 9


@dataclass(frozen=True)
class _KeyAction:
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
    _KeyAction("accept", "A", "Accept, then go to the next cell"),
    _KeyAction("reject", "R", "Reject, then go to the next cell"),
    _KeyAction("flip", "Space", "Flip accepted and rejected, then go to the next cell"),
    _KeyAction("undecided", "U", "Leave undecided, then go to the next cell"),
    _KeyAction("previous", "Left", "Previous cell", repeats=True, on_image="Up"),
    _KeyAction("next", "Right", "Next cell", repeats=True, on_image="Down"),
    _KeyAction("undo", "Ctrl+Z", "Undo", repeats=True),
    _KeyAction("redo", "Ctrl+Shift+Z", "Redo", repeats=True, also="Ctrl+Y"),
    _KeyAction("close up", "C", "Close-up of the cell, or the whole field"),
    _KeyAction("merge", "M", "Merge cells, or take a merged one apart"),
    _KeyAction("extractor", "E", "Start from the extractor's decisions"),
    _KeyAction("save", "W", "Write the decisions"),
    _KeyAction("note", "N", "Write a note (Enter ends it)"),
    _KeyAction("lasso", "L", "Draw a lasso around cells"),
    _KeyAction("rectangle", "Shift+L", "Draw a rectangle around cells"),
    *(_KeyAction(f"tag {i}", str(i), f"Tag {i} on or off") for i in range(1, MOST_TAGS + 1)),
)
"""The table. None of the letters but L means anything in napari's image and Labels layers."""

RESERVED = {
    "Tab": "moves to the next control",
    "Shift+Tab": "moves to the previous control",
    "Backtab": "moves to the previous control",
    "Return": "presses a button or ends a note",
    "Enter": "presses a button or ends a note",
    "Esc": "cancels the lasso",
    "Up": "moves through lists",
    "Down": "moves through lists",
}
"""Keys that keep the meaning they have all over the window."""

Keys = Mapping[str, str]
"""Key of each action, by its name."""


def _default_keys() -> dict[str, str]:
    """Keys before the user changes any."""
    return {action.name: action.key for action in ACTIONS}


def _chosen_keys() -> dict[str, str]:
    """As the user chose them; invalid or clashing keys fall back to the defaults."""
    keys = {
        action.name: _valid(preferred(KEYS, action.setting)) or action.key for action in ACTIONS
    }
    return keys if len(set(keys.values())) == len(keys) else _default_keys()


def _valid(typed: str) -> str:
    """A key as Qt writes it, of one that was typed in napari's Preferences; empty if it is none."""
    key = QKeySequence(typed).toString()
    return "" if key in RESERVED or "," in key.rstrip(",") else key


def _with_key(
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


def _keep_keys(keys: Keys) -> None:
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


def _pressed(event: Any) -> str:
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


def _keys_of_menus(window: QWidget) -> dict[str, str]:
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


def _resting_in_napari(keys: Keys) -> dict[str, str]:
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

    def _shortcut(self, action: _KeyAction, where: QWidget | None) -> QShortcut:
        shortcut = QShortcut(where)
        shortcut.setAutoRepeat(action.repeats)
        shortcut.setEnabled(False)
        shortcut.activated.connect(lambda: self._press(action))
        self.parent().destroyed.connect(shortcut.deleteLater)
        return shortcut

    def _press(self, action: _KeyAction) -> None:
        focus = QApplication.focusWidget()
        if action.key == "Space" and isinstance(focus, QAbstractButton):
            focus.click()  # whoever goes through a dock by the Tab key presses buttons so
        else:
            self._act(action.name)

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


class _KeyButton(QPushButton):
    """Shows a key; once clicked, takes the next key that is pressed."""

    taken = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self._key = ""
        self.setCheckable(True)
        self.setSizePolicy(QSizePolicy.Policy.Minimum, QSizePolicy.Policy.Fixed)
        self.setStyleSheet("QPushButton { padding: 1px 6px; min-width: 54px; }")
        self.toggled.connect(self._show)

    def show_key(self, key: str) -> None:
        """Show another key."""
        self._key = key
        self.setChecked(False)
        self._show()

    def _show(self, *_: Any) -> None:
        self.setText("press …" if self.isChecked() else readable(self._key))

    def event(self, event: Any) -> bool:
        """Take every key press while waiting for a key."""
        if self.isChecked() and event.type() == QEvent.Type.ShortcutOverride:
            event.accept()
            return True
        if self.isChecked() and event.type() == QEvent.Type.KeyPress:
            self._take(event)
            return True
        return super().event(event)

    def _take(self, event: Any) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.setChecked(False)
        elif key := _pressed(event):
            self.setChecked(False)
            self.taken.emit(key)

    def focusOutEvent(self, event: Any) -> None:
        """Stop waiting."""
        super().focusOutEvent(event)
        self.setChecked(False)


class _KeyList(QWidget):
    """One row per action: its key, which can be changed, and its meaning."""

    changed = Signal(object)
    """The whole table."""

    def __init__(self) -> None:
        super().__init__()
        self._keys: Keys = _default_keys()
        self.menus: dict[str, str] = {}
        self.buttons: dict[str, _KeyButton] = {}
        self._meanings: dict[str, QLabel] = {}
        grid = QGridLayout()
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setVerticalSpacing(2)
        for place, action in enumerate(ACTIONS):
            also = f" (also {readable(action.also)})" if action.also else ""
            if action.on_image:
                also = f" (on the image also {readable(action.on_image)})"
            button, meaning = _KeyButton(), QLabel(action.meaning + also)
            button.taken.connect(lambda key, name=action.name: self._change(name, key))
            self.buttons[action.name], self._meanings[action.name] = button, meaning
            grid.addWidget(button, place, 0)
            grid.addWidget(meaning, place, 1)
        grid.setColumnStretch(1, 1)
        self.defaults = QPushButton("Default keys")
        self.defaults.setToolTip("Restore the default key of every action.")
        self.defaults.clicked.connect(lambda _=False: self.changed.emit(_default_keys()))
        self.notice = Notice(lasting=True)
        in_column(self.notice, grid, self.defaults, of=self)

    def show_keys(self, keys: Keys, tags: tuple[str, ...]) -> None:
        """Show the table, with the names of the tags that have a key."""
        self._keys = keys
        resting = _resting_in_napari(keys)
        for action in ACTIONS:
            button, meaning = self.buttons[action.name], self._meanings[action.name]
            button.show_key(keys[action.name])
            told = f"Click, then press a new key for “{action.meaning}”; Esc cancels."
            if what := resting.get(keys[action.name]):
                told += f"\nIn napari: {what}; switched off while this dock is in front."
            button.setToolTip(told)
            if action.name.startswith("tag "):
                number = int(action.name.removeprefix("tag "))
                used = number <= len(tags)
                meaning.setText(f"Tag “{tags[number - 1]}” on or off" if used else "")
                button.setVisible(used)
                meaning.setVisible(used)
        self.notice.clear()

    def _change(self, name: str, key: str) -> None:
        try:
            keys = _with_key(self._keys, name, key, self.menus)
        except InputError as error:
            self.notice.say(str(error), "warning")
        else:
            self.changed.emit(keys)


DEFAULT_TAGS = ["place", "speed", "red"]


class KeysAndTags(Fold):
    """A line for the names of tags, and a row for each key; also follows napari's Preferences."""

    changed = Signal()

    def __init__(self, state: State) -> None:
        super().__init__("Keys and tags", "See and change the keys of this dock.")
        self._state = state
        self._keeping = False
        self.chosen: Keys = _chosen_keys()
        self.tags = QLineEdit(", ".join(kept_list("tags") or DEFAULT_TAGS))
        self.tags.setToolTip(f"Names separated by commas; the first {MOST_TAGS} have a key.")
        self.list = _KeyList()
        line = QWidget()
        in_row(QLabel("Tags"), (self.tags, 1), of=line)
        self.addWidget(line)
        self.addWidget(self.list)
        self.tags.editingFinished.connect(self._name_tags)
        self.tags.returnPressed.connect(self.tags.clearFocus)
        self.list.changed.connect(self._choose)
        if (changes := changes_of(KEYS)) is not None:
            follow(self, changes, self._follow_preferences)
        self._use(self.chosen)

    @property
    def tag_names(self) -> tuple[str, ...]:
        """Tags on offer, each once."""
        names = (name.strip() for name in self.tags.text().replace(";", ",").split(","))
        return tuple(dict.fromkeys(name for name in names if name))

    def _name_tags(self) -> None:
        keep("tags", list(self.tag_names))
        self._use(self.chosen)

    def _choose(self, keys: Keys) -> None:
        self._keeping = True  # each one would look like a change by the user
        _keep_keys(keys)
        self._keeping = False
        self._use(keys)

    def _follow_preferences(self, _: object = None) -> None:
        """Take keys that were changed in napari's Preferences."""
        if not self._keeping and (keys := _chosen_keys()) != self.chosen:
            self._use(keys)

    def _use(self, keys: Keys) -> None:
        self.chosen = keys
        self.list.menus = _keys_of_menus(main_window(self._state.viewer))
        self.list.show_keys(keys, self.tag_names)
        self.changed.emit()
