"""Averages traces and columns over bins of time, and removes what other factors predict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from napari_xcebra.attribution.encoding.courses import TrialBasis
from napari_xcebra.attribution.encoding.model import Encoding
from napari_xcebra.attribution.watching import Watch
from napari_xcebra.learn.data.factors import TIME
from napari_xcebra.learn.data.labels import Labels, correlation_time
from napari_xcebra.learn.quality.chance import rearranged

BINS = 3000
"""Bins of time to compare, if the label is slow enough."""
MOST_BINS = 4000
"""Bins at most: more are thinned."""
BIN_SHARE = 0.2
"""Longest bin, as a share of the correlation time of the label."""
LEAD, LEADS = 0.4, 3
"""Seconds by which a cell may lead or follow, and the number of cases: lead, follow, neither."""
COLUMNS = 24
"""Directions of a factor's columns that are compared, at most."""
STRIP_RIDGE = 1e-4
"""Penalty of the regression that is removed, in variances of a column."""
TEST_RIDGE = 0.1
"""Penalty of the comparison, in mean variances of what is left of the columns."""


class Problem(NamedTuple):
    """Cells, and what is left of a factor's columns.

    Parameters
    ----------
    cells : (n,) int64
    columns : (bins, leads × columns) float32
    state : bool
        Whether the unobserved state is removed as well.
    """

    cells: np.ndarray
    columns: np.ndarray
    state: bool


@dataclass(frozen=True)
class Beside:
    """Cells, and everything beside a factor that may explain them.

    Parameters
    ----------
    cells : (n,) int64
    others : (bins, columns) float64
        What is removed, centred.
    weights : (columns, bins) float64
        Of the regression on it.
    leads : tuple of int
        Bins by which a cell may lead or follow.
    state : bool
        Whether the unobserved state is removed as well.
    own : (bins, columns) float64 or None
        Columns of the factor itself, if they are not the same for all cells.
    """

    cells: np.ndarray
    others: np.ndarray
    weights: np.ndarray
    leads: tuple[int, ...]
    state: bool
    own: np.ndarray | None = None

    @classmethod
    def of(
        cls,
        cells: np.ndarray,
        others: np.ndarray,
        leads: tuple[int, ...],
        *,
        state: bool,
        own: np.ndarray | None = None,
    ) -> Beside:
        """Prepare the regression on the other columns, (bins, columns)."""
        others = others - others.mean(0)
        gram = others.T @ others
        gram[np.diag_indices_from(gram)] += STRIP_RIDGE * max(np.diag(gram).mean(), 1e-12)
        return cls(cells, others, np.linalg.solve(gram, others.T), leads, state, own)

    def problem(self, columns: np.ndarray) -> Problem:
        """What is left of a factor's columns, (bins, columns), by lead, whitened."""
        columns = columns if self.own is None else self.own
        moved = np.stack([np.roll(columns - columns.mean(0), lead, axis=0) for lead in self.leads])
        left = moved - self.others @ (self.weights @ moved)
        return Problem(self.cells, np.hstack([_whitened(each) for each in left]), self.state)


@dataclass(frozen=True)
class Binned:
    """All that is compared, in bins of time.

    Parameters
    ----------
    encoding : Encoding
    width : int
        Frames of a bin.
    members : (bins, width) int64
        The frames of each bin.
    traces : (bins, cells) float64
    columns : (bins, columns) float64
        Of the observed variables, without any lag.
    state : (groups, bins, columns) float64
        Of the unobserved state, estimated without the cells of the group.
    """

    encoding: Encoding
    width: int
    members: np.ndarray
    traces: np.ndarray
    columns: np.ndarray
    state: np.ndarray

    @classmethod
    def of(cls, encoding: Encoding, factors: Sequence[str], watch: Watch) -> Binned:
        """Averages over bins as wide as the fastest label allows."""
        used = encoding.stream.frames
        bases, segment = encoding.predictors.bases, encoding.stream.recording.segment
        memories = [
            correlation_time(bases[name].labels, segment, len(segment) // 2)
            for name in factors
            if name in bases
        ]
        widest = max(1, int(BIN_SHARE * min(memories, default=1)))
        width = min(widest, max(1, -(-len(used) // BINS)))
        edges = np.arange(0, len(used) - width + 1, width)
        edges = edges[:: max(1, -(-len(edges) // MOST_BINS))]
        # rows without any lag: a cell's own lag was chosen by looking at its trace
        plain = replace(encoding, lags=np.zeros_like(encoding.lags))
        traces = np.empty((len(edges), len(plain.lags)))
        columns = np.empty((len(edges), encoding.predictors.width))
        state = np.empty((len(plain.groups), len(edges), len(encoding.columns[TIME])))
        for first in range(0, len(edges), 512):
            starts = edges[first : first + 512]
            positions = (starts[:, None] + np.arange(width)).ravel()
            here = slice(first, first + len(starts))
            read = plain.traces.at(used[positions])
            traces[here] = read.reshape(len(starts), width, -1).mean(1)
            for group, x in enumerate(plain.rows(positions)):
                means = x.reshape(len(starts), width, -1).mean(1)
                columns[here] = means[:, : columns.shape[1]]
                state[group, here] = means[:, columns.shape[1] :]
            watch.advance(0.2 * len(positions))
        members = used[edges[:, None] + np.arange(width)]
        return cls(encoding, width, members, traces, columns, state)

    @property
    def frames(self) -> np.ndarray:
        """The frame in the middle of each bin: (bins,) int64."""
        return self.members[:, self.width // 2]

    def own(self, factor: str) -> np.ndarray:
        """Columns of an observed factor: (bins, columns) float64; none for the state."""
        return self.columns[:, self.encoding.columns[factor]] if factor != TIME else self.columns

    def in_order(self, factor: str, source: np.ndarray) -> np.ndarray:
        """The same with the values of other trials: (bins, columns) float64.

        Parameters
        ----------
        source : (trials,) int64
            Trial whose value each trial gets.
        """
        basis = self.encoding.predictors.bases[factor]
        if not isinstance(basis, TrialBasis):
            raise TypeError(f"{factor} has no value for each trial.")
        permuted, found = basis.permuted(source), np.empty((len(self.members), basis.width))
        for first in range(0, len(found), 512):
            members = self.members[first : first + 512]
            rows = self.encoding.predictors.shown(permuted.rows, members.ravel())
            found[first : first + 512] = rows.reshape(*members.shape, -1).mean(1)
        return found

    def labels(self, factor: str) -> Labels:
        """Label in every bin; for the unobserved state, its latents."""
        if factor != TIME:
            labels = self.encoding.predictors.bases[factor].labels
            return rearranged(labels, self.frames)
        latents = self.state[0][:, : self.encoding.latents.shape[2]]
        bins = len(latents)
        return Labels(latents, latents[:, :0], np.zeros(bins, np.int64), np.ones(bins, bool))

    def beside(self, factor: str) -> Iterator[Beside]:
        """What a factor is compared beside, for which cells.

        Once beside the other variables, and once beside the state too; each for cells that lead,
        follow, or do neither, with the other variables at the cells' own lag.
        """
        own = self.encoding.columns[factor]
        others = np.setdiff1d(np.arange(self.columns.shape[1]), own)
        nearest = np.clip(np.round(self.encoding.lags / (self.width * self.leads[-1])), -1, 1)
        every = np.arange(len(nearest))
        groups = self.encoding.groups if self.state.shape[2] else ()
        for lead in np.unique(nearest).astype(int):
            beside = np.roll(self.columns[:, others], -lead * self.leads[-1], axis=0)
            cells = every[nearest == lead]
            if factor != TIME:
                yield Beside.of(cells, beside, self.leads, state=False)
            for group, state in zip(groups, self.state, strict=False):
                mine = np.intersect1d(group, cells)
                if len(mine) == 0:
                    continue
                if factor == TIME:
                    yield Beside.of(mine, beside, self.leads, state=False, own=state)
                else:
                    yield Beside.of(mine, np.hstack([beside, state]), self.leads, state=True)

    @property
    def leads(self) -> tuple[int, ...]:
        """Bins by which a cell may lead or follow."""
        lead = max(1, round(LEAD * self.encoding.stream.recording.rate / self.width))
        return (-lead, 0, lead)


def _whitened(columns: np.ndarray) -> np.ndarray:
    """Columns rotated and scaled so that directions count alike, faint ones less: float32."""
    values, vectors = np.linalg.eigh(columns.T @ columns / len(columns))
    values, vectors = np.maximum(values[-COLUMNS:], 0), vectors[:, -COLUMNS:]
    scale = np.sqrt(values + TEST_RIDGE * max(values.mean(), 1e-12))
    whitened: np.ndarray = (columns @ (vectors / scale)).astype(np.float32)
    return whitened
