"""Sparse matrices of files, checked before anything is done with them.

scipy's own check passes over some damage that later ends the interpreter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

LARGEST_DENSE = 2**28
"""Values a matrix may have with its zeros."""


@dataclass(frozen=True)
class Sparse:
    """The values of a matrix that are not zero, and where they are.

    Parameters
    ----------
    shape : (rows, columns)
    row, column : (values,) int64
    value : (values,)
    """

    shape: tuple[int, int]
    row: np.ndarray
    column: np.ndarray
    value: np.ndarray

    def times(self, vector: np.ndarray) -> np.ndarray:
        """(rows,) float64, the matrix times a vector of one number a column."""
        return np.bincount(self.row, self.value * vector[self.column], minlength=self.shape[0])

    def dense(self) -> np.ndarray | None:
        """(rows, columns) with all zeros, or None if that is too large."""
        if self.shape[0] * self.shape[1] > LARGEST_DENSE:
            return None
        matrix = np.zeros(self.shape, self.value.dtype)
        matrix[self.row, self.column] = self.value
        return matrix


def from_columns(value: Any, row: Any, ends: Any, shape: Any) -> Sparse:
    """Matrix stored column after column, as MATLAB and scipy (CSC) do.

    Parameters
    ----------
    value, row : (values,)
        Values that are not zero, and their rows.
    ends : (columns + 1,)
        0, then the number of values up to the end of each column.
    shape : (rows, columns)

    Raises
    ------
    ValueError
        If these do not belong together.
    """
    rows, columns = (int(n) for n in np.asarray(shape).reshape(-1))
    value = np.asarray(value).reshape(-1)
    row, ends = (np.asarray(part).reshape(-1).astype(np.int64) for part in (row, ends))
    if rows < 0 or columns < 0 or len(ends) != columns + 1:
        raise ValueError(f"a sparse matrix of {rows} × {columns} has {len(ends)} ends of columns")
    lengths = np.diff(ends)
    if ends[0] != 0 or (lengths < 0).any() or ends[-1] > min(len(row), len(value)):
        raise ValueError("a sparse matrix has columns that do not fit its values")
    row, value = row[: ends[-1]], value[: ends[-1]]
    if len(row) and not (0 <= row.min() and row.max() < rows):
        raise ValueError(f"a sparse matrix of {rows} rows has a value in row {row.max()}")
    return Sparse((rows, columns), row, np.repeat(np.arange(columns), lengths), value)
