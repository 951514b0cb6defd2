"""Reads numbers from MATLAB 5 files (``save -v6``, ``-v7``).

scipy reads these files as well, but by what their headers say: a damaged one can make it set aside
any amount of memory, or end the interpreter. Here nothing is believed before it is checked: each
part must fit into its whole, and each array have exactly the bytes of its values. Objects and
functions are passed over without being looked into.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from napari_xcebra.io.hdf5.traces import from_columns

HEADER = 128
PEEK = 4096
"""Bytes that hold the names of the fields of a struct."""
DENSEST, SMALL = 1100, 64 * 2**20
"""How many bytes one compressed byte may stand for; and bytes that any variable may have."""

MATRIX, COMPRESSED = 14, 15
TYPES = {
    1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"
}  # fmt: skip
"""Types of parts that hold numbers."""
CELL, STRUCT, CHAR, SPARSE = 1, 2, 4, 5
TEXTS = {1: "latin-1", 2: "latin-1", 4: "utf-16", 16: "utf-8", 17: "utf-16"}
"""Encodings of the types of parts that hold text."""
CLASSES = {
    6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8", 15: "u8"
}  # fmt: skip
"""Classes of arrays of numbers; MATLAB may store them in a smaller type."""
COMPLEX, LOGICAL = 0x0800, 0x0200


class Part(NamedTuple):
    """A part of an array: its type and its content."""

    type: int
    content: memoryview


def byte_order(header: bytes) -> str | None:
    """'<' or '>' if these are the first bytes of a MATLAB 5 file, else None."""
    if len(header) < HEADER:
        return None
    return {b"\x00\x01IM": "<", b"\x01\x00MI": ">"}.get(header[124:128])


def read_mat5(path: Path, depth: int) -> Iterator[tuple[str, np.ndarray]]:
    """Arrays of numbers, by name; see `numbers.read_mat` for those in structs and cells.

    Parameters
    ----------
    path : Path
    depth : int
        How many structs and cells may lie in each other.

    Raises
    ------
    ValueError
        If the file is damaged or incomplete.
    """
    with path.open("rb") as file:
        order = byte_order(file.read(HEADER))
        if order is None:
            raise ValueError("its header is not that of MATLAB 5")
        size = path.stat().st_size
        while file.tell() < size:
            kind, length = _tag(file.read(8), order)
            if file.tell() + length > size:
                raise ValueError(f"a variable of {length:,} bytes has only {size - file.tell():,}")
            if kind == COMPRESSED:
                body = _unpacked(file.read(length), order)
            elif kind == MATRIX:
                body = file.read(length)
            else:
                raise ValueError(f"a variable has the unknown type {kind}")
            parts = _parts(memoryview(body), order)
            yield from _arrays(parts, order, _name(body, order), depth)


def struct_fields(path: Path) -> dict[str, list[str]]:
    """Names of the fields of each struct in the file; none where it is damaged."""
    found: dict[str, list[str]] = {}
    try:
        with path.open("rb") as file:
            order = byte_order(file.read(HEADER))
            while order and len(tag := file.read(8)) == 8:
                kind, length = _tag(tag, order)
                end = file.tell() + length
                peek = file.read(min(length, PEEK))
                if kind == COMPRESSED:
                    peek = zlib.decompressobj().decompress(peek, PEEK)[8:]
                parts = _parts(memoryview(peek), order)
                if peek and _flags(_take(parts), order) & 0xFF == STRUCT:
                    _take(parts), _take(parts)
                    found[_name(peek, order)] = _field_names(parts, order)
                file.seek(end)
    except (OSError, ValueError, struct.error, zlib.error):
        pass
    return found


def _tag(tag: bytes, order: str) -> tuple[int, int]:
    if len(tag) < 8:
        raise ValueError("it ends within a header")
    kind, length = struct.unpack(order + "II", tag)
    return kind, length


def _unpacked(packed: bytes, order: str) -> bytes:
    """Content of a compressed variable."""
    unpacking = zlib.decompressobj()
    kind, size = _tag(unpacking.decompress(packed, 8), order)
    if kind != MATRIX or size > SMALL + DENSEST * len(packed):
        raise ValueError(f"a compressed variable claims {size:,} bytes in {len(packed):,}")
    body = unpacking.decompress(unpacking.unconsumed_tail, size) if size else b""
    if len(body) < size:
        raise ValueError("a compressed variable is incomplete")
    # reading on to the end makes zlib compare its checksum
    if unpacking.decompress(unpacking.unconsumed_tail, 1) or not unpacking.eof:
        raise ValueError("a compressed variable is longer than it says, or incomplete")
    return body


def _arrays(
    parts: Iterator[Part], order: str, name: str, depth: int
) -> Iterator[tuple[str, np.ndarray]]:
    """The array that parts make up, or those in its fields."""
    first = next(parts, None)
    if first is None:
        return
    flags = _flags(first, order)
    kind = flags & 0xFF
    if kind == STRUCT and depth > 0:
        yield from _fields(parts, order, name, depth)
    elif kind == CELL and depth > 0:
        yield from _elements(parts, order, name, depth)
    elif kind == CHAR and name.endswith("}"):
        yield from _text(parts, order, name)
    elif kind in (SPARSE, *CLASSES) and not flags & COMPLEX:
        shape = _shape(_take(parts), order)
        _take(parts)
        array = _sparse(parts, order, shape) if kind == SPARSE else _dense(parts, order, shape)
        if array is not None:
            dtype = "?" if flags & LOGICAL else CLASSES.get(kind, array.dtype)
            yield name, array.astype(dtype, copy=False)


def _fields(
    parts: Iterator[Part], order: str, name: str, depth: int
) -> Iterator[tuple[str, np.ndarray]]:
    """Arrays in the fields of a struct, or of each of several."""
    count = math.prod(_shape(_take(parts), order))
    _take(parts)
    names = _field_names(parts, order)
    for number in range(1, count + 1 if names else 1):
        one = name if count == 1 else f"{name}({number})"
        for field in names:
            yield from _arrays(_inner(parts, order), order, f"{one}.{field}", depth - 1)


def _elements(
    parts: Iterator[Part], order: str, name: str, depth: int
) -> Iterator[tuple[str, np.ndarray]]:
    """Arrays in a cell array, in the order in which MATLAB numbers them."""
    count = math.prod(_shape(_take(parts), order))
    _take(parts)
    for number in range(1, count + 1):
        yield from _arrays(_inner(parts, order), order, f"{name}{{{number}}}", depth - 1)


def _inner(parts: Iterator[Part], order: str) -> Iterator[Part]:
    """The parts of the array that is the next part."""
    inner = _take(parts)
    if inner.type != MATRIX:
        raise ValueError("a field of a struct or an element of a cell is not an array")
    return _parts(inner.content, order)


def _text(parts: Iterator[Part], order: str, name: str) -> Iterator[tuple[str, np.ndarray]]:
    """A text of one line."""
    shape = _shape(_take(parts), order)
    _take(parts)
    if shape[0] != 1 and 0 not in shape:
        return
    part = next(parts, Part(16, memoryview(b"")))
    encoding = TEXTS.get(part.type)
    if encoding is not None:
        encoding += {"<": "-le", ">": "-be"}[order] if encoding == "utf-16" else ""
        yield name, np.array(bytes(part.content).decode(encoding, "replace"))


def _dense(parts: Iterator[Part], order: str, shape: tuple[int, ...]) -> np.ndarray:
    values = _numbers(_take(parts), order)
    if len(values) != math.prod(shape):
        raise ValueError(f"an array of the shape {shape} has {len(values)} values")
    return values.reshape(shape, order="F")


def _sparse(parts: Iterator[Part], order: str, shape: tuple[int, ...]) -> np.ndarray | None:
    row, ends, value = (_numbers(_take(parts), order) for _ in range(3))
    return from_columns(value, row, ends, shape).dense()


def _numbers(part: Part, order: str) -> np.ndarray:
    if part.type not in TYPES:
        raise ValueError(f"numbers are of the unknown type {part.type}")
    values = np.frombuffer(part.content, order + TYPES[part.type])
    return values.astype(values.dtype.newbyteorder("="))


def _flags(part: Part, order: str) -> int:
    return int(struct.unpack(order + "I", part.content[:4])[0])


def _shape(part: Part, order: str) -> tuple[int, ...]:
    shape = tuple(_numbers(part, order).tolist())
    if not 2 <= len(shape) <= 32 or any(n < 0 for n in shape):
        raise ValueError(f"an array has the shape {shape}")
    return shape


def _name(body: bytes, order: str) -> str:
    """Name of a variable."""
    parts = _parts(memoryview(body), order)
    if not body:
        return ""
    _take(parts), _take(parts)
    return bytes(_take(parts).content).decode("ascii", "replace")


def _field_names(parts: Iterator[Part], order: str) -> list[str]:
    (length,) = struct.unpack(order + "i", _take(parts).content[:4])
    names = bytes(_take(parts).content)
    if length <= 0:
        raise ValueError(f"the names of fields have a length of {length}")
    each = (names[at : at + length] for at in range(0, len(names), length))
    return [name.split(b"\0")[0].decode("ascii", "replace") for name in each]


def _parts(body: memoryview, order: str) -> Iterator[Part]:
    """The parts that follow each other in an array; one that does not fit is an error."""
    at = 0
    while at + 8 <= len(body):
        (first,) = struct.unpack_from(order + "I", body, at)
        if first >> 16:  # up to four bytes are packed into the tag
            size, kind, start, end = first >> 16, first & 0xFFFF, at + 4, at + 8
        else:
            (size,) = struct.unpack_from(order + "I", body, at + 4)
            kind, start, end = first, at + 8, at + 8 + size + -size % 8
        if start + size > len(body) or (first >> 16 and size > 4):
            raise ValueError("a part does not fit into its whole")
        yield Part(kind, body[start : start + size])
        at = end


def _take(parts: Iterator[Part]) -> Part:
    """The next part."""
    part = next(parts, None)
    if part is None:
        raise ValueError("a part is missing")
    return part
