"""Finds the value of a variable at which each cell is most active."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from napari_xcebra.attribution.single_cell.tuning import Column, binned, tuning_curve
from napari_xcebra.errors import Stopped
from napari_xcebra.recording import Recording
from napari_xcebra.recording.traces import in_blocks


def preferred_values(
    recording: Recording, column: Column, stop: Callable[[], bool] | None = None
) -> np.ndarray:
    """Value at the peak of each cell's tuning curve; NaN where there is no curve: (cells,) float64.

    Parameters
    ----------
    recording : Recording
        Traces are read a few cells at a time.
    column : Column
    stop : callable, optional
        Says whether nobody waits for it any more; then `Stopped` is raised.

    Examples
    --------
    >>> place = np.tile(np.arange(100.0), 10)
    >>> traces = np.stack([place > 80, place < 20], axis=1)
    >>> recording = Recording.from_arrays(traces, 10.0, {"place": place})
    >>> first, second = preferred_values(recording, Column("place", place))
    >>> bool(first > 80), bool(second < 20)
    (True, True)
    """
    bins = binned(column, ~np.asarray(recording.excluded))
    found = np.full(recording.n_cells, np.nan)
    for cells, traces in in_blocks(recording.traces):
        if stop is not None and stop():
            raise Stopped
        mean = tuning_curve(traces, bins).mean
        known = np.isfinite(mean).any(0)
        peak = np.where(np.isfinite(mean), mean, -np.inf).argmax(0)
        found[cells] = np.where(known, bins.values[peak], np.nan)
    return found
