"""Shows the keys and tags of the Curate dock, and lets the user change them."""

from __future__ import annotations

from typing import Any

from qtpy.QtCore import QEvent, Qt, Signal
from qtpy.QtWidgets import (
    QGridLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QSizePolicy,
    QWidget,
)

from napari_xcebra.errors import InputError
from napari_xcebra.widgets.controls.layouts import Fold, in_column, in_row
from napari_xcebra.widgets.controls.napari_window import follow, main_window
from napari_xcebra.widgets.controls.notice import Notice
from napari_xcebra.widgets.docks.curate.curation_keys import (
    ACTIONS,
    MOST_TAGS,
    Keys,
    chosen_keys,
    default_keys,
    keep_keys,
    keys_of_menus,
    pressed,
    readable,
    resting_in_napari,
    with_key,
)
from napari_xcebra.widgets.state.preferences import KEYS, changes_of, keep, kept_list
from napari_xcebra.widgets.state.state import State


class KeyButton(QPushButton):
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
        elif key := pressed(event):
            self.setChecked(False)
            self.taken.emit(key)

    def focusOutEvent(self, event: Any) -> None:
        """Stop waiting."""
        super().focusOutEvent(event)
        self.setChecked(False)


class KeyList(QWidget):
    """One row per action: its key, which can be changed, and its meaning."""

    changed = Signal(object)
    """The whole table."""

    def __init__(self) -> None:
        super().__init__()
        self._keys: Keys = default_keys()
        self.menus: dict[str, str] = {}
        self.buttons: dict[str, KeyButton] = {}
        self._meanings: dict[str, QLabel] = {}
        grid = QGridLayout()
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setVerticalSpacing(2)
        for place, action in enumerate(ACTIONS):
            also = f" (also {readable(action.also)})" if action.also else ""
            if action.on_image:
                also = f" (on the image also {readable(action.on_image)})"
            button, meaning = KeyButton(), QLabel(action.meaning + also)
            button.taken.connect(lambda key, name=action.name: self._change(name, key))
            self.buttons[action.name], self._meanings[action.name] = button, meaning
            grid.addWidget(button, place, 0)
            grid.addWidget(meaning, place, 1)
        grid.setColumnStretch(1, 1)
        self.defaults = QPushButton("Default keys")
        self.defaults.setToolTip("Restore the default key of every action.")
        self.defaults.clicked.connect(lambda _=False: self.changed.emit(default_keys()))
        self.notice = Notice(lasting=True)
        in_column(self.notice, grid, self.defaults, of=self)

    def show_keys(self, keys: Keys, tags: tuple[str, ...]) -> None:
        """Show the table, with the names of the tags that have a key."""
        self._keys = keys
        resting = resting_in_napari(keys)
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
            keys = with_key(self._keys, name, key, self.menus)
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
        self.chosen: Keys = chosen_keys()
        self.tags = QLineEdit(", ".join(kept_list("tags") or DEFAULT_TAGS))
        self.tags.setToolTip(f"Names separated by commas; the first {MOST_TAGS} have a key.")
        self.list = KeyList()
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
        keep_keys(keys)
        self._keeping = False
        self._use(keys)

    def _follow_preferences(self, _: object = None) -> None:
        """Take keys that were changed in napari's Preferences."""
        if not self._keeping and (keys := chosen_keys()) != self.chosen:
            self._use(keys)

    def _use(self, keys: Keys) -> None:
        self.chosen = keys
        self.list.menus = keys_of_menus(main_window(self._state.viewer))
        self.list.show_keys(keys, self.tag_names)
        self.changed.emit()
