"""Reads HDF5 files of other programs, and copies them with changes.

An HDF5 file can point at other files of the machine in three ways (external links, virtual
datasets, external storage), point at itself in circles, and claim any size in a few bytes. The
functions here follow only what lies in the file, and refuse a size that the file cannot hold: large
traces stay on disk, and are read where no limits hold.

Data may be compressed by a filter that HDF5 does not bring along. Libhdf5 then looks for it in the
folder HDF5_PLUGIN_PATH names, or in its own; which filters are there is the user's choice (as by
importing `hdf5plugin`): nothing is added to it here, and a file can bring no code of its own.
"""

from __future__ import annotations

import io
import math
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import h5py
import numpy as np
import scipy  # whose parts are imported when they are first used
from h5py import h5a, h5l, h5o, h5z

from napari_xcebra.errors import InputError, sentence_on_failure
from napari_xcebra.io.extraction import Arrays
from napari_xcebra.recording.footprints import Footprints
from napari_xcebra.recording.traces import BLOCK_BYTES, IN_MEMORY, LazyTraces

SIGNATURE = b"\x89HDF\r\n\x1a\n"
SMALL = 64 * 2**20
"""Bytes that any dataset may claim."""
DENSEST = 1100
"""How many bytes one stored byte may stand for; deflate reaches 1032."""
AT_ONCE = 4 * 2**30
"""Bytes read at once; what is larger is read by the block."""
DEEPEST, MOST_OBJECTS, MOST_HOPS = 32, 200_000, 16

Node: TypeAlias = "h5py.Group | h5py.Dataset"


def has_signature(path: Path) -> bool:
    """Whether the file begins like HDF5, possibly after a user block."""
    try:
        if not path.is_file():  # a pipe would be waited for
            return False
        with path.open("rb") as file:
            for start in (0, 512, 1024, 2048, 4096):
                file.seek(start)
                if file.read(len(SIGNATURE)) == SIGNATURE:
                    return True
    except OSError:
        pass
    return False


@contextmanager
def open_hdf5(path: Path) -> Iterator[h5py.File]:
    """The file, for reading; whatever fails while it is open becomes an `InputError`."""
    with sentence_on_failure(path):
        if path.exists() and not has_signature(path):
            raise InputError(f"{path} is not an HDF5 file, or its first bytes are damaged.")
        # network drives often have no locks, which reading does not need
        with (
            h5py.File(path, "r", locking="best-effort") as file,
            # numbers of a damaged file overflow; they are checked where that matters
            np.errstate(over="ignore", invalid="ignore"),
        ):
            yield file


def child(group: h5py.Group, path: str, hops: int = 0) -> Node | None:
    """What lies at a path below a group, or None; `InputError` if it lies outside the file.

    Each step is checked before it is taken: h5py itself would open other files without asking.
    """
    at: Any = group
    for name in [part for part in path.split("/") if part not in ("", ".")]:
        if not isinstance(at, h5py.Group):
            return None
        at = _step(at, name, hops)
    return at if isinstance(at, h5py.Group | h5py.Dataset) else None


def group_at(group: h5py.Group, path: str) -> h5py.Group | None:
    """The group at a path, or None if there is none."""
    found = child(group, path)
    return found if isinstance(found, h5py.Group) else None


def dataset_at(group: h5py.Group, path: str) -> h5py.Dataset | None:
    """The dataset at a path, or None if there is none."""
    found = child(group, path)
    return found if isinstance(found, h5py.Dataset) else None


def _step(group: h5py.Group, name: str, hops: int) -> Any:
    key = name.encode("utf-8", "surrogateescape")
    links = group.id.links
    if not links.exists(key):
        return None
    kind = links.get_info(key).type
    if kind == h5l.TYPE_HARD:
        return group[name]
    if kind != h5l.TYPE_SOFT:
        raise InputError(
            f"{group.file.filename}: {group.name}/{name} links to another file, which is not "
            "opened: put both into one file."
        )
    if hops >= MOST_HOPS:
        raise InputError(f"{group.file.filename}: {group.name}/{name} is a circular link.")
    target = links.get_val(key).decode("utf-8", "surrogateescape")
    return child(group.file if target.startswith("/") else group, target, hops + 1)


def walk(group: h5py.Group) -> Iterator[Node]:
    """Everything that lies below a group, each object once; what lies outside is passed over."""
    seen = {address(group)}
    waiting: list[tuple[Node, int]] = [(group, 0)]
    while waiting:
        at, depth = waiting.pop()
        if at is not group:
            yield at
        if not isinstance(at, h5py.Group) or depth >= DEEPEST:
            continue
        found = []
        for name in at:
            kind = at.id.links.get_info(name.encode("utf-8", "surrogateescape")).type
            node = at[name] if kind == h5l.TYPE_HARD else None
            if isinstance(node, h5py.Group | h5py.Dataset) and address(node) not in seen:
                seen.add(address(node))
                found.append((node, depth + 1))
            if len(seen) > MOST_OBJECTS:
                raise InputError(f"{group.file.filename} has over {MOST_OBJECTS} objects.")
        waiting.extend(reversed(found))


def address(node: Node) -> int:
    """Where in the file an object lies: the same for one object under two names."""
    return int(h5o.get_info(node.id).addr)


def attribute(node: Node, name: str, default: Any = None) -> Any:
    """Value of an attribute: a number, an array, a text, a reference; or the default."""
    key = name.encode()
    if not h5a.exists(node.id, key):
        return default
    about = h5a.open(node.id, key)
    count = int(np.prod(about.shape, dtype=np.float64))
    if count * about.dtype.itemsize > 2**20 or (about.dtype.hasobject and count > 2**12):
        raise InputError(
            f"{node.file.filename}: attribute {name} of {node.name} claims a shape of "
            f"{about.shape}: the file is damaged."
        )
    if about.dtype.hasobject and about.dtype.kind != "O":
        return default
    value = node.attrs[name]
    if isinstance(value, h5py.Empty):
        return default
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, np.ndarray) and value.dtype.kind in "SO":
        return [v.decode("utf-8", "replace") if isinstance(v, bytes) else v for v in value.flat]
    return value


def check(dataset: h5py.Dataset) -> None:
    """Raise unless the data lie in this file, in a size that it can hold."""
    where = f"{dataset.file.filename}: {dataset.name}"
    stored = _stored(dataset, where)
    itemsize = dataset.dtype.itemsize
    claimed = float(itemsize) * np.prod(dataset.shape or (), dtype=np.float64)
    chunk = float(itemsize) * np.prod(dataset.chunks or (), dtype=np.float64)
    if max(claimed, chunk) > SMALL + DENSEST * stored:
        raise InputError(
            f"{where} claims {_times(dataset.shape)} values, but the file holds only "
            f"{stored:,} bytes of them: it is damaged or incomplete."
        )
    plist = dataset.id.get_create_plist()
    for i in range(plist.get_nfilters()):
        code, *_, name = plist.get_filter(i)
        if not h5z.filter_avail(code):
            name = name.decode("utf-8", "replace").split(";")[0] or f"number {code}"
            raise InputError(
                f"{where} is compressed with the HDF5 filter {name}, which is not installed here "
                "(package hdf5plugin has most of them): save it with gzip."
            )


def _stored(dataset: h5py.Dataset, where: str) -> int:
    """Bytes of the dataset in the file."""
    if dataset.id.get_create_plist().get_external_count():
        raise InputError(f"{where} keeps its values in another file, which is not opened.")
    if dataset.is_virtual:
        sources = [dataset_at(dataset.file, s.dset_name) for s in dataset.virtual_sources()
                   if s.file_name == "."]  # fmt: skip
        plain = [s for s in sources if s is not None and not s.is_virtual]
        if len(plain) < len(dataset.virtual_sources()):
            raise InputError(
                f"{where} is assembled from other files, which are not opened: save it as one."
            )
        return sum(_stored(s, where) for s in plain)
    return min(dataset.id.get_storage_size(), Path(dataset.file.filename).stat().st_size)


def read(dataset: h5py.Dataset, at_once: int = AT_ONCE) -> Any:
    """All values of a dataset: an array, or a number; texts as `str`, in an array of objects.

    Raises
    ------
    InputError
        If the values lie in another file, are neither numbers nor text, or more than the file can
        hold, or take more than `at_once` bytes.
    """
    check(dataset)
    if dataset.shape is None:
        return np.zeros(0)
    if h5py.check_string_dtype(dataset.dtype) is not None:
        return _texts(dataset)
    if dataset.dtype.hasobject:
        raise InputError(
            f"{dataset.file.filename}: {dataset.name} holds references or lists of varying "
            "length: numbers or text are needed."
        )
    if dataset.size * dataset.dtype.itemsize > at_once:
        raise InputError(
            f"{dataset.file.filename}: {dataset.name} has {_times(dataset.shape)} values, too "
            "many to be read at once."
        )
    return dataset[()]


def _texts(dataset: h5py.Dataset) -> Any:
    """Texts of a dataset."""
    texts = dataset.asstr(errors="replace")
    if dataset.shape == ():
        return str(texts[()])
    if dataset.ndim > 1:
        raise InputError(f"{dataset.file.filename}: {dataset.name} is a table of texts.")
    return np.array([str(text) for text in texts[()]], object)


def _times(shape: tuple[int, ...] | None) -> str:
    return " × ".join(f"{n:,}" for n in shape) if shape else "1"


SUFFIXES = (".h5", ".hdf5", ".hdf", ".nc")
MOST_TEXTS = 100_000


def is_plain(path: Path) -> bool:
    """Whether the name and the first bytes are those of HDF5."""
    return path.suffix.lower() in SUFFIXES and has_signature(path)


def read_arrays(path: Path) -> Arrays:
    """Arrays of numbers and lists of texts, by their names without the first slash.

    What has two axes and is large stays on disk; what has more is left out then.
    """
    found = Arrays()
    with open_hdf5(path) as file:
        for node in walk(file):
            if not isinstance(node, h5py.Dataset) or node.size in (None, 0):
                continue
            if (array := _array(node)) is not None:
                name = str(node.name).strip("/")
                found[name], found.axes[name] = array, _axes(node)
    return found


_NAMES_OF_AXES = ("axes", "axis_names", "dims", "dimensions", "dim_names", "_ARRAY_DIMENSIONS")


def _axes(dataset: h5py.Dataset) -> tuple[str, ...]:
    """What the axes are called, by netCDF, labels or an attribute; empty where they are not."""
    if "DIMENSION_LIST" in dataset.attrs:
        scales = [next(iter(axis.values()), None) for axis in dataset.dims]
        return tuple("" if s is None else str(s.name).rsplit("/", 1)[-1] for s in scales)
    said: Any = [axis.label for axis in dataset.dims]
    for name in _NAMES_OF_AXES if not any(said) else ():
        said = dataset.attrs.get(name, said)
    if isinstance(said, str | bytes):
        text = said.decode(errors="replace") if isinstance(said, bytes) else said
        said = re.findall(r"\w+", text)
    axes = tuple(s.decode(errors="replace") if isinstance(s, bytes) else str(s)
                 for s in np.atleast_1d(np.asarray(said, object)))  # fmt: skip
    return axes if len(axes) == dataset.ndim else ()


def _array(dataset: h5py.Dataset) -> np.ndarray | Hdf5Traces | None:
    """Values of a dataset; None if they are neither numbers nor a list of texts."""
    if h5py.check_string_dtype(dataset.dtype) is not None:
        if dataset.ndim != 1 or dataset.size > MOST_TEXTS:
            return None
        return np.asarray(read(dataset)).astype(str)
    if dataset.dtype.kind not in "biuf" or dataset.ndim > 3:
        return None
    if dataset.size * dataset.dtype.itemsize <= IN_MEMORY:
        return np.asarray(read(dataset))
    return Hdf5Traces.of(dataset, cells_first=False) if dataset.ndim == 2 else None


LARGEST_DENSE = 2**28
"""Values a matrix may have with its zeros."""


def sparse_matrix(value: Any, row: Any, ends: Any, shape: Any) -> scipy.sparse.csc_array:
    """Matrix stored column after column, as MATLAB and scipy (CSC) do.

    Parameters
    ----------
    value, row : (values,)
        Values that are not zero, and their rows.
    ends : (columns + 1,)
        0, then the number of values up to the end of each column.
    shape : (rows, columns)

    Raises
    ------
    ValueError
        If these do not belong together.
    """
    value, row, ends = (np.asarray(part).reshape(-1) for part in (value, row, ends))
    parts = (value, row.astype(np.int64), ends.astype(np.int64))
    found = scipy.sparse.csc_array(parts, shape=tuple(int(n) for n in np.ravel(shape)))
    found.check_format(full_check=True)
    return found


@dataclass(frozen=True, eq=False)
class Hdf5Traces(LazyTraces):
    """Traces in a dataset of an HDF5 file, which is open only while they are read.

    Parameters
    ----------
    path : Path
    name : str
        Of the dataset in the file.
    shape : (frames, cells)
    cells_first : bool
        Whether the dataset is (cells, frames).
    columns : (cells,) int or None
        Where in the dataset each cell is; None: in order.
    factor, offset : float
        Traces are ``factor * stored + offset``.
    """

    path: Path
    name: str
    # the property of the base class is a field here, so that looking at it opens no file
    shape: tuple[int, int] = (0, 0)
    cells_first: bool = False
    columns: np.ndarray | None = None
    factor: float = 1.0
    offset: float = 0.0

    @classmethod
    def of(
        cls,
        dataset: h5py.Dataset,
        *,
        cells_first: bool,
        columns: np.ndarray | None = None,
        factor: float = 1.0,
        offset: float = 0.0,
    ) -> Hdf5Traces:
        """Traces of a dataset; only its header is read."""
        check(dataset)
        where = f"{dataset.file.filename}: {dataset.name}"
        if dataset.ndim not in (1, 2) or dataset.dtype.kind not in "biuf":
            raise InputError(
                f"{where} has shape {dataset.shape} and type {dataset.dtype}: numbers, frames × "
                "cells, are needed."
            )
        long, wide = (*dataset.shape, 1)[:2]
        if dataset.ndim == 2 and cells_first:
            long, wide = wide, long
        if columns is not None:
            if len(columns) and not (0 <= columns.min() and columns.max() < wide):
                raise InputError(f"{where} has {wide} cells, but number {columns.max()} is used.")
            wide = len(columns)
        if not long or not wide:
            raise InputError(
                f"{where} has {long} frames and {wide} cells: at least one of each is needed."
            )
        name, path = str(dataset.name), Path(dataset.file.filename)
        return cls(path, name, (long, wide), cells_first, columns, factor, offset)

    def turned(self) -> Hdf5Traces:
        """The same with frames and cells swapped."""
        return replace(self, shape=self.shape[::-1], cells_first=not self.cells_first)

    def block(self, frames: slice, cells: slice) -> np.ndarray:
        """(frames, cells) float32."""
        pick = slice(None)
        if self.columns is not None:
            wanted = self.columns[cells]
            if not len(wanted):
                return np.zeros((frames.stop - frames.start, 0), np.float32)
            cells = slice(int(wanted.min()), int(wanted.max()) + 1)
            pick = wanted - cells.start
        with open_hdf5(self.path) as file:
            dataset = dataset_at(file, self.name)
            if dataset is None:
                raise InputError(f"{self.path} no longer has {self.name}.")
            if dataset.ndim == 1:
                part = dataset[frames][:, None][:, cells]
            else:
                part = dataset[cells, frames].T if self.cells_first else dataset[frames, cells]
            block = np.array(part[:, pick], np.float32)
            if self.factor != 1 or self.offset != 0:
                block = block * np.float32(self.factor) + np.float32(self.offset)
        if block.shape[0] != frames.stop - frames.start:
            raise InputError(f"{self.path} has changed since it was opened: open it again.")
        return block


def footprints_of_masks(
    masks: h5py.Dataset, cells: Sequence[int] | np.ndarray | None = None, *, turned: bool
) -> Footprints:
    """Footprints of a stack of images, one per cell, read some cells at a time.

    Parameters
    ----------
    masks : dataset of (cells, height, width), or (cells, width, height) if `turned`
        Weights; a pixel that is not above zero does not belong to the cell. A further axis, at the
        end, is that of planes.
    cells : sequence of int, optional
        Which of the images, in this order.
    turned : bool
        Whether columns come before rows, as in a file of MATLAB.
    """
    check(masks)
    if masks.ndim not in (3, 4) or masks.dtype.kind not in "biuf":
        raise InputError(
            f"{masks.file.filename}: {masks.name} has shape {masks.shape} and type {masks.dtype}: "
            "one image of numbers per cell is needed."
        )
    cells = np.arange(len(masks)) if cells is None else np.asarray(cells, np.int64)
    height, width, *planes = (int(n) for n in masks.shape[1:])
    pixels = math.prod((height, width, *planes))
    step = max(1, BLOCK_BYTES // max(1, pixels * masks.dtype.itemsize))
    cell, indices, weight = [], [], []
    for first in range(0, len(cells), step):
        wanted = cells[first : first + step]
        some = masks[int(wanted.min()) : int(wanted.max()) + 1] if _near(wanted) else None
        for i, place in enumerate(wanted, first):
            mask = masks[int(place)] if some is None else some[place - wanted.min()]
            own = np.nonzero(mask > 0)
            cell.append(np.full(len(own[0]), i, np.int32))
            indices.append(np.array(own, np.int32))
            weight.append(mask[own].astype(np.float32))
    row, column, *plane = np.concatenate(indices, axis=1)
    if turned:
        row, column, height, width = column, row, width, height
    shape = (*planes, height, width)
    where = np.concatenate(cell), row, column, np.concatenate(weight)
    return Footprints(shape, *where, plane[0] if plane else None)


def turned(footprints: Footprints) -> Footprints:
    """Footprints with rows and columns swapped."""
    *planes, height, width = footprints.shape
    return replace(
        footprints,
        shape=(*planes, width, height),
        row=footprints.column,
        column=footprints.row,
    )


def _near(cells: np.ndarray) -> bool:
    """Whether all from the first to the last can be read at once without waste."""
    return int(cells.max()) - int(cells.min()) < 2 * len(cells)


def changed_copy(source: Path, path: Path, change: Callable[[h5py.File], None], room: int) -> None:
    """Copy a file, then change the copy: the source is only ever read.

    No file is changed in place, because the library can leave it unreadable if it is stopped
    while writing.

    Parameters
    ----------
    source, path : Path
    change : function of h5py.File
    room : int
        Bytes that the change adds, at most, but for a mebibyte.
    """
    shutil.copyfile(source, path)
    make_room(path, room)
    try:
        # network drives often have no locks; nobody else knows the copy
        with h5py.File(path, "r+", locking="best-effort") as file:
            change(file)
    except (OSError, RuntimeError) as error:
        if isinstance(error, OSError) and error.errno is not None and error.strerror:
            raise
        raise InputError(
            f"A copy of {source} cannot be changed: it is damaged or of an HDF5 version that is "
            f"not supported here ({' '.join(str(error).split())[:150]})."
        ) from error


def make_room(path: Path, room: int) -> None:
    """Lengthen an HDF5 file by that many bytes and a mebibyte, which the library then writes over.

    It ends the program when a disk is full; so it finds room, and gives back what is left. An empty
    file is made where there is none.

    Raises
    ------
    OSError
        If the disk is full.
    """
    empty = io.BytesIO()
    if not path.exists() or not path.stat().st_size:
        h5py.File(empty, "w").close()
    with path.open("ab") as file:
        file.write(empty.getvalue())
        for _ in range(1 + room // 2**20):
            file.write(bytes(2**20))
