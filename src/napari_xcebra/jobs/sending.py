"""Sends calls and results over pipes; recordings and large arrays cross once.

The window's side lends values to the child, which keeps them for the calls to come; in a result
they come back as the very objects that were lent. Values are recognised by identity: a recording
changed in place (rather than by `dataclasses.replace`) would not be sent again. A changed copy
costs what has changed in it, since its arrays are recognised one by one.

Arrays of 32 MB or more go through a file that the child maps into memory. Measured on 512 MB,
two busy cores: file 0.13 s, `multiprocessing.shared_memory` 0.9 s, pipe 3 s; and a file needs no
/dev/shm, which is 64 MB in many containers. Whoever receives it maps it and unlinks it at once; the
child removes the folder should the window die in between. Large results come back the same way.
"""

from __future__ import annotations

import io
import itertools
import pickle
import struct
import sys
import weakref
from collections import deque
from collections.abc import Callable
from os import name as system
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, Literal

import numpy as np

from napari_xcebra.recording import Recording

GREETING = b"\x00napari-xcebra jobs\x00"
JOB, STOP = b"j", b"s"
"""Messages to the child."""
EVENT, IDLE = b"e", b"i"
"""Messages from the child."""

_HEADER = struct.Struct("<cQ")


class Channel:
    """Messages, each a kind of one byte and a payload, to and from another process.

    Parameters
    ----------
    source, sink : binary files
        Buffered and blocking.
    """

    def __init__(self, source: BinaryIO, sink: BinaryIO) -> None:
        self.source, self.sink = source, sink

    def send(self, kind: bytes, payload: bytes = b"") -> None:
        """Write one message; OSError if the other side is gone."""
        self.sink.write(_HEADER.pack(kind, len(payload)))
        self.sink.write(payload)
        self.sink.flush()

    def receive(self) -> tuple[bytes, bytes] | None:
        """Wait for one message; None if the other side is gone."""
        header = self.source.read(_HEADER.size)
        if len(header) < _HEADER.size:
            return None
        kind, length = _HEADER.unpack(header)
        payload = self.source.read(length)
        return (kind, payload) if len(payload) == length else None

    def greet(self) -> None:
        """Mark where messages begin."""
        self.sink.write(GREETING)
        self.sink.flush()

    def await_greeting(self) -> bool:
        """Skip whatever Python's start-up files printed; False if nothing follows it."""
        seen = b""
        while not seen.endswith(GREETING):
            byte = self.source.read(1)
            if not byte:
                return False
            seen = seen[-len(GREETING) :] + byte
        return True


LENT_FROM = 64 * 2**10
"""Size in bytes from which an array is worth remembering."""
FILE_FROM = 32 * 2**20
"""Size in bytes from which an array goes through a file."""

Ticket = tuple[int | None, bytes | str | None]
"""Stands for a value: its number, and at first sight its content (pickled, or a file's name)."""


class Lender:
    """The window's side: lends values to the child.

    Parameters
    ----------
    folder : Path
        For large arrays; the child knows it too.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers: dict[int, int] = {}
        self._lent: dict[int, weakref.ref[Any]] = {}
        self._count = itertools.count()
        self._unsure: list[int] = []
        self._gone: deque[int] = deque()

    def pack(self, call: Any) -> bytes:
        """Call, and the numbers of values that the child need not keep any longer."""
        self._withdraw()
        gone = [self._gone.popleft() for _ in range(len(self._gone))]
        return _pickled((gone, call), self._ticket)

    def received(self) -> None:
        """The child has taken what was packed last; until then it will be sent again."""
        self._unsure.clear()

    def unpack(self, event: bytes) -> Any:
        """Event from the child."""
        return _unpickled(event, self._resolve)

    def _withdraw(self) -> None:
        """Assume that the child lacks what it did not confirm."""
        unsure, self._unsure = self._unsure, []
        for number in unsure:
            if self._lent.pop(number, None) is not None:
                self._gone.append(number)

    def _ticket(self, value: Any) -> Ticket | None:
        if not (_is_shared(value) or _size(value) >= LENT_FROM):
            return None
        known = self._numbers.get(id(value), -1)
        lent = self._lent.get(known)
        # the id of a value that is gone may serve another one
        if lent is not None and lent() is value:
            return known, None
        number = next(self._count)
        content = self._content(value, number)
        self._lent[number] = weakref.ref(value, lambda _: self._lost(number))
        self._numbers[id(value)] = number
        self._unsure.append(number)
        return number, content

    def _content(self, value: Any, number: int) -> bytes | str:
        if isinstance(value, np.ndarray):
            array = np.asarray(value)
            if array.nbytes < FILE_FROM:
                return pickle.dumps(array, protocol=5)
            return _written(array, self._folder, f"lent-{number}.npy")
        return _pickled(value, lambda part: None if part is value else self._ticket(part))

    def _lost(self, number: int) -> None:
        # called when Python collects the value, in whatever thread: nothing that waits here
        if self._lent.pop(number, None) is not None:
            self._gone.append(number)

    def _resolve(self, ticket: Ticket) -> Any:
        number, content = ticket
        if number is not None:
            return self._lent[number]()
        return _mapped(self._folder / str(content), "c")


class Borrower:
    """The child's side: keeps what it was lent."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._values: dict[int, Any] = {}
        self._numbers: dict[int, int] = {}
        self._count = itertools.count()

    def unpack(self, payload: bytes) -> Any:
        """Call from the window; values that are no longer needed are dropped."""
        gone, call = _unpickled(payload, self._resolve)
        for number in gone:
            value = self._values.pop(number, None)
            self._numbers.pop(id(value), None)
        return call

    def pack(self, event: Any) -> bytes:
        """Event for the window."""
        return _pickled(event, self._ticket)

    def _resolve(self, ticket: Ticket) -> Any:
        number, content = ticket
        assert number is not None
        if content is not None:
            value = self._opened(content)
            self._values[number], self._numbers[id(value)] = value, number
        return self._values[number]

    def _opened(self, content: bytes | str) -> Any:
        if isinstance(content, bytes):
            return _unpickled(content, self._resolve)
        return _mapped(self._folder / content, "r")

    def _ticket(self, value: Any) -> Ticket | None:
        number = self._numbers.get(id(value))
        if number is not None:
            return number, None
        if _size(value) < FILE_FROM:
            return None
        name = f"result-{next(self._count)}.npy"
        return None, _written(np.asarray(value), self._folder, name)


def _is_shared(value: Any) -> bool:
    """Whether it is a recording or a fit; there is no fit before its module was imported."""
    fits = sys.modules.get("napari_xcebra.learn.result")
    return isinstance(value, Recording) or (fits is not None and isinstance(value, fits.Fit))


def _size(value: Any) -> int:
    """Bytes of a plain array; 0 for anything else."""
    plain = type(value) in (np.ndarray, np.memmap) and not value.dtype.hasobject
    return value.nbytes if plain else 0


def _mapped(path: Path, mode: Literal["r", "c"]) -> np.ndarray:
    """Array of a file of ours, which nobody else can change once it has no name any more."""
    if system != "posix" and mode == "c":  # a file in use cannot be removed there
        array = np.load(path, allow_pickle=False)
        path.unlink()
        return array
    array = np.load(path, mmap_mode=mode, allow_pickle=False).view(np.ndarray)
    if system == "posix":  # elsewhere it goes with the folder
        path.unlink()
    return array


def _written(array: np.ndarray, folder: Path, name: str) -> str:
    np.save(folder / name, array, allow_pickle=False)
    return name


def _read_only(values: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(values)


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, ticket: Callable[[Any], Ticket | None]) -> None:
        super().__init__(file, protocol=5)
        self._ticket = ticket

    def persistent_id(self, value: Any) -> Ticket | None:
        return self._ticket(value)

    def reducer_override(self, value: Any) -> Any:
        # read-only mappings, such as the factors of a simulation, are not pickled by Python itself
        if isinstance(value, MappingProxyType):
            return _read_only, (dict(value),)
        return NotImplemented


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, resolve: Callable[[Ticket], Any]) -> None:
        super().__init__(file)
        self._resolve = resolve

    def persistent_load(self, ticket: Ticket) -> Any:
        return self._resolve(ticket)


def _pickled(value: Any, ticket: Callable[[Any], Ticket | None]) -> bytes:
    file = io.BytesIO()
    _Pickler(file, ticket).dump(value)
    return file.getvalue()


def _unpickled(payload: bytes, resolve: Callable[[Ticket], Any]) -> Any:
    return _Unpickler(io.BytesIO(payload), resolve).load()
