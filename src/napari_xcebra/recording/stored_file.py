"""Reads bytes at places of a file that others may change meanwhile.

By plain reads: a program that shortens a file ends every process that has it mapped (SIGBUS), as
suite2p does when it is run again. A plain read just comes back short.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path

from napari_xcebra.errors import InputError


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
        """Raise if another file lies there by now, or it has another length."""
        try:
            same = _identity(self.path.stat()) == self._seen
        except OSError as error:
            raise changed_since(self.path) from error
        if not same:
            raise changed_since(self.path)


def _identity(stat: os.stat_result) -> tuple[int, int, int]:
    """Which file it is, and its size; tools that only touch a file change neither."""
    return stat.st_dev, stat.st_ino, stat.st_size


_SEEKING = threading.Lock()


def _seek_and_read(file: int, count: int, place: int) -> bytes:
    with _SEEKING:
        os.lseek(file, place, os.SEEK_SET)
        return os.read(file, count)


# Windows has no `pread`
_read_at = getattr(os, "pread", _seek_and_read)
