"""Reads tables: text with comma, semicolon, tab or spaces, with or without a header; Parquet.

Text may be in UTF-8, UTF-16 or an old Windows encoding, begin with lines of comment (#, %), have a
decimal comma, a separator at the end of its lines, or row names without a header.
"""

from __future__ import annotations

import csv
import warnings
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from napari_xcebra.errors import InputError
from napari_xcebra.files import first_bytes
from napari_xcebra.io.failures import sentence_on_failure

TABLE = "a table of numbers"
SUFFIXES = (".csv", ".tsv", ".txt")
PARQUET = (".parquet", ".pq")
MOST_VALUES = 500_000_000
"""Values a Parquet file may claim: repeated values take no place in it."""
LONGEST_LINE = 16 * 2**20
"""Characters after which a line is cut when the form of a table is looked at."""
_SEPARATORS = "\t;,"
_SPACES = r"\s+"


@dataclass(frozen=True)
class TextForm:
    """How a table is written as text.

    Parameters
    ----------
    encoding : str
    skipped : int
        Lines of comment before the first row.
    separator, decimal : str
    rows : tuple of tuples of str
        The first few rows, split.
    """

    encoding: str
    skipped: int
    separator: str
    decimal: str
    rows: tuple[tuple[str, ...], ...]


def read_table(path: Path, keep: Collection[str] = ()) -> pd.DataFrame:
    """Table of a text or Parquet file, without a column that only numbers the rows.

    Columns are named by the header, or 0, 1, 2 … if there is none.

    Parameters
    ----------
    path : Path
    keep : collection of str
        Columns that are not dropped although they number the rows.
    """
    with sentence_on_failure(path, TABLE):
        table = _read_parquet(path) if is_parquet(path) else _read_text(path)
    if table.empty:
        raise InputError(f"{path} has no rows.")
    numbered = [c for c, d in table.dtypes.items() if _numbers_rows(str(c), d) and c not in keep]
    return table.drop(columns=numbered)


def is_parquet(path: Path) -> bool:
    """Whether a file that can be read has the first bytes or the name of a Parquet file."""
    start = first_bytes(path, 4)
    return start == b"PAR1" or (start != b"" and path.suffix.lower() in PARQUET)


def text_form(path: Path, n_rows: int = 6) -> TextForm:
    """How a table of text is written, read off its first rows."""
    with path.open("rb") as file:
        start = file.read(1 << 16)
    encoding = _encoding(start)
    with path.open(encoding=encoding, errors="replace", newline="") as file:
        skipped = 0
        lines: list[str] = []
        while len(lines) < n_rows and (line := file.readline(LONGEST_LINE)):
            if not lines and (not line.strip() or line.lstrip()[0] in "#%"):
                skipped += 1
            else:
                lines.append(line)
    first = lines[0] if lines else ""
    separator = _SPACES if _are_spaced(lines) else max(_SEPARATORS, key=first.count)
    decimal = "," if separator == ";" and any("," in line for line in lines[1:]) else "."
    split = (
        (line.split() for line in lines)
        if separator == _SPACES
        else csv.reader(lines, delimiter=separator)
    )
    rows = tuple(tuple(cell.strip() for cell in row) for row in split)
    return TextForm(encoding, skipped, separator, decimal, rows)


def _are_spaced(lines: list[str]) -> bool:
    """Whether only spaces separate the numbers of each row, as many in each."""
    rows = [line.split() for line in (lines[1:] or lines) if line.strip()]
    if any(mark in line for line in lines for mark in _SEPARATORS):
        return False
    return (
        bool(rows)
        and len(rows[0]) > 1
        and len({len(row) for row in rows}) == 1
        and (all(is_number(cell) for row in rows for cell in row))
    )


def _encoding(start: bytes) -> str:
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    if b"\x00" in start:
        raise ValueError("it holds no text")
    try:
        # the last character may be cut
        start[: len(start) - 4].decode("utf-8") if len(start) > 4 else start.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(start) - 8:
            return "cp1252"
    return "utf-8-sig"


def _read_text(path: Path) -> pd.DataFrame:
    form = text_form(path)
    names = form.rows[0] if form.rows else ()
    header: int | None = 0 if _is_header(names) else None
    given: list[str] | None = None
    skipped = form.skipped
    data = form.rows[1] if len(form.rows) > 1 else ()
    if header == 0 and len(data) > len(names):
        if data[-1] and len(data) == len(names) + 1:
            # R writes row names without a header of their own
            given, header, skipped = ["Unnamed: 0", *names], None, skipped + 1
        elif any(data[len(names) :]):
            raise InputError(
                f"{path} has {len(data)} entries in its second row but {len(names)} names in the "
                "first: a name for each column is needed."
            )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pd.errors.ParserWarning)  # entries past the names are empty
        return pd.read_csv(
            path,
            sep=form.separator,
            decimal=form.decimal,
            encoding=form.encoding,
            skiprows=skipped,
            header=header,
            names=given,
            skipinitialspace=True,
            index_col=False,
            low_memory=False,
            compression=None,  # pandas would unpack by the name alone
        )


def _read_parquet(path: Path) -> pd.DataFrame:
    try:
        from pyarrow import parquet
    except ImportError:
        raise InputError(
            f"{path} is a Parquet file, which needs pyarrow: pip install napari-xcebra[parquet]."
        ) from None
    with parquet.ParquetFile(path) as file:
        about = file.metadata
        if about.num_rows * about.num_columns > MOST_VALUES:
            raise InputError(
                f"{path} claims {about.num_rows:,} rows × {about.num_columns:,} columns: that is "
                "too large for a table of behaviour."
            )
        # without the hints for pandas, what was its index is a column again
        return file.read(use_threads=False).to_pandas(ignore_metadata=True)


def _numbers_rows(name: str, dtype: Any) -> bool:
    if name.startswith("__index_level_"):  # an index of pandas; it may also be one of dates
        return pd.api.types.is_integer_dtype(dtype)
    return name.startswith("Unnamed: ") or name == "frame"


def is_number(text: str) -> bool:
    """Whether a cell of a table reads as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_header(names: tuple[str, ...]) -> bool:
    """Whether the first row names the columns: it has a word, or counts them from 0 or 1."""
    try:
        numbers = [float(name) for name in names]
    except ValueError:
        return True
    return len(numbers) > 1 and any(
        numbers == list(range(start, start + len(numbers))) for start in (0, 1)
    )
