"""Reads arrays from zarr folders, versions 2 and 3, also of OME, checked before zarr sees them.

What an array says of itself is compared with the files that are there: its type has to be plain
numbers, its compression one that only compresses, and no chunk may lie outside the folder.
"""

from __future__ import annotations

import json
import math
import os
import re
import struct
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from napari_xcebra.errors import InputError, sentence_on_failure
from napari_xcebra.io.extraction import Arrays, judged, micrometres
from napari_xcebra.recording.traces import IN_MEMORY, LazyTraces, read_block

COMPRESSORS = {"blosc", "zstd", "gzip", "zlib", "lz4", "bz2", "lzma"}
UNTOLD = {"gzip", "zlib", "bz2", "lzma"}
"""Those that do not say how large a chunk becomes."""
FILTERS = {"shuffle", "delta", "fixedscaleoffset", "quantize", "bitround", "packbits", "astype"}
MOST_AXES = 5
MOST_TEXT, LARGEST_CHUNK, MOST_CHUNKS, SMALL = 2**20, 2**30, 1_000_000, 64 * 2**20


@dataclass(frozen=True)
class StoredArray:
    """One array in a zarr folder.

    Parameters
    ----------
    path : Path
        Folder with its `.zarray` and chunks.
    shape, chunks : tuple of int
        Of the array, and of the blocks it is stored in.
    dtype : numpy.dtype
    axes : tuple of str
        What the axes are called, as xarray writes it; empty if it does not say.
    present : tuple of tuples of int
        Places of the chunks that there are; others are empty.
    packed_by : str
        The compression, if its chunks do not say how large they become; else empty.
    """

    path: Path
    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    dtype: np.dtype
    axes: tuple[str, ...]
    present: tuple[tuple[int, ...], ...]
    packed_by: str = ""

    @cached_property
    def _array(self) -> Any:
        try:
            import zarr
        except ImportError:
            raise InputError(
                f"{self.path} is a zarr array, which needs zarr: pip install napari-xcebra[zarr]."
            ) from None
        return zarr.open_array(str(self.path), mode="r")

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_array"}

    def read(self, *where: slice) -> np.ndarray:
        """Part of the array, or all of it."""
        with sentence_on_failure(self.path), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            block = np.asarray(self._array[where or ...])
            if block.dtype.kind not in "biuf":
                raise ValueError(f"it has entries of type {block.dtype}")
            return block

    def blocks(self) -> Iterator[tuple[tuple[slice, ...], np.ndarray]]:
        """Chunks that are there, one after the other, each with its place."""
        for place in self.present:
            where = tuple(
                slice(i * step, min((i + 1) * step, size))
                for i, step, size in zip(place, self.chunks, self.shape, strict=True)
            )
            yield where, self.read(*where)

    def check_reach(self) -> None:
        """Raise unless the chunks cover the shape, or the array is small."""
        if math.prod(self.shape) * self.dtype.itemsize <= SMALL:
            return
        last = [max((place[axis] for place in self.present), default=-1) + 1
                for axis in range(len(self.shape))]  # fmt: skip
        reach = tuple(n * step for n, step in zip(last, self.chunks, strict=True))
        if any(end < size for end, size in zip(reach, self.shape, strict=True)):
            raise InputError(
                f"{self.path} claims {' × '.join(map(str, self.shape))} values but its chunks end "
                f"at {' × '.join(map(str, reach))}: it is damaged or incomplete."
            )


@dataclass(frozen=True)
class ZarrTraces(LazyTraces):
    """Traces in a zarr array, read on demand.

    Parameters
    ----------
    stored : StoredArray
        Of two axes.
    cells_first : bool
    """

    stored: StoredArray
    cells_first: bool

    @property
    def shape(self) -> tuple[int, int]:
        """Frames and cells."""
        first, second = self.stored.shape
        return (second, first) if self.cells_first else (first, second)

    def turned(self) -> ZarrTraces:
        """The same with frames and cells swapped."""
        return replace(self, cells_first=not self.cells_first)

    def block(self, frames: slice, cells: slice) -> np.ndarray:
        """(frames, cells) float32."""
        where = (cells, frames) if self.cells_first else (frames, cells)
        found = self.stored.read(*where)
        every = slice(None)
        return read_block(found.T if self.cells_first else found, every, every)


def _is_array(path: Path) -> bool:
    """Whether a folder is a zarr array of version 2."""
    return (path / ".zarray").is_file()


def _stored_array(path: Path, root: Path) -> StoredArray:
    """Array in a folder, after checking its metadata and chunks; nothing outside `root` is read."""
    with sentence_on_failure(path):
        if (path / "zarr.json").exists():
            raise ValueError("it is of zarr version 3 as well, which is not read here")
        _check_inside(path / ".zarray", root)
        about = json_in(path / ".zarray")
        form = _form(about)
        present = tuple(_present(path, root, form))
        return form.stored(path, json_in(path / ".zattrs").get("_ARRAY_DIMENSIONS"), present)


@dataclass(frozen=True)
class Form:
    """What an array says of its chunks."""

    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    dtype: np.dtype
    separator: str
    compressor: str | None
    filtered: bool

    @property
    def chunk_bytes(self) -> int:
        """Size of a chunk once it is unpacked."""
        return math.prod(self.chunks) * self.dtype.itemsize

    def __post_init__(self) -> None:
        if self.chunk_bytes > LARGEST_CHUNK:
            raise ValueError(f"its chunks claim {self.chunk_bytes:,} bytes each")

    def stored(self, path: Path, names: Any, present: tuple[tuple[int, ...], ...]) -> StoredArray:
        """The array, whose axes have these names if they are as many."""
        axes = tuple(map(str, names)) if isinstance(names, list) else ()
        axes = axes if len(axes) == len(self.shape) else ()
        packed_by = (self.compressor or "") if self.compressor in UNTOLD else ""
        return StoredArray(path, self.shape, self.chunks, self.dtype, axes, present, packed_by)


def json_in(path: Path) -> dict[str, Any]:
    """Metadata in a file; empty if there is none."""
    if not path.is_file():
        return {}
    if path.stat().st_size > MOST_TEXT:
        raise ValueError(f"{path.name} is too long")
    found = json.loads(path.read_bytes())
    if not isinstance(found, dict):
        raise ValueError(f"{path.name} is not as zarr writes it")
    return found


def _form(about: dict[str, Any]) -> Form:
    """Metadata of `.zarray`, if allowed."""
    if about.get("zarr_format") != 2:
        raise ValueError("it is not of zarr version 2")
    shape, chunks = (sizes_in(about.get(name), name) for name in ("shape", "chunks"))
    if len(shape) != len(chunks) or 0 in chunks:
        raise ValueError(f"it has chunks of {chunks} for a shape of {shape}")
    dtype = np.dtype(about["dtype"]) if isinstance(about.get("dtype"), str) else None
    if dtype is None or dtype.kind not in "biuf":
        raise ValueError(f"it has entries of type {about.get('dtype')!r}, not plain numbers")
    compressor = _codec(about.get("compressor"), COMPRESSORS)
    filters = about.get("filters") or []
    if not isinstance(filters, list) or len(filters) > 4:
        raise ValueError("its filters are not as zarr writes them")
    for codec in filters:
        _codec(codec, FILTERS)
        _number_types(codec)
    if about.get("order") not in ("C", "F") or not isinstance(
        about.get("fill_value"), int | float | str | None
    ):
        raise ValueError("its order or fill value is not as zarr writes it")
    separator = about.get("dimension_separator", ".")
    if separator not in (".", "/"):
        raise ValueError(f"its chunks are named with {separator!r}")
    return Form(shape, chunks, dtype, separator, compressor, bool(filters))


def sizes_in(given: Any, name: str) -> tuple[int, ...]:
    """Sizes of a few axes."""
    plain = isinstance(given, list) and len(given) <= MOST_AXES
    if not plain or not all(type(n) is int and 0 <= n < 2**40 for n in given):
        raise ValueError(f"its {name} is {str(given)[:100]}")
    return tuple(given)


def _codec(given: Any, allowed: set[str]) -> str | None:
    """Name of a codec that only compresses or rearranges numbers."""
    if given is None:
        return None
    name = given.get("id") if isinstance(given, dict) else None
    if name not in allowed:
        raise ValueError(f"it is packed by {name!r}; known are: {', '.join(sorted(allowed))}")
    return str(name)


def _number_types(codec: dict[str, Any]) -> None:
    """Raise if a filter makes anything but numbers."""
    for key in ("dtype", "astype", "encode_dtype", "decode_dtype"):
        if key in codec and np.dtype(str(codec[key])).kind not in "biuf":
            raise ValueError(f"a filter makes {codec[key]!r} of its numbers")


def _present(path: Path, root: Path, form: Form) -> Iterator[tuple[int, ...]]:
    """Positions of existing chunks; each is a file within the folder, of a plausible size."""
    grid = [-(-size // step) for size, step in zip(form.shape, form.chunks, strict=True)]
    name = re.compile(re.escape(form.separator).join([r"\d{1,12}"] * max(len(grid), 1)))
    for number, file in enumerate(files_in(path, root)):
        if number > MOST_CHUNKS:
            raise ValueError(f"it has more than {MOST_CHUNKS:,} chunks")
        key = file.relative_to(path).as_posix()
        if not name.fullmatch(key):
            continue
        place = tuple(map(int, key.split(form.separator)))[: len(grid)]
        # a chunk past the end is left over from before the array was made smaller
        if all(i < n for i, n in zip(place, grid, strict=True)):
            _check_chunk(file, form)
            yield place


def files_in(path: Path, root: Path) -> Iterator[Path]:
    """All files in a folder, after checking where links lead."""
    for folder, folders, files in os.walk(path):
        for name in [*folders, *files]:
            found = Path(folder) / name
            if found.is_symlink():
                _check_inside(found, root)
        yield from (Path(folder) / name for name in files)


def _check_inside(file: Path, root: Path) -> None:
    if not file.resolve().is_relative_to(root.resolve()):
        raise ValueError(f"{file.name} is a link that leads out of the folder")


def _check_chunk(file: Path, form: Form) -> None:
    """Compare the size that a chunk claims in its first bytes with that of the array."""
    if not file.is_file():
        raise ValueError(f"chunk {file.name} is not a file")
    size = file.stat().st_size
    with file.open("rb") as opened:
        start = opened.read(20)
    claimed = _claimed(form.compressor, start, size)
    if claimed is None:
        return
    if form.compressor is None and not form.filtered and size != form.chunk_bytes:
        raise ValueError(f"chunk {file.name} has {size} bytes instead of {form.chunk_bytes}")
    # filters may store larger or smaller numbers
    fits = claimed <= 8 * form.chunk_bytes if form.filtered else claimed == form.chunk_bytes
    if not fits:
        raise ValueError(f"chunk {file.name} is damaged or incomplete")


def _claimed(compressor: str | None, start: bytes, size: int) -> int | None:
    """Bytes that a chunk says it unpacks to; None if its kind does not say."""
    if compressor is None:
        return size
    if compressor == "blosc":
        claimed, _, packed = struct.unpack("<III", start[4:16]) if len(start) >= 16 else (0, 0, 0)
        return claimed if packed == size else -1
    if compressor == "lz4":
        return int.from_bytes(start[:4], "little")
    if compressor == "zstd":
        return _claimed_by_zstd(start)
    return None


def _claimed_by_zstd(start: bytes) -> int:
    if len(start) < 6 or start[:4] != b"\x28\xb5\x2f\xfd":
        return -1
    about = start[4]
    single = about >> 5 & 1
    width = (single, 2, 4, 8)[about >> 6]
    begin = 5 + (not single) + (0, 1, 2, 4)[about & 3]
    claimed = int.from_bytes(start[begin : begin + width], "little")
    return -1 if width == 0 else claimed + 256 * (width == 2)


ARRANGING = {"bytes", "transpose", "crc32c"}
SHARDS = "sharding_indexed"
FILE = "zarr.json"


def is_array_v3(path: Path) -> bool:
    """Whether a folder is a zarr array of version 3."""
    try:
        return (path / FILE).is_file() and json_in(path / FILE).get("node_type") == "array"
    except (OSError, ValueError, RecursionError):
        return False


def _stored_array_v3(path: Path, root: Path) -> StoredArray:
    """Array in a folder, after checking its metadata and chunks; nothing outside `root` is read."""
    with sentence_on_failure(path):
        about = json_in(path / FILE)
        if about.get("zarr_format") != 3 or about.get("storage_transformers"):
            raise ValueError("it is not as zarr version 3 writes it")
        form = _form_v3(about)
        shards = form.compressor == SHARDS
        for number, file in enumerate(files_in(path, root)):
            if number > MOST_CHUNKS:
                raise ValueError(f"it has more than {MOST_CHUNKS:,} chunks")
            if file.name != FILE and not shards:
                _check_chunk(file, form)
        return form.stored(path, about.get("dimension_names"), _grid(form))


def _grid(form: Form) -> tuple[tuple[int, ...], ...]:
    """Places of all chunks; those that are not there are empty."""
    counts = [-(-size // step) for size, step in zip(form.shape, form.chunks, strict=True)]
    if math.prod(counts) > MOST_CHUNKS:
        raise ValueError(f"it has more than {MOST_CHUNKS:,} chunks")
    return tuple(np.ndindex(*counts))


def is_any_array(path: Path) -> bool:
    """Whether a folder is a zarr array of either version."""
    return _is_array(path) or is_array_v3(path)


def stored_in(path: Path, root: Path) -> StoredArray:
    """Array of either version in a folder, checked; nothing outside `root` is read."""
    return _stored_array_v3(path, root) if is_array_v3(path) else _stored_array(path, root)


def _form_v3(about: dict[str, Any]) -> Form:
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
    return Form(shape, chunks, dtype, "/", packed[0] if packed else None, "crc32c" in names)


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


MOST = 1000
"""Arrays of a folder that are looked at."""


def is_zarr(path: Path) -> bool:
    """Whether a folder is a group or an array of zarr."""
    markers = (".zarray", ".zgroup", "zarr.json")
    return path.is_dir() and any((path / marker).is_file() for marker in markers)


def read_arrays(path: Path) -> Arrays:
    """Arrays of numbers by their place in the folder; a single one by the folder's name.

    What has two axes and is large stays on disk; what has more is left out then.
    """
    found = Arrays()
    for number, place in enumerate(_arrays(path)):
        if number == MOST:
            break
        try:
            stored = stored_in(place, path)
        except InputError:  # texts, and what is packed in a way that is not read
            if is_any_array(path):
                raise
            continue
        name = place.relative_to(path).as_posix() if place != path else path.stem
        found.axes[name] = stored.axes
        if math.prod(stored.shape) * stored.dtype.itemsize <= IN_MEMORY:
            stored.check_reach()
            found[name] = stored.read()
        elif len(stored.shape) == 2 and not stored.packed_by:
            found[name] = ZarrTraces(stored, cells_first=False)
    return found


def _arrays(path: Path) -> list[Path]:
    places = []
    for folder, inside, _ in os.walk(path):
        if is_any_array(Path(folder)):
            inside[:] = []  # chunks
            places.append(Path(folder))
        inside.sort()
    return places


LETTERS = {
    **{"t": "t", "time": "t", "frame": "t", "frames": "t"},
    **{"c": "c", "channel": "c", "z": "z", "plane": "z", "depth": "z"},
    **{"y": "y", "height": "y", "row": "y", "x": "x", "width": "x", "column": "x"},
}
"""What axes are called, and what they are."""


def _of_ome(folder: Path) -> dict[str, Any]:
    """What a folder says of itself; later versions keep what is of OME apart."""
    attributes = attributes_of(folder)
    own = attributes.get("ome")
    return own if isinstance(own, dict) else attributes


def multiscale(path: Path) -> Mapping[str, Any] | None:
    """What OME says of an image, if it is one."""
    scales = _of_ome(path).get("multiscales")
    found = scales[0] if isinstance(scales, list) and scales else None
    return found if isinstance(found, dict) else None


def finest_level(about: Mapping[str, Any]) -> str | None:
    """Where in its folder the pixels of an image lie at full size; None if it does not say."""
    levels = about.get("datasets")
    first = levels[0] if isinstance(levels, list) and levels else None
    named = first.get("path") if isinstance(first, dict) else None
    # a level lies in the image itself
    inside = isinstance(named, str) and not {"..", ""} & set(named.split("/"))
    return named if inside else None


def axes_named(about: Mapping[str, Any]) -> tuple[str, ...]:
    """Letters of the axes that OME names; empty if it names none."""
    named = about.get("axes")
    if not isinstance(named, list):
        return ()
    names = [axis.get("name") if isinstance(axis, dict) else axis for axis in named]
    return tuple(LETTERS.get(str(name).lower(), "?") for name in names)


def pixel_size_of(about: Mapping[str, Any], axes: tuple[str, ...]) -> float | None:
    """Micrometres per pixel, where OME says so."""
    try:
        unit = micrometres(about["axes"][axes.index("x")].get("unit"))
        changes = about["datasets"][0]["coordinateTransformations"]
        scale = next(each["scale"] for each in changes if each.get("type") == "scale")
        width, height = (float(scale[axes.index(axis)]) for axis in "xy")
    except (LookupError, TypeError, ValueError, AttributeError, StopIteration):
        return None
    return judged(width * unit, height * unit)[0] if unit else None


LARGEST = 2**30
"""Bytes of a label image."""


def read_ome_labels(path: Path) -> tuple[np.ndarray, float | None]:
    """Labels, (height, width) or (planes, height, width), and micrometres per pixel if known.

    Parameters
    ----------
    path : Path
        An image with labels in it (``labels/cells``), one label image, or an array.
    """
    place = _label_image(path)
    about = multiscale(place)
    array = place
    if about is not None:
        level = finest_level(about)
        if level is None:
            raise InputError(f"{place} does not say where its label image lies.")
        array = place / level
    if not is_any_array(array):
        raise InputError(f"{path} has no label image: one of OME-Zarr, or a zarr array, is needed.")
    stored = stored_in(array, path)
    if stored.dtype.kind not in "biu" or np.prod(stored.shape) * stored.dtype.itemsize > LARGEST:
        raise InputError(
            f"{array} has the shape {stored.shape} and type {stored.dtype}: a label image of whole "
            "numbers is needed."
        )
    labels = stored.read()
    while labels.ndim > 2 and labels.shape[0] == 1:
        labels = labels[0]
    size = None
    if about is not None and (axes := axes_named(about)):
        size = pixel_size_of(about, axes)
    return labels, size


def _label_image(path: Path) -> Path:
    """The only label image in the labels of an image; else the path itself."""
    folder = path / "labels"
    if not folder.is_dir():
        return path
    listed = _of_ome(folder).get("labels")
    names = [str(name) for name in listed] if isinstance(listed, list) else []
    names = [name for name in names if name and ".." not in name and (folder / name).is_dir()]
    if len(names) != 1:
        told = ", ".join(names) or "none"
        raise InputError(f"{path} has these label images: {told}. Choose the folder of one.")
    return folder / names[0]
