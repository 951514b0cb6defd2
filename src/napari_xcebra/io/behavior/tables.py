"""Behaviour as a table (.csv, .tsv): a column is a variable of its name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from napari_xcebra.io.extraction import Behavior, Series
from napari_xcebra.io.kinds import FEW
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.io.tables import SUFFIXES, read_table
from napari_xcebra.recording import InputError

NAME = "a table (.csv, .tsv)"
GENERIC = True


def sniff(path: Path) -> bool:
    """Whether the name is that of a table."""
    return path.is_file() and path.suffix.lower() in SUFFIXES


def load(path: Path, settings: OpenSettings) -> Behavior:
    """Columns of a table; words become the numbers of their categories."""
    series, notes = [], []
    for name, column in read_table(path).items():
        name = str(name)
        if pd.api.types.is_numeric_dtype(column):
            series.append(Series(name, column.to_numpy()))
            continue
        codes, words = pd.factorize(column, sort=True)
        if len(words) > FEW:
            notes.append(f"Column {name} of {path.name} holds text and was left out.")
            continue
        series.append(Series(name, np.where(codes < 0, np.nan, codes), kind="discrete"))
        numbered = ", ".join(f"{word} = {i}" for i, word in enumerate(words))
        notes.append(f"Column {name} of {path.name} holds words, numbered: {numbered}.")
    if not series:
        raise InputError(f"Behaviour file {path} has no variable.")
    return Behavior(tuple(series), notes=tuple(notes))
