"""Averages traces around an event, split by what is known of each trial."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.recording.moments import Moments, window_of
from napari_xcebra.recording.recording import Recording
from napari_xcebra.recording.traces import BLOCK_BYTES, in_blocks, read_block

if TYPE_CHECKING:
    import pandas as pd


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
    seconds, offsets = bins_of(recording, window or window_of(recording, event), bin)
    columns = _columns_of(recording, cells)
    values = np.empty((len(moments.frames), len(seconds), len(columns)), np.float32)
    for place, column in enumerate(columns):
        trace = read_block(
            recording.traces, slice(0, recording.n_frames), slice(column, column + 1)
        )
        values[:, :, place] = around(trace, moments.frames, offsets, recording)[:, :, 0]
    return PeriEvent(moments, seconds, values, np.asarray(recording.cell_ids)[columns])


def few_cells(
    recording: Recording, moments: Moments, offsets: np.ndarray
) -> Iterator[tuple[slice, np.ndarray]]:
    """Cells by the few, with all their frames: as many as fit into memory around all moments."""
    step = max(1, BLOCK_BYTES // (4 * max(1, len(moments.frames)) * offsets.size))
    for cells, block in in_blocks(recording.traces):
        for first in range(0, block.shape[1], step):
            part = block[:, first : first + step]
            start = cells.start + first
            yield slice(start, start + part.shape[1]), part


def means_of(
    traces: np.ndarray, moments: Moments, offsets: np.ndarray, recording: Recording
) -> np.ndarray:
    """Mean of traces, (frames, cells), over the moments of each group: (groups, bins, cells)."""
    frames = [moments.frames[moments.group == group] for group in range(len(moments.groups))]
    return np.stack([_nan_mean(around(traces, own, offsets, recording)) for own in frames])


def bins_of(
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
