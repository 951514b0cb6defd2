"""Tables in CSV files as labs have them: comma, semicolon or tab; with or without a header."""

from __future__ import annotations

import csv
from pathlib import Path

import pandas as pd

from napari_xcebra.recording import InputError

SUFFIXES = (".csv", ".tsv", ".txt")


def read_table(path: Path) -> pd.DataFrame:
    """Table of a text file, without a column that only numbers the rows.

    Columns are named by the header, or 0, 1, 2 … if there is none.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            first, second = file.readline(), file.readline()
            separator = max("\t;,", key=first.count)
            decimal = "," if separator == ";" and "," in second else "."
            names = next(csv.reader([first], delimiter=separator), [])
            file.seek(0)
            table = pd.read_csv(
                file,
                sep=separator,
                decimal=decimal,
                header=0 if _is_header(names) else None,
                skipinitialspace=True,
                index_col=False,
            )
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from error
    # a file that is no text fails in the decoder or the parser, each in its own way
    except (ValueError, csv.Error) as error:
        raise InputError(
            f"{path} cannot be read as a table of numbers: {str(error).strip().rstrip('.')}."
        ) from error
    if table.empty:
        raise InputError(f"{path} has no rows.")
    numbered = [c for c in table.columns if str(c).startswith("Unnamed: ") or str(c) == "frame"]
    return table.drop(columns=numbered)


def _is_header(names: list[str]) -> bool:
    """Whether the first row names the columns: it has a word, or counts them from 0 or 1."""
    try:
        numbers = [float(name) for name in names]
    except ValueError:
        return True
    return len(numbers) > 1 and any(
        numbers == list(range(start, start + len(numbers))) for start in (0, 1)
    )
