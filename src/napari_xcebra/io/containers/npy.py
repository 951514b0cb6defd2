"""Reads .npy and .npz files, checked to the last byte; what is pickled in them is never run.

What a header claims is compared with the size of the file before anything is allocated or mapped.

Arrays in a .npz file lie one after the other, and byte for byte as in memory unless the file is
compressed.
"""

from __future__ import annotations

import datetime
import io
import math
import pickle
import re
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import IO, Any, NoReturn

import numpy as np

from napari_xcebra.errors import InputError, sentence_on_failure
from napari_xcebra.files import first_bytes, whole
from napari_xcebra.recording.stored import StoredMatrix, changed_since
from napari_xcebra.recording.traces import IN_MEMORY, LazyTraces, StoredTraces


@dataclass(frozen=True)
class _Header:
    """What a .npy file says about its array.

    Parameters
    ----------
    shape : tuple of int
    dtype : numpy.dtype
    start : int
        Where the values begin, in bytes.
    columns_first : bool
        Whether the first index runs fastest (Fortran order).
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    start: int
    columns_first: bool = False


def read_npy(path: Path) -> np.ndarray:
    """The array of a .npy file."""
    with sentence_on_failure(path), path.open("rb") as file:
        return _array(file, path.stat().st_size, path)


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
            header = _read_header(file)
            if header.dtype != np.dtype(object):
                raise InputError(f"{path} holds plain numbers: Python objects were looked for.")
            found = loads(file.read(), str(path))
        if not isinstance(found, np.ndarray) or found.dtype != object:
            raise ValueError("there is no array of objects in it")
        return found.item() if header.shape == () else found.reshape(header.shape)


def mapped_header(path: Path) -> _Header:
    """Header of a .npy file of plain numbers, after a check that the file can hold them."""
    with sentence_on_failure(path), path.open("rb") as file:
        header = _read_header(file)
        _check_size(header, path.stat().st_size, path)
        return header


def read_npz(path: Path, names: Collection[str] | None = None) -> dict[str, np.ndarray]:
    """The arrays of a .npz file, or those with the given names."""
    with sentence_on_failure(path), zipfile.ZipFile(path) as archive:
        arrays = {}
        for member in archive.infolist():
            name = member.filename.removesuffix(".npy")
            if names is None or name in names:
                with archive.open(member) as file:
                    arrays[name] = _member(file, member.file_size, f"{path} ({name})")
        if arrays and all(array.dtype.hasobject for array in arrays.values()):
            raise _of_objects(path)
        return arrays


def names_in(path: Path) -> set[str]:
    """Names of the arrays in a .npz file; none if it is not one."""
    # an archive may also be appended to any other file, such as a table
    if not first_bytes(path).startswith(b"PK"):
        return set()
    try:
        with zipfile.ZipFile(path) as archive:
            return {name.removesuffix(".npy") for name in archive.namelist()}
    except Exception:  # whatever is wrong with it, it is not one
        return set()


def write_npz(path: Path, arrays: Mapping[str, np.ndarray | LazyTraces]) -> None:
    """Write a .npz file whole or not at all; arrays of Python objects are refused.

    Traces on disk are read and written in blocks.
    """
    # np.savez would pickle them
    objects = [name for name, array in arrays.items() if array.dtype.hasobject]
    if objects:
        raise InputError(f"{objects[0]} is an array of Python objects: numbers are needed.")
    with whole(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                if isinstance(array, LazyTraces):
                    _write_blocks(file, array)
                else:
                    np.lib.format.write_array(file, array, allow_pickle=False)


def _read_header(file: IO[bytes]) -> _Header:
    """Header of a .npy file; raises anything if it is damaged."""
    version = np.lib.format.read_magic(file)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in readers:  # 3.0 is for columns with names in Greek or Chinese
        raise ValueError(f"version {version[0]}.{version[1]} of the .npy format is not for numbers")
    shape, columns_first, dtype = readers[version](file)
    if any(size < 0 for size in shape):
        raise ValueError(f"it claims the shape {shape}")
    return _Header(shape, dtype, file.tell(), bool(columns_first))


def _member(file: IO[bytes], size: int, where: str) -> np.ndarray:
    """Array in an archive; words that were pickled are words, other objects stay what they are."""
    header = _read_header(file)
    if header.dtype != np.dtype(object):
        file.seek(0)
        return _array(file, size, Path(where))
    found = loads(file.read(), where)
    found = found.reshape(-1) if isinstance(found, np.ndarray) and found.dtype == object else found
    if not isinstance(found, np.ndarray) or len(found) != math.prod(header.shape):
        raise ValueError("there is no array of objects in it")
    if found.size and all(isinstance(word, str) for word in found):
        found = found.astype(np.str_)
    return found.reshape(header.shape)


def _array(file: IO[bytes], size: int, path: Path) -> np.ndarray:
    """The array of an open .npy file of that many bytes."""
    _check_size(_read_header(file), size, path)
    file.seek(0)
    array = np.lib.format.read_array(file, allow_pickle=False)
    file.read(1)  # reading on to the end makes zipfile compare its checksum
    return array


def _check_size(header: _Header, size: int, path: Path) -> None:
    if header.dtype.hasobject:
        raise _of_objects(path)
    claimed = header.start + math.prod(header.shape) * header.dtype.itemsize
    if claimed != size:
        raise ValueError(f"it is {'longer' if size > claimed else 'shorter'} than its header says")


def _of_objects(path: Path) -> InputError:
    return InputError(
        f"{path} holds Python objects (a pickle), which are not opened because they can run code: "
        "save it again as plain numbers."
    )


def _write_blocks(file: IO[bytes], traces: LazyTraces) -> None:
    about = {"descr": "<f4", "fortran_order": True, "shape": traces.shape}
    np.lib.format.write_array_header_1_0(file, about)
    for cells in traces.cell_blocks():
        block = traces.block(slice(0, traces.shape[0]), cells)
        if not np.isfinite(block).all():
            block = traces[:, cells]  # raises the sentence that says where
        file.write(np.ascontiguousarray(block.T, "<f4").data)


@dataclass(frozen=True)
class NpzTraces(StoredTraces):
    """Traces in an uncompressed .npz file, read where they lie.

    Parameters
    ----------
    path : Path
    name : str
        Of the array.
    cells_first : bool
        Whether the array is (cells, frames).
    """

    path: Path
    name: str
    cells_first: bool = False

    @cached_property
    def _stored(self) -> tuple[StoredMatrix, bool]:
        found = _place(self.path, self.name)
        if found is None:
            raise changed_since(self.path)
        shape = found.shape[::-1] if found.columns_first else found.shape
        matrix = StoredMatrix(self.path, found.start, found.dtype, (shape[0], shape[1]))
        return matrix, found.columns_first == self.cells_first


def read_or_map(path: Path) -> dict[str, np.ndarray]:
    """Arrays of a .npz file; large, uncompressed ones with two axes are mapped."""
    with sentence_on_failure(path), zipfile.ZipFile(path) as archive:
        large = [member.filename.removesuffix(".npy") for member in archive.infolist()
                 if member.file_size > IN_MEMORY]  # fmt: skip
    mapped = {name: _map_member(path, name) for name in large}
    found = {name: array for name, array in mapped.items() if array is not None}
    return read_npz(path, names_in(path) - set(found)) | found


def _map_member(path: Path, name: str) -> np.memmap | None:
    """Array (rows, columns) of numbers in a .npz file, mapped; None if that is not possible.

    Only for as long as a recording is being opened: what stays on disk is read by `NpzTraces`.
    """
    found = _place(path, name)
    if found is None:
        return None
    order: Any = "F" if found.columns_first else "C"
    return np.memmap(path, found.dtype, "r", found.start, found.shape, order=order)


def _place(path: Path, name: str) -> _Header | None:
    """Where in a .npz file a matrix of numbers lies as in memory; None if it does not."""
    with sentence_on_failure(path), zipfile.ZipFile(path) as archive:
        members = {m.filename.removesuffix(".npy"): m for m in archive.infolist()}
        member = members.get(name)
        if member is None or member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 1:
            return None
        with archive.open(member) as file:
            header = _read_header(file)
        with path.open("rb") as file:
            file.seek(member.header_offset + 26)
            lengths = file.read(4)
        # name and further fields stand between the member's own header and its bytes
        begin = member.header_offset + 30 + sum(int.from_bytes(lengths[i : i + 2], "little")
                                                for i in (0, 2))  # fmt: skip
        size = header.start + math.prod(header.shape) * header.dtype.itemsize
        if size != member.file_size or begin + size > path.stat().st_size:
            raise ValueError(f"{name} is not as long as its header says")
        if len(header.shape) != 2 or header.dtype.kind not in "biuf" or not size > header.start:
            return None
        return replace(header, start=begin + header.start)


_DTYPE = re.compile(r"[?]|b1|[iu][1248]|f(2|4|8|12|16)|c(8|16|24|32)|[SU][0-9]{1,6}|O8?")


@dataclass(frozen=True)
class _Maker:
    """Stands for the function or class that a pickle names."""

    make: Callable[..., Any]


@dataclass
class _Dtype:
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


def _scalar(dtype: _Dtype, value: Any = None) -> Any:
    made = dtype.made()
    if made.hasobject:
        raise ValueError("a scalar cannot be an object")
    value = bytes(made.itemsize) if value is None else _encoded(value)
    return np.frombuffer(value, made, count=1)[0]


def _from_buffer(
    values: Any, dtype: _Dtype, shape: Any, order: str, axes: Any = None
) -> np.ndarray:
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


def _dtype(code: Any, *_: Any) -> _Dtype:
    if not isinstance(code, str) or not _DTYPE.fullmatch(code):
        # lists that hold each other many times would take for ever to write out
        what = code[:20] if isinstance(code, str) else f"a {type(code).__name__}"
        raise ValueError(f"arrays of type {what} are not expected")
    return _Dtype(code)


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
        elif isinstance(made, _Dtype):
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
