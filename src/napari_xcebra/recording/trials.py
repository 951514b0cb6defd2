"""Holds the trials of a task: where each lies among the frames, and what is known of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from napari_xcebra.errors import InputError


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
