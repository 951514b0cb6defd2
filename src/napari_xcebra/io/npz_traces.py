"""Traces in a .npz file that stay on disk.

Arrays in a .npz file lie one after the other, and byte for byte as in memory unless the file is
compressed.
"""

from __future__ import annotations

import math
import zipfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from napari_xcebra.io.assemble import IN_MEMORY
from napari_xcebra.io.npy import names_in, read_header, read_npz, sentence_on_failure
from napari_xcebra.recording import InputError
from napari_xcebra.traces import LazyTraces, read_block


@dataclass(frozen=True)
class NpzTraces(LazyTraces):
    """Traces in a .npz file that is not compressed, mapped where they lie in it.

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
    def _mapped(self) -> np.ndarray:
        mapped = map_member(self.path, self.name)
        if mapped is None:
            raise InputError(
                f"{self.path} cannot be read any more: it was moved, damaged or written anew "
                "after the recording was opened."
            )
        return mapped.T if self.cells_first else mapped

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "name": self.name, "cells_first": self.cells_first}

    @property
    def shape(self) -> tuple[int, int]:
        """Frames and cells."""
        return self._mapped.shape

    def block(self, frames: slice, cells: slice) -> np.ndarray:
        """(frames, cells) float32."""
        return read_block(self._mapped, frames, cells)


def read_or_map(path: Path) -> dict[str, np.ndarray]:
    """Arrays of a .npz file; large ones with two axes are mapped, if they are not compressed."""
    with sentence_on_failure(path), zipfile.ZipFile(path) as archive:
        large = [member.filename.removesuffix(".npy") for member in archive.infolist()
                 if member.file_size > IN_MEMORY]  # fmt: skip
    mapped = {name: map_member(path, name) for name in large}
    found = {name: array for name, array in mapped.items() if array is not None}
    return read_npz(path, names_in(path) - set(found)) | found


def map_member(path: Path, name: str) -> np.memmap | None:
    """Array (rows, columns) of numbers in a .npz file, mapped; None if that cannot be."""
    with sentence_on_failure(path), zipfile.ZipFile(path) as archive:
        members = {m.filename.removesuffix(".npy"): m for m in archive.infolist()}
        member = members.get(name)
        if member is None or member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 1:
            return None
        with archive.open(member) as file:
            header = read_header(file)
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
        order: Any = "F" if header.columns_first else "C"
        return np.memmap(path, header.dtype, "r", begin + header.start, header.shape, order=order)
