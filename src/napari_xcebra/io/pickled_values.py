"""Makes the plain values that a pickle may hold, instead of calling what it names.

A pickle names functions for Python to call. Each name that a recording needs stands here for a
function of our own with the same effect, which counts what it copies.
"""

from __future__ import annotations

import datetime
import math
import re
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePath, PurePosixPath, PureWindowsPath
from typing import Any, NoReturn

import numpy as np

_DTYPE = re.compile(r"[?]|b1|[iu][1248]|f(2|4|8|12|16)|c(8|16|24|32)|[SU][0-9]{1,6}|O8?")
_LONGEST_KEY = 16


@dataclass(frozen=True)
class Maker:
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


class Values:
    """Makes values; all together they copy a few times what the file holds, and no more.

    Parameters
    ----------
    size : int
        Bytes of the pickle.
    """

    def __init__(self, size: int) -> None:
        self._left = 4 * size  # old pickles hold bytes as text, which is copied on the way
        makers: dict[str, Callable[..., Any]] = {
            "_reconstruct": lambda *_: np.ndarray(0, np.int8),  # filled later, by `fill`
            "ndarray": _not_to_be_called,
            "dtype": _dtype,
            "scalar": self._scalar,
            "_frombuffer": self._from_buffer,
            "encode": self._encoded,
            "bytes": lambda: b"",
            "bytearray": lambda text=b"", *code: bytearray(self._encoded(text, *code)),
            "set": lambda items: {plain_key(item) for item in self._counted(items)},
            "frozenset": lambda items: frozenset(plain_key(i) for i in self._counted(items)),
            "complex": lambda real, imaginary: complex(float(real), float(imaginary)),
            "slice": slice,
            "OrderedDict": self._ordered,
            "datetime": datetime.datetime,
            "date": datetime.date,
            "time": datetime.time,
            "timedelta": datetime.timedelta,
            "timezone": datetime.timezone,
            # paths of another system cannot be made, and none may touch a disk
            **dict.fromkeys(_POSIX, lambda *parts: self._path(PurePosixPath, parts)),
            **dict.fromkeys(_WINDOWS, lambda *parts: self._path(PureWindowsPath, parts)),
        }
        self.makers = {
            (module, name): Maker(make) for name, make in makers.items() for module in _HOMES[name]
        }

    def fill(self, array: np.ndarray, state: Any) -> None:
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
        values = self._counted(values) if made.hasobject else self._encoded(values)
        if len(values) != count * (1 if made.hasobject else made.itemsize):
            raise ValueError(f"an array of shape {shape} has {len(values)} bytes or items")
        self._count(0 if made.itemsize else count)
        array.__setstate__((1, shape, made, bool(fortran), values))  # type: ignore[arg-type]

    def _count(self, amount: int) -> None:
        """Count bytes or items: a pickle may name one thing a million times, each to be copied."""
        self._left -= amount
        if self._left < 0:
            raise ValueError("it claims to hold more than the file does")

    def _counted(self, items: Any) -> Any:
        if not isinstance(items, list | tuple | str | bytes):
            raise ValueError(f"a {type(items).__name__} is not expected there")
        self._count(len(items))
        return items

    def _scalar(self, dtype: Dtype, value: Any = None) -> Any:
        made = dtype.made()
        if made.hasobject:
            raise ValueError("a scalar cannot be an object")
        value = bytes(made.itemsize) if value is None else self._encoded(value)
        return np.frombuffer(value, made, count=1)[0]

    def _from_buffer(
        self, values: Any, dtype: Dtype, shape: Any, order: str, axes: Any = None
    ) -> np.ndarray:
        """An array as numpy pickles it since protocol 5; `axes` are for order K."""
        array = np.ndarray(0, np.int8)
        values = bytes(values) if isinstance(values, bytearray) else values
        self.fill(array, (shape, dtype, order == "F", values))
        return array if order != "K" or axes is None else array.transpose(axes)

    def _encoded(self, text: Any, code: str = "latin1") -> bytes:
        """Bytes, which old pickles have as text."""
        if isinstance(text, str) and code in ("latin1", "latin-1"):
            return str(self._counted(text)).encode("latin1")
        if not isinstance(text, bytes):
            raise ValueError(f"a {type(text).__name__} is not expected as bytes")
        return bytes(self._counted(text))

    def _ordered(self, pairs: Any = ()) -> OrderedDict[Any, Any]:
        return OrderedDict((plain_key(key), value) for key, value in self._counted(pairs))

    def _path(self, kind: type[PurePath], parts: tuple[Any, ...]) -> PurePath:
        for part in parts:
            if not isinstance(part, str):
                raise ValueError("a path is not made of text")
            self._count(len(part))
        return kind(*parts)


def plain_key(key: Any) -> Any:
    """A key whose hash is quick to take: that of tuples within tuples can take for ever."""
    if type(key) is str:
        return key
    parts = key if type(key) is tuple and len(key) <= _LONGEST_KEY else (key,)
    for part in parts:
        plain = isinstance(part, str | bytes | float | np.number | np.bool_ | None)
        if not plain and not (isinstance(part, int) and part.bit_length() <= 64):
            raise ValueError(f"a {type(part).__name__} is not expected as a key")
    return key


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
