"""Finds trials by a column that numbers them frame by frame."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from napari_xcebra.io.clocks.timestamps import words_of
from napari_xcebra.recording import Trials, Variable
from napari_xcebra.text import counted


def trials_numbered(
    variables: Sequence[Variable], where: str
) -> tuple[Trials | None, tuple[str, ...]]:
    """Trials that a column of their numbers tells, frame by frame; and notes.

    A number that stands between trials, such as 0 or −1, is none. Variables that are the same all
    over each trial are what is known of it.
    """
    numbers = next((v for v in variables if _numbers_trials(v)), None)
    if numbers is None:
        return None, ()
    number = _without_gaps(numbers.values[:, 0])
    known = ~np.isnan(number)
    begins = np.flatnonzero(known & np.r_[True, ~known[:-1] | (number[1:] != number[:-1])])
    ends = np.flatnonzero(known & np.r_[~known[1:] | (number[1:] != number[:-1]), True]) + 1
    if len(begins) < 2:
        return None, ()
    notes = [f"{where}: column {numbers.name} tells {counted(len(begins), 'trial')}."]
    back = np.flatnonzero(np.diff(number[begins]) <= 0)
    if len(back):
        i = int(back[0])
        notes.append(
            f"Column {numbers.name} goes back from {number[begins[i]]:g} to "
            f"{number[begins[i + 1]]:g} at frame {begins[i + 1]}: trials are counted on from there."
        )
    columns, words = {}, {}
    for variable in variables:
        if variable is numbers or variable.values.shape[1] != 1 or variable.kind == "event":
            continue
        values = _same_all_over(variable.values[:, 0], begins, ends)
        if values is not None:
            columns[variable.name] = values
            words[variable.name] = variable.words
    words = {name: labels for name, labels in words.items() if labels}
    return Trials(begins, ends, columns, words), tuple(notes)


def _without_gaps(number: np.ndarray) -> np.ndarray:
    """Numbers of trials, NaN also where one that is 0 or less only marks the time between trials.

    >>> _without_gaps(np.array([0, 1, 1, 0, 2, 0, 3.0]))
    array([nan,  1.,  1., nan,  2., nan,  3.])
    >>> _without_gaps(np.array([0, 0, 1, 2, 0, 1, 2.0]))  # a second block, numbered anew
    array([0., 0., 1., 2., 0., 1., 2.])
    """
    known = number[~np.isnan(number)]
    stretches = known[np.r_[True, known[1:] != known[:-1]]] if len(known) else known
    values, counts = np.unique(stretches, return_counts=True)
    # a trial comes once, what is between trials again and again
    often = [counts[i] > np.delete(counts, i).max(initial=1) for i in range(len(values))]
    between = values[(values < 0) | ((values == 0) & np.array(often, bool))]
    return np.where(np.isin(number, between), np.nan, number)


def _numbers_trials(variable: Variable) -> bool:
    words = words_of(variable.name)
    known = {"trial", "trials", "number", "num", "nr", "no", "id", "index", "idx", "count"}
    values = variable.values[variable.known]
    return (
        bool({"trial", "trials"} & set(words))
        and set(words) <= known
        and values.shape[1] == 1
        and bool((values == np.round(values)).all())
    )


def _same_all_over(values: np.ndarray, begins: np.ndarray, ends: np.ndarray) -> np.ndarray | None:
    """Value of every trial, if none has two and not all have the same: (trials,)."""
    found = np.full(len(begins), np.nan)
    for i, (first, stop) in enumerate(zip(begins, ends, strict=True)):
        own = values[first:stop]
        own = own[~np.isnan(own)]
        if len(own) and (own != own[0]).any():
            return None
        found[i] = own[0] if len(own) else np.nan
    different = np.unique(found[~np.isnan(found)])
    return found if 2 <= len(different) else None
