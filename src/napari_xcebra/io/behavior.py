"""Behaviour as a CSV or npz file on the clock of the frames: one row a frame.

A column is a variable of its name. The end of the name may give the unit (``x_cm``,
``speed_cm_s``), and the kind is guessed: few whole numbers or words are discrete, an angle within
a full turn is circular, all else continuous. `with_kinds` overrules the guess.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from napari_xcebra.io.npy import read_npz
from napari_xcebra.io.tables import SUFFIXES, read_table
from napari_xcebra.recording import KINDS, InputError, Kind, Recording, Variable

FEW = 20
"""Up to this many different values, whole numbers or words count as categories."""

_UNITS = {u: u for u in ("um", "mm", "cm", "m", "px", "rad", "deg", "s", "ms", "mV", "V")}
_UNITS |= {u.lower(): u for u in ("Hz", "kHz")} | {"hz": "Hz", "degrees": "deg", "radians": "rad"}
_TURN = {"rad": 2 * np.pi, "deg": 360.0}
_ANGULAR = re.compile(r"heading|direction|angle|azimuth|(^|_)(rad|deg|hd|yaw)(_|$)", re.IGNORECASE)


def load_behavior(path: Path, recording: Recording) -> Recording:
    """Recording with the variables of a file added, or replaced where the name is the same."""
    if not path.exists():
        raise InputError(f"There is no behaviour file {path}.")
    notes: list[str] = []
    if path.suffix.lower() in SUFFIXES:
        columns = _from_table(path, notes)
    elif path.suffix.lower() == ".npz":
        columns = read_npz(path)
    else:
        raise InputError(f"Behaviour file {path} is neither .csv nor .npz.")
    for name, values in columns.items():
        _check_length(path, name, values, recording)
    try:
        variables = [variable_from(name, values) for name, values in columns.items()]
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    if not variables:
        raise InputError(f"Behaviour file {path} has no variable.")
    return replace(recording.with_behavior(*variables), notes=(*recording.notes, *notes))


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


def _check_length(path: Path, name: str, values: np.ndarray, recording: Recording) -> None:
    length = len(values) if values.ndim else 1
    if length == recording.n_frames:
        return
    sentence = (
        f"{name} in {path} has {length} rows but the traces have {recording.n_frames} frames: one "
        "row a frame is needed"
    )
    if length == recording.n_cells:
        sentence += "; it matches the number of cells, so the traces may have to be transposed"
    raise InputError(f"{sentence}.")


def _from_table(path: Path, notes: list[str]) -> dict[str, np.ndarray]:
    """Columns of a table; words become the numbers of their categories."""
    columns = {}
    for name, column in read_table(path).items():
        name = str(name)
        if pd.api.types.is_numeric_dtype(column):
            columns[name] = column.to_numpy()
            continue
        codes, words = pd.factorize(column, sort=True)
        if len(words) > FEW:
            notes.append(f"Column {name} of {path.name} holds text and was left out.")
            continue
        columns[name] = np.where(codes < 0, np.nan, codes)
        numbered = ", ".join(f"{word} = {i}" for i, word in enumerate(words))
        notes.append(f"Column {name} of {path.name} holds words, numbered: {numbered}.")
    return columns
