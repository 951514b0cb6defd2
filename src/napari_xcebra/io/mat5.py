"""Whether a MATLAB 5 file (``save -v6``, ``-v7``) can be what it claims, before it is read.

scipy reads these files by what their headers say: a damaged one can make it set aside any amount
of memory, and structs in structs in structs end the interpreter. So every header is looked at
first: each part must fit into its whole, and each array into the bytes it has.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

HEADER = 128
MATRIX, COMPRESSED = 14, 15
CELL, STRUCT, OBJECT, SPARSE, OPAQUE = 1, 2, 3, 5, 17
NESTED = (CELL, STRUCT, OBJECT, 16, OPAQUE)
DEEPEST = 32
PEEK = 4096
"""Bytes that hold the header of any variable that is no struct."""
DENSEST, SMALL = 1100, 64 * 2**20
"""How many bytes one compressed byte may stand for; and bytes that any variable may have."""


class Element(NamedTuple):
    """A part of the file: its type, its content, and where the next one begins."""

    type: int
    content: memoryview
    end: int


def byte_order(header: bytes) -> str | None:
    """'<' or '>' if these are the first bytes of a MATLAB 5 file, else None."""
    if len(header) < HEADER or 0 in header[:4]:
        return None
    return {b"\x00\x01IM": "<", b"\x01\x00MI": ">"}.get(header[124:128])


def check_mat5(path: Path) -> None:
    """Raise ValueError unless every part of the file fits into its whole."""
    with path.open("rb") as file:
        order = byte_order(file.read(HEADER))
        if order is None:
            raise ValueError("its header is not that of MATLAB 5")
        size = path.stat().st_size
        while file.tell() < size:
            tag = file.read(8)
            if len(tag) < 8:
                raise ValueError("it ends within a header")
            kind, length = struct.unpack(order + "II", tag)
            start = file.tell()
            if start + length > size:
                raise ValueError(f"a variable of {length:,} bytes has only {size - start:,}")
            if kind == COMPRESSED:
                _check_compressed(file, length, order)
            elif kind == MATRIX:
                _check_variable(file.read(min(length, PEEK)), file, start, length, order)
            else:
                raise ValueError(f"a variable has the unknown type {kind}")
            file.seek(start + length)


def struct_fields(path: Path) -> dict[str, list[str]]:
    """Names of the fields of each struct in the file; none where it is damaged."""
    found: dict[str, list[str]] = {}
    try:
        with path.open("rb") as file:
            order = byte_order(file.read(HEADER))
            while order and len(tag := file.read(8)) == 8:
                kind, length = struct.unpack(order + "II", tag)
                end = file.tell() + length
                peek = file.read(min(length, PEEK))
                if kind == COMPRESSED:
                    peek = zlib.decompressobj().decompress(peek, PEEK)[8:]
                _add_fields(found, memoryview(peek), order)
                file.seek(end)
    except (OSError, ValueError, struct.error, zlib.error):
        pass
    return found


def _add_fields(found: dict[str, list[str]], body: memoryview, order: str) -> None:
    parts = _elements(body, order)
    if not len(body) or _class(body, order) != STRUCT:
        return
    _, _, name, length, names = (_take(parts) for _ in range(5))
    (each,) = struct.unpack(order + "i", length[:4])
    if each > 0:
        whole = bytes(names)
        fields = (whole[at : at + each] for at in range(0, len(whole), each))
        found[bytes(name).decode("ascii", "replace")] = [
            field.split(b"\0")[0].decode("ascii", "replace") for field in fields
        ]


def _check_variable(peek: bytes, file: IO[bytes], start: int, length: int, order: str) -> None:
    if length and _class(memoryview(peek), order) in NESTED:
        file.seek(start)
        peek = file.read(length)
    _check_matrix(memoryview(peek), length, order)


def _check_compressed(file: IO[bytes], length: int, order: str) -> None:
    packed = file.read(length)
    peek = zlib.decompressobj().decompress(packed, PEEK + 8)
    if len(peek) < 8:
        raise ValueError("a compressed variable is empty")
    kind, size = struct.unpack(order + "II", peek[:8])
    if kind != MATRIX or size > SMALL + DENSEST * length:
        raise ValueError(f"a compressed variable claims {size:,} bytes in {length:,}")
    body = peek[8 : 8 + size]
    if size and _class(memoryview(body), order) in NESTED:
        body = zlib.decompressobj().decompress(packed, size + 8)[8:]
    _check_matrix(memoryview(body), size, order)


def _check_matrix(body: memoryview, size: int, order: str, depth: int = 0) -> None:
    """One array, and all that is in it; `body` may be its beginning if it is of numbers."""
    if not size:
        return
    if depth > DEEPEST:
        raise ValueError("structs or cells lie too deep in each other")
    kind = _class(body, order)
    if kind in NESTED and len(body) < size:
        raise ValueError("a struct or cell is incomplete")
    if kind != OPAQUE and _least_bytes(body, kind, order) > size:
        raise ValueError(f"an array claims more values than its {size:,} bytes can hold")
    if kind in NESTED:
        for part in _elements(body, order):
            if part.type == MATRIX:
                _check_matrix(part.content, len(part.content), order, depth + 1)


def _least_bytes(body: memoryview, kind: int, order: str) -> int:
    """Bytes that as many values as the array claims take at least."""
    parts = _elements(body, order)
    _take(parts)
    dims = _take(parts)
    shape = struct.unpack(f"{order}{len(dims) // 4}i", dims[: len(dims) // 4 * 4])
    if any(n < 0 for n in shape):
        raise ValueError(f"an array has the shape {shape}")
    if kind == SPARSE:
        return 4 * (shape[-1] + 1)
    each = 8 if kind in (CELL, OBJECT, STRUCT) else 1
    if kind in (STRUCT, OBJECT):
        _take(parts)
        if kind == OBJECT:
            _take(parts)
        (length,) = struct.unpack(order + "i", _take(parts)[:4])
        if length <= 0:
            raise ValueError(f"the names of fields have a length of {length}")
        each *= max(1, len(_take(parts)) // length)
    return math.prod(shape) * each


def _class(body: memoryview, order: str) -> int:
    flags = _take(_elements(body, order))
    return int(struct.unpack(order + "I", flags[:4])[0]) & 0xFF


def _elements(body: memoryview, order: str) -> Iterator[Element]:
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
        yield Element(kind, body[start : start + size], end)
        at = end


def _take(parts: Iterator[Element]) -> memoryview:
    """Content of the next part."""
    part = next(parts, None)
    if part is None:
        raise ValueError("a part is missing")
    return part.content
