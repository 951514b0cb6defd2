"""What a sweep varies: a line of values for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from qtpy.QtCore import Signal
from qtpy.QtWidgets import QFormLayout, QGroupBox, QLineEdit

from napari_xcebra.errors import InputError
from napari_xcebra.learn.parts import Factor
from napari_xcebra.learn.settings import FitSettings

SEEDS = "0-4"


class SweepForm(QGroupBox):
    """Seeds, latents, λ and shifts of the labels; an empty line is as the Train dock has it."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__("What to vary")
        self.seed = _line("Other seeds tell which scores are chance: 0-4, or 0, 1, 7.")
        self.seed.setText(SEEDS)
        self.time_latents = _line("Numbers of time latents: 1-4, or 1, 2, 4.")
        self.lambda_ = _line("Weights of the Jacobian penalty: auto, 0.1, 1.")
        self.shifts = _line(
            "Seconds by which the labels are moved against the traces, around the recording: 0 is "
            "as recorded; what the others reach is chance."
        )
        self.shifts.setPlaceholderText("0")
        self._latents: dict[str, QLineEdit] = {}
        self._form = QFormLayout(self)
        for title, line in (
            ("Seeds", self.seed),
            ("λ", self.lambda_),
            ("Time latents", self.time_latents),
            ("Label shifts (s)", self.shifts),
        ):
            self._form.addRow(title, line)
            line.textChanged.connect(lambda _: self.changed.emit())

    def show_common(self, factors: Mapping[str, Factor], settings: FitSettings) -> None:
        """Show what is left as it is where a line is empty."""
        self.seed.setPlaceholderText(str(settings.seed))
        self.lambda_.setPlaceholderText(str(settings.lambda_))
        self.time_latents.setPlaceholderText(str(settings.time_latents))
        if list(self._latents) != list(factors):
            for line in self._latents.values():
                self._form.removeRow(line)
            self._latents = {}
            for name in factors:
                line = _line(f"Numbers of latents of {name}: 1-3, or 1, 2, 4.")
                line.textChanged.connect(lambda _: self.changed.emit())
                self._form.addRow(f"Latents of {name}", line)
                self._latents[name] = line
        for name, factor in factors.items():
            own = "as its variables have" if factor.latents is None else str(factor.latents)
            self._latents[name].setPlaceholderText(own)

    @property
    def grid(self) -> dict[str, list[Any]]:
        """Knobs and their values; InputError says which line cannot be read."""
        lines = {"seed": self.seed, "lambda_": self.lambda_, "time_latents": self.time_latents}
        titles = {"seed": "Seeds", "lambda_": "λ", "time_latents": "Time latents"}
        return {
            name: values_of(line.text(), titles[name])
            for name, line in lines.items()
            if line.text().strip()
        }

    @property
    def latents(self) -> dict[str, list[Any]]:
        """Numbers of latents of each factor whose line has some."""
        return {
            name: values_of(line.text(), f"Latents of {name}")
            for name, line in self._latents.items()
            if line.text().strip()
        }

    @property
    def seconds(self) -> list[Any]:
        """Shifts of the labels."""
        return values_of(self.shifts.text() or "0", "Label shifts")


def values_of(text: str, title: str) -> list[Any]:
    """Values as typed: numbers and words after commas, whole numbers also as a range.

    >>> values_of("0-2, 7", "Seeds"), values_of("auto, 0.1", "λ"), values_of("-60, 0", "Shifts")
    ([0, 1, 2, 7], ['auto', 0.1], [-60, 0])
    """
    values: list[Any] = []
    for part in filter(None, (each.strip() for each in text.split(","))):
        first, dash, last = part.rpartition("-")
        if dash and first.strip().isdecimal() and last.strip().isdecimal():
            values += range(int(first), int(last) + 1)
        elif part == "auto":
            values.append(part)
        else:
            try:
                number = float(part)
            except ValueError:
                raise InputError(
                    f"{title}: {part!r} is no number; values are typed as 1, 2, 4 or 1-4."
                ) from None
            values.append(int(number) if number.is_integer() else number)
    if not values:
        raise InputError(f"{title}: there are no values in {text!r}.")
    return values


def _line(help: str) -> QLineEdit:
    line = QLineEdit()
    line.setToolTip(help)
    return line
