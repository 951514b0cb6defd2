"""Checks the lengths that texts claim in an HDF5 file, before libhdf5 believes them.

A text of any length is stored as its length and a place in the file. Libhdf5 sets aside as many
bytes as the length says, up to 4 GB, before it looks at the place. So the lengths are read here
first: no text is longer than its file. What cannot be found this way is left to libhdf5.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import h5py
from h5py import h5o

from napari_xcebra.errors import InputError

ATTRIBUTE, CONTINUED = 0x0C, 0x10
VARYING = 9
"""Class of types whose values have any length."""
ENTRY = 16
"""Bytes of an entry: length, address and number in the heap at that address."""
MOST_BLOCKS = 1000


def check_attributes(node: h5py.Group | h5py.Dataset) -> None:
    """Raise if an attribute claims a text that is longer than the file."""
    path = Path(node.file.filename)
    base = node.file.userblock_size
    with path.open("rb") as file:
        for kind, body in _messages(file, base, base + int(h5o.get_info(node.id).addr)):
            if kind == ATTRIBUTE:
                _check(_entries_of_attribute(body), node)


def check_values(dataset: h5py.Dataset) -> None:
    """Raise if a value of the dataset claims a text that is longer than the file."""
    if dataset.chunks is None:
        offset = dataset.id.get_offset()
        if offset is not None:
            with Path(dataset.file.filename).open("rb") as file:
                file.seek(offset)
                _check(file.read(ENTRY * dataset.size), dataset)
        return
    if dataset.id.get_create_plist().get_nfilters():
        return  # damage to compressed values is found when they are unpacked
    for i in range(dataset.id.get_num_chunks()):
        place = dataset.id.get_chunk_info(i).chunk_offset
        _check(dataset.id.read_direct_chunk(place)[1], dataset)


def _check(entries: bytes, node: h5py.Group | h5py.Dataset) -> None:
    size = Path(node.file.filename).stat().st_size
    whole = entries[: len(entries) // ENTRY * ENTRY]
    for length, _, _ in struct.iter_unpack("<IQI", whole):
        if length > size:
            raise InputError(
                f"{node.file.filename}: {node.name} claims a text of {length:,} characters in a "
                f"file of {size:,} bytes: it is damaged."
            )


def _messages(file: IO[bytes], base: int, address: int) -> Iterator[tuple[int, bytes]]:
    """What the header of an object says: the kind and the content of each message."""
    file.seek(address)
    prefix = file.read(64)
    new = prefix[:4] == b"OHDR"
    if new:
        flags = prefix[5]
        at = 6 + 16 * bool(flags & 0x20) + 4 * bool(flags & 0x10)
        width = 1 << (flags & 3)
        size = int.from_bytes(prefix[at : at + width], "little")
        start, step = address + at + width, 4 + 2 * bool(flags & 0x04)
    elif len(prefix) >= 16:
        start, size, step = address + 16, int.from_bytes(prefix[8:12], "little"), 8
    else:
        return
    blocks = [(start, size)]
    for start, size in blocks:
        file.seek(start)
        block = file.read(size)
        at = 0
        while at + step <= len(block):
            kind, length = struct.unpack_from("<BH" if new else "<HH", block, at)
            body = block[at + step : at + step + length]
            if kind == CONTINUED and len(body) == ENTRY and len(blocks) < MOST_BLOCKS:
                place, extent = struct.unpack("<QQ", body)
                # in the newer version, a signature and a checksum enclose the messages
                inner = (4, max(0, extent - 8)) if new else (0, extent)
                if place + extent <= 2**62:
                    blocks.append((base + place + inner[0], inner[1]))
            yield kind, body
            at += step + length


def _entries_of_attribute(body: bytes) -> bytes:
    """Entries of an attribute that holds texts; nothing if it holds something else."""
    if len(body) < 9 or body[0] not in (1, 2, 3) or (body[0] > 1 and body[1] & 1):
        return b""
    at = 9 if body[0] == 3 else 8
    sizes = struct.unpack_from("<HHH", body, 2)
    name, kind, space = (size + (-size % 8 if body[0] == 1 else 0) for size in sizes)
    if len(body) <= at + name or body[at + name] & 0x0F != VARYING:
        return b""
    return body[at + name + kind + space :]
