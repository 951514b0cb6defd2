"""Tells whether a recording is still the one that results were made of.

Every part of a recording has a digest. That of the traces is made of all values, in their order.
"""

from __future__ import annotations

import hashlib
import threading
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.files import name_of
from napari_xcebra.recording.traces import LazyTraces, blocks_as_stored

if TYPE_CHECKING:
    from napari_xcebra.recording.recording import Recording

AT_ONCE = 16 * 2**20
"""Bytes of traces in memory whose digest takes no time worth speaking of."""
SETTLED = 2.0
"""Seconds after which another write to a file shows in its time of modification on any drive."""

_PARTS = {
    "order": "the order of its cells",
    "traces": "its traces",
    "footprints": "its footprints",
    "clock": "the times of its frames",
    "starts": "its trial boundaries",
}
"""What differs, in words."""


@dataclass(frozen=True)
class Fingerprint:
    """What tells a recording from any other.

    Parameters
    ----------
    n_frames, n_cells : int
    ids : str
        Digest of the ids, in any order; `order` is that of the ids as they are listed.
    order : str
    traces : str
        Of every value of every trace, by the id of the cell.
    footprints : str
        Of the pixels of every cell, by its id; empty without footprints.
    clock : str
        Of the rate and the times of the frames.
    starts : str
        Of the first frames of trials and sessions.
    stamp : str
        Of names, sizes and times of modification of the files that the traces are in; empty if the
        traces are in memory. Where it is the same, the traces need not be read.
    labels : tuple of (str, str)
        The values of each variable.
    """

    n_frames: int
    n_cells: int
    ids: str
    order: str
    traces: str
    footprints: str
    clock: str
    starts: str
    stamp: str = ""
    labels: tuple[tuple[str, str], ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for a file."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any] | None) -> Fingerprint | None:
        """From a file; None if it has none. Traces in unchanged files are then known."""
        if values is None:
            return None
        named = {each.name: values[each.name] for each in fields(cls) if each.name != "labels"}
        labels = tuple((str(name), str(digest)) for name, digest in values.get("labels", ()))
        made = cls(**named, labels=labels)
        if made.stamp:
            _BY_STAMP[made.stamp] = made.traces
        return made

    def changes(self, other: Fingerprint) -> list[str]:
        """What of the recording differs, in words; footprints only if both have them."""
        differ = [part for part in _PARTS if getattr(self, part) != getattr(other, part)]
        if not (self.footprints and other.footprints) and "footprints" in differ:
            differ.remove("footprints")
        return [_PARTS[part] for part in differ]

    def changed_labels(self, other: Fingerprint) -> str:
        """The variables of both whose values differ, in words; empty if none do."""
        now = dict(other.labels)
        differ = [name for name, digest in self.labels if now.get(name, digest) != digest]
        some = ", ".join(differ[:3]) + (" …" if len(differ) > 3 else "")
        return f"the values of {some}" if differ else ""

    def has_same_cells(self, other: Fingerprint) -> bool | None:
        """Whether the cells are the same; None if neither footprints nor traces can tell."""
        if self.ids != other.ids:
            return False
        if self.footprints and other.footprints:
            return self.footprints == other.footprints
        return True if self.traces == other.traces else None


def fingerprint_of(recording: Recording) -> Fingerprint:
    """Fingerprint of a recording; `Recording.fingerprint` keeps it."""
    ids = np.asarray(recording.cell_ids)
    by_id = np.argsort(ids, kind="stable")
    stamp = ""
    if isinstance(recording.traces, LazyTraces) and recording.traces.stamp:
        stamp = _digest(recording.traces.stamp.encode(), ids)
    traces = _BY_STAMP.get(stamp)
    if traces is None:
        traces = _digest(ids[by_id], trace_sums(recording.traces)[by_id])
        if not all(map(_is_settled, getattr(recording.traces, "files", ()))):
            stamp = ""
    pixels = "" if recording.footprints is None else _digest(ids[by_id], _pixels(recording)[by_id])
    return Fingerprint(
        recording.n_frames,
        recording.n_cells,
        _digest(ids[by_id]),
        _digest(ids),
        traces,
        pixels,
        _digest(np.float64(recording.rate), np.asarray(recording.times, np.float64)),
        _digest(np.asarray(recording.starts, np.int64)),
        stamp,
        tuple((v.name, _digest(v.values)[:16]) for v in recording.behavior.values()),
    )


def check_same(made_of: Fingerprint | None, recording: Recording, what: str) -> str:
    """Raise a sentence if a recording is not the one that a result was made of.

    Parameters
    ----------
    made_of : Fingerprint or None
        Nothing is known if None.
    recording : Recording
    what : str
        The result, in words: "the run".

    Returns
    -------
    str
        A note if only trial boundaries or the values of variables differ; else empty.
    """
    if made_of is None:
        return ""
    name = name_of(recording.source)
    if (made_of.n_cells, made_of.n_frames) != (recording.n_cells, recording.n_frames):
        raise InputError(
            f"{name} is not the recording that {what} was made of: that one had "
            f"{made_of.n_cells:,} cells and {made_of.n_frames:,} frames, this one has "
            f"{recording.n_cells:,} and {recording.n_frames:,}. Name the right one, or make "
            f"{what} again with this one."
        )
    now = recording.fingerprint
    changes, labels = made_of.changes(now), made_of.changed_labels(now)
    if changes in ([], [_PARTS["starts"]]):
        differ = [*(["the trial boundaries"] if changes else []), *([labels] if labels else [])]
        if not differ:
            return ""
        said = f"{' and '.join(differ)} in {name} differ from those that {what} was made with."
        return said[0].upper() + said[1:]
    raise InputError(
        f"{name} was changed since {what} was made, or opened in another way: "
        f"{' and '.join(changes)} differ. Open it in the same way, bring back its files, or "
        f"make {what} again with the recording as it is."
    )


def note_on_another(trained_on: Fingerprint | None, recording: Recording) -> str:
    """A note if a recording is not the one that an encoder was trained on; else empty."""
    now, changes = recording.fingerprint, list[str]()
    if trained_on is not None:
        changes = [*filter(None, (*trained_on.changes(now), trained_on.changed_labels(now)))]
    if not changes:
        return ""
    return (
        f"The encoder was trained on another recording than {name_of(recording.source)}: "
        f"{' and '.join(changes)} differ."
    )


def confirmed_fingerprint(recording: Recording) -> Fingerprint:
    """Fingerprint of a recording whose files were not written to since it was opened."""
    if isinstance(recording.traces, LazyTraces):
        recording.traces.check_unchanged()
    return recording.fingerprint


def content_of_training(recording: Recording, variables: Sequence[str]) -> dict[str, Any]:
    """Digests of all that the result of a training on these variables depends on."""
    labels = {}
    for name in variables:
        variable = recording.variable(name)
        period = variable.period if variable.kind == "circular" else None
        labels[name] = [variable.kind, period, _digest(variable.values)]
    made = recording.fingerprint.as_dict()
    # what learning does not see, and where the files are
    del made["stamp"], made["footprints"], made["labels"]
    return {
        **made,
        "excluded": _digest(np.asarray(recording.excluded)),
        "accepted": _digest(np.asarray(recording.accepted)),
        "variables": labels,
    }


def content_changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What differs between two of `content_of_training`, in words; a part that one lacks does not.

    Examples
    --------
    >>> content_changes({"n_cells": 3, "variables": {"speed": "a"}},
    ...                 {"n_cells": 2, "variables": {"speed": "b"}})
    ['the number of its cells', 'the values of speed']
    """
    words = {
        "n_frames": "the number of its frames",
        "n_cells": "the number of its cells",
        "ids": "the ids of its cells",
        **_PARTS,
        "excluded": "its excluded frames",
        "accepted": "which of its cells are accepted",
    }
    differ = [said for part, said in words.items()
              if part in before and part in now and before[part] != now[part]]  # fmt: skip
    labels, others = before.get("variables", {}), now.get("variables", {})
    differ += [f"the values of {name}" for name in labels if labels[name] != others.get(name)]
    return differ


def name_of_content(recording: Recording) -> str:
    """Eight characters for the name of a file, found at once; what is in it says more."""
    told = [np.asarray([recording.n_frames, recording.n_cells]), np.asarray(recording.cell_ids)]
    if recording.footprints is not None:
        told.append(_pixels(recording))
    else:  # only traces tell cells apart then
        frames = np.linspace(0, recording.n_frames - 1, 5).astype(int).tolist()
        some = [np.asarray(recording.traces[f : f + 1], np.float64) for f in frames]
        told.append(np.frombuffer(f"{np.abs(np.concatenate(some)).sum():.6e}".encode(), np.uint8))
    return _digest(*told)[:8]


_LOCK = threading.Lock()
_SUMS: dict[int, tuple[weakref.ref[Any], np.ndarray]] = {}
"""By the identity of traces: the same array is in many copies of a recording."""
_BY_STAMP: dict[str, str] = {}
"""Digests of traces in files, from results that were read."""


def trace_sums(traces: np.ndarray | LazyTraces) -> np.ndarray:
    """Checksum of the trace of each cell, kept as long as the traces are in use: (cells,) uint64.

    It is Σ w(t) x(t) modulo 2⁶⁴ over frames t, where x(t) are the 32 bits of a value and w(t) is
    odd and scrambled (multilinear hashing). So it depends on the order of frames, any single value
    changes it, and blocks can be read in whatever way is quickest: 2 GB/s where `hashlib` has 0.4.
    """
    known = known_sums(traces)
    if known is not None:
        return known
    with _LOCK:  # whoever comes second waits for the first
        known = known_sums(traces)
        if known is None:
            known = _summed(traces)
            remember_sums(traces, known)
        return known


def known_sums(traces: np.ndarray | LazyTraces) -> np.ndarray | None:
    """Checksums of these traces, if they were computed before."""
    kept = _SUMS.get(id(traces))
    return kept[1] if kept is not None and kept[0]() is traces else None


def remember_sums(traces: np.ndarray | LazyTraces, sums: np.ndarray) -> None:
    """Keep checksums that were computed in another process."""
    key = id(traces)
    _SUMS[key] = weakref.ref(traces, lambda _: _SUMS.pop(key, None)), sums


def is_known_at_once(recording: Recording) -> bool:
    """Whether the fingerprint takes no time, so that a window may ask for it."""
    traces = recording.traces
    if "fingerprint" in vars(recording) or known_sums(traces) is not None:
        return True
    return not isinstance(traces, LazyTraces) and traces.nbytes <= AT_ONCE


def _summed(traces: np.ndarray | LazyTraces) -> np.ndarray:
    sums = np.zeros(traces.shape[1], np.uint64)
    weights = _scrambled(np.arange(traces.shape[0])) | np.uint64(1)
    for frames, cells, block in blocks_as_stored(traces):
        sums[cells] += np.einsum("tc,t->c", block.view(np.uint32), weights[frames])
    return sums


def _pixels(recording: Recording) -> np.ndarray:
    """Checksum of the pixels of each cell, in any order: (cells,) uint64."""
    footprints = recording.footprints
    assert footprints is not None
    sums = np.zeros(recording.n_cells, np.uint64)
    place = np.ravel_multi_index(footprints.pixels, footprints.shape)
    np.add.at(sums, footprints.cell, _scrambled(place))
    return sums


def _scrambled(numbers: np.ndarray) -> np.ndarray:
    """The same for the same number everywhere, and unlike that of any other: uint64 (splitmix64).

    >>> _scrambled(np.array([0, 1])).tolist()
    [16294208416658607535, 7960286522194355700]
    """
    mixed = (numbers.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))


def _is_settled(path: Path) -> bool:
    """Whether a write to a file from now on would show in its time of modification."""
    return time.time() - path.stat().st_mtime > SETTLED


def _parts(values: Sequence[Any]) -> Iterator[bytes]:
    for value in values:
        yield value if isinstance(value, bytes) else np.ascontiguousarray(value).tobytes()


def _digest(*values: Any) -> str:
    digest = hashlib.sha256()
    for part in _parts(values):
        digest.update(part)
    return digest.hexdigest()[:32]
