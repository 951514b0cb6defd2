"""Numbers and names as a report writes them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from napari_xcebra.report.document import Entry

NOTHING = "–"


def number(value: float, form: str = "#.3g") -> Entry:
    """A number in a table; sorted by what it is rather than by its digits.

    >>> number(-0.0421).text, number(1.0).text, number(float("nan")).text
    ('−0.0421', '1.00', '–')
    """
    if not np.isfinite(value):
        return Entry(NOTHING, float("nan"))
    return Entry(f"{value:{form}}".rstrip(".").replace("-", "−"), float(value))


def two(value: float) -> str:
    """Two decimals, without a negative zero.

    >>> two(-0.001), two(-1.5)
    ('0.00', '−1.50')
    """
    return f"{round(value, 2) + 0:.2f}".replace("-", "−")


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
