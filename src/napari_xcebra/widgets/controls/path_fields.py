"""Fields for paths: typed, browsed for, dropped or chosen from the last ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import (
    QComboBox,
    QFileDialog,
    QListWidget,
    QListWidgetItem,
    QMenu,
    QPushButton,
    QSizePolicy,
    QWidget,
)
from superqt.utils import signals_blocked

from napari_xcebra.widgets.controls.layouts import in_column, in_row, spare_from_wheel
from napari_xcebra.widgets.controls.plain_text import plain

ROW = 20
_WAY, _PATH = Qt.ItemDataRole.UserRole, Qt.ItemDataRole.UserRole + 1


def dropped_paths(event: Any) -> list[str]:
    """Local files and folders that a drag carries."""
    paths = [url.toLocalFile() for url in event.mimeData().urls()]
    return [path for path in paths if path]


class PathField(QWidget):
    """One path, of a folder too if `folders`; `what` is asked for in the titles of dialogs."""

    changed = Signal()
    dropped = Signal(list)

    def __init__(self, what: str, help: str, hint: str, *, folders: bool = False) -> None:
        super().__init__()
        self._what = what
        self.box = QComboBox()
        self.box.setEditable(True)
        self.box.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        self.box.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.box.setMinimumWidth(80)
        self.box.setToolTip(help)
        self.box.lineEdit().setPlaceholderText(hint)
        self.box.lineEdit().setAcceptDrops(False)  # so that a drop comes to this field
        self.box.editTextChanged.connect(lambda _: self.changed.emit())
        if not folders:  # nothing is remembered to choose from
            self.box.setStyleSheet(
                "QComboBox::drop-down { width: 0; } QComboBox::down-arrow { width: 0; }"
            )
        spare_from_wheel(self.box)
        in_row((self.box, 1), self._browse_button(folders), of=self)
        self.setAcceptDrops(True)

    def setPlaceholderText(self, hint: str) -> None:
        """Say what to put into the empty field, as of a line of text."""
        self.box.lineEdit().setPlaceholderText(hint)

    @property
    def path(self) -> Path | None:
        """The path; None if the field is empty."""
        text = self.box.currentText().strip().strip('"').removeprefix("file://")
        return Path(text).expanduser() if text else None

    @path.setter
    def path(self, path: str | Path | None) -> None:
        self.box.setEditText(str(path) if path else "")

    def offer(self, paths: Sequence[str]) -> None:
        """Paths to choose from; what is typed stays."""
        text = self.box.currentText()
        with signals_blocked(self.box):
            self.box.clear()
            self.box.addItems(list(paths))
            self.box.setEditText(text)

    def _browse_button(self, folders: bool) -> QWidget:
        button = QPushButton("Browse…")
        button.setToolTip(f"Browse for {self._what}{': a folder or a file' if folders else ''}.")
        if not folders:
            button.clicked.connect(self._browse_file)
            return button
        menu = QMenu(button)
        menu.addAction("Folder…", self._browse_folder)
        menu.addAction("File…", self._browse_file)
        button.setMenu(menu)
        return button

    def _browse_file(self) -> None:
        found, _ = QFileDialog.getOpenFileName(self, f"Choose {self._what}", self._start())
        if found:
            self.path = found

    def _browse_folder(self) -> None:
        found = QFileDialog.getExistingDirectory(self, f"Choose {self._what}", self._start())
        if found:
            self.path = found

    def _start(self) -> str:
        """Folder to start in: that of the current path, or of the last one opened."""
        last = self.path or Path(self.box.itemText(0))
        return str(last.parent) if last.is_absolute() else ""

    def dragEnterEvent(self, event: Any) -> None:
        """Accept files."""
        if dropped_paths(event):
            event.acceptProposedAction()

    def dropEvent(self, event: Any) -> None:
        """Take the first path, and hand on the others."""
        first, *others = dropped_paths(event)
        self.path = first
        if others:
            self.dropped.emit(others)


class PathList(QWidget):
    """Several paths, each of which may be read in a way of its own.

    Parameters
    ----------
    what : str
        What is browsed for.
    help : str
    ways : mapping of str to str
        Ways to read a file, and the words for each; the first is usual.
    """

    changed = Signal()

    def __init__(self, what: str, help: str, ways: Mapping[str, str]) -> None:
        super().__init__()
        self._what, self._ways = what, ways
        self.list = QListWidget()
        self.list.setToolTip(help)
        self.list.setSelectionMode(QListWidget.SelectionMode.ExtendedSelection)
        self.list.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.itemSelectionChanged.connect(self._mark)
        add = QPushButton("Add…")
        add.setToolTip(f"Browse for {what}. Choose several at once, or drop them here.")
        add.clicked.connect(self._browse)
        self._remove = QPushButton("Remove")
        self._remove.clicked.connect(self._remove_chosen)
        self._read_as = QPushButton("Read as")
        menu = QMenu(self._read_as)
        for way, words in ways.items():
            menu.addAction(words, partial(self._read_chosen_as, way))
        self._read_as.setMenu(menu)
        in_row((self.list, 1), in_column(add, self._remove, self._read_as, 1), of=self)
        self.list.setFixedHeight(3 * ROW + 2 * self.list.frameWidth())
        self.list.setMinimumWidth(80)
        self.list.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.setAcceptDrops(True)
        self._mark()

    @property
    def paths(self) -> tuple[Path, ...]:
        """All paths, in order."""
        return tuple(item.data(_PATH) for item in self._items())

    @paths.setter
    def paths(self, paths: Sequence[str | Path]) -> None:
        self.list.clear()
        self.add(paths)

    def read_as(self, way: str) -> tuple[Path, ...]:
        """Paths that are read in this way, in order."""
        return tuple(i.data(_PATH) for i in self._items() if i.data(_WAY) == way)

    def add(self, paths: Sequence[str | Path], way: str = "") -> None:
        """Add paths that are not in the list yet, to be read in that way, or the usual one."""
        known = set(self.paths)
        for path in dict.fromkeys(map(Path, paths)):
            if path not in known:
                item = QListWidgetItem()
                item.setData(_PATH, path)
                item.setToolTip(plain(str(path)))
                self.list.addItem(item)
                self._set_way(item, way or next(iter(self._ways)))
        self._mark()
        self.changed.emit()

    def remove(self, paths: Collection[Path]) -> None:
        """Remove paths from the list."""
        for item in [item for item in self._items() if item.data(_PATH) in paths]:
            self.list.takeItem(self.list.row(item))
        self._mark()
        self.changed.emit()

    def _items(self) -> list[QListWidgetItem]:
        return [self.list.item(i) for i in range(self.list.count())]

    def _set_way(self, item: QListWidgetItem, way: str) -> None:
        usual = way == next(iter(self._ways))
        name = item.data(_PATH).name
        item.setData(_WAY, way)
        item.setText(name if usual else f"{name} ({way})")

    def _read_chosen_as(self, way: str) -> None:
        for item in self.list.selectedItems():
            self._set_way(item, way)
        self.changed.emit()

    def _remove_chosen(self) -> None:
        self.remove([item.data(_PATH) for item in self.list.selectedItems()])

    def _mark(self) -> None:
        chosen = bool(self.list.selectedItems())
        self._remove.setEnabled(chosen)
        self._read_as.setEnabled(chosen)
        reason = (
            "Remove the selected files from the list."
            if chosen
            else "Select a file in the list first."
        )
        self._remove.setToolTip(reason)
        self._read_as.setToolTip(
            "Say what the rows of the selected files are, if they are not read as you expect."
            if chosen
            else "Select a file in the list first."
        )

    def _browse(self) -> None:
        found, _ = QFileDialog.getOpenFileNames(self, f"Choose {self._what}", self._start())
        self.add(found)

    def _start(self) -> str:
        return str(self.paths[-1].parent) if self.paths else ""

    def dragEnterEvent(self, event: Any) -> None:
        """Accept files."""
        if dropped_paths(event):
            event.acceptProposedAction()

    def dropEvent(self, event: Any) -> None:
        """Add them."""
        self.add(dropped_paths(event))
