"""Hands recordings to pynapple and back, and makes them from xarray.

Both packages are imported only when they are used.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.recording.traces import Origin, are_events, in_blocks
from napari_xcebra.recording.variables import Variable, looks_like_an_event

if TYPE_CHECKING:
    from napari_xcebra.recording.recording import Recording

FRAMES = ("frame", "frames", "time", "times", "t")
CELLS = ("unit_id", "cell", "cells", "roi", "rois", "neuron", "neurons", "unit", "units")
"""What the axes of an array with names may be called."""
FEW = 20
"""Up to this many whole numbers are categories."""


def from_pynapple(traces: Any, behavior: Mapping[str, Any] | None = None) -> Recording:
    """Recording of a TsdFrame.

    Parameters
    ----------
    traces : pynapple.TsdFrame
        A column for each cell; whole numbers as columns are the ids. Each epoch of its time
        support is a segment; metadata of the columns are properties of the cells.
    behavior : mapping of str to pynapple.Tsd, TsdFrame or Ts, optional
        Brought to the frames: a `Ts` as an event, others straight between their samples, and
        unknown beyond their time support.

    Returns
    -------
    Recording
    """
    from napari_xcebra.recording.recording import Recording

    times, values = np.asarray(traces.t, np.float64), np.asarray(traces.values)
    if values.ndim != 2 or len(times) < 2:
        raise InputError("A TsdFrame of two frames or more, with a column per cell, is needed.")
    starts = np.searchsorted(times, np.asarray(traces.time_support.start))
    starts = np.unique(np.r_[0, starts[starts < len(times)]])
    found = {name: _variable(name, one, times) for name, one in (behavior or {}).items()}
    ids, names = ids_and_names(traces.columns, values.shape[1])
    cells = names | plain_columns(getattr(traces, "metadata", {}), values.shape[1])
    accepted = cells.pop("accepted", None)
    return Recording(
        values.astype(np.float32),
        1 / float(np.median(np.diff(times))),
        found,
        cell_ids=ids,
        starts=starts,
        times=times,
        cells=cells,
        accepted=accepted if accepted is not None and accepted.dtype == bool else None,
        origin=_origin("a TsdFrame of pynapple", values),
    )


def to_pynapple(recording: Recording) -> dict[str, Any]:
    """Traces and behaviour as pynapple has them.

    Returns
    -------
    dict
        "traces": TsdFrame with a column for each cell, by its id, and what is known of the cells as
        metadata; each variable by its name, a Tsd or TsdFrame of the frames at which it is
        known, a Ts if it is an event; "trials": IntervalSet, if there are any.
    """
    import pynapple as nap

    times = np.asarray(recording.times, np.float64)
    support = _support(recording, nap)
    traces = np.concatenate([block for _, block in in_blocks(recording.traces)], axis=1)
    about = {"accepted": np.asarray(recording.accepted), **recording.cells}
    found: dict[str, Any] = {
        "traces": nap.TsdFrame(
            t=times,
            d=traces,
            columns=np.asarray(recording.cell_ids),
            time_support=support,
            metadata={name: np.asarray(values) for name, values in about.items()},
        )
    }
    for name, variable in recording.behavior.items():
        known, values = variable.known, variable.values
        if variable.kind == "event":
            counts = np.nan_to_num(values[:, 0]).astype(int)
            found[name] = nap.Ts(t=np.repeat(times, counts), time_support=support)
        elif values.shape[1] == 1:
            found[name] = nap.Tsd(t=times[known], d=values[known, 0])
        else:
            found[name] = nap.TsdFrame(t=times[known], d=values[known])
    if recording.trials is not None:
        first, stop = recording.trials.first, recording.trials.stop
        last = np.minimum(stop, recording.n_frames) - 1
        found["trials"] = nap.IntervalSet(start=times[first], end=times[last])
    return found


def from_xarray(
    traces: Any,
    behavior: Mapping[str, Any] | None = None,
    *,
    rate: float | None = None,
) -> Recording:
    """Recording of a DataArray with named axes, such as Minian's.

    Parameters
    ----------
    traces : xarray.DataArray
        Of frames and cells in any order. A coordinate `time` (or that of the axis, if it counts
        no frames) gives seconds, that of the cells their ids, and other coordinates along
        the cells what is known of them.
    behavior : mapping of str to DataArray or (frames,) array, optional
        One value per frame.
    rate : float, optional
        Frames per second; from the times if not given.

    Returns
    -------
    Recording
    """
    from napari_xcebra.recording.recording import Recording

    frames, cells = (_axis(traces, names) for names in (FRAMES, CELLS))
    values = np.asarray(traces.transpose(frames, cells).values)
    times = _times(traces, frames)
    if rate is None and times is None:
        raise InputError("The array does not give times in seconds: give `rate`, such as 30.")
    steps = np.diff(np.zeros(2) if times is None else times)
    ids, names = ids_and_names(traces[cells].values, values.shape[1])
    along = {str(n): np.asarray(c.values) for n, c in traces.coords.items() if c.dims == (cells,)}
    named = {n: v for n, v in along.items() if n != cells and v.dtype.kind in "biufU"}
    variables = {}
    for name, one in (behavior or {}).items():
        one = np.asarray(getattr(one, "values", one))
        variables[name] = Variable(name, one, kind=_kind(one, 1.0))
    return Recording(
        values.astype(np.float32),
        float(rate or 1 / np.median(steps)),
        variables,
        cell_ids=ids,
        times=None if rate else times,
        cells={**names, **named},
        source=str(traces.name or ""),
        origin=_origin("a DataArray of xarray", values),
    )


def _origin(form: str, traces: np.ndarray) -> Origin:
    events = are_events(traces)
    return Origin(form, "events" if events else "", "events" if events else "as they were given")


def ids_and_names(columns: Any, n_cells: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Ids of cells, and their names if these are words."""
    columns = np.asarray(columns)
    if columns.dtype.kind in "iu" and len(np.unique(columns)) == n_cells:
        return columns.astype(np.int64), {}
    return np.arange(n_cells), {"name": columns.astype(str)}


def plain_columns(columns: Mapping[Any, Any], count: int) -> dict[str, np.ndarray]:
    """Columns of that many numbers or words, as plain arrays."""
    found = {str(name): np.asarray(column) for name, column in columns.items()}
    found = {n: c.astype(str) if c.dtype.kind == "O" else c for n, c in found.items()}
    return {n: c for n, c in found.items() if c.shape == (count,) and c.dtype.kind in "biufU"}


def _variable(name: str, given: Any, times: np.ndarray) -> Variable:
    """A series of pynapple at the frames."""
    half = float(np.median(np.diff(times))) / 2
    if not hasattr(given, "values"):
        edges = np.r_[times - half, times[-1] + half]
        return Variable(name, np.histogram(given.t, edges)[0], kind="event")
    at, values = np.asarray(given.t, np.float64), np.asarray(given.values, np.float64)
    if not len(at):
        raise InputError(f"{name} has no samples.")
    values = values.reshape(len(values), -1)
    kind = _kind(values, 1 / float(np.median(np.diff(at))) if len(at) > 1 else 1.0)
    begin, end = (np.asarray(edge) for edge in (given.time_support.start, given.time_support.end))
    within = (times[:, None] >= begin - half) & (times[:, None] <= end + half)
    inside: np.ndarray = np.any(within, axis=1)
    if kind == "continuous":
        placed = np.stack([np.interp(times, at, column) for column in values.T], axis=1)
    else:
        after = np.clip(np.searchsorted(at, times), 1, len(at) - 1)
        nearest = after - (times - at[after - 1] <= at[after] - times)
        placed = values[nearest]
    return Variable(name, np.where(inside[:, None], placed, np.nan), kind=kind)


def _kind(values: np.ndarray, rate: float) -> Any:
    known = values[np.isfinite(values)] if values.dtype.kind == "f" else values.ravel()
    whole = values.size == len(values) and (known == np.round(known)).all()
    if not whole or len(np.unique(known)) > FEW:
        return "continuous"
    event = looks_like_an_event(values.reshape(len(values), -1).astype(np.float64), rate)
    return "event" if event else "discrete"


def _support(recording: Recording, nap: Any) -> Any:
    """An epoch for each segment."""
    times, starts = np.asarray(recording.times, np.float64), np.asarray(recording.starts)
    ends = np.r_[starts[1:], recording.n_frames] - 1
    return nap.IntervalSet(start=times[starts], end=times[ends])


def _axis(array: Any, names: tuple[str, ...]) -> str:
    found = [axis for axis in array.dims if str(axis).lower() in names]
    if array.ndim != 2 or len(found) != 1:
        raise InputError(
            f"The array has the axes {', '.join(map(str, array.dims))}: two are needed, one of "
            f"frames ({', '.join(FRAMES)}) and one of cells ({', '.join(CELLS)})."
        )
    return str(found[0])


def _times(array: Any, axis: str) -> np.ndarray | None:
    """Seconds of the frames; None if there are no more than numbers of frames."""
    own = [c for n, c in array.coords.items() if str(n).lower() in FRAMES[2:] and c.dims == (axis,)]
    if not own:
        return None
    times = np.asarray(own[0].values)
    if times.dtype.kind in "mM":
        times = (times - times[0]) / np.timedelta64(1, "s")
    times = times.astype(np.float64)
    return times if len(times) > 1 and (np.diff(times) > 0).all() else None


class Interchange:
    """Ways from and to objects of other packages, for `Recording`."""

    @classmethod
    def from_pynapple(cls, traces: Any, behavior: Mapping[str, Any] | None = None) -> Recording:
        """Recording of a TsdFrame: see `interchange.from_pynapple`."""
        return from_pynapple(traces, behavior)

    @classmethod
    def from_xarray(
        cls, traces: Any, behavior: Mapping[str, Any] | None = None, *, rate: float | None = None
    ) -> Recording:
        """Recording of a DataArray: see `interchange.from_xarray`."""
        return from_xarray(traces, behavior, rate=rate)

    def to_pynapple(self: Any) -> dict[str, Any]:
        """Traces and behaviour as pynapple has them: see `interchange.to_pynapple`."""
        return to_pynapple(self)
