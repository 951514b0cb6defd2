"""Builds a form from a settings dataclass: defaults, bounds and help come from its fields."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import Field, fields, replace
from typing import Any, Generic, TypeVar

from magicgui.widgets import create_widget
from qtpy.QtCore import Signal
from qtpy.QtWidgets import (
    QCheckBox,
    QDoubleSpinBox,
    QFormLayout,
    QLabel,
    QVBoxLayout,
    QWidget,
)

from napari_xcebra.errors import InputError
from napari_xcebra.settings import choices_of, number_of, title_of, words_of
from napari_xcebra.widgets.controls.boxes import DecimalBox, WholeBox
from napari_xcebra.widgets.controls.layouts import Fold, in_form, in_row, spare_from_wheel
from napari_xcebra.widgets.controls.path_fields import PathField
from napari_xcebra.widgets.controls.wording import in_dock


class WordOrNumber(QWidget):
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


class NumberField:
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


class FileField:
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
        return WordOrNumber(words[0], NumberField(hint, about, help, about["number"]), value)
    if hint in (int, float):
        return NumberField(hint, about, help, value)
    if about["file"]:
        return FileField(f"a file: {title_of(knob).lower()}", help, value)
    field = create_widget(value, annotation=hint, name=knob.name, options=options)
    if hint is bool:
        field.native.setText("")  # its title stands before it; an empty option means the default
    return field


def _step(default: float) -> float:
    size = abs(default) or 1.0
    return float(f"1e{int(f'{size:e}'.split('e')[1]) - 1}")
