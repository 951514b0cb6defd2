"""Numbers and names as a report writes them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from napari_xcebra.report.document import Entry
from napari_xcebra.sessions import name_of

NOTHING = "–"
_FOLDERS = re.compile(r"(?<![\w.])(?:[A-Za-z]:)?[\\/](?:[^\\/\s]+[\\/])+(?=[^\\/\s])")


def number(value: float, form: str = "#.3g") -> Entry:
    """A number in a table; sorted by what it is rather than by its digits.

    >>> number(-0.0421).text, number(1.0).text, number(float("nan")).text
    ('−0.0421', '1.00', '–')
    """
    if not np.isfinite(value):
        return Entry(NOTHING, float("nan"))
    return Entry(f"{value:{form}}".rstrip(".").replace("-", "−"), float(value))


def counted(count: int, thing: str) -> str:
    """A number of things.

    >>> counted(1, "cell"), counted(12000, "cell")
    ('1 cell', '12,000 cells')
    """
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def listed(names: Iterable[str]) -> str:
    """Names in a sentence.

    >>> listed(["place", "speed", "time"])
    'place, speed and time'
    """
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def without_folders(text: str, *paths: str | Path) -> str:
    """Text in which files are called by their names: folders of a computer are nobody's business.

    >>> without_folders("Opened /home/ann/data/mouse.nwb as NWB.")
    'Opened mouse.nwb as NWB.'
    """
    for path in sorted((str(path) for path in paths if str(path)), key=len, reverse=True):
        text = text.replace(path, name_of(path))
    return _FOLDERS.sub("", text)
