"""What a behaviour variable is, read off its name and values.

The end of the name may give the unit (``x_cm``,
``speed_cm_s``), and the kind is guessed: few whole numbers or words are discrete, an angle within
a full turn is circular, all else continuous. `with_kinds` overrules the guess.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from napari_xcebra.recording import KINDS, InputError, Kind, Recording, Variable

FEW = 20
"""Up to this many different values, whole numbers or words count as categories."""

_UNITS = {u: u for u in ("um", "mm", "cm", "m", "px", "rad", "deg", "s", "ms", "mV", "V")}
_UNITS |= {u.lower(): u for u in ("Hz", "kHz")} | {"hz": "Hz", "degrees": "deg", "radians": "rad"}
_TURN = {"rad": 2 * np.pi, "deg": 360.0}
_ANGULAR = re.compile(r"heading|direction|angle|azimuth|(^|_)(rad|deg|hd|yaw)(_|$)", re.IGNORECASE)


def with_kinds(recording: Recording, kinds: Mapping[str, Kind]) -> Recording:
    """Recording with the kinds of some variables set by the user."""
    changed = {}
    for name, kind in kinds.items():
        variable = recording.variable(name)
        if kind not in KINDS:
            raise InputError(f"Variable {name!r} has kind {kind!r}: one of {', '.join(KINDS)} "
                             "is needed.")  # fmt: skip
        period = variable.period
        if kind == "circular" and variable.kind != "circular":
            period = _TURN.get(variable.unit) or _turn_around(variable.values) or 360.0
        changed[name] = replace(variable, kind=kind, period=period)
    return replace(recording, behavior={**recording.behavior, **changed})


def variable_from(name: str, values: Any) -> Variable:
    """Variable whose unit and kind are read off its name and values."""
    unit = unit_in(name)
    variable = Variable(name, values, unit=unit)
    different = np.unique(variable.values[variable.known])
    few = variable.values.shape[1] == 1 and 0 < len(different) <= FEW
    if few and (different == np.round(different)).all():
        return replace(variable, kind="discrete")
    if _ANGULAR.search(name) and unit in ("", *_TURN):
        around = _turn_around(variable.values)
        period = _TURN.get(unit, around)
        if period is not None and around is not None and around <= period:
            return replace(variable, kind="circular", period=period)
    return variable


def unit_in(name: str) -> str:
    """Unit at the end of a name, or an empty string.

    >>> unit_in("x_cm"), unit_in("speed_cm_s"), unit_in("licks")
    ('cm', 'cm/s', '')
    """
    _, *ends = re.sub(r"_per_", "_", name).split("_")
    last, before = (_UNITS.get(end, "") for end in [*ends[::-1], "", ""][:2])
    return f"{before}/{last}" if before and last == "s" else last


def _turn_around(values: np.ndarray) -> float | None:
    """The smaller of a full turn in radians and degrees that holds all values, if one does."""
    low, high = np.nanmin(values, initial=np.inf), np.nanmax(values, initial=-np.inf)
    for turn in _TURN.values():
        slack = 1.001 * turn
        if -slack <= low and high <= slack and high - low <= slack:
            return turn
    return None
