"""Reads HDF5 files of other programs without leaving the file or trusting its headers.

An HDF5 file can point at other files of the machine in three ways (external links, virtual
datasets, external storage), point at itself in circles, and claim any size in a few bytes. The
functions here follow only what lies in the file, and refuse a size that the file cannot hold.

Data may be compressed by a filter that HDF5 does not bring along. Libhdf5 then looks for it in the
folder HDF5_PLUGIN_PATH names, or in its own; which filters are there is the user's choice (as by
importing `hdf5plugin`): nothing is added to it here, and a file can bring no code of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import h5py
import numpy as np
from h5py import h5a, h5l, h5o, h5z

from napari_xcebra.errors import InputError
from napari_xcebra.io.failures import sentence_on_failure

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
    """Texts of a dataset, read in blocks: many entries may point at one long text."""
    if dataset.size * dataset.dtype.itemsize > SMALL:
        raise InputError(f"{dataset.file.filename}: {dataset.name} has too many texts.")
    texts = dataset.asstr(errors="replace")
    if dataset.shape == ():
        return str(texts[()])
    if dataset.ndim > 1:
        raise InputError(f"{dataset.file.filename}: {dataset.name} is a table of texts.")
    found: list[str] = []
    length = 0
    for first in range(0, len(dataset), 256):
        block = [str(text) for text in texts[first : first + 256]]
        length += sum(map(len, block))
        if length > SMALL:
            raise InputError(
                f"{dataset.file.filename}: {dataset.name} has texts that are too long."
            )
        found += block
    return np.array(found, object)


def _times(shape: tuple[int, ...] | None) -> str:
    return " × ".join(f"{n:,}" for n in shape) if shape else "1"
