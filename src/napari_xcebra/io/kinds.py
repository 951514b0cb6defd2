"""Guesses the kind and unit of a behaviour variable from its name and values.

The end of the name may give the unit (``x_cm``, ``speed_cm_s``, ``Speed (cm/s)``), and the kind is
guessed: few whole numbers or words are discrete, rare short pulses events, an angle within a full
turn is circular, the rest continuous. `with_kinds` and `told` overrule the guess.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.io.extraction import Behavior, Series
from napari_xcebra.recording.recording import Recording
from napari_xcebra.recording.variables import KINDS, Kind, Variable, looks_like_an_event

FEW = 20
"""Up to this many different values, whole numbers or words count as categories."""

HALF = 0.5
"""Share of a full turn that an angle has to cover to be circular."""

_UNITS = {u: u for u in ("um", "mm", "cm", "m", "px", "rad", "deg", "s", "ms", "mV", "V")}
_UNITS |= {u.lower(): u for u in ("Hz", "kHz")} | {"hz": "Hz", "degrees": "deg", "radians": "rad"}
_UNITS |= {"°": "deg", "degree": "deg", "pixels": "px", "turns": "turn", "cycles": "turn"}
_TURN = {"rad": 2 * np.pi, "deg": 360.0, "turn": 1.0}
_ANGULAR = re.compile(
    r"heading|direction|angle|azimuth|bearing|orientation|(^|_)(rad|deg|hd|yaw)(_|$)",
    re.IGNORECASE,
)
_PHASE = re.compile(r"phase|(^|_)(turns?|cycles?)(_|$)", re.IGNORECASE)
_NO_ANGLE = re.compile(
    r"velocity|speed|accel|selectiv|change|(^|_)(rate|index|error)(_|$)", re.IGNORECASE
)


def with_kinds(recording: Recording, kinds: Mapping[str, Kind]) -> Recording:
    """Recording with the kinds of some variables set by the user."""
    changed = {}
    for name, kind in kinds.items():
        variable = recording.variable(name)
        _check_kind(name, kind)
        period = variable.period
        if kind == "circular" and variable.kind != "circular":
            period = _full_turn(variable.values, variable.unit)
        if kind == "event" and variable.kind != "event":
            variable = replace(variable, values=_begun(variable.values))
        changed[name] = replace(variable, kind=kind, period=period)
    return replace(recording, behavior={**recording.behavior, **changed})


def told(behavior: Behavior, kinds: Mapping[str, Kind]) -> Behavior:
    """Behaviour whose series have the kinds that the user set.

    Done before the behaviour is brought to the frames, which depends on the kind: an angle that
    was averaged as a plain number cannot be made circular afterwards.
    """
    for name, kind in kinds.items():
        _check_kind(name, kind)
    series = (replace(s, kind=kinds.get(s.name, s.kind)) for s in behavior.series)
    return replace(behavior, series=tuple(series))


def _check_kind(name: str, kind: str) -> None:
    if kind not in KINDS:
        raise InputError(
            f"Variable {name!r} has kind {kind!r}: one of {', '.join(KINDS)} is needed."
        )


def _begun(values: np.ndarray) -> np.ndarray:
    """How often an event begins in each sample of a column of marks: (samples, 1) float64.

    Marks that stay up are one event; numbers above 1 are counts. NaN where it is not known.
    """
    marks = np.nan_to_num(values[:, :1])
    if marks.max(initial=0) > 1 and (marks == np.round(marks)).all():
        begins = np.maximum(marks, 0)
    else:
        up = marks > 0
        begins = (up & np.r_[[[True]], ~up[:-1]]).astype(np.float64)
    return np.where(np.isnan(values[:, :1]), np.nan, begins)


def variable_of(series: Series, rate: float) -> Variable:
    """Variable of all samples of a series; what the series does not say is guessed.

    Parameters
    ----------
    series : Series
    rate : float
        Samples per second.
    """
    variable = variable_from(series.name, series.values)
    unit = series.unit or variable.unit
    kind = series.kind or variable.kind
    if series.kind is None and kind == "discrete" and looks_like_an_event(variable.values, rate):
        kind = "event"
    period = series.period or variable.period
    if kind == "circular" and variable.kind != "circular" and not series.period:
        period = _full_turn(variable.values, unit)
    values = variable.values
    if kind == "event":
        values = _begun(values)
    return replace(
        variable, values=values, unit=unit, kind=kind, period=period, words=series.labels
    )


def variable_from(name: str, values: Any) -> Variable:
    """Variable whose unit and kind are read off its name and values."""
    unit = _unit_in(name)
    variable = Variable(name, values, unit=unit)
    if _are_few_whole(variable.values):
        return replace(variable, kind="discrete")
    turn = _guessed_turn(name, unit, variable.values)
    return variable if turn is None else replace(variable, kind="circular", period=turn)


def _unit_in(name: str) -> str:
    """Unit at the end of a name, or an empty string.

    >>> [_unit_in(name) for name in ("x_cm", "speed_cm_s", "Speed (cm/s)", "licks")]
    ['cm', 'cm/s', 'cm/s', '']
    """
    in_brackets = re.search(r"[(\[]\s*([^()\[\]]+?)\s*[)\]]\s*$", name)
    if in_brackets:
        parts = in_brackets.group(1).split("/")
        units = [_UNITS.get(part.strip(), "") for part in parts]
        return "/".join(units) if all(units) else ""
    _, *ends = re.sub(r"_per_", "_", name).split("_")
    last, before = (_UNITS.get(end, "") for end in [*ends[::-1], "", ""][:2])
    return f"{before}/{last}" if before and last == "s" else last


def _are_few_whole(values: np.ndarray) -> bool:
    """Whether the values of a single column are few different whole numbers."""
    import pandas as pd

    if values.shape[1] != 1:
        return False
    # the first samples usually tell, which spares a long recording the rest
    for column in (values[:10_000, 0], values[:, 0]):
        column = column[~np.isnan(column)]
        if (column != np.round(column)).any() or len(pd.unique(column)) > FEW:
            return False
    return len(column) > 0


def _guessed_turn(name: str, unit: str, values: np.ndarray) -> float | None:
    """Full turn of what is an angle by its name and values, else None."""
    if unit not in ("", *_TURN) or _NO_ANGLE.search(name):
        return None
    if _PHASE.search(name) and unit in ("", "turn"):
        low, high = _range(values)
        if -0.001 <= low and high <= 1.001 and high - low > 0.5:
            return 1.0
    if not (_ANGULAR.search(name) or _PHASE.search(name)):
        return None
    around = _turn_around(values)
    turn = _TURN.get(unit, around)
    if turn is None or around is None or around > turn:
        return None
    low, high = _range(values)
    # the bend of a neck is called an angle too, and never comes round
    return turn if high - low > HALF * turn else None


def _full_turn(values: np.ndarray, unit: str) -> float:
    return _TURN.get(unit) or _turn_around(values) or 360.0


def _turn_around(values: np.ndarray) -> float | None:
    """The smaller of a full turn in radians and degrees that holds all values, if one does."""
    low, high = _range(values)
    for turn in (_TURN["rad"], _TURN["deg"]):
        slack = 1.001 * turn
        if -slack <= low and high <= slack and high - low <= slack:
            return turn
    return None


def _range(values: np.ndarray) -> tuple[float, float]:
    return (
        float(np.nanmin(values, initial=np.inf)),
        float(np.nanmax(values, initial=-np.inf)),
    )
