"""Checks zarr arrays of version 3 before the zarr library sees them, as `store` does."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from napari_xcebra.io.failures import sentence_on_failure
from napari_xcebra.io.zarr.store import (
    COMPRESSORS,
    LARGEST_CHUNK,
    MOST_CHUNKS,
    UNTOLD,
    Form,
    StoredArray,
    check_chunk,
    files_in,
    is_array,
    json_in,
    sizes_in,
    stored_array,
)

ARRANGING = {"bytes", "transpose", "crc32c"}
SHARDS = "sharding_indexed"
FILE = "zarr.json"


def is_array_v3(path: Path) -> bool:
    """Whether a folder is a zarr array of version 3."""
    try:
        return (path / FILE).is_file() and json_in(path / FILE).get("node_type") == "array"
    except (OSError, ValueError, RecursionError):
        return False


def stored_array_v3(path: Path, root: Path) -> StoredArray:
    """Array in a folder, after checking its metadata and chunks; nothing outside `root` is read."""
    with sentence_on_failure(path):
        about = json_in(path / FILE)
        if about.get("zarr_format") != 3 or about.get("storage_transformers"):
            raise ValueError("it is not as zarr version 3 writes it")
        form = _form(about)
        shards = form.compressor == SHARDS
        for number, file in enumerate(files_in(path, root)):
            if number > MOST_CHUNKS:
                raise ValueError(f"it has more than {MOST_CHUNKS:,} chunks")
            if file.name != FILE and not shards:
                check_chunk(file, form)
        names = about.get("dimension_names")
        axes = tuple(map(str, names)) if isinstance(names, list) else ()
        axes = axes if len(axes) == len(form.shape) else ()
        packed_by = (form.compressor or "") if form.compressor in UNTOLD else ""
        return StoredArray(path, form.shape, form.chunks, form.dtype, axes, _grid(form), packed_by)


def _grid(form: Form) -> tuple[tuple[int, ...], ...]:
    """Places of all chunks; those that are not there are empty."""
    counts = [-(-size // step) for size, step in zip(form.shape, form.chunks, strict=True)]
    if math.prod(counts) > MOST_CHUNKS:
        raise ValueError(f"it has more than {MOST_CHUNKS:,} chunks")
    return tuple(np.ndindex(*counts))


def is_any_array(path: Path) -> bool:
    """Whether a folder is a zarr array of either version."""
    return is_array(path) or is_array_v3(path)


def stored_in(path: Path, root: Path) -> StoredArray:
    """Array of either version in a folder, checked; nothing outside `root` is read."""
    return stored_array_v3(path, root) if is_array_v3(path) else stored_array(path, root)


def _form(about: dict[str, Any]) -> Form:
    shape = sizes_in(about.get("shape"), "shape")
    chunks = _chunk_shape(about.get("chunk_grid"))
    if len(shape) != len(chunks) or 0 in chunks:
        raise ValueError(f"it has chunks of {chunks} for a shape of {shape}")
    kind = about.get("data_type")
    dtype = np.dtype(kind) if isinstance(kind, str) and kind.isalnum() else None
    if dtype is None or dtype.kind not in "biuf":
        raise ValueError(f"it has entries of type {kind!r}, not plain numbers")
    if not isinstance(about.get("fill_value"), int | float | str):
        raise ValueError("its fill value is not as zarr writes it")
    names = _codecs(about.get("codecs"))
    packed = [name for name in names if name not in ARRANGING]
    if len(packed) > 1:
        raise ValueError(f"it is packed by {', '.join(packed)}")
    form = Form(shape, chunks, dtype, "/", packed[0] if packed else None, "crc32c" in names)
    if form.chunk_bytes > LARGEST_CHUNK:
        raise ValueError(f"its chunks claim {form.chunk_bytes:,} bytes each")
    return form


def _chunk_shape(grid: Any) -> tuple[int, ...]:
    if not isinstance(grid, dict) or grid.get("name") != "regular":
        raise ValueError("its chunks are not all of one size")
    about = grid.get("configuration")
    return sizes_in(about.get("chunk_shape") if isinstance(about, dict) else None, "chunk_shape")


def _codecs(given: Any) -> list[str]:
    """Names of codecs that only compress or rearrange numbers, also inside shards."""
    if not isinstance(given, list) or not 0 < len(given) <= 4:
        raise ValueError("its codecs are not as zarr writes them")
    names = []
    for codec in given:
        name = codec.get("name") if isinstance(codec, dict) else None
        if name not in ARRANGING | COMPRESSORS | {SHARDS}:
            raise ValueError(f"it is packed by {name!r}")
        if name == SHARDS:
            about = codec.get("configuration")
            if not isinstance(about, dict):
                raise ValueError("its shards are not as zarr writes them")
            _codecs(about.get("codecs"))
            _codecs(about.get("index_codecs"))
        names.append(str(name))
    return names


def attributes_of(folder: Path) -> dict[str, Any]:
    """What a group or an array says of itself, in either version of zarr."""
    found = json_in(folder / ".zattrs") or json_in(folder / "zarr.json").get("attributes", {})
    return found if isinstance(found, dict) else {}
