"""Holds behaviour: variables with their kind and unit at every frame, and the trials of a task."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, get_args

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
                "(or words, one for each category)."
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


@dataclass(frozen=True)
class Trials:
    """Trials in the order in which they began; none overlaps the next.

    Parameters
    ----------
    first : (trials,) int64
        First frame of each trial.
    stop : (trials,) int64
        The frame after its last.
    columns : mapping of str to (trials,) float64
        What is known of each trial, under the name of the variable that has it on the frames; NaN
        where it is not known.
    words : mapping of str to tuple of str
        What the values 0, 1, 2 … of a column stand for, where they stand for words.
    """

    first: np.ndarray
    stop: np.ndarray
    columns: Mapping[str, np.ndarray] = field(default_factory=dict)
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        put = object.__setattr__
        first, stop = (np.asarray(edge, np.int64) for edge in (self.first, self.stop))
        if first.ndim != 1 or first.shape != stop.shape or len(first) == 0:
            raise InputError(
                f"Trials have {first.shape} first and {stop.shape} last frames: one of each per "
                "trial is needed."
            )
        if (first < 0).any() or (first >= stop).any() or (first[1:] < stop[:-1]).any():
            raise InputError(
                "Trials overlap, are empty or are not in order: each must begin after the one "
                "before has ended."
            )
        columns = {name: np.asarray(values, float) for name, values in self.columns.items()}
        for name, values in columns.items():
            if values.shape != first.shape:
                raise InputError(
                    f"Column {name!r} of the trials has {values.shape} values: one for each of the "
                    f"{len(first)} trials is needed."
                )
        put(self, "first", first)
        put(self, "stop", stop)
        put(self, "columns", MappingProxyType(columns))
        put(self, "words", MappingProxyType({n: tuple(w) for n, w in self.words.items()}))

    def __getstate__(self) -> dict[str, Any]:
        # Python does not pickle read-only mappings
        return {**vars(self), "columns": dict(self.columns), "words": dict(self.words)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        for name in ("columns", "words"):
            vars(self)[name] = MappingProxyType(state[name])

    def __len__(self) -> int:
        return len(self.first)

    def number(self, n_frames: int) -> np.ndarray:
        """Trial that each frame belongs to, −1 between trials: (frames,) int64."""
        number = np.full(n_frames, -1, np.int64)
        for trial, (first, stop) in enumerate(zip(self.first, self.stop, strict=True)):
            number[first:stop] = trial
        return number

    def label(self, column: str, value: float) -> str:
        """What a value of a column is called.

        >>> trials = Trials([0], [5], {"side": [1]}, {"side": ("left", "right")})
        >>> trials.label("side", 1.0)
        'right'
        """
        return called(value, self.words.get(column, ()))


def called(value: float, words: Sequence[str]) -> str:
    """The word that a value stands for, or the number itself."""
    return words[int(value)] if 0 <= value < len(words) else f"{value:g}"
