"""Reads pickles of other programs without running anything.

suite2p keeps its ROIs and options in pickles, and a pickle is a program: it names functions and
calls them. The reader here knows numbers, text, plain containers, arrays, dates and paths. Each
name that a recording needs stands for a function of our own with the same effect; a name it does
not know ends the reading, and is reported. It is built on Python's reader in plain Python, as that
in C would apply operations to any object, and takes one to three seconds for the ROIs of 10,000
cells. How much it allocates, and for how long, is for `io.guard` to limit.
"""

from __future__ import annotations

import datetime
import io
import math
import pickle
import re
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import Any, NoReturn

import numpy as np

from napari_xcebra.errors import InputError, sentence_on_failure

_DTYPE = re.compile(r"[?]|b1|[iu][1248]|f(2|4|8|12|16)|c(8|16|24|32)|[SU][0-9]{1,6}|O8?")


@dataclass(frozen=True)
class _Maker:
    """Stands for the function or class that a pickle names."""

    make: Callable[..., Any]


@dataclass
class Dtype:
    """Type of an array while it is read: numpy's own would believe any flags it is given."""

    code: str
    order: str = "="

    def build(self, state: Any) -> None:
        """Take the order of bytes from what numpy pickles; columns with names are refused."""
        _, order, *columns = state[:5]
        if order not in ("<", ">", "|", "=") or any(part is not None for part in columns):
            raise ValueError("arrays with columns of different types are not expected")
        self.order = order

    def made(self) -> np.dtype:
        """The numpy type."""
        return _numpy_dtype(self.code, self.order)


def _fill(array: np.ndarray, state: Any) -> None:
    """Give an array its values, after a check that these are as many as its shape asks for.

    Parameters
    ----------
    array : (0,) numpy.ndarray
    state : sequence
        As numpy pickles it: version, shape, type, whether columns go first, bytes or objects.
    """
    shape, dtype, fortran, values = state[-4:]
    if not isinstance(shape, tuple) or not all(type(n) is int and n >= 0 for n in shape):
        raise ValueError("the shape of an array is not one of whole numbers")
    made, count = dtype.made(), math.prod(shape)
    if made.hasobject != isinstance(values, list):
        raise ValueError(f"an array of {made} has values of type {type(values).__name__}")
    values = values if made.hasobject else _encoded(values)
    if len(values) != count * (1 if made.hasobject else made.itemsize):
        raise ValueError(f"an array of shape {shape} has {len(values)} bytes or items")
    array.__setstate__((1, shape, made, bool(fortran), values))  # type: ignore[arg-type]


def _scalar(dtype: Dtype, value: Any = None) -> Any:
    made = dtype.made()
    if made.hasobject:
        raise ValueError("a scalar cannot be an object")
    value = bytes(made.itemsize) if value is None else _encoded(value)
    return np.frombuffer(value, made, count=1)[0]


def _from_buffer(values: Any, dtype: Dtype, shape: Any, order: str, axes: Any = None) -> np.ndarray:
    """An array as numpy pickles it since protocol 5; `axes` are for order K."""
    array = np.ndarray(0, np.int8)
    values = bytes(values) if isinstance(values, bytearray) else values
    _fill(array, (shape, dtype, order == "F", values))
    return array if order != "K" or axes is None else array.transpose(axes)


def _encoded(text: Any, code: str = "latin1") -> bytes:
    """Bytes, which old pickles have as text."""
    if isinstance(text, str) and code in ("latin1", "latin-1"):
        return text.encode("latin1")
    if not isinstance(text, bytes):
        raise ValueError(f"a {type(text).__name__} is not expected as bytes")
    return text


def _items(items: Any) -> Any:
    if not isinstance(items, list | tuple | str | bytes):
        raise ValueError(f"a {type(items).__name__} is not expected there")
    return items


def _path(kind: type[PurePath], parts: tuple[Any, ...]) -> PurePath:
    if not all(isinstance(part, str) for part in parts):
        raise ValueError("a path is not made of text")
    return kind(*parts)


@lru_cache
def _numpy_dtype(code: str, order: Any) -> np.dtype:
    return np.dtype(code).newbyteorder(order)


def _dtype(code: Any, *_: Any) -> Dtype:
    if not isinstance(code, str) or not _DTYPE.fullmatch(code):
        # lists that hold each other many times would take for ever to write out
        what = code[:20] if isinstance(code, str) else f"a {type(code).__name__}"
        raise ValueError(f"arrays of type {what} are not expected")
    return Dtype(code)


def _not_to_be_called(*_: Any) -> NoReturn:
    # numpy names its class only to hand it to `_reconstruct`
    raise ValueError("it makes an array of a shape that it claims")


_POSIX = ("PosixPath", "PurePosixPath", "Path", "PurePath")
_WINDOWS = ("WindowsPath", "PureWindowsPath")
_HOMES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("_reconstruct", "scalar"), ("numpy.core.multiarray", "numpy._core.multiarray")
    ),
    "_frombuffer": ("numpy.core.numeric", "numpy._core.numeric"),
    **dict.fromkeys(("ndarray", "dtype"), ("numpy",)),
    "encode": ("_codecs",),
    **dict.fromkeys(
        ("bytes", "bytearray", "set", "frozenset", "complex", "slice"), ("builtins", "__builtin__")
    ),
    "OrderedDict": ("collections",),
    **dict.fromkeys(("datetime", "date", "time", "timedelta", "timezone"), ("datetime",)),
    **dict.fromkeys((*_POSIX, *_WINDOWS), ("pathlib", "pathlib._local", "pathlib._abc")),
}
"""Modules in which each name has been found, by the versions of Python and numpy."""

_MAKERS: dict[str, Callable[..., Any]] = {
    "_reconstruct": lambda *_: np.ndarray(0, np.int8),  # filled later, by `_fill`
    "ndarray": _not_to_be_called,
    "dtype": _dtype,
    "scalar": _scalar,
    "_frombuffer": _from_buffer,
    "encode": _encoded,
    "bytes": lambda: b"",
    "bytearray": lambda text=b"", *code: bytearray(_encoded(text, *code)),
    "set": lambda items: set(_items(items)),
    "frozenset": lambda items: frozenset(_items(items)),
    "complex": lambda real, imaginary: complex(float(real), float(imaginary)),
    "slice": slice,
    "OrderedDict": lambda pairs=(): OrderedDict(_items(pairs)),
    "datetime": datetime.datetime,
    "date": datetime.date,
    "time": datetime.time,
    "timedelta": datetime.timedelta,
    "timezone": datetime.timezone,
    # paths of another system cannot be made, and none may touch a disk
    **dict.fromkeys(_POSIX, lambda *parts: _path(PurePosixPath, parts)),
    **dict.fromkeys(_WINDOWS, lambda *parts: _path(PureWindowsPath, parts)),
}
MAKERS = {(home, name): _Maker(make) for name, make in _MAKERS.items() for home in _HOMES[name]}
"""What stands for the names that a pickle may hold, by their module."""


def loads(pickled: bytes, where: str) -> Any:
    """What a pickle holds; `where` says in sentences where it was found."""
    with sentence_on_failure(Path(where)):
        return _load(pickled, where)


def _load(pickled: bytes, where: str) -> Any:
    source = io.BytesIO(pickled)
    found = _Reader(source, where, len(pickled)).load()
    if source.read(1):
        raise ValueError("it continues after its end")
    return found


_PlainReader: Any = pickle._Unpickler


class _Reader(_PlainReader):
    """Goes through a pickle; all that it makes is made by `MAKERS`.

    Methods named ``load_…`` carry out one operation of the pickle each, on the top of the stack.
    """

    def __init__(self, source: io.BytesIO, where: str, size: int) -> None:
        super().__init__(source, encoding="latin1")
        self.where, self.size = where, size

    def find_class(self, module: str, name: str) -> _Maker:
        """What stands for a name, or a sentence that reports it."""
        if (module, name) in MAKERS:
            return MAKERS[module, name]
        text = f"{module}.{name}"
        shown = text if text.isprintable() and len(text) < 100 else repr(text[:80])
        raise InputError(
            f"{self.where} wants to use {shown}, which no recording needs: it was not opened, and "
            "nothing in it was run."
        )

    def load_reduce(self) -> None:
        given, maker = self.stack.pop(), self.stack[-1]
        if not isinstance(maker, _Maker) or not isinstance(given, tuple):
            raise ValueError("it calls something that is not a function")
        self.stack[-1] = maker.make(*given)

    def load_build(self) -> None:
        state, made = self.stack.pop(), self.stack[-1]
        if type(made) is np.ndarray:
            _fill(made, state)
        elif isinstance(made, Dtype):
            made.build(state)
        else:
            raise ValueError(f"a {type(made).__name__} cannot be given a state")

    def load_append(self) -> None:
        self._extend([self.stack.pop()])

    def load_appends(self) -> None:
        self._extend(self.pop_mark())

    def load_dict(self) -> None:
        items = self.pop_mark()
        self.append({})
        self._update(items)

    def load_setitem(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self._update([key, value])

    def load_setitems(self) -> None:
        self._update(self.pop_mark())

    def load_additems(self) -> None:
        items = self.pop_mark()
        if type(self.stack[-1]) is not set:
            raise ValueError("it adds to something that is not a set")
        self.stack[-1].update(items)

    def load_frozenset(self) -> None:
        items = self.pop_mark()
        self.append(frozenset(items))

    def load_bytearray8(self) -> None:
        length = int.from_bytes(self.read(8), "little")
        if length > self.size:
            raise ValueError("it claims to hold more than the file does")
        self.append(bytearray(self.read(length)))

    def load_inst(self) -> None:
        module, name = (self.readline()[:-1].decode("ascii") for _ in range(2))
        self.find_class(module, name)
        self.load_object()

    def load_object(self) -> NoReturn:
        raise ValueError("it makes an object of a class")

    def _extend(self, items: list[Any]) -> None:
        if type(self.stack[-1]) is not list:
            raise ValueError("it appends to something that is not a list")
        self.stack[-1].extend(items)

    def _update(self, items: list[Any]) -> None:
        if type(self.stack[-1]) not in (dict, OrderedDict):
            raise ValueError("it puts items into something that is not a dictionary")
        self.stack[-1].update(zip(items[::2], items[1::2], strict=True))


_REFUSED = (
    *(pickle.OBJ, pickle.NEWOBJ, pickle.NEWOBJ_EX, pickle.EXT1, pickle.EXT2, pickle.EXT4),
    *(pickle.PERSID, pickle.BINPERSID, pickle.NEXT_BUFFER, pickle.READONLY_BUFFER),
)
# Where Python's reader would apply an operation to any object at all, ours takes its place.
_Reader.dispatch = _PlainReader.dispatch | {
    code[0]: load
    for code, load in (
        (pickle.REDUCE, _Reader.load_reduce),
        (pickle.BUILD, _Reader.load_build),
        (pickle.APPEND, _Reader.load_append),
        (pickle.APPENDS, _Reader.load_appends),
        (pickle.DICT, _Reader.load_dict),
        (pickle.SETITEM, _Reader.load_setitem),
        (pickle.SETITEMS, _Reader.load_setitems),
        (pickle.ADDITEMS, _Reader.load_additems),
        (pickle.FROZENSET, _Reader.load_frozenset),
        (pickle.BYTEARRAY8, _Reader.load_bytearray8),
        (pickle.INST, _Reader.load_inst),
        *((code, _Reader.load_object) for code in _REFUSED),
    )
}
