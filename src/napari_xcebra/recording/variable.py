"""Holds a behaviour variable: its value, kind and unit at every frame."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from napari_xcebra.errors import InputError

Kind = Literal["continuous", "circular", "discrete", "event"]
KINDS: tuple[Kind, ...] = get_args(Kind)
LENGTHS = ("um", "mm", "cm", "m", "px")
"""Units of a position."""
_PLACES = ("position", "positions", "pos", "place", "location", "xy", "xyz")


@dataclass(frozen=True)
class Variable:
    """One behaviour variable on the clock of the recording.

    Parameters
    ----------
    name : str
        What the user calls it; columns of a table are named after it.
    values : (frames, columns) float64
        NaN marks a frame at which the variable is not known; it takes no part in pairs by label.
    kind : {"continuous", "circular", "discrete", "event"}
        Circular values wrap around after `period`; discrete values are only ever compared; an
        event (reward, lick, onset of a stimulus) has the number of times it began in each frame.
    unit : str
        For axis labels; empty if not known.
    period : float
        Full turn of a circular variable, in its own unit.
    words : tuple of str
        What the values 0, 1, 2 … of a discrete variable stand for, where they stand for words.
    window : (float, float)
        Seconds before and after an event in which cells may respond to it.
    """

    name: str
    values: np.ndarray
    kind: Kind = "continuous"
    unit: str = ""
    period: float = 2 * np.pi
    words: tuple[str, ...] = ()
    window: tuple[float, float] = (0.5, 2.0)

    def __post_init__(self) -> None:
        values = np.asarray(self.values)
        if values.dtype.kind not in "biuf":
            raise InputError(
                f"Variable {self.name!r} has values of type {values.dtype}: numbers are needed "
                "(give each category a number)."
            )
        values = values.astype(np.float64)
        if values.ndim == 1:
            values = values[:, None]
        if values.ndim != 2 or values.shape[1] == 0:
            raise InputError(
                f"Variable {self.name!r} has shape {np.shape(self.values)}: "
                "(frames,) or (frames, columns) is needed."
            )
        if np.isinf(values).any():
            count = int(np.isinf(values).any(1).sum())
            raise InputError(
                f"Variable {self.name!r} is infinite at {count} frames: finite numbers are "
                "needed, or NaN where it is not known."
            )
        if self.kind not in KINDS:
            raise InputError(
                f"Variable {self.name!r} has kind {self.kind!r}: one of {', '.join(KINDS)} "
                "is needed."
            )
        if self.kind == "circular" and not self.period > 0:
            raise InputError(f"Variable {self.name!r} has period {self.period}: > 0 is needed.")
        if self.kind == "event":
            self._check_event(values)
        values.flags.writeable = False
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "words", tuple(self.words))
        object.__setattr__(self, "window", tuple(map(float, self.window)))

    def _check_event(self, values: np.ndarray) -> None:
        if values.shape[1] != 1 or (values < 0).any():
            raise InputError(
                f"Event {self.name!r} needs one column that counts how often it began in each "
                "frame, 0 or more."
            )
        if len(self.window) != 2 or min(self.window) < 0 or sum(self.window) <= 0:
            raise InputError(
                f"Event {self.name!r} has window {self.window!r}: seconds before and after it are "
                "needed, 0 or more each."
            )

    @property
    def known(self) -> np.ndarray:
        """(frames,) bool, where every column has a value."""
        return ~np.isnan(self.values).any(axis=1)

    @property
    def is_place(self) -> bool:
        """Whether its columns are the coordinates of a position."""
        named = not {*re.split(r"[^a-z]+", self.name.lower())}.isdisjoint(_PLACES)
        few = self.values.shape[1] <= 3
        return self.kind == "continuous" and few and (named or self.unit in LENGTHS)

    @property
    def column_names(self) -> tuple[str, ...]:
        """What its columns are called: x and y of a position, else by number.

        Examples
        --------
        >>> two = np.zeros((5, 2))
        >>> Variable("position", two).column_names, Variable("nose", two, unit="px").column_names
        (('x', 'y'), ('nose x', 'nose y'))
        >>> Variable("speed", two[:, 0]).column_names, Variable("wheel", two).column_names
        (('speed',), ('wheel 1', 'wheel 2'))
        """
        count = self.values.shape[1]
        if count == 1:
            return (self.name,)
        parts = "xyz"[:count] if self.is_place else range(1, count + 1)
        whole = self.is_place and self.name.lower() in _PLACES
        return tuple(str(part) if whole else f"{self.name} {part}" for part in parts)


RARE, PULSE, FEWEST_PULSES = 0.1, 0.3, 5
"""Share of the frames up to which an event happens, its seconds, and pulses that show it."""


def looks_like_an_event(values: np.ndarray, rate: float) -> bool:
    """Whether a column of zeros and ones marks moments, such as rewards, rather than a state.

    It is 1 rarely and in short pulses; a balanced or lasting column is a state.

    Parameters
    ----------
    values : (frames,) or (frames, 1) float
        NaN where it is not known.
    rate : float
        Frames per second.

    Examples
    --------
    >>> licks = np.arange(1000) % 40 == 0
    >>> looks_like_an_event(licks, 10.0), looks_like_an_event(np.arange(1000) % 40 < 20, 10.0)
    (True, False)
    """
    column = np.asarray(values, np.float64).reshape(len(values), -1)
    known = column[~np.isnan(column).any(1)]
    if known.shape[1] != 1 or not np.isin(known, (0, 1)).all():
        return False
    if not 0 < known.sum() <= RARE * len(known):
        return False
    steps = np.diff(np.r_[0, known[:, 0], 0])
    lengths = np.flatnonzero(steps < 0) - np.flatnonzero(steps > 0)
    # a slow camera sees every moment as a whole frame
    return len(lengths) >= FEWEST_PULSES and bool(np.median(lengths) <= max(1, PULSE * rate))
