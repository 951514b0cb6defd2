"""Holds a recording: traces, clock, footprints, images and behaviour, checked when it is made.

Everything downstream may rely on what is checked here, so that no other module repeats it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.recording.fingerprint import (
    Fingerprint,
    fingerprint_of,
    known_sums,
    remember_sums,
)
from napari_xcebra.recording.footprints import Footprints
from napari_xcebra.recording.interchange import Interchange
from napari_xcebra.recording.movies import Movie, Video
from napari_xcebra.recording.traces import LazyTraces, Origin
from napari_xcebra.recording.variables import Kind, Trials, Variable

_MAPPINGS = ("behavior", "images", "cells")
"""Fields of a recording that are read-only mappings."""
_SUMS = "checksums of traces"
"""What travels with a recording to another process, beside its fields."""


@dataclass(frozen=True)
class Recording(Interchange):
    """What was imaged and what the animal did, on one clock.

    Every ROI of the source is kept, under the id the source gave it; `accepted` says which of
    them count as cells.

    Parameters
    ----------
    traces : (frames, cells) float32
        Finite everywhere. A `LazyTraces` stays on disk, and is checked as it is read.
    rate : float
        Frames per second.
    behavior : mapping of str to Variable
        Variables on the same clock.
    cell_ids : (cells,) int
        Ids in the source program.
    accepted : (cells,) bool
        ROIs that count as cells; `fit` uses these unless told otherwise.
    starts : (segments,) int
        First frame of each trial or session, beginning with 0. No pair and no window crosses one.
    excluded : (frames,) bool
        Frames not to be used (motion, gaps between clocks); they also end a segment.
    footprints : Footprints or None
    images : mapping of str to (height, width) float32
        Background images, such as "mean".
    source : str
        Where it came from.
    notes : tuple of str
        What was done on the way here, one sentence each.
    times : (frames,) float64
        Seconds at which the frames were taken, ascending; from `rate` if not given.
    cells : mapping of str to (cells,) array
        What else the source says about each cell, such as "probability", "plane" or "name".
    origin : Origin
    warnings : tuple of str
        What contradicts what was asked for when it was opened, one sentence each.
    trials : Trials or None
        Trials of a task; `starts` has their first frames, and the frames after their last.
    pixel_size : float or None
        Micrometres per pixel of the field of view; None if the source does not say.
    movie : Movie or None
        What was imaged, frame by frame; it stays on disk.
    video : Video or None
        What the animal did, as a camera saw it.
    """

    traces: np.ndarray | LazyTraces
    rate: float
    behavior: Mapping[str, Variable] = field(default_factory=dict)
    cell_ids: np.ndarray | None = None
    accepted: np.ndarray | None = None
    starts: np.ndarray | None = None
    excluded: np.ndarray | None = None
    footprints: Footprints | None = None
    images: Mapping[str, np.ndarray] = field(default_factory=dict)
    source: str = ""
    notes: tuple[str, ...] = ()
    times: np.ndarray | None = None
    cells: Mapping[str, np.ndarray] = field(default_factory=dict)
    origin: Origin = field(default_factory=Origin)
    trials: Trials | None = None
    warnings: tuple[str, ...] = ()
    pixel_size: float | None = None
    movie: Movie | None = None
    video: Video | None = None

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "traces", _checked_traces(self.traces))
        if not isinstance(self.rate, int | float | np.number) or not 0 < self.rate < np.inf:
            raise InputError(f"rate is {self.rate!r}: frames per second, > 0, are needed.")
        for name, variable in self.behavior.items():
            if len(variable.values) != self.n_frames:
                raise InputError(
                    f"Variable {name!r} has {len(variable.values)} values but traces have "
                    f"{self.n_frames} frames: one value per frame is needed."
                )
        put(self, "behavior", MappingProxyType(dict(self.behavior)))
        put(self, "cell_ids", _vector(self.cell_ids, "cell_ids", self.n_cells, np.int64))
        if len(np.unique(np.asarray(self.cell_ids))) != self.n_cells:
            raise InputError("cell_ids has duplicates: each cell needs an id of its own.")
        put(self, "accepted", _vector(self.accepted, "accepted", self.n_cells, bool, fill=True))
        put(self, "excluded", _vector(self.excluded, "excluded", self.n_frames, bool, fill=False))
        if self.trials is not None:
            if self.trials.stop[-1] > self.n_frames:
                raise InputError(
                    f"The last trial ends at frame {self.trials.stop[-1]}, but the traces have "
                    f"{self.n_frames} frames."
                )
            edges = np.r_[self.trials.first, self.trials.stop]
            given = np.asarray([] if self.starts is None else self.starts, np.int64)
            put(self, "starts", np.r_[given, edges[edges < self.n_frames]])
        put(self, "starts", _checked_starts(self.starts, self.n_frames))
        if self.footprints is not None and self.footprints.n_cells > self.n_cells:
            raise InputError(
                f"footprints has {self.footprints.n_cells} cells but traces have {self.n_cells}: "
                "a column of traces for each cell is needed."
            )
        put(self, "images", MappingProxyType(dict(self.images)))
        put(self, "times", _checked_times(self.times, self.n_frames, self.rate))
        for name, column in self.cells.items():
            if np.shape(column) != (self.n_cells,):
                raise InputError(
                    f"cells has {name!r} of shape {np.shape(column)}: ({self.n_cells},) is needed."
                )
        put(self, "cells", MappingProxyType(dict(self.cells)))
        put(self, "pixel_size", _checked_pixel_size(self.pixel_size))

    def __getstate__(self) -> dict[str, Any]:
        # Python does not pickle read-only mappings
        mappings = {name: dict(getattr(self, name)) for name in _MAPPINGS}
        return {**vars(self), **mappings, _SUMS: known_sums(self.traces)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # what was checked when it was made is not checked again
        sums = state.pop(_SUMS, None)
        vars(self).update(state)
        if sums is not None:
            remember_sums(self.traces, sums)
        vars(self).update({name: MappingProxyType(state[name]) for name in _MAPPINGS})

    @property
    def n_frames(self) -> int:
        """Number of frames."""
        return int(self.traces.shape[0])

    @property
    def n_cells(self) -> int:
        """Number of ROIs, accepted or not."""
        return int(self.traces.shape[1])

    @cached_property
    def fingerprint(self) -> Fingerprint:
        """What tells it from any other; all traces are read once, at the speed of the disk."""
        return fingerprint_of(self)

    @property
    def segment(self) -> np.ndarray:
        """(frames,) int, number of the trial or session that a frame belongs to."""
        number = np.zeros(self.n_frames, np.int64)
        number[np.asarray(self.starts)[1:]] = 1
        return np.cumsum(number)

    def variable(self, name: str) -> Variable:
        """Variable of that name, or a sentence listing those there are."""
        try:
            return self.behavior[name]
        except KeyError:
            known = ", ".join(self.behavior) or "none"
            raise InputError(
                f"There is no variable {name!r} in this recording; it has: {known}."
            ) from None

    def with_behavior(self, *variables: Variable) -> Recording:
        """Copy of this recording with variables added or replaced."""
        return replace(self, behavior={**self.behavior, **{v.name: v for v in variables}})

    def save(self, path: str | PathLike[str]) -> Path:
        """Write everything in this recording to one .npz file that `open_recording` reads.

        Parameters
        ----------
        path : path
            Written whole or not at all.
        """
        # by name: what analyses recordings does not depend on files, and does not here either
        written: Path = import_module("napari_xcebra.io").save_recording(self, path)
        return written

    @classmethod
    def from_arrays(
        cls,
        traces: Any,
        rate: float,
        behavior: Mapping[str, Any] | None = None,
        *,
        kinds: Mapping[str, Kind] | None = None,
        trials: Any = None,
        **others: Any,
    ) -> Recording:
        """Recording from plain arrays.

        Parameters
        ----------
        traces : (frames, cells) array
        rate : float
            Frames per second.
        behavior : mapping of str to (frames,) or (frames, columns) array
            A variable with several columns counts as several.
        kinds : mapping of str to {"continuous", "circular", "discrete", "event"}
            For variables that are not continuous. Circular ones are taken as radians; give a
            `Variable` to say otherwise. Without it, booleans, integers and words are discrete.
        trials : (frames,) array or Trials, optional
            Trial number of each frame; a change begins a new trial. A variable that is constant
            in each counts as one value a trial.
        **others
            Any other field of `Recording`.

        Examples
        --------
        >>> import numpy as np
        >>> traces, speed = np.random.rand(100, 5), np.arange(100.0)
        >>> recording = Recording.from_arrays(traces, rate=10.0, behavior={"speed": speed})
        >>> recording.n_cells
        5
        """
        kinds = dict(kinds or {})
        unknown = set(kinds) - set(behavior or {})
        if unknown:
            raise InputError(f"kinds names {sorted(unknown)}, which behavior does not have.")
        variables = {
            name: values
            if isinstance(values, Variable)
            else _read_variable(name, values, kinds.get(name))
            for name, values in (behavior or {}).items()
        }
        if isinstance(trials, Trials):
            others["trials"] = trials
        elif trials is not None:
            trials = np.asarray(trials)
            if trials.shape != (len(traces),):
                raise InputError(
                    f"trials has shape {trials.shape} but traces have {len(traces)} frames: "
                    "one number per frame is needed."
                )
            edges = np.r_[0, np.flatnonzero(trials[1:] != trials[:-1]) + 1, len(trials)]
            others["trials"] = Trials(edges[:-1], edges[1:])
        return cls(traces=traces, rate=rate, behavior=variables, **others)


def _read_variable(name: str, values: Any, kind: Kind | None) -> Variable:
    """Variable from an array of numbers or words; None and empty words are not known."""
    values = np.asarray(values)
    if values.dtype.kind in "biu":
        return Variable(name, values, kind or "discrete")
    if values.dtype.kind not in "UO" or not all(_is_word(value) for value in values.flat):
        return Variable(name, values, kind or "continuous")
    if kind not in (None, "discrete"):
        raise InputError(f"Variable {name!r} has words as values: its kind can only be discrete.")
    known = np.array([isinstance(value, str) and value != "" for value in values.flat])
    words, codes = np.unique(values.ravel()[known].astype(str), return_inverse=True)
    numbers = np.full(values.size, np.nan)
    numbers[known] = codes
    return Variable(name, numbers.reshape(values.shape), "discrete", words=tuple(words.tolist()))


def _is_word(value: Any) -> bool:
    return value is None or isinstance(value, str) or value != value  # NaN: not known


def _checked_traces(traces: Any) -> Any:
    if isinstance(traces, LazyTraces):
        _ = traces.stamp  # of the files as they are now
        return traces
    traces = np.asarray(traces)
    if traces.ndim != 2 or 0 in traces.shape:
        raise InputError(f"traces has shape {traces.shape}: (frames, cells) is needed.")
    if traces.dtype.kind not in "biuf":
        raise InputError(f"traces has type {traces.dtype}: numbers are needed.")
    traces = traces.astype(np.float32, copy=False)
    finite = np.isfinite(traces)
    if not finite.all():
        cells = np.flatnonzero(~finite.all(axis=0))
        raise InputError(
            f"traces has {int((~finite).sum())} values that are NaN or infinite, first in "
            f"column {cells[0]} ({len(cells)} cells in all): finite numbers are needed; "
            "interpolate the gaps or leave these cells or frames out."
        )
    return traces


def _vector(
    values: Any, name: str, length: int, dtype: type, *, fill: bool | None = None
) -> np.ndarray:
    if values is None:
        return np.arange(length, dtype=dtype) if fill is None else np.full(length, fill, dtype)
    given = np.asarray(values)
    if given.dtype.kind not in "biuf" or not np.array_equal(given, given.astype(dtype)):
        wanted = "True or False" if dtype is bool else "a whole number"
        raise InputError(f"{name} has values of type {given.dtype}: {wanted} each is needed.")
    vector: np.ndarray = given.astype(dtype)
    if vector.shape != (length,):
        raise InputError(f"{name} has shape {vector.shape}: ({length},) is needed.")
    return vector


def _checked_starts(starts: Sequence[int] | np.ndarray | None, n_frames: int) -> np.ndarray:
    starts = np.unique(np.r_[0, np.asarray([] if starts is None else starts, np.int64)])
    if starts[0] < 0 or starts[-1] >= n_frames:
        raise InputError(
            f"starts runs from {starts[0]} to {starts[-1]}, outside the {n_frames} frames: frame "
            "numbers from 0 on are needed."
        )
    return starts


def _checked_pixel_size(size: Any) -> float | None:
    if size is None:
        return None
    if not isinstance(size, int | float | np.number) or not 0 < size < np.inf:
        raise InputError(f"pixel_size is {size!r}: micrometres per pixel, > 0, are needed.")
    return float(size)


def _checked_times(times: Any, n_frames: int, rate: float) -> np.ndarray:
    if times is None:
        return np.arange(n_frames) / rate
    times = np.asarray(times, np.float64)
    if times.shape != (n_frames,):
        raise InputError(f"times has shape {times.shape}: ({n_frames},) is needed.")
    if not np.isfinite(times).all() or (np.diff(times) <= 0).any():
        raise InputError(
            "times does not increase: each frame needs a later time than the one before."
        )
    return times
