"""A form for any settings whose knobs say their default, bounds and help."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import Field, fields, replace
from typing import Any, Generic, TypeVar

from magicgui.widgets import create_widget
from qtpy.QtCore import Signal
from qtpy.QtWidgets import QFormLayout, QLabel, QVBoxLayout, QWidget

from napari_xcebra.errors import InputError
from napari_xcebra.knobs import choices_of, number_of, title_of, words_of
from napari_xcebra.widgets.fold import Fold
from napari_xcebra.widgets.wheel import spare_from_wheel
from napari_xcebra.widgets.word_or_number import WordOrNumber
from napari_xcebra.widgets.wording import in_dock

Settings = TypeVar("Settings")


class SettingsForm(QWidget, Generic[Settings]):
    """Rows for the knobs of a settings dataclass, the advanced ones folded away.

    Parameters
    ----------
    settings : dataclass instance made of knobs
        What the form shows at first.
    leave_out : sequence of str
        Knobs that are set elsewhere.
    """

    changed = Signal()

    def __init__(self, settings: Settings, leave_out: Sequence[str] = ()) -> None:
        super().__init__()
        self._settings = settings
        self._rows: dict[str, Any] = {}
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        knobs = [knob for knob in fields(settings) if knob.name not in leave_out]  # type: ignore[arg-type]
        layout.addLayout(self._form([k for k in knobs if not k.metadata["advanced"]]))
        advanced = [knob for knob in knobs if knob.metadata["advanced"]]
        if advanced:
            folded = Fold("Advanced", "Settings that are seldom changed.")
            inside = QWidget()
            inside.setLayout(self._form(advanced))
            folded.addWidget(inside)
            layout.addWidget(folded)

    def _form(self, knobs: Sequence[Field[Any]]) -> QFormLayout:
        form = QFormLayout()
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        for knob in knobs:
            row = _widget_for(type(self._settings), knob, getattr(self._settings, knob.name))
            row.changed.connect(lambda *_: self.changed.emit())
            label = QLabel(title_of(knob))
            label.setToolTip(row.tooltip)
            label.setBuddy(row.native)
            spare_from_wheel(row.native)
            form.addRow(label, row.native)
            self._rows[knob.name] = row
        return form

    @property
    def value(self) -> Settings:
        """Settings as they stand in the form; raises `InputError` where they do not fit."""
        return replace(self._settings, **{n: row.value for n, row in self._rows.items()})  # type: ignore[type-var]

    @value.setter
    def value(self, settings: Settings) -> None:
        self._settings = settings
        for name, row in self._rows.items():
            row.value = getattr(settings, name)

    def widget(self, name: str) -> QWidget:
        """The box of a knob, to adapt how it looks."""
        return self._rows[name].native

    def problem(self) -> str:
        """What is wrong with the settings, in a sentence; empty if nothing is."""
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
    if hint in (int, float) and about["low"] is not None:
        options |= {"min": about["low"], "max": about["high"]}
    if hint is float:
        # as fine as the default is given, so that 0.003 is not shown as 0
        options |= {"step": _step(about["number"])}
    if words:
        number = create_widget(about["number"], annotation=hint, name=knob.name, options=options)
        return WordOrNumber(words[0], number, value)
    row = create_widget(value, annotation=hint, name=knob.name, options=options)
    if hint is bool:
        row.native.setText("")  # its title stands before it; an empty option means the default
    return row


def _step(default: float) -> float:
    size = abs(default) or 1.0
    return float(f"1e{int(f'{size:e}'.split('e')[1]) - 1}")
