"""Reads bytes at places of a file that others may change meanwhile.

By plain reads: a program that shortens a file ends every process that has it mapped (SIGBUS), as
suite2p does when it is run again. A plain read just comes back short.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.files import open_file


def changed_since(path: Path) -> InputError:
    """Sentence on a file whose values can no longer be read."""
    return InputError(
        f"{path} cannot be read any more: it was moved, damaged or replaced after the recording "
        "was opened."
    )


# a pipe in its place is not waited for
_READ = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)


class StoredFile:
    """A file that stays open as long as this object lives; any number of threads may read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = -1
        try:
            self._file = os.open(path, _READ)
            self._seen = _identity(os.fstat(self._file))
        except OSError as error:
            raise changed_since(path) from error

    def __del__(self) -> None:
        if self._file >= 0:
            os.close(self._file)

    @property
    def size(self) -> int:
        """Bytes that it had when it was opened."""
        return self._seen[-1]

    def read(self, count: int, place: int) -> bytes:
        """Bytes from a place on; fewer where the file ends before."""
        try:
            return _read_at(self._file, count, place)
        except OSError as error:
            raise changed_since(self.path) from error

    def check_same(self) -> None:
        """Raise if another file lies there by now, or it was written to."""
        try:
            same = _identity(self.path.stat()) == self._seen
        except OSError as error:
            raise changed_since(self.path) from error
        if not same:
            raise changed_since(self.path)


def _identity(stat: os.stat_result) -> tuple[int, int, int, int]:
    """Which file it is, when it was last written to, and its size."""
    return stat.st_dev, stat.st_ino, stat.st_mtime_ns, stat.st_size


_SEEKING = threading.Lock()


def _seek_and_read(file: int, count: int, place: int) -> bytes:
    with _SEEKING:
        os.lseek(file, place, os.SEEK_SET)
        return os.read(file, count)


# Windows has no `pread`
_read_at = getattr(os, "pread", _seek_and_read)


RUN = 2**20
"""Bytes read at a time."""
PAGE = 4096
"""Bytes of a row that is read whole, whatever is wanted of it."""
AHEAD, AHEAD_AT_ONCE = 1024, 8 * 2**20
"""Bytes of every row, and of all rows, that are read and kept where fewer are wanted."""


class StoredMatrix:
    """A matrix in a file, which stays open as long as this object lives.

    Parameters
    ----------
    path : Path
    start : int
        Where the values begin, in bytes.
    dtype : numpy.dtype
        Of plain numbers.
    shape : (rows, columns)
    """

    def __init__(self, path: Path, start: int, dtype: np.dtype, shape: tuple[int, int]) -> None:
        self.path, self.start, self.dtype, self.shape = path, start, dtype, shape
        self._ahead = (0, 0), 0, np.empty((0, 0), np.float32)
        self._file = StoredFile(path)
        if self._file.size < start + math.prod(shape) * dtype.itemsize:
            raise changed_since(path)

    @classmethod
    def of_npy(cls, path: Path) -> tuple[StoredMatrix, bool]:
        """Matrix of a .npy file; and whether it is stored column after column, thus transposed."""
        try:
            with open_file(path) as file:
                version = np.lib.format.read_magic(file)
                header = np.lib.format.read_array_header_1_0 if version == (1, 0) else (
                    np.lib.format.read_array_header_2_0)  # fmt: skip
                shape, turned, dtype = header(file)
                start = file.tell()
        except (OSError, ValueError, EOFError) as error:
            raise changed_since(path) from error
        if len(shape) != 2 or dtype.kind not in "biuf":
            raise changed_since(path)
        return cls(path, start, dtype, shape[::-1] if turned else shape), turned

    def read(self, rows: slice, columns: slice) -> np.ndarray:
        """(rows, columns) float32, also where that cannot hold a number: it becomes infinite.

        Parameters
        ----------
        rows, columns : slice
            With a start, a stop, and no step.
        """
        self._file.check_same()
        length, wanted = self.shape[1], columns.stop - columns.start
        if 4 * wanted >= length or length * self.dtype.itemsize <= PAGE:
            return self._read(rows, columns, whole_rows=True)
        # whoever asks for one column asks for the next one soon, which takes no longer to read
        width = min(AHEAD // 4, AHEAD_AT_ONCE // (4 * max(rows.stop - rows.start, 1)))
        if wanted >= width:
            return self._read(rows, columns)
        for_rows, first, kept = self._ahead
        if for_rows != (rows.start, rows.stop) or not (
            first <= columns.start and columns.stop <= first + kept.shape[1]
        ):
            first = columns.start
            kept = self._read(rows, slice(first, min(first + width, length)))
            self._ahead = (rows.start, rows.stop), first, kept
        return kept[:, columns.start - first : columns.stop - first].copy()

    def _read(self, rows: slice, columns: slice, *, whole_rows: bool = False) -> np.ndarray:
        found = np.empty((rows.stop - rows.start, columns.stop - columns.start), np.float32)
        with np.errstate(all="ignore"):
            for run, values in self._runs(rows, columns, whole_rows):
                found[run.start - rows.start : run.stop - rows.start] = values
        return found

    def _runs(
        self, rows: slice, columns: slice, whole_rows: bool
    ) -> Iterator[tuple[slice, np.ndarray]]:
        """Some rows after the other; whole rows are read in one go and cut."""
        size = self.dtype.itemsize
        length, width = self.shape[1] * size, (columns.stop - columns.start) * size
        step = max(1, RUN // max(length if whole_rows else width, 1))
        for first in range(rows.start, rows.stop, step):
            run = slice(first, min(first + step, rows.stop))
            count, begin = run.stop - first, self.start + first * length
            if whole_rows:
                stored = self._file.read(count * length, begin)
                yield run, self._values(stored, count, self.shape[1])[:, columns]
                continue
            begin += columns.start * size
            places = range(begin, begin + count * length, length)
            parts = b"".join([self._file.read(width, place) for place in places])
            yield run, self._values(parts, count, columns.stop - columns.start)

    def _values(self, stored: bytes, rows: int, columns: int) -> np.ndarray:
        try:
            return np.frombuffer(stored, self.dtype).reshape(rows, columns)
        except ValueError as error:  # the file ends before
            raise changed_since(self.path) from error
