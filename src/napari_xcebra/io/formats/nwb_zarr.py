"""Reads Neurodata Without Borders in a zarr folder (.nwb.zarr), as hdmf-zarr writes it.

The folder is copied into a temporary HDF5 file, but for movies, which is then read as any NWB file.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from napari_xcebra.errors import InputError, sentence_on_failure
from napari_xcebra.io.containers.zarr import (
    COMPRESSORS,
    LARGEST_CHUNK,
    attributes_of,
    files_in,
    is_array_v3,
    json_in,
    sizes_in,
    stored_in,
)
from napari_xcebra.io.extraction import Extraction
from napari_xcebra.io.formats.nwb.reading import load as load_hdf5
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.recording.traces import IN_MEMORY

NAME = "Neurodata Without Borders in zarr (.nwb.zarr)"


def sniff(path: Path) -> bool:
    """Whether the folder is a group of zarr that says it is NWB."""
    try:
        is_group = (path / ".zgroup").is_file() or bool(json_in(path / "zarr.json"))
        return is_group and "nwb_version" in attributes_of(path)
    except (OSError, ValueError, RecursionError):
        return False


def load(path: Path, settings: OpenSettings) -> Extraction:
    """ROIs, traces, images and behaviour, all in memory."""
    with tempfile.TemporaryDirectory(prefix="napari-xcebra-") as folder:
        copy = Path(folder) / f"{path.stem.removesuffix('.nwb')}.nwb"
        _copy_to_hdf5(path, copy)
        try:
            found = load_hdf5(copy, settings)
        except InputError as error:
            raise InputError(str(error).replace(str(copy), str(path))) from error
        signals = {name: np.asarray(traces) for name, traces in found.signals.items()}
        return replace(found, signals=signals)


TEXTS = {"vlen-utf8", "vlen-bytes", "json2"}
"""Filters that make texts."""
LEFT_OUT = {"specifications"}
"""Groups that say how NWB is written, which is known."""


def _copy_to_hdf5(source: Path, path: Path) -> None:
    """Write a zarr folder as an HDF5 file; arrays too large for memory are left out."""
    with sentence_on_failure(source), h5py.File(path, "w") as file:
        later: list[tuple[h5py.Group | h5py.Dataset, str, str]] = []
        for folder in _folders(source):
            name = "/" + folder.relative_to(source).as_posix().strip(".")
            node = _copied(folder, source, file, name)
            if node is not None:
                later += _with_attributes(node, attributes_of(folder))
        for node, name, target in later:
            if target in file:
                node.attrs[name] = file[target].ref


def _folders(source: Path) -> Iterator[Path]:
    """Groups and arrays, each before what lies in it."""
    for _ in files_in(source, source):  # raises if a link leads out of the folder
        pass
    for folder, inside, files in os.walk(source):
        at = Path(folder)
        inside[:] = sorted(set(inside) - LEFT_OUT)
        if ".zarray" in files or is_array_v3(at):
            inside[:] = []  # chunks
        if {".zarray", ".zgroup", "zarr.json"} & set(files):
            yield at


def _copied(
    folder: Path, source: Path, file: h5py.File, name: str
) -> h5py.Group | h5py.Dataset | None:
    is_v3 = is_array_v3(folder)
    if not is_v3 and not (folder / ".zarray").is_file():
        return file.require_group(name)
    about = json_in(folder / (".zarray" if not is_v3 else "zarr.json"))
    dtype = about.get("dtype", "")
    if dtype == "|O":
        values = _texts(folder, about)
    elif isinstance(dtype, list):
        values = _table(folder, about)
    else:
        stored = stored_in(folder, source)
        if math.prod(stored.shape) * stored.dtype.itemsize > IN_MEMORY:
            _check_not_needed(folder, source)
            return None
        values = stored.read()
    if values is None:
        return None
    if attributes_of(folder).get("zarr_dtype") == "scalar" and values.size == 1:
        values = values.reshape(())
    is_text = values.dtype.kind == "O"
    return file.create_dataset(name, data=values, dtype=h5py.string_dtype() if is_text else None)


def _check_not_needed(folder: Path, source: Path) -> None:
    if attributes_of(folder.parent).get("neurodata_type") == "RoiResponseSeries":
        raise InputError(
            f"{source}: {folder.relative_to(source)} has over {IN_MEMORY // 2**20} MB of traces, "
            "which are read from NWB in HDF5 only: export it with pynwb as .nwb."
        )


def _size(about: dict[str, Any]) -> int:
    """Values of an array whose metadata are as zarr writes them."""
    shape, chunks = (sizes_in(about.get(name), name) for name in ("shape", "chunks"))
    packing = about.get("compressor") or {"id": "blosc"}
    if len(shape) != len(chunks) or packing.get("id") not in COMPRESSORS:
        raise ValueError(f"it has chunks of {chunks} packed by {packing.get('id')!r}")
    return math.prod(shape)


def _texts(folder: Path, about: dict[str, Any]) -> np.ndarray | None:
    """Texts of a list; None if it holds other objects.

    Unpacked here, as zarr refuses how hdmf-zarr fills up such arrays.
    """
    filters = about.get("filters") or []
    named = [each.get("id") for each in filters]
    listed = len(about.get("shape") or ()) == 1 and len(named) == 1
    if not listed or named[0] not in TEXTS:
        return None
    _size(about)  # raises for what zarr does not write
    (count,), (step,) = about["shape"], about["chunks"]
    from numcodecs import get_codec

    unpack = get_codec(about["compressor"]).decode if about.get("compressor") else bytes
    decode = get_codec(filters[0]).decode
    found: list[Any] = []
    for number in range(-(-count // step)):
        found += list(decode(unpack((folder / str(number)).read_bytes())))
    made = np.empty(count, object)
    made[:] = [t.decode("utf-8", "replace") if isinstance(t, bytes) else t for t in found[:count]]
    return made if all(isinstance(text, str) for text in made) else None


def _table(folder: Path, about: dict[str, Any]) -> np.ndarray | None:
    """A table of numbers, such as the pixels of ROIs; None if it holds anything else."""
    dtype = np.dtype([(str(name), str(kind)) for name, kind, *_ in about["dtype"]])
    plain = all(field[0].kind in "biuf" for field in (dtype.fields or {}).values())
    if not plain or about.get("filters") or _size(about) * dtype.itemsize > LARGEST_CHUNK:
        return None
    return np.asarray(_opened(folder)[...])


def _opened(folder: Path) -> Any:
    try:
        import zarr
    except ImportError:
        raise InputError(
            f"{folder} is a zarr array, which needs zarr: pip install napari-xcebra[zarr]."
        ) from None
    return zarr.open_array(str(folder), mode="r")


def _with_attributes(
    node: h5py.Group | h5py.Dataset, attributes: dict[str, Any]
) -> list[tuple[h5py.Group | h5py.Dataset, str, str]]:
    """Set attributes and links; those that refer to other objects are returned, for later."""
    later = []
    for name, value in attributes.items():
        if name == "zarr_link" and isinstance(node, h5py.Group):
            _link(node, value)
        elif isinstance(value, dict):
            target = value.get("value")
            if isinstance(target, dict) and target.get("source") == ".":
                later.append((node, name, str(target.get("path"))))
        elif isinstance(value, str | int | float | bool):
            node.attrs[name] = value
        elif isinstance(value, list) and value and len(json.dumps(value)) < 2**16:
            if all(isinstance(each, str) for each in value):
                node.attrs.create(name, value, dtype=h5py.string_dtype())
            elif all(isinstance(each, int | float) for each in value):
                node.attrs[name] = value
    return later


def _link(group: h5py.Group, links: Any) -> None:
    for link in links if isinstance(links, list) else ():
        if link.get("source") == "." and link.get("name") not in group:
            group[str(link["name"])] = h5py.SoftLink(str(link["path"]))
