"""Writes tables as CSV in which no text runs as a formula, and reads them back as they were.

A spreadsheet takes a cell that begins with = + - or @ for a formula, and names, tags and notes come
from files. Such a text is written with an apostrophe before it, as OWASP advises; numbers stay.
"""

from __future__ import annotations

import csv
import errno
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from napari_xcebra.files import open_file

if TYPE_CHECKING:
    import pandas as pd

MOST_TABLE = 2**30
"""Bytes of a table past which it is not read: a row for each of a million cells takes 0.1 GB."""
_FORMULA = re.compile("'*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
"""How a formula begins; apostrophes before it count, so that a text of that kind comes back."""

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
"""A number as spreadsheets write it; `float` also takes "\\n-1 ", "-inf" and "-1_0"."""


def write_csv(table: pd.DataFrame, path: Path) -> None:
    """Write a table, without its index."""
    path.write_text(csv_text(table), encoding="utf-8", newline="")


def csv_text(table: pd.DataFrame) -> str:
    """A table as CSV, without its index."""
    table = _each_text(table, _harmless)
    text = table.to_csv(index=False, lineterminator="\n")
    if "\r" not in text:
        return text
    # Python puts no quotes around this one, and readers take it for the end of the line
    return table.to_csv(index=False, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)


def read_csv(path: Path | str, **how: Any) -> pd.DataFrame:
    """A table that was written here, or by others; options are those of `pandas.read_csv`."""
    import pandas as pd

    # pandas would unpack a file by its name alone, however large that makes it
    with open_file(path) as file:
        if os.fstat(file.fileno()).st_size > MOST_TABLE:
            raise OSError(errno.EFBIG, f"it has more than {MOST_TABLE >> 20} MB", str(path))
        return _each_text(pd.read_csv(file, compression=None, **how), _as_it_was)


def _harmless(text: str) -> str:
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def _as_it_was(text: str) -> str:
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def _each_text(table: pd.DataFrame, change: Callable[[str], str]) -> pd.DataFrame:
    """The table with every text in it changed, names of columns included."""

    def changed(value: Any) -> Any:
        return change(value) if isinstance(value, str) else value

    table = table.copy(deep=False)
    table.columns = [changed(name) for name in table.columns]
    for place, kind in enumerate(table.dtypes):
        if kind.kind == "O":
            table.isetitem(place, table.iloc[:, place].map(changed).array)
    return table
