"""Finds what cells share: how many directions of their activity, and which belong to one factor.

A hidden factor moves several cells together; a cell's own noise, however slow, moves that cell
alone. So directions of the traces are counted against surrogates in which each trace is shifted by
itself, and estimated by factor analysis, which leaves to each cell a variance of its own. Rotated
so that each direction is in few cells, they fall into groups: a factor to which cells are tuned
takes several directions, which are in the same cells and depend on each other over time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigh

from napari_xcebra.attribution.encoding.ridge import RIDGES
from napari_xcebra.standardise import standardised

SURROGATES = 40
"""Surrogates, all of which a direction must exceed: one in 41 would by chance."""
STEPS, SETTLED = 60, 1e-4
"""Steps of the factor analysis, and the change of a variance at which it ends."""
LEAST_OWN = 0.02
"""Share of its variance that a cell keeps for itself at least."""
CELLS_A_DIRECTION = 3
"""Cells for each direction at least."""
COURSE_SHIFTS, LEVEL = 100, 0.95
"""Shifts against which courses are compared, and the quantile over them that counts as 1."""
OVERLAP = 0.1
"""Cosine of what two directions have in each cell that counts as 1. It is 1/3 for any two
directions within a factor that turn freely, and 0 for two factors in different cells."""
BLOCKS = 5
"""Blocks of time in which the regression on what is removed is judged."""
FAINT = 1e-3
"""Overlap and dependence that count as this at least."""
EXTREME = 4.0
"""Standard deviations at which a course is clipped when its moments are compared."""


@dataclass(frozen=True)
class Kin:
    """Directions that seem to be of one factor.

    Parameters
    ----------
    directions : tuple of int
    halves : tuple of Kin
        The two that were joined last; empty for a single direction.
    """

    directions: tuple[int, ...]
    halves: tuple[Kin, ...] = ()


@dataclass(frozen=True)
class SharedActivity:
    """Directions of activity that cells share.

    Parameters
    ----------
    traces : (bins, cells) float64
        Standardised.
    loadings : (cells, directions) float64
    own : (cells,) float64
        Share of each cell's variance that is its own.
    overlap : (directions, directions) float64
        How much directions are in the same cells: above 1, more like one factor than like two.
    dependence : (directions, directions) float64
        Of their courses, 1 at what a twentieth of shifted courses exceed.
    """

    traces: np.ndarray
    loadings: np.ndarray
    own: np.ndarray
    overlap: np.ndarray
    dependence: np.ndarray

    @property
    def directions(self) -> int:
        """Their number."""
        return self.loadings.shape[1]

    def courses(self, hidden: np.ndarray | None = None) -> np.ndarray:
        """Course of each direction: (bins, directions) float64.

        Parameters
        ----------
        hidden : (n,) int64, optional
            Cells to leave out.
        """
        weights = self.loadings / self.own[:, None]
        if hidden is not None:
            weights = weights.copy()
            weights[hidden] = 0
        precision = np.eye(self.directions) + self.loadings.T @ weights
        found: np.ndarray = self.traces @ np.linalg.solve(precision, weights.T).T
        return found

    def lagged(self, lag: int) -> np.ndarray:
        """Covariance of the directions over a lag, without the cells' own: symmetric float64."""
        weights = self.loadings / self.own[:, None]
        weights = np.linalg.solve(self.loadings.T @ weights, weights.T).T
        early, late = self.traces[: len(self.traces) - lag], self.traces[lag:]
        raw = (late @ weights).T @ (early @ weights) / len(early)
        raw = (raw + raw.T) / 2
        own, found = np.einsum("ij,ij->j", late, early) / len(early), raw
        for _ in range(8):
            alone = own - ((self.loadings @ found) * self.loadings).sum(1)
            found = raw - (weights.T * alone) @ weights
        return found

    def leading(self, count: int) -> SharedActivity:
        """The same with another number of directions, by factor analysis and varimax."""
        covariance = self.traces.T @ self.traces / len(self.traces)
        loadings, own = _analyse_factors(covariance, count)
        return replace(self, loadings=loadings @ _sparse_rotation(loadings), own=own)

    def kin(self) -> list[Kin]:
        """Directions that seem to be of one factor, those in most cells first."""
        groups = [Kin((each,)) for each in range(self.directions)]
        # above 0 where two directions seem to be of one factor
        kinship = np.log(np.maximum(self.overlap, FAINT) * np.maximum(self.dependence, FAINT))
        while len(groups) > 1:
            pairs = [
                (float(kinship[np.ix_(groups[a].directions, groups[b].directions)].mean()), a, b)
                for a in range(len(groups))
                for b in range(a)
            ]
            closest, a, b = max(pairs)
            if closest <= 0:
                break
            one, other = groups.pop(a), groups.pop(b)
            groups.append(Kin(one.directions + other.directions, (one, other)))
        size = [-np.square(self.loadings[:, group.directions]).sum() for group in groups]
        return [groups[i] for i in np.argsort(size)]


def shared_activity(
    traces: np.ndarray, rng: np.random.Generator, removed: np.ndarray | None = None
) -> SharedActivity:
    """Directions that cells share beyond chance; there may be none.

    Parameters
    ----------
    traces : (bins, cells) float
    removed : (bins, columns) float, optional
        What to remove from the traces first. It is removed from the surrogates as well: slow
        columns leave little time in which slow cells can differ.
    """
    traces = standardised(np.asarray(traces, np.float64))
    basis = np.zeros((len(traces), 0)) if removed is None else _smoother(removed, traces)
    traces = standardised(_without(traces, basis))
    covariance = traces.T @ traces / len(traces)
    count = _count_directions(traces.astype(np.float32), covariance, rng, basis)
    loadings, own = _analyse_factors(covariance, count)
    if count > 1:
        loadings = loadings @ _sparse_rotation(loadings)
    empty = np.zeros((count, count))
    shared = SharedActivity(traces, loadings, own, empty, empty)
    if count < 2:
        return shared
    dependence = _dependence(shared.courses(), rng)
    return replace(shared, overlap=_shared_cells(loadings), dependence=dependence)


def _smoother(columns: np.ndarray, traces: np.ndarray) -> np.ndarray:
    """Basis B of the ridge regression BBᵀ on columns that predicts held-out traces best."""
    columns = columns - columns.mean(0)
    errors = np.zeros(len(RIDGES))
    for here in np.array_split(np.arange(len(columns)), BLOCKS):
        others = np.setdiff1d(np.arange(len(columns)), here)
        x, y = columns[others], traces[others]
        values, vectors = np.linalg.eigh(x.T @ x / len(x))
        projected, seen = vectors.T @ (x.T @ y / len(x)), columns[here] @ vectors
        for number, ridge in enumerate(RIDGES):
            weights = projected / (np.maximum(values, 0) + ridge)[:, None]
            errors[number] += np.square(traces[here] - seen @ weights).sum()
    left, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    kept = sizes**2 / (sizes**2 + RIDGES[int(errors.argmin())] * len(columns))
    found: np.ndarray = left * np.sqrt(kept)
    return found


def _without(traces: np.ndarray, basis: np.ndarray) -> np.ndarray:
    found: np.ndarray = traces - basis @ (basis.T @ traces)
    return found


def _count_directions(
    traces: np.ndarray, covariance: np.ndarray, rng: np.random.Generator, basis: np.ndarray
) -> int:
    """Leading eigenvalues, each above that of the same rank in every surrogate."""
    most = traces.shape[1] // CELLS_A_DIRECTION
    values = np.linalg.eigvalsh(covariance)[::-1][:most]
    highest = np.zeros(most)
    basis = basis.astype(np.float32)
    for _ in range(SURROGATES):
        shifted = _shift_each(traces, rng)
        if basis.shape[1]:
            shifted = standardised(_without(shifted, basis))
        found = np.linalg.eigvalsh((shifted.T @ shifted / len(traces)).astype(np.float64))
        highest = np.maximum(highest, found[::-1][:most])
        if values[:1] <= highest[:1]:
            return 0
    return int(np.argmin(np.r_[values > highest, False]))


def _shift_each(traces: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Every trace shifted in a circle by itself: it keeps its time scale, and shares nothing."""
    frames, cells = traces.shape
    shifts = rng.integers(frames // 20, frames - frames // 20, cells)
    columns = [np.roll(column, shift) for column, shift in zip(traces.T, shifts, strict=True)]
    return np.stack(columns, 1)


def _analyse_factors(covariance: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Loadings (cells, count), and each cell's own share of its variance, by principal axes."""
    cells = len(covariance)
    if count == 0:
        return np.zeros((cells, 0)), np.ones(cells)
    own = np.full(cells, 0.7)
    span = (cells - count, cells - 1)
    for _ in range(STEPS):
        scale = np.sqrt(own)
        values, vectors = eigh(covariance / scale / scale[:, None], subset_by_index=span)
        loadings = vectors * np.sqrt(np.maximum(values - 1, 1e-6)) * scale[:, None]
        before, own = own, np.clip(1 - np.square(loadings).sum(1), LEAST_OWN, 1)
        if np.abs(own - before).max() < SETTLED:
            break
    return loadings[:, ::-1], own


def _sparse_rotation(loadings: np.ndarray) -> np.ndarray:
    """Rotation by which each direction is in few cells (varimax)."""
    rotation, before = np.eye(loadings.shape[1]), 0.0
    for _ in range(300):
        turned = loadings @ rotation
        sharper = turned**3 - turned * np.square(turned).mean(0)
        left, sizes, right = np.linalg.svd(loadings.T @ sharper)
        rotation = left @ right
        if sizes.sum() < before * (1 + 1e-7):
            break
        before = sizes.sum()
    return rotation


def _shared_cells(loadings: np.ndarray) -> np.ndarray:
    """How much directions are in the same cells, by `OVERLAP`."""
    power = np.square(loadings)
    weights = power / np.sqrt(np.maximum(power.sum(1, keepdims=True), 1e-9))
    products = weights.T @ weights
    size = np.sqrt(np.maximum(np.diag(products), 1e-12))
    found: np.ndarray = products / size / size[:, None] / OVERLAP
    return found


def _dependence(courses: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Correlation of powers of courses: 1 at what a twentieth of shifts exceed."""
    frames, count = courses.shape
    one = np.clip(standardised(courses), -EXTREME, EXTREME)
    powers = [
        standardised(each) for each in (one, one**2, np.abs(one) ** 3 * np.sign(one) - 3 * one)
    ]
    columns = np.stack(powers, 2).reshape(frames, -1)

    def strength(other: np.ndarray) -> np.ndarray:
        products = np.square(columns.T @ other / frames)
        found: np.ndarray = products.reshape(count, 3, count, 3).sum((1, 3))
        return found

    by_chance = []
    for shift in rng.integers(frames // 10, frames - frames // 10, COURSE_SHIFTS):
        shifted = strength(np.roll(columns, shift, axis=0))
        by_chance.append((shifted + shifted.T) / 2)
    return strength(columns) / np.maximum(np.quantile(by_chance, LEVEL, axis=0), 1e-12)
