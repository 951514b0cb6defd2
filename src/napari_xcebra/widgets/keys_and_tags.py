"""The user's own keys and tags of the Curate dock: shown, changed and kept."""

from __future__ import annotations

from qtpy.QtCore import Signal
from qtpy.QtWidgets import QHBoxLayout, QLabel, QLineEdit, QWidget

from napari_xcebra.widgets.curation_keys import (
    MOST_TAGS,
    Keys,
    chosen_keys,
    keep_keys,
    keys_of_menus,
)
from napari_xcebra.widgets.fold import Fold
from napari_xcebra.widgets.kept import keep, kept_list
from napari_xcebra.widgets.key_list import KeyList
from napari_xcebra.widgets.lifetime import follow
from napari_xcebra.widgets.preferences import KEYS, changes_of
from napari_xcebra.widgets.session import Session

DEFAULT_TAGS = ["place", "speed", "red"]


class KeysAndTags(Fold):
    """A line for the names of tags, and a row for each key; also follows napari's Preferences.

    Parameters
    ----------
    session : Session
    """

    changed = Signal()

    def __init__(self, session: Session) -> None:
        super().__init__("Keys and tags", "Every key of this dock, to see and to change.")
        self._session = session
        self._keeping = False
        self.chosen: Keys = chosen_keys()
        self.tags = QLineEdit(", ".join(kept_list("tags") or DEFAULT_TAGS))
        self.tags.setToolTip(f"Names with commas between them; the first {MOST_TAGS} have a key.")
        self.list = KeyList()
        row = QWidget()
        line = QHBoxLayout(row)
        line.setContentsMargins(0, 0, 0, 0)
        line.addWidget(QLabel("Tags"))
        line.addWidget(self.tags, 1)
        self.addWidget(row)
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
        self._keeping = True  # one after the other they would be taken for the user's
        keep_keys(keys)
        self._keeping = False
        self._use(keys)

    def _follow_preferences(self, _: object = None) -> None:
        """Take keys that were changed in napari's Preferences."""
        if not self._keeping and (keys := chosen_keys()) != self.chosen:
            self._use(keys)

    def _use(self, keys: Keys) -> None:
        self.chosen = keys
        self.list.menus = keys_of_menus(self._session.viewer.window._qt_window)
        self.list.show_keys(keys, self.tag_names)
        self.changed.emit()
