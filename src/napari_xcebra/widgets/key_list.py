"""The keys of the Curate dock, shown and changed."""

from __future__ import annotations

from typing import Any

from qtpy.QtCore import QEvent, Qt, Signal
from qtpy.QtWidgets import QGridLayout, QLabel, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from napari_xcebra.errors import InputError
from napari_xcebra.widgets.curation_keys import (
    ACTIONS,
    Keys,
    default_keys,
    pressed,
    readable,
    resting_in_napari,
    with_key,
)
from napari_xcebra.widgets.notice import Notice


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
        """While it waits for a key, no key does anything else."""
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
        """Wait no longer."""
        super().focusOutEvent(event)
        self.setChecked(False)


class KeyList(QWidget):
    """A row an action: its key, which can be changed, and its meaning."""

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
        for row, action in enumerate(ACTIONS):
            button, meaning = KeyButton(), QLabel(action.meaning)
            button.taken.connect(lambda key, name=action.name: self._change(name, key))
            self.buttons[action.name], self._meanings[action.name] = button, meaning
            grid.addWidget(button, row, 0)
            grid.addWidget(meaning, row, 1)
        grid.setColumnStretch(1, 1)
        self.defaults = QPushButton("Default keys")
        self.defaults.setToolTip("Give every action the key that it had in the beginning.")
        self.defaults.clicked.connect(lambda _=False: self.changed.emit(default_keys()))
        self.notice = Notice()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.notice)
        layout.addLayout(grid)
        layout.addWidget(self.defaults)

    def show_keys(self, keys: Keys, tags: tuple[str, ...]) -> None:
        """Show the table, with the names of the tags that have a key."""
        self._keys = keys
        resting = resting_in_napari(keys)
        for action in ACTIONS:
            button, meaning = self.buttons[action.name], self._meanings[action.name]
            button.show_key(keys[action.name])
            told = f"Click, then press another key for “{action.meaning}”; Esc leaves it."
            if what := resting.get(keys[action.name]):
                told += f"\nIn napari otherwise: {what}; that rests while this dock is in front."
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
