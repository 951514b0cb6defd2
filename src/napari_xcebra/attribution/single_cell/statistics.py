"""Lists the single-cell statistics, and computes and tabulates them for a recording."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from napari_xcebra.attribution.single_cell.measures import (
    correlation,
    decoder_weight,
    grid_score,
    information_rate,
    mutual_information,
    rank_correlation,
    spatial_information,
)
from napari_xcebra.attribution.single_cell.tuning import Column, columns_of
from napari_xcebra.attribution.tables import write_tables
from napari_xcebra.errors import InputError, Stopped
from napari_xcebra.recording import Recording

if TYPE_CHECKING:
    import pandas as pd

Compute = Callable[[np.ndarray, Sequence[Column], np.ndarray], np.ndarray]


def _to_anything(columns: Sequence[Column]) -> bool:
    return len(columns) > 0


def _to_position(columns: Sequence[Column]) -> bool:
    """Two lengths in the same unit."""
    return [c.kind for c in columns] == ["continuous"] * 2 and len({c.unit for c in columns}) == 1


@dataclass(frozen=True)
class _Statistic:
    """One number a cell, computed from its activity and a variable.

    Parameters
    ----------
    name : str
        Column in a file.
    title : str
        Column in a narrow table.
    unit : str
        Empty for pure numbers.
    help : str
        One sentence.
    compute : callable
        (activity (frames, cells), columns, used (frames,) bool) → (cells,) float64.
    applies : callable
        Whether it can be computed for these columns.
    together : bool
        Whether it needs all cells at once.
    most_cells : int, optional
        Beyond which it would take too long.
    signed : bool
        Whether values far below 0 are as strong as values far above.
    """

    name: str
    title: str
    unit: str
    help: str
    compute: Compute
    applies: Callable[[Sequence[Column]], bool] = _to_anything
    together: bool = False
    most_cells: int | None = None
    signed: bool = False

    def strength(self, values: np.ndarray) -> np.ndarray:
        """What cells are ranked by: (cells,) float64."""
        return np.abs(values) if self.signed else values


STATISTICS: dict[str, _Statistic] = {
    statistic.name: statistic
    for statistic in (
        _Statistic(
            "spatial_information",
            "SI",
            "bits/event",
            "Skaggs information from the smoothed tuning map; on calcium traces, activity above "
            "the lowest quarter of the trace counts as events.",
            spatial_information,
        ),
        _Statistic(
            "information_rate",
            "SI rate",
            "bits/s",
            "The same times the mean activity; bits per second where traces are events per second.",
            information_rate,
        ),
        _Statistic(
            "mutual_information",
            "MI",
            "bits",
            "Mutual information of 8 levels of activity with the binned variable, less its mean "
            "with the variable shifted in time.",
            mutual_information,
        ),
        _Statistic(
            "correlation",
            "r",
            "",
            "Pearson's correlation; circular-linear for angles, the correlation ratio η for "
            "discrete variables, multiple R for several columns.",
            correlation,
            signed=True,
        ),
        _Statistic(
            "rank_correlation",
            "ρ",
            "",
            "The same of ranks (Spearman), which finds any monotonic relation.",
            rank_correlation,
            signed=True,
        ),
        _Statistic(
            "grid_score",
            "grid",
            "",
            "How hexagonal the map is (Sargolini et al. 2006), −2 to 2.",
            grid_score,
            applies=_to_position,
        ),
        _Statistic(
            "decoder_weight",
            "weight",
            "",
            "Size of the weight in a linear (ridge) decoder of the variable from all cells.",
            decoder_weight,
            together=True,
            most_cells=2000,
        ),
    )
}


def _statistic_named(name: str) -> _Statistic:
    """Statistic of that name, or a sentence that lists all."""
    try:
        return STATISTICS[name]
    except KeyError:
        raise InputError(
            f"There is no statistic {name!r}; there are: {', '.join(STATISTICS)}."
        ) from None


CHUNK_BYTES = 32 * 2**20
"""Bytes of traces read at a time."""

Asked = tuple[str, _Statistic]
"""A factor, and a statistic that applies to it."""


@dataclass(frozen=True, eq=False)
class CellStatistics:
    """Statistics of every cell for every factor.

    Parameters
    ----------
    cell_ids : (cells,) int64
        Every ROI of the recording, in its order.
    values : mapping of factor to mapping of statistic to (cells,) float64
        NaN where a cell was not used, or the statistic cannot be computed. A statistic that does
        not apply to a factor is left out.
    notes : tuple of str
        What could not be computed, and why.
    """

    cell_ids: np.ndarray
    values: Mapping[str, Mapping[str, np.ndarray]]
    notes: tuple[str, ...] = ()

    @property
    def factors(self) -> tuple[str, ...]:
        """Names of the factors that have variables."""
        return tuple(self.values)

    def of(self, factor: str) -> Mapping[str, np.ndarray]:
        """Statistics of one factor by name; none for a factor without variables, such as time."""
        return self.values.get(factor, {})

    def merged(self, other: CellStatistics) -> CellStatistics:
        """These and other statistics of the same cells; the others win where both have one."""
        factors = dict.fromkeys([*self.values, *other.values])
        values = {factor: {**self.of(factor), **other.of(factor)} for factor in factors}
        return CellStatistics(self.cell_ids, values, self.notes + other.notes)

    def table(self, factor: str) -> pd.DataFrame:
        """One row a ROI, in the order of the recording: cell, and a column a statistic."""
        import pandas as pd

        if factor not in self.values:
            raise InputError(
                f"There are no statistics for {factor!r}; there are for: "
                f"{', '.join(self.factors) or 'none'}."
            )
        return pd.DataFrame({"cell": self.cell_ids, **self.values[factor]})

    def to_csv(self, path: str | os.PathLike[str]) -> Path:
        """Write one row a ROI and factor: cell, factor, and a column a statistic."""
        return write_tables(path, self.factors, self.table)


def cell_statistics(
    recording: Recording,
    factors: Mapping[str, Sequence[str]],
    statistics: Sequence[str] | None = None,
    *,
    cells: np.ndarray | None = None,
    on_progress: Callable[[int, int], object] | None = None,
    stop: Callable[[], bool] | None = None,
) -> CellStatistics:
    """Statistics of every cell for every factor.

    Frames that are excluded, or at which a variable of the factor is unknown, are not used.

    Parameters
    ----------
    recording : Recording
    factors : mapping of str to sequence of str
        Variables by factor, as given to `fit`; factors without any are skipped.
    statistics : sequence of str, optional
        Names from `STATISTICS`; all if not given.
    cells : (n,) int, optional
        Positions of the cells, such as ``fit.inputs.columns(recording)``; the accepted ones if not
        given.
    on_progress : callable, optional
        Called with the number of cells done and in all, over all statistics and factors.
    stop : callable, optional
        Asked regularly; when it returns True, `Stopped` is raised.

    Examples
    --------
    >>> from napari_xcebra.simulate import arena
    >>> simulation = arena(place=5, grid=5, direction=5, speed=5, frames=500)
    >>> found = cell_statistics(simulation.recording, simulation.factors, ["correlation"])
    >>> found.table("speed").columns.tolist()
    ['cell', 'correlation']
    """
    names = STATISTICS if statistics is None else statistics
    chosen = np.flatnonzero(np.asarray(recording.accepted)) if cells is None else cells
    columns = {name: columns_of(recording, list(v)) for name, v in factors.items() if len(v)}
    asked = [(f, s) for f in columns for s in map(_statistic_named, names) if s.applies(columns[f])]
    values: dict[str, dict[str, np.ndarray]] = {factor: {} for factor in columns}
    notes = {one: note for one in asked if (note := _too_large(one, len(chosen)))}
    asked = [one for one in asked if one not in notes]
    used, done = ~np.asarray(recording.excluded), 0
    for part, group in _portions(chosen, asked, recording.n_frames):
        activity = recording.traces[:, part]
        for factor, statistic in group:
            try:
                found = statistic.compute(activity, columns[factor], used)
            except InputError as error:
                notes[factor, statistic] = _note(factor, statistic, str(error))
            else:
                nothing = np.full(recording.n_cells, np.nan)
                values[factor].setdefault(statistic.name, nothing)[part] = found
            done += len(part)
            if on_progress is not None:
                on_progress(done, len(asked) * len(chosen))
            if stop is not None and stop():
                raise Stopped(f"Stopped at {statistic.name} of {factor}.")
    return CellStatistics(np.asarray(recording.cell_ids), values, tuple(notes.values()))


def _portions(
    cells: np.ndarray, asked: Sequence[Asked], frames: int
) -> Iterator[tuple[np.ndarray, list[Asked]]]:
    """Cells to read at a time, and what to compute from them: a trace is read once or twice."""
    alone = [one for one in asked if not one[1].together]
    together = [one for one in asked if one[1].together]
    step = max(1, CHUNK_BYTES // (4 * max(1, frames)))
    for first in range(0, len(cells) if alone else 0, step):
        yield cells[first : first + step], alone
    if together and len(cells):
        yield cells, together


def _too_large(one: Asked, cells: int) -> str:
    """Why a statistic cannot be computed for this many cells; empty if it can."""
    factor, statistic = one
    if statistic.most_cells is None or cells <= statistic.most_cells:
        return ""
    return _note(factor, statistic, f"{cells} cells are more than {statistic.most_cells}.")


def _note(factor: str, statistic: _Statistic, reason: str) -> str:
    return f"No {statistic.name.replace('_', ' ')} for {factor}: {reason}"


def applicable(recording: Recording, variables: Sequence[str]) -> tuple[str, ...]:
    """Statistics that can be computed for some variables; none where one is not there."""
    if not variables or any(name not in recording.behavior for name in variables):
        return ()
    columns = columns_of(recording, variables)
    return tuple(name for name, statistic in STATISTICS.items() if statistic.applies(columns))
