"""Averages traces around events and trials: one cell split by trials, or all cells on one scale."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.recording.recording import Recording
from napari_xcebra.recording.traces import BLOCK_BYTES, in_blocks, read_block
from napari_xcebra.recording.variables import called

if TYPE_CHECKING:
    import pandas as pd


START, STOP = "trial start", "trial end"
"""Moments that every recording with trials has."""
WINDOW = (1.0, 3.0)
"""Seconds before and after a moment that has no window of its own."""
NEAR = 0.5
"""Seconds from an event within which something is known because of it."""
LONGEST = 10.0
"""Seconds of a trial that are shown at most, if not more is asked for."""
ALL = "all"
"""Name of the only group, if moments are not split."""
MOST_GROUPS = 20
"""Groups that can be told apart."""


@dataclass(frozen=True)
class Moments:
    """Where an event lies among the frames, and to which group each time belongs.

    Parameters
    ----------
    event : str
    frames : (moments,) int64
        Ascending.
    group : (moments,) int64
        Number of the group, −1 where what splits them is not known.
    groups : tuple of str
    by : str
        What splits them; empty if nothing does.
    """

    event: str
    frames: np.ndarray
    group: np.ndarray
    groups: tuple[str, ...] = (ALL,)
    by: str = ""

    @classmethod
    def of(cls, recording: Recording, event: str, by: str | None = None) -> Moments:
        """Moments of an event, or of the start or end of trials, split by a variable."""
        frames = _frames_of(recording, event)
        if by is None:
            return cls(event, frames, np.zeros(len(frames), np.int64))
        values, words = _values_at(recording, by, frames)
        different = np.unique(values[~np.isnan(values)])
        if len(different) > MOST_GROUPS:
            raise InputError(
                f"{by!r} has {len(different)} different values at the {len(frames)} times of "
                f"{event!r}: up to {MOST_GROUPS} groups can be told apart; choose another variable."
            )
        group = np.where(np.isnan(values), -1, np.searchsorted(different, values))
        return cls(event, frames, group, tuple(words(value) for value in different), by)


def window_of(recording: Recording, event: str) -> tuple[float, float]:
    """Seconds before and after an event that are usual for it; of a trial's start, most of it."""
    trials, variable = recording.trials, recording.behavior.get(event)
    if event in (START, STOP) and trials is not None:
        trial = float(np.median(trials.stop - trials.first)) / recording.rate
        long, short = min(max(trial, WINDOW[0]), LONGEST), WINDOW[0]
        return (short, long) if event == START else (long, short)
    return WINDOW if variable is None or variable.kind != "event" else variable.window


def moments_in(recording: Recording) -> list[str]:
    """Everything that traces can be aligned to."""
    events = [name for name, v in recording.behavior.items() if v.kind == "event"]
    return [*([START, STOP] if recording.trials is not None else []), *events]


def splits_in(recording: Recording) -> list[str]:
    """Everything that moments can be split by: columns of trials, and discrete variables."""
    columns = [] if recording.trials is None else list(recording.trials.columns)
    discrete = [name for name, v in recording.behavior.items() if v.kind == "discrete"]
    return list(dict.fromkeys([*columns, *discrete]))


def usual_view(recording: Recording, variables: Sequence[str]) -> tuple[str, str | None] | None:
    """Event to align to and what to split by, to see cells of these variables; None if nothing.

    An event is seen around itself; a condition of trials, around the event from which on it is
    known. A number that differs from trial to trial, such as a reaction time, splits nothing.
    """
    trials, names = recording.trials, [name for name in variables if name in recording.behavior]
    for name in names:
        if recording.behavior[name].kind == "event":
            return name, None
    for name in names:
        column = np.zeros(0) if trials is None else trials.columns.get(name, np.zeros(0))
        if 0 < len(np.unique(column[~np.isnan(column)])) <= MOST_GROUPS:
            return _known_from(recording, name), name
    return None


def _known_from(recording: Recording, name: str) -> str:
    """The event at which a variable of the trials becomes known, or about then."""
    trials = recording.trials
    assert trials is not None
    number, known = trials.number(recording.n_frames), recording.behavior[name].known
    inside = np.flatnonzero(known & (number >= 0))
    first = inside[np.unique(number[inside], return_index=True)[1]]
    away = {START: _distance(first, trials.first)} if len(first) else {}
    for event, variable in recording.behavior.items():
        frames = np.flatnonzero(variable.values[:, 0] > 0)
        if variable.kind == "event" and len(first) and len(frames):
            away[event] = _distance(first, frames)
    nearest = min(away, key=away.__getitem__, default=START)
    return nearest if away.get(nearest, np.inf) <= NEAR * recording.rate else START


def _distance(places: np.ndarray, frames: np.ndarray) -> float:
    """Frames from nearly all of some places to the nearest of some frames, ascending."""
    after = np.clip(np.searchsorted(frames, places), 0, len(frames) - 1)
    before = np.maximum(after - 1, 0)
    away = np.minimum(np.abs(frames[after] - places), np.abs(frames[before] - places))
    # a reward that some trials lack does not make known what all have
    return float(np.quantile(away, 0.9))


def _frames_of(recording: Recording, event: str) -> np.ndarray:
    trials = recording.trials
    if event in (START, STOP) and trials is not None:
        return trials.first if event == START else np.minimum(trials.stop, recording.n_frames - 1)
    variable = recording.behavior.get(event)
    if variable is None or variable.kind != "event":
        known = ", ".join(moments_in(recording)) or "none"
        raise InputError(f"There is no event {event!r} in this recording; there are: {known}.")
    frames = np.flatnonzero(np.nan_to_num(variable.values[:, 0]) > 0)
    if len(frames) == 0:
        raise InputError(f"Event {event!r} never happens in this recording.")
    return frames


def _values_at(recording: Recording, by: str, frames: np.ndarray) -> tuple[np.ndarray, Any]:
    """Value of what splits moments at each of them, and how to call a value."""
    trials = recording.trials
    if trials is not None and by in trials.columns:
        number = trials.number(recording.n_frames)[frames]
        values = np.where(number >= 0, trials.columns[by][number], np.nan)
        return values, lambda value: trials.label(by, value)
    variable = recording.variable(by)
    if variable.kind != "discrete":
        known = ", ".join(splits_in(recording)) or "none"
        raise InputError(
            f"{by!r} is {variable.kind}: moments are split by a discrete variable; there are: "
            f"{known}."
        )
    return variable.values[frames, 0], lambda value: called(value, variable.words)


@dataclass(frozen=True)
class PeriEvent:
    """Traces around every time of an event.

    Parameters
    ----------
    moments : Moments
    seconds : (bins,) float64
        Middle of each bin, from the event on.
    values : (moments, bins, cells) float32
        NaN beyond the recording and where frames are left out.
    cell_ids : (cells,) int64

    Examples
    --------
    >>> import numpy as np
    >>> from napari_xcebra.recording import Recording, Variable
    >>> reward = Variable("reward", np.arange(200) % 50 == 20, "event")
    >>> traces = np.exp(-((np.arange(200) - 20) % 50) / 5)[:, None]
    >>> around = peri_event(Recording(traces, 10.0, {"reward": reward}), "reward", window=(1, 2))
    >>> around.values.shape, float(around.seconds[around.mean()[0, :, 0].argmax()])
    ((4, 30, 1), 0.0)
    """

    moments: Moments
    seconds: np.ndarray
    values: np.ndarray
    cell_ids: np.ndarray

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the groups, in the order of `mean` and `sem`."""
        return self.moments.groups

    def mean(self) -> np.ndarray:
        """Mean over the moments of each group: (groups, bins, cells)."""
        return self._over_groups(lambda own: _nan_mean(own))

    def sem(self) -> np.ndarray:
        """Standard error of that mean, NaN for a single moment: (groups, bins, cells)."""
        return self._over_groups(_standard_error)

    def _over_groups(self, statistic: Any) -> np.ndarray:
        rows = [self.values[self.moments.group == i] for i in range(len(self.groups))]
        return np.stack([statistic(own) for own in rows])

    def table(self) -> pd.DataFrame:
        """One row for each group, bin and cell: group, seconds, cell, mean, sem, moments."""
        import pandas as pd

        index = pd.MultiIndex.from_product(
            [self.groups, self.seconds, self.cell_ids],
            names=[self.moments.by or "group", "seconds", "cell"],
        )
        counts = np.bincount(
            self.moments.group[self.moments.group >= 0], minlength=len(index.levels[0])
        )
        repeated = np.repeat(counts, len(self.seconds) * len(self.cell_ids))
        columns = {"mean": self.mean().ravel(), "sem": self.sem().ravel(), "moments": repeated}
        return pd.DataFrame(columns, index=index).reset_index()

    def to_xarray(self) -> Any:
        """The values as an `xarray.DataArray` with named axes; needs xarray."""
        import xarray

        names = np.array([*self.groups, "unknown"])[self.moments.group]
        return xarray.DataArray(
            self.values,
            dims=("moment", "seconds", "cell"),
            coords={
                "seconds": self.seconds,
                "cell": self.cell_ids,
                "frame": ("moment", self.moments.frames),
                self.moments.by or "group": ("moment", names),
            },
            name=f"traces around {self.moments.event}",
        )


def peri_event(
    recording: Recording,
    event: str,
    *,
    by: str | None = None,
    window: tuple[float, float] | None = None,
    bin: float | None = None,
    cells: Sequence[int] | None = None,
) -> PeriEvent:
    """Traces around every time of an event.

    Parameters
    ----------
    recording : Recording
    event : str
        An event variable, "trial start" or "trial end".
    by : str, optional
        What to split the moments by: a column of the trials, or a discrete variable.
    window : (float, float), optional
        Seconds before and after; those of the event if not given.
    bin : float, optional
        Seconds to average over; one frame if not given.
    cells : sequence of int, optional
        Ids of cells; all if not given.

    Returns
    -------
    PeriEvent
    """
    moments = Moments.of(recording, event, by)
    seconds, offsets = _bins_of(recording, window or window_of(recording, event), bin)
    columns = _columns_of(recording, cells)
    values = np.empty((len(moments.frames), len(seconds), len(columns)), np.float32)
    for place, column in enumerate(columns):
        trace = read_block(
            recording.traces, slice(0, recording.n_frames), slice(column, column + 1)
        )
        values[:, :, place] = around(trace, moments.frames, offsets, recording)[:, :, 0]
    return PeriEvent(moments, seconds, values, np.asarray(recording.cell_ids)[columns])


def _few_cells(
    recording: Recording, moments: Moments, offsets: np.ndarray
) -> Iterator[tuple[slice, np.ndarray]]:
    """Cells by the few, with all their frames: as many as fit into memory around all moments."""
    step = max(1, BLOCK_BYTES // (4 * max(1, len(moments.frames)) * offsets.size))
    for cells, block in in_blocks(recording.traces):
        for first in range(0, block.shape[1], step):
            part = block[:, first : first + step]
            start = cells.start + first
            yield slice(start, start + part.shape[1]), part


def _means_of(
    traces: np.ndarray, moments: Moments, offsets: np.ndarray, recording: Recording
) -> np.ndarray:
    """Mean of traces, (frames, cells), over the moments of each group: (groups, bins, cells)."""
    frames = [moments.frames[moments.group == group] for group in range(len(moments.groups))]
    return np.stack([_nan_mean(around(traces, own, offsets, recording)) for own in frames])


def _bins_of(
    recording: Recording, window: tuple[float, float], bin: float | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Middle of each bin in seconds (bins,), and its frames from the event on (bins, frames)."""
    before, after = window
    if before < 0 or after < 0 or before + after <= 0:
        raise InputError(f"The window is {window!r}: seconds before and after are needed.")
    width = max(1, round((bin or 0) * recording.rate))
    first, stop = -round(before * recording.rate / width), round(after * recording.rate / width)
    starts = width * np.arange(first, max(stop, first + 1))
    offsets = starts[:, None] + np.arange(width)
    return (offsets.mean(1)) / recording.rate, offsets


def around(
    traces: np.ndarray, frames: np.ndarray, offsets: np.ndarray, recording: Recording
) -> np.ndarray:
    """Traces around frames, NaN where there are none: (moments, bins, cells) float32.

    Parameters
    ----------
    traces : (frames, cells) float32
    frames : (moments,) int64
    offsets : (bins, frames of a bin) int64
    """
    at = frames[:, None, None] + offsets
    inside = (at >= 0) & (at < len(traces))
    at = np.clip(at, 0, len(traces) - 1)
    used = inside & ~np.asarray(recording.excluded)[at]
    found = traces[at].astype(np.float32)
    found[~used] = np.nan
    return _nan_mean(found, axis=2)


def _columns_of(recording: Recording, cells: Sequence[int] | None) -> np.ndarray:
    ids = np.asarray(recording.cell_ids)
    if cells is None:
        return np.arange(len(ids))
    wanted = np.asarray(cells)
    missing = wanted[~np.isin(wanted, ids)]
    if len(missing):
        raise InputError(f"There is no cell {missing[0]} in this recording.")
    order = np.argsort(ids)
    return order[np.searchsorted(ids, wanted, sorter=order)]


def _nan_mean(values: np.ndarray, axis: int = 0) -> np.ndarray:
    """Mean of what is known; NaN where nothing is."""
    known = ~np.isnan(values)
    count = known.sum(axis)
    total = np.where(known, values, 0).sum(axis)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan).astype(np.float32)


def _standard_error(values: np.ndarray) -> np.ndarray:
    known = ~np.isnan(values)
    count = known.sum(0)
    squares = np.where(known, np.square(values - _nan_mean(values)), 0).sum(0)
    error = np.sqrt(squares / np.maximum(count - 1, 1) / np.maximum(count, 1))
    return np.where(count > 1, error, np.nan).astype(np.float32)


@dataclass(frozen=True, eq=False)
class Responses:
    """Mean of every cell around the moments of each group.

    Sorted by its peak, even noise looks like a sequence of cells. So the mean is kept for every
    other moment by itself: cells are sorted by one half and drawn from the other.

    Parameters
    ----------
    moments : Moments
    seconds : (bins,) float64
        Middle of each bin, from the event on.
    halves : (2, groups, bins, cells) float32
        Mean over every other moment and over the rest, in standard deviations of the cell's trace
        from its mean; NaN where nothing is known.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_xcebra.recording import Recording, Variable
    >>> cue = Variable("cue", np.arange(400) % 50 == 20, "event")
    >>> since = (np.arange(400) - 20) % 50
    >>> traces = np.stack([since == 7, since == 3], axis=1).astype(float)
    >>> recording = Recording(traces, 10.0, {"cue": cue})
    >>> found = responses(recording, Moments.of(recording, "cue"), (1, 2))
    >>> found.peak().tolist(), found.mean().shape
    ([0.7, 0.3], (1, 30, 2))
    """

    moments: Moments
    seconds: np.ndarray
    halves: np.ndarray

    def mean(self) -> np.ndarray:
        """Mean over all moments of each group: (groups, bins, cells)."""
        counts = [np.bincount(half.group[half.group >= 0], minlength=self.halves.shape[1])
                  for half in _halves(self.moments)]  # fmt: skip
        weights = np.array(counts)[:, :, None, None] * np.isfinite(self.halves)
        total, count = (np.nan_to_num(self.halves) * weights).sum(0), weights.sum(0)
        mean = np.where(count > 0, total / np.maximum(count, 1), np.nan)
        return mean.astype(np.float32)

    def peak(self) -> np.ndarray:
        """Seconds at which each cell is highest in the first half, in any group: (cells,)."""
        first = np.where(np.isnan(self.halves[0]), -np.inf, self.halves[0]).max(0)
        found: np.ndarray = self.seconds[first.argmax(0)]
        return np.where(np.isfinite(first).any(0), found, np.nan)


def responses(
    recording: Recording,
    moments: Moments,
    window: tuple[float, float],
    bin: float | None = None,
    stop: Callable[[], bool] | None = None,
) -> Responses:
    """Responses of all cells, a few cells at a time.

    Parameters
    ----------
    recording : Recording
    moments : Moments
    window : (float, float)
        Seconds before and after.
    bin : float, optional
        Seconds; one frame if not given.
    stop : callable, optional
        Says whether nobody waits for the result any more; the other cells then stay NaN.
    """
    seconds, offsets = _bins_of(recording, window, bin)
    used = ~np.asarray(recording.excluded)
    shape = (2, len(moments.groups), len(seconds), recording.n_cells)
    found = np.full(shape, np.nan, np.float32)
    for cells, traces in _few_cells(recording, moments, offsets):
        if stop is not None and stop():
            break
        own = traces[used] if not used.all() else traces
        middle, spread = own.mean(0, dtype=np.float64), own.std(0, dtype=np.float64)
        for number, half in enumerate(_halves(moments)):
            mean = _means_of(traces, half, offsets, recording)
            # a cell that never changes stays at 0
            found[number, :, :, cells] = (mean - middle) / np.where(spread > 0, spread, 1)
    return Responses(moments, seconds, found)


def _halves(moments: Moments) -> tuple[Moments, Moments]:
    """Every other moment of each group, beginning with the first, and the rest."""
    odd = np.zeros(len(moments.group), bool)
    for group in range(len(moments.groups)):
        odd[np.flatnonzero(moments.group == group)[1::2]] = True
    first, rest = (np.where(left_out, -1, moments.group) for left_out in (odd, ~odd))
    return replace(moments, group=first), replace(moments, group=rest)
