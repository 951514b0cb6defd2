"""Reads pickles of other programs without running anything.

suite2p keeps its ROIs and options in pickles, and a pickle is a program: it names functions and
calls them. The reader here knows numbers, text, plain containers, arrays, dates and paths, and
makes them itself; a name it does not know ends the reading, and is reported.

Nor does it allocate more than the file can hold, or hash what takes for ever: Python's reader in C
trusts the sizes that a file claims, so that one damaged byte can ask for gigabytes, and hashes any
key. A scan of the operations before it (`pickletools`) does not see what the keys are, and takes
two thirds of the time. This one is built on the reader in plain Python, which takes one to three
seconds for the ROIs of 10,000 cells.
"""

from __future__ import annotations

import io
import pickle
from collections import OrderedDict
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.io.arrays.npy import read_header
from napari_xcebra.io.failures import sentence_on_failure
from napari_xcebra.io.pickled_values import Dtype, Maker, Values, plain_key


def read_object_npy(path: Path) -> Any:
    """What a .npy file of Python objects holds.

    Parameters
    ----------
    path : Path

    Returns
    -------
    Any
        The object itself if it is one (suite2p's ops), else an array of objects (its stat).
    """
    with sentence_on_failure(path):
        with path.open("rb") as file:
            header = read_header(file)
            if header.dtype != np.dtype(object):
                raise InputError(f"{path} holds plain numbers: Python objects were looked for.")
            found = _load(file.read(), str(path))
        if not isinstance(found, np.ndarray) or found.dtype != object:
            raise ValueError("there is no array of objects in it")
        return found.item() if header.shape == () else found.reshape(header.shape)


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
    """Goes through a pickle; all that it makes is made by `Values`.

    Methods named ``load_…`` carry out one operation of the pickle each, on the top of the stack.
    """

    def __init__(self, source: io.BytesIO, where: str, size: int) -> None:
        super().__init__(source, encoding="latin1")
        self.where, self.size = where, size
        self.values = Values(size)

    def find_class(self, module: str, name: str) -> Maker:
        """What stands for a name, or a sentence that reports it."""
        if (module, name) in self.values.makers:
            return self.values.makers[module, name]
        text = f"{module}.{name}"
        shown = text if text.isprintable() and len(text) < 100 else repr(text[:80])
        raise InputError(
            f"{self.where} wants to use {shown}, which no recording needs: it was not opened, and "
            "nothing in it was run."
        )

    def load_reduce(self) -> None:
        given, maker = self.stack.pop(), self.stack[-1]
        if not isinstance(maker, Maker) or not isinstance(given, tuple):
            raise ValueError("it calls something that is not a function")
        self.stack[-1] = maker.make(*given)

    def load_build(self) -> None:
        state, made = self.stack.pop(), self.stack[-1]
        if type(made) is np.ndarray:
            self.values.fill(made, state)
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
        self.stack[-1].update(plain_key(item) for item in items)

    def load_frozenset(self) -> None:
        items = self.pop_mark()
        self.append(frozenset(plain_key(item) for item in items))

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
        self.stack[-1].update(zip(map(plain_key, items[::2]), items[1::2], strict=True))


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
