"""Reads tables: text with comma, semicolon, tab or spaces; with a header or not; Parquet; Excel.

Text may be in UTF-8, UTF-16 or an old Windows encoding, begin with lines of comment (#, %), have a
decimal comma, a separator at the end of its lines, row names without a header, or a header of
several rows, of words or of ids.
"""

from __future__ import annotations

import csv
import re
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile, zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from napari_xcebra.errors import InputError, sentence_on_failure
from napari_xcebra.files import first_bytes
from napari_xcebra.text import decimal_mark, parse_number

TABLE = "a table of numbers"
SUFFIXES = (".csv", ".tsv", ".txt")
PARQUET = (".parquet", ".pq")
EXCEL = (".xlsx", ".xlsm")
LONGEST_LINE = 16 * 2**20
"""Characters after which a line is cut when the form of a table is looked at."""
_SEPARATORS = "\t;,"
_SPACES = r"\s+"
_NUMBER = re.compile(r"[+-]?[\d.,'’ \u00a0\u202f]*\d[\d.,]*(?:[eE][+-]?\d+)?")
_HEADER_LINES = re.compile(r'"?number of header lines:?"?\W+(\d{1,3})\b', re.IGNORECASE)
"""EthoVision says in its first line how many lines come before the rows."""
_MISSING = {"nan", "na", "n/a", "#n/a", "null", "none", "nil", "inf", "-inf", "+inf", "-nan", "-"}
"""Words for a missing number; in a column of words they are words like any other."""
MANY = 8
"""Numbers of a first row that do not rise from left to right by chance, as ids and times do."""
EXACT = 2**53
"""Whole numbers up to which a float64 holds each."""


@dataclass(frozen=True)
class _TextForm:
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

    @property
    def plain_rows(self) -> tuple[tuple[str, ...], ...]:
        """The rows with decimal points."""
        if self.decimal == ".":
            return self.rows
        return tuple(tuple(cell.replace(",", ".") for cell in row) for row in self.rows)


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
        if path.suffix.lower() in EXCEL:
            table = _read_excel(path)
        else:
            table = _read_parquet(path) if is_parquet(path) else _read_text(path)
    if table.empty:
        raise InputError(f"{path} has no rows.")
    table = _with_index(table, keep)
    numbered = [c for c, d in table.dtypes.items() if _numbers_rows(str(c), d) and c not in keep]
    return table.drop(columns=numbered)


def _with_index(table: pd.DataFrame, keep: Collection[str]) -> pd.DataFrame:
    """Table whose index, which pandas wrote without a name, is called by what it holds.

    Numbers that leave some out tell which rows were removed; other rising numbers are times. Words
    name the rows, which is of use where rows may be cells.
    """
    index, head, name = table.iloc[:, 0], str(table.columns[0]), ""
    if head not in ("Unnamed: 0", "__index_level_0__", "0"):
        return table
    if pd.api.types.is_datetime64_any_dtype(index):
        name = "time"
    elif not pd.api.types.is_numeric_dtype(index):
        shown = pd.to_datetime(
            index.head(20).astype(str), errors="coerce", format="mixed", utc=True
        )
        name = "time" if shown.notna().all() else "name" if "name" in keep else ""
    elif head == "0":
        return table
    elif len(index) > 1 and index.notna().all() and (index.diff().iloc[1:] > 0).all():
        if (index != index.round()).any():
            name = "time"
        elif index.iloc[-1] - index.iloc[0] >= len(index):
            name = "frame"
    if not name or name in table.columns:
        return table
    return table.rename(columns={table.columns[0]: name})


def is_parquet(path: Path) -> bool:
    """Whether a file that can be read has the first bytes or the name of a Parquet file."""
    start = first_bytes(path, 4)
    return start == b"PAR1" or (start != b"" and path.suffix.lower() in PARQUET)


def text_form(path: Path, n_rows: int = 12) -> _TextForm:
    """How a table of text is written, read off its first rows."""
    with path.open("rb") as file:
        start = file.read(1 << 16)
    encoding = _encoding(start)
    with path.open(encoding=encoding, errors="replace", newline="") as file:
        skipped = heads = 0
        lines: list[str] = []
        while len(lines) < n_rows and (line := file.readline(LONGEST_LINE)):
            if said := _HEADER_LINES.match(line):
                heads = int(said[1])  # the last two of them have names and units
            if not lines and (not line.strip() or line.lstrip()[0] in "#%" or skipped < heads - 2):
                skipped += 1
            else:
                lines.append(line)
    separator = _SPACES if _are_spaced(lines) else _separator(lines)
    split = (
        (line.split() for line in lines)
        if separator == _SPACES
        else csv.reader(lines, delimiter=separator)
    )
    rows = tuple(tuple(cell.strip() for cell in row) for row in split)
    rows, skipped = rows[(about := _rows_above(rows)) :], skipped + about
    decimal = _decimal_mark([cell for row in rows[1:] for cell in row]) or "."
    return _TextForm(encoding, skipped, separator, decimal, rows)


def _rows_above(rows: Sequence[Sequence[str]]) -> int:
    """How many of the first rows tell of the experiment: they have fewer entries than the table."""
    widths = [len([cell for cell in row if cell]) for row in rows]
    table = widths[-3:]
    if len(widths) < 6 or min(table) < max(table) or table[0] < 3:
        return 0
    return len([*takewhile(lambda width: width < table[0] - 1, widths[:-3])])


def _separator(lines: list[str]) -> str:
    """What separates most rows alike; of several, the one that does nothing else."""

    def alike(separator: str) -> int:
        counts = Counter(filter(None, (line.count(separator) for line in lines)))
        return max(counts.values(), default=0)

    return max(_SEPARATORS, key=alike)


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


def _decimal_mark(cells: Iterable[str]) -> str:
    """The decimal mark of all numbers among cells of text; empty if they tell none, or both."""
    marks = {decimal_mark(cell) for cell in cells if _NUMBER.fullmatch(cell)} - {""}
    return marks.pop() if len(marks) == 1 else ""


def _as_numbers(column: pd.Series, path: Path, decimal: str) -> pd.Series:
    """Column of text as numbers, if each is one, missing, or a word for a missing number."""
    if not (pd.api.types.is_string_dtype(column.dtype) or column.dtype == object):
        return column
    texts = column.astype("string").str.strip()
    texts = texts.where(texts.notna() & ~texts.str.lower().isin(_MISSING))
    codes, different = pd.factorize(texts)
    if not all(_NUMBER.fullmatch(text) for text in different):
        return column
    if any(text.isdecimal() and len(text) > 18 for text in different):
        return column  # ids, which are not the same although their floats are
    # a mark that the column itself tells counts more than that of the first rows of the table
    mark = _decimal_mark(different) or ("" if any("." in text for text in different) else decimal)
    mark = mark if mark == "," or any("," in text for text in different) else "."
    try:
        if decimal == "," and mark == "." and not _decimal_mark(different):
            first = next(text for text in different if "." in text)
            raise InputError(f"{first!r} may be {first} or {first.replace('.', '')}.")
        numbers = [parse_number(text, "" if mark == decimal == "." else mark) for text in different]
    except InputError as error:
        if "may be" not in str(error):
            return column
        raise InputError(
            f"Column {column.name} of {path}: {error} Write a decimal point, without marks "
            "between thousands."
        ) from None
    return pd.Series(np.r_[numbers, np.nan][codes], column.index, name=column.name)


def _with_exact_ids(table: pd.DataFrame, read: Callable[..., pd.DataFrame]) -> pd.DataFrame:
    """Table whose whole numbers above 2^53 are exact although some of their column are missing."""
    for place, (_, column) in enumerate(table.items()):
        if column.dtype != np.float64 or not (column.abs() >= EXACT).any():
            continue
        texts = read(dtype="string").iloc[:, place].str.strip()
        texts = texts.where(texts != "")
        if texts.dropna().str.fullmatch(r"[+-]?\d{1,18}|\d{19}").all():
            table.isetitem(place, texts.astype("Int64").array)
    return table


def _read_text(path: Path) -> pd.DataFrame:
    form = text_form(path)
    if not form.rows:
        raise ValueError("it is empty")
    heads = _header_rows(form.plain_rows, path)
    names = _joined(form.rows[:heads], form.rows[heads : heads + 2]) if heads > 1 else form.rows[0]
    header: int | None = 0 if heads == 1 else None
    given: list[str] | None = [*names] if heads > 1 else None
    skipped = form.skipped + (heads if heads > 1 else 0)
    data = form.rows[1] if len(form.rows) > 1 else ()
    if header == 0 and len(data) > len(names):
        if data[-1] and len(data) == len(names) + 1 and not _may_be_decimals(form):
            # R writes row names without a header of their own
            given, header, skipped = ["Unnamed: 0", *names], None, skipped + 1
        elif any(data[len(names) :]):
            raise InputError(
                f"{path} has {len(data)} entries in its second row but {len(names)} names in the "
                "first: a name for each column is needed, and semicolons between columns where "
                "commas are decimal marks."
            )
    read: Callable[..., pd.DataFrame] = partial(  # type: ignore[assignment]
        pd.read_csv,
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
        keep_default_na=False,  # a class may be called None; see `_as_numbers`
        na_values=[""],
        compression=None,  # pandas would unpack by the name alone
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pd.errors.ParserWarning)  # entries past the names are empty
        table = _with_exact_ids(read(), read)
    for place in range(table.shape[1]):
        column = _as_numbers(table.iloc[:, place], path, form.decimal)
        table.isetitem(place, column.array)
    return table


def _may_be_decimals(form: _TextForm) -> bool:
    """Whether an entry too many in each row may be the digits behind a decimal comma."""
    return form.separator == "," and all(is_number(row[0]) for row in form.rows[1:] if row)


def _read_excel(path: Path) -> pd.DataFrame:
    """The only sheet with something in it; times are text, as they are in a table of text."""
    try:
        sheets = pd.read_excel(path, sheet_name=None, engine="openpyxl")
    except ImportError:
        raise InputError(
            f"{path} is an Excel table: pip install 'napari-xcebra[excel]', or save it as .csv."
        ) from None
    filled = {name: table for name, table in sheets.items() if not table.empty}
    if len(filled) > 1:
        names = ", ".join(map(str, filled))
        raise InputError(f"{path} has several sheets ({names}): save the one to read as .csv.")
    table = next(iter(filled.values()), pd.DataFrame())
    times = {name: str for name, column in table.items() if column.dtype.kind == "M"}
    return table.astype(times)


def _read_parquet(path: Path) -> pd.DataFrame:
    try:
        from pyarrow import parquet
    except ImportError:
        raise InputError(
            f"{path} is a Parquet file, which needs pyarrow: pip install napari-xcebra[parquet]."
        ) from None
    with parquet.ParquetFile(path) as file:
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


def _header_rows(rows: Sequence[Sequence[str]], path: Path) -> int:
    """How many of the first rows name the columns."""
    if all(is_number(cell) for cell in rows[0]):
        return int(_are_names(rows, path))
    if _named_by_their_first(rows):
        return int(_rise_evenly(rows[0][1:]) or _are_names([row[1:] for row in rows], path))
    words = list(takewhile(lambda row: not any(map(is_number, row)), rows))
    for heads in range(len(words), 1, -1):
        if all(_names_on(row, rows[heads:]) for row in words[1:heads]):
            return heads
    return 1


def _named_by_their_first(rows: Sequence[Sequence[str]]) -> bool:
    """Whether each row, the first too, begins with a word, and numbers follow."""
    length = len(rows[0])
    begins = [len(row) == length and bool(row[0]) and not is_number(row[0]) for row in rows]
    numbers = all(is_number(cell) or not cell for row in rows for cell in row[1:])
    return length > 2 and len(rows) > 1 and all(begins) and numbers


def _rise_evenly(cells: Sequence[str]) -> bool:
    """Whether three numbers or more rise in even steps, as times do and traces do not."""
    steps = np.diff([float(cell or "nan") for cell in cells])
    return len(steps) > 1 and bool(steps[0] > 0 and np.ptp(steps) <= 1e-3 * steps[0])


def _names_on(row: Sequence[str], rest: Sequence[Sequence[str]]) -> bool:
    """Whether a row has words, such as units, above a column of numbers."""
    columns = zip_longest(*rest, fillvalue="")
    for head, column in zip(row, columns, strict=False):
        known = [cell for cell in column if cell and cell.lower() not in _MISSING]
        if head and head.lower() not in _MISSING and known and all(map(is_number, known)):
            return True
    return False


def _joined(heads: Sequence[Sequence[str]], data: Sequence[Sequence[str]]) -> list[str]:
    """A name for each column from several rows; what all columns but the first share says nothing.

    A first column that numbers the rows has the names of the header's rows above it.
    """
    said = [row for row in heads if len(row) < 3 or len(set(row[1:])) > 1] or heads[-1:]
    names = ["_".join(filter(None, (cell.strip("()[]{} ") for cell in column)))
             for column in zip_longest(*said, fillvalue="")]  # fmt: skip
    names[0] = "_".join(filter(None, (row[0].strip("()[]{} ") for row in heads)))
    counts = len(said) < len(heads) or len(heads) > 2
    if counts and [row[0] for row in data] in (["0", "1"], ["1", "2"]):
        names[0] = "Unnamed: 0"
    return names


def _are_names(rows: Sequence[Sequence[str]], path: Path) -> bool:
    """Whether a first row of numbers names the columns: counts, ids of cells, times of frames.

    Raises
    ------
    InputError
        If the numbers may be ids, or counts as in the rows below.
    """
    first, length = np.array([float(cell) for cell in rows[0]]), len(rows[0])
    if length < 2 or not np.isfinite(first).all():
        return False
    if any(np.array_equal(first, np.arange(start, start + length)) for start in (0, 1)):
        return True
    texts = [row for row in rows[1:] if len(row) == length and all(map(is_number, row))]
    if not texts:
        return False
    body = np.array([[float(cell) for cell in row] for row in texts])
    rising = np.mean(np.mean(np.diff(body, axis=1) > 0, axis=1) > 0.9) > 0.5
    rises = bool((np.diff(first) > 0).all()) and not rising
    if rises and length >= MANY:
        return True
    if not all(cell.isdecimal() for cell in rows[0]) or len(set(rows[0])) < length:
        return False
    steps = np.abs(np.diff(np.vstack([first, body]), axis=0))
    for column, step in zip(body.T, steps.T, strict=True):
        ahead = np.diff(column)
        if len(ahead) > 1 and ahead.min() > 0 and np.ptp(ahead) <= 0.05 * np.median(ahead):
            return bool(step[0] > 1.5 * np.median(ahead))  # a clock, or a number of rows
    if (
        np.mean(
            [not all(cell.isdecimal() for cell in column) for column in zip(*texts, strict=True)]
        )
        > 0.5
    ):
        return True
    if len(steps) > 2 and np.mean(steps[0] > 3 * np.maximum(steps[1:].max(axis=0), 1)) > 0.5:
        return True
    if rises and length > 2:
        raise InputError(
            f"The first row of {path} ({', '.join(rows[0])}) may name the columns or be their "
            "first values: name the columns with words, such as cell_3."
        )
    return False
