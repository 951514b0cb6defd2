"""Fields for paths: typed, browsed for, dropped or chosen from the last ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import (
    QComboBox,
    QFileDialog,
    QHBoxLayout,
    QListWidget,
    QMenu,
    QPushButton,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from napari_xcebra.widgets.wheel import spare_from_wheel

ROW = 20


def dropped_paths(event: Any) -> list[str]:
    """Local files and folders that a drag carries."""
    paths = [url.toLocalFile() for url in event.mimeData().urls()]
    return [path for path in paths if path]


class PathField(QWidget):
    """One path.

    Parameters
    ----------
    what : str
        What is asked for, for titles of dialogs.
    help : str
    folders : bool
        Whether it may be a folder.
    """

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
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.box, 1)
        layout.addWidget(self._browse_button(folders))
        self.setAcceptDrops(True)

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
        self.box.clear()
        self.box.addItems(list(paths))
        self.box.setEditText(text)

    def _browse_button(self, folders: bool) -> QWidget:
        if not folders:
            button = QPushButton("Browse…")
            button.setToolTip(f"Look for {self._what}.")
            button.clicked.connect(self._browse_file)
            return button
        button = QPushButton("Browse…")
        button.setToolTip(f"Look for {self._what}: a folder or a file.")
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
        """Where the dialog begins: beside what is in the field or was opened last."""
        last = self.path or Path(self.box.itemText(0))
        return str(last.parent) if last.is_absolute() else ""

    def dragEnterEvent(self, event: Any) -> None:
        """Welcome files."""
        if dropped_paths(event):
            event.acceptProposedAction()

    def dropEvent(self, event: Any) -> None:
        """Take the first path, and hand on the others."""
        first, *others = dropped_paths(event)
        self.path = first
        if others:
            self.dropped.emit(others)


class PathList(QWidget):
    """Several paths."""

    changed = Signal()

    def __init__(self, what: str, help: str) -> None:
        super().__init__()
        self._what = what
        self.list = QListWidget()
        self.list.setToolTip(help)
        self.list.setSelectionMode(QListWidget.SelectionMode.ExtendedSelection)
        self.list.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.itemSelectionChanged.connect(self._mark)
        add = QPushButton("Add…")
        add.setToolTip(f"Look for {what}; several can be chosen, or dropped here.")
        add.clicked.connect(self._browse)
        self._remove = QPushButton("Remove")
        self._remove.clicked.connect(self._remove_chosen)
        buttons = QVBoxLayout()
        buttons.addWidget(add)
        buttons.addWidget(self._remove)
        buttons.addStretch(1)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.list, 1)
        layout.addLayout(buttons)
        self.list.setFixedHeight(3 * ROW + 2 * self.list.frameWidth())
        self.list.setMinimumWidth(80)
        self.list.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.setAcceptDrops(True)
        self._mark()

    @property
    def paths(self) -> tuple[Path, ...]:
        """The paths, in order."""
        return tuple(Path(self.list.item(i).toolTip()) for i in range(self.list.count()))

    @paths.setter
    def paths(self, paths: Sequence[str | Path]) -> None:
        self.list.clear()
        self.add(paths)

    def add(self, paths: Sequence[str | Path]) -> None:
        """Add those that are not there yet."""
        known = set(self.paths)
        for path in dict.fromkeys(map(Path, paths)):
            if path not in known:
                self.list.addItem(path.name)
                self.list.item(self.list.count() - 1).setToolTip(str(path))
        self._mark()
        self.changed.emit()

    def _remove_chosen(self) -> None:
        for item in self.list.selectedItems():
            self.list.takeItem(self.list.row(item))
        self._mark()
        self.changed.emit()

    def _mark(self) -> None:
        chosen = bool(self.list.selectedItems())
        self._remove.setEnabled(chosen)
        reason = (
            "Take the marked files off the list." if chosen else "Mark a file in the list first."
        )
        self._remove.setToolTip(reason)

    def _browse(self) -> None:
        found, _ = QFileDialog.getOpenFileNames(self, f"Choose {self._what}", self._start())
        self.add(found)

    def _start(self) -> str:
        return str(self.paths[-1].parent) if self.paths else ""

    def dragEnterEvent(self, event: Any) -> None:
        """Welcome files."""
        if dropped_paths(event):
            event.acceptProposedAction()

    def dropEvent(self, event: Any) -> None:
        """Add them."""
        self.add(dropped_paths(event))
