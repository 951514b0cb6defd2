"""Builds forms from settings, whose fields give defaults, bounds and help; and fields for paths."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import Field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from magicgui.widgets import create_widget
from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QFileDialog,
    QFormLayout,
    QLabel,
    QListWidget,
    QListWidgetItem,
    QMenu,
    QPushButton,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)
from superqt.utils import signals_blocked

from napari_xcebra.errors import InputError
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.settings import choices_of, number_of, title_of, worded, words_of
from napari_xcebra.widgets.controls.boxes import DecimalBox, WholeBox, plain
from napari_xcebra.widgets.controls.layouts import (
    Fold,
    in_column,
    in_form,
    in_row,
    spare_from_wheel,
)


class _WordOrNumber(QWidget):
    """A check box for the word; unticked, a field for the number appears next to it."""

    changed = Signal()

    def __init__(self, word: str, number: Any, value: str | float) -> None:
        super().__init__()
        self.tooltip, self.native = number.tooltip, self
        self.tick = QCheckBox(word)
        self.tick.setToolTip(self.tooltip)
        self.number = number
        # a number that is searched for may have any size
        number.native.setDecimals(4)
        number.native.setStepType(QDoubleSpinBox.StepType.AdaptiveDecimalStepType)
        in_row(self.tick, (number.native, 1), of=self)
        self.value = value
        self._follow()
        self.tick.toggled.connect(self._follow)
        self.tick.toggled.connect(self.changed)
        number.changed.connect(lambda *_: self.changed.emit())

    def _follow(self) -> None:
        # a greyed-out number would look like the one in use
        self.number.native.setHidden(self.tick.isChecked())

    @property
    def value(self) -> str | float:
        """The word, or the number."""
        return self.tick.text() if self.tick.isChecked() else float(self.number.value)

    @value.setter
    def value(self, value: str | float) -> None:
        self.tick.setChecked(value == self.tick.text())
        if not isinstance(value, str):
            self.number.value = value


class _NumberField:
    """A number within bounds, with a decimal point or comma."""

    def __init__(self, kind: type, about: Mapping[str, Any], tooltip: str, value: float) -> None:
        self.tooltip, self._kind = tooltip, kind
        self.native = DecimalBox() if kind is float else WholeBox()
        low, high = (0, 999) if about["low"] is None else (about["low"], about["high"])
        self.native.setToolTip(tooltip)
        if kind is float:
            # as fine as the default is given, so that 0.003 is not shown as 0
            step = _step(about["number"])
            self.native.setDecimals(max(2, math.ceil(-math.log10(step))))
            self.native.setSingleStep(step)
        self.native.setRange(kind(low), kind(high))
        self.value = value
        self.changed = self.native.valueChanged

    @property
    def value(self) -> float:
        """The number."""
        return self._kind(self.native.value())

    @value.setter
    def value(self, value: float) -> None:
        self.native.setValue(self._kind(value))


class _FileField:
    """A text that may be the path of a file: typed, browsed for or dropped."""

    def __init__(self, what: str, tooltip: str, value: str) -> None:
        self.tooltip = tooltip
        self.native = PathField(what, tooltip, "none")
        self.value = value
        self.changed = self.native.changed

    @property
    def value(self) -> str:
        """What is in the field: a path, or any other text."""
        return str(self.native.box.currentText().strip().strip('"'))

    @value.setter
    def value(self, value: str) -> None:
        self.native.path = value


Settings = TypeVar("Settings")


class SettingsForm(QWidget, Generic[Settings]):
    """Rows for the knobs of a settings dataclass, the advanced ones folded away.

    Where the form itself is in a fold, they are instead put `apart`, for its user to place.
    """

    changed = Signal()

    def __init__(self, settings: Settings, *, apart: bool = False) -> None:
        super().__init__()
        self._settings = settings
        self._rows: dict[str, Any] = {}
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        knobs = fields(settings)  # type: ignore[arg-type]
        layout.addLayout(self._form([k for k in knobs if not k.metadata["advanced"]]))
        self.rare = QWidget()
        """Settings that rarely need changing."""
        self.rare.setLayout(self._form([k for k in knobs if k.metadata["advanced"]]))
        self.advanced: Fold | None = None
        if not apart:
            self.advanced = Fold("Advanced", "Settings that rarely need changing.", self.rare)
            layout.addWidget(self.advanced)

    def _form(self, knobs: Sequence[Field[Any]]) -> QFormLayout:
        form = in_form()
        for knob in knobs:
            field = _widget_for(type(self._settings), knob, getattr(self._settings, knob.name))
            field.changed.connect(lambda *_: self.changed.emit())
            label = QLabel(title_of(knob))
            label.setToolTip(field.tooltip)
            label.setBuddy(field.native)
            spare_from_wheel(field.native)
            form.addRow(label, field.native)
            self._rows[knob.name] = field
        return form

    @property
    def value(self) -> Settings:
        """Settings in the form; raises `InputError` if they are invalid."""
        return replace(self._settings, **{n: field.value for n, field in self._rows.items()})  # type: ignore[type-var]

    @value.setter
    def value(self, settings: Settings) -> None:
        self._settings = settings
        for name, field in self._rows.items():
            field.value = getattr(settings, name)

    def reset_where(self, settings: Settings) -> None:
        """Set the boxes back to their defaults that have the values of these settings."""
        for knob in fields(settings):  # type: ignore[arg-type]
            field = self._rows[knob.name]
            if field.value == getattr(settings, knob.name):
                field.value = knob.default

    def widget(self, name: str) -> QWidget:
        """The box of a knob, to adapt how it looks."""
        return self._rows[name].native

    def reveal(self, sentence: str) -> QWidget | None:
        """The box of the first setting that a sentence names, unfolded; None if it names none."""
        named = [name for name in self._rows if f"`{name}`" in sentence]
        if not named:
            return None
        box = self.widget(min(named, key=lambda name: sentence.index(f"`{name}`")))
        if self.advanced is not None and self.rare.isAncestorOf(box):
            self.advanced.unfolded = True
        return box

    def problem(self) -> str:
        """What is wrong with the settings; empty if they are valid."""
        try:
            _ = self.value
        except InputError as error:
            return in_dock(str(error))
        return ""


def _widget_for(cls: type, knob: Field[Any], value: Any) -> Any:
    about = knob.metadata
    help = in_dock(about["help"][:1].upper() + about["help"][1:] + ".")
    hint, words = number_of(cls, knob.name), words_of(cls, knob.name)
    options: dict[str, Any] = {"tooltip": help}
    if choices := choices_of(cls, knob.name):
        return create_widget(value, name=knob.name, options=options | {"choices": choices})
    if words:
        return _WordOrNumber(words[0], _NumberField(hint, about, help, about["number"]), value)
    if hint in (int, float):
        return _NumberField(hint, about, help, value)
    if about["file"]:
        return _FileField(f"a file: {title_of(knob).lower()}", help, value)
    field = create_widget(value, annotation=hint, name=knob.name, options=options)
    if hint is bool:
        field.native.setText("")  # its title stands before it; an empty option means the default
    return field


def _step(default: float) -> float:
    size = abs(default) or 1.0
    return float(f"1e{int(f'{size:e}'.split('e')[1]) - 1}")


ROW = 20
_WAY, _PATH = Qt.ItemDataRole.UserRole, Qt.ItemDataRole.UserRole + 1


def dropped_paths(event: Any) -> list[str]:
    """Local files and folders that a drag carries."""
    paths = [url.toLocalFile() for url in event.mimeData().urls()]
    return [path for path in paths if path]


def model_among(paths: Sequence[str]) -> str:
    """The model of `cebra` that these paths are; empty if they are anything else."""
    return paths[0] if [Path(path).suffix.lower() for path in paths] == [".pt"] else ""


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


TITLES = {
    knob.name: f"“{title_of(knob)}”"
    for settings in (OpenSettings, FitSettings)
    for knob in fields(settings)
}


def in_dock(sentence: str) -> str:
    """Sentence in which every setting is called by the title of its field.

    >>> in_dock("Give `rate`, such as 30.")
    'Give “Frame rate (Hz)”, such as 30.'
    """
    return worded(sentence, TITLES)
