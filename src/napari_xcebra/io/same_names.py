"""Tells variables of one name apart that come from several files, so that none is lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from napari_xcebra.io.clocks.placing import Placed
from napari_xcebra.recording import Variable

Value = TypeVar("Value")


def told_apart(
    placed: Placed, known: Mapping[str, Variable], file: str
) -> tuple[Placed, tuple[str, ...]]:
    """Behaviour of a file with names that no other file has, and a sentence on each change.

    A variable that is known already with the same values is left out.

    Parameters
    ----------
    placed : Placed
    known : mapping of str to Variable
        What files before it have.
    file : str
        Its name, which is put behind names that are taken.
    """
    kept: list[Variable] = []
    names: dict[str, str] = {}
    for variable in placed.variables:
        before = known.get(variable.name)
        if before is None:
            kept.append(variable)
        elif not np.array_equal(before.values, variable.values, equal_nan=True):
            taken = {*known, *(v.name for v in placed.variables), *names.values()}
            names[variable.name] = _free(f"{variable.name}_{Path(file).stem or 'other'}", taken)
            kept.append(replace(variable, name=names[variable.name]))
    trials = placed.trials
    if trials is not None:
        columns, words = _renamed(trials.columns, names), _renamed(trials.words, names)
        trials = replace(trials, columns=columns, words=words)
    sentences = tuple(
        f"{file or 'A second file'} also has a variable {name}: it is called {new} here."
        for name, new in names.items()
    )
    return replace(placed, variables=kept, trials=trials), sentences


def _renamed(values: Mapping[str, Value], names: Mapping[str, str]) -> dict[str, Value]:
    return {names.get(name, name): value for name, value in values.items()}


def _free(wanted: str, taken: set[str]) -> str:
    numbered = (f"{wanted}_{number}" for number in range(2, len(taken) + 3))
    return next(name for name in (wanted, *numbered) if name not in taken)
