"""Decodes the course of a hidden factor from the cells that share it.

The slowest direction of a factor follows it: if cells are tuned to it, the others are harmonics,
which forget faster. From there, tunings and course are fitted in turn: the tuning of each cell
along the factor, then the course from all cells at once, smooth over time (a hidden Markov model
on a grid). A factor may have two dimensions, such as a place. The linear course stays where it
explains cells that were left out as well.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.ndimage import gaussian_filter1d
from scipy.stats import rankdata

from napari_xcebra.attribution.discovery.shared import Kin, SharedActivity
from napari_xcebra.attribution.encoding.basis import Expansion
from napari_xcebra.attribution.encoding.model import cell_groups
from napari_xcebra.attribution.encoding.ridge import BlockSums, fit_held_out
from napari_xcebra.standardise import standardised

GROUPS = 4
"""Groups of cells, for each of which courses are decoded from the others."""
BLOCKS = 10
"""Blocks of time, each predicted from the others."""
ROUNDS = 5
"""Times that tunings and course are fitted in turn."""
GRID, GRID_OF_TWO = 40, 14
"""Points along a factor, and along each of two dimensions."""
SMOOTH, SMOOTH_OF_TWO = 0.06, 0.08
"""Width of the smoothing of a tuning, as a share of the range of the factor."""
TOUCHED = 0.02
"""Share of a cell's variance in the directions of a factor, from which on it helps to decode it."""
HALVED = 0.5
"""Autocorrelation of the slowest direction at the lag at which directions are compared."""
BETTER = 0.05
"""Share by which a course must explain the cells better than a simpler one."""
LASTING, OWN_WAY = 0.1, 0.15
"""A second dimension lasts over that lag, and is no more predictable than this from the first."""


@dataclass(frozen=True)
class DecodedCourse:
    """Course of a factor, and the same without each group of cells.

    Parameters
    ----------
    course : (bins, dimensions) float64
        Standardised.
    without : (groups, bins, dimensions) float64
    tuned : bool
        Whether tunings were fitted; else it is a weighted sum of the traces.
    """

    course: np.ndarray
    without: np.ndarray
    tuned: bool

    @property
    def dimensions(self) -> int:
        """1, or 2 for one like a place."""
        return self.course.shape[1]


def decode_factors(
    shared: SharedActivity, kin: Kin, hidden: list[np.ndarray], first: np.ndarray
) -> list[DecodedCourse]:
    """Decode the factor that directions are of, or several, if these explain the cells better.

    Parameters
    ----------
    hidden : list of (n,) int64
        Groups of cells.
    first : (bins,) bool
        Where a stretch without gaps begins.
    """
    group = np.array(kin.directions)
    together = _decode_group(shared, group, hidden, first)
    if not kin.halves:
        return [together]
    apart = [_decode_group(shared, np.array(h.directions), hidden, first) for h in kin.halves]
    touched = np.square(shared.loadings[:, group]).sum(1) > TOUCHED
    left = _left_by_others(shared, group)
    before = _explained(left, touched, [together], hidden)
    if not _is_better(_explained(left, touched, apart, hidden), before):
        return [together]
    return [each for h in kin.halves for each in decode_factors(shared, h, hidden, first)]


def _left_by_others(shared: SharedActivity, group: np.ndarray) -> np.ndarray:
    """Traces without what all other directions explain: (bins, cells)."""
    others = np.setdiff1d(np.arange(shared.directions), group)
    found: np.ndarray = shared.traces - shared.courses()[:, others] @ shared.loadings[:, others].T
    return found


def _is_better(shares: np.ndarray, before: np.ndarray) -> bool:
    """Whether the cells that were left out are explained clearly better: (cells,) each."""
    gain = shares - before
    least = max(gain.std() / np.sqrt(len(gain)), BETTER * before.mean())
    return bool(gain.mean() > least)


def _decode_group(
    shared: SharedActivity, group: np.ndarray, hidden: list[np.ndarray], first: np.ndarray
) -> DecodedCourse:
    """Decode one factor of one or two dimensions from some directions."""
    turn, second = _slowest(shared, group)
    linear = _linear(shared, group, turn[:, :1], hidden)
    touched = np.square(shared.loadings[:, group]).sum(1) > TOUCHED
    if touched.sum() < 2 * GROUPS:
        return linear
    left = _left_by_others(shared, group)
    candidates = [_decode_tuned(left, touched, linear.course, hidden, first)]
    if second:
        linear_two = _linear(shared, group, turn[:, [0, second]], hidden)
        candidates += [linear_two, _decode_tuned(left, touched, linear_two.course, hidden, first)]
    best, explained = linear, _explained(left, touched, [linear], hidden)
    for each in candidates:  # simpler ones stay, unless others are clearly better
        shares = _explained(left, touched, [each], hidden)
        if _is_better(shares, explained):
            best, explained = each, shares
    return best


def _slowest(shared: SharedActivity, group: np.ndarray) -> tuple[np.ndarray, int]:
    """Turn of the directions to the slowest ones first, and which is a second dimension, or 0."""
    frames = len(shared.traces)
    lags = np.unique(np.geomspace(1, max(frames // 20, 2), 16).astype(int))
    spectra = [np.linalg.eigh(shared.lagged(lag)[np.ix_(group, group)]) for lag in lags]
    values, vectors = min(spectra, key=lambda each: abs(each[0][-1] - HALVED))
    values, turn = values[::-1], vectors[:, ::-1]
    modes = shared.courses()[:, group] @ turn
    for number in range(1, len(group)):
        if values[number] > LASTING:
            columns = Expansion.of(modes[:, :1])([modes[:, 0]])
            if held_out_share(columns, modes[:, number : number + 1])[0] < OWN_WAY:
                return turn, number
    return turn, 0


def _linear(
    shared: SharedActivity, group: np.ndarray, turn: np.ndarray, hidden: list[np.ndarray]
) -> DecodedCourse:
    course = shared.courses()[:, group] @ turn
    without = [shared.courses(own)[:, group] @ turn for own in hidden]
    return DecodedCourse(
        standardised(course), np.stack([standardised(w) for w in without]), tuned=False
    )


def held_out_share(columns: np.ndarray, traces: np.ndarray) -> np.ndarray:
    """Share of each trace's variance that columns explain in held-out blocks: (cells,)."""
    return fit_held_out(block_sums(columns, traces)).r2


def block_sums(columns: np.ndarray, traces: np.ndarray) -> BlockSums:
    """Sums of products over blocks of time: (bins, columns) and (bins, cells)."""
    sums = BlockSums.empty(BLOCKS, columns.shape[1], traces.shape[1])
    for block, at in enumerate(np.array_split(np.arange(len(columns)), BLOCKS)):
        sums.add(block, columns[at].astype(np.float32), traces[at].astype(np.float32))
    return sums


def expand(course: np.ndarray, *, few: bool = False) -> np.ndarray:
    """Splines along a course of one or two dimensions: (bins, columns) float64."""
    values = course + 1e-9 * np.arange(len(course))[:, None]  # a grid has equal values
    return Expansion.of(values, few=few)(list(values.T))


def _explained(
    traces: np.ndarray, touched: np.ndarray, decoded: list[DecodedCourse], hidden: list[np.ndarray]
) -> np.ndarray:
    """Share of each cell that courses from the other cells explain, in cells that have them."""
    found = []
    for number, own in enumerate(hidden):
        cells = own[touched[own]]
        if len(cells):
            columns = np.hstack([expand(each.without[number]) for each in decoded])
            found.append(held_out_share(columns, traces[:, cells]))
    return np.concatenate(found) if found else np.zeros(1)


# ------------------------------------------------------------ tunings and course in turn


@dataclass(frozen=True)
class _Chain:
    """How a course moves on its grid from one bin to the next.

    Parameters
    ----------
    moves : tuple of (points, points) float64
        Of each dimension.
    first : (bins,) bool
        Where it begins anew.
    """

    moves: tuple[np.ndarray, ...]
    first: np.ndarray

    def posterior(self, likelihood: np.ndarray) -> np.ndarray:
        """Probability of each point, given all bins: (bins, points) float64."""
        shape = tuple(len(move) for move in self.moves)
        likely = likelihood.reshape(len(likelihood), *shape)
        forward, backward = np.empty_like(likely), np.empty_like(likely)
        before, after = self.moves[0], self.moves[-1].T
        two = len(self.moves) == 2
        now = np.ones(shape)
        for t in range(len(likely)):
            if self.first[t]:
                now = np.ones(shape)
            now = before.T @ now
            if two:
                now = now @ self.moves[1]
            now = now * likely[t]
            now /= now.sum()
            forward[t] = now
        now = np.ones(shape)
        for t in range(len(likely) - 1, -1, -1):
            backward[t] = now
            now = before @ (now * likely[t])
            if two:
                now = now @ after
            now = np.ones(shape) if self.first[t] else now / now.sum()
        found = (forward * backward).reshape(len(likely), -1)
        found /= found.sum(1, keepdims=True)
        return found


def _decode_tuned(
    traces: np.ndarray,
    touched: np.ndarray,
    start: np.ndarray,
    hidden: list[np.ndarray],
    first: np.ndarray,
) -> DecodedCourse:
    """Fit tunings and course in turn, from a course to start with."""
    cells = np.flatnonzero(touched)
    traces = traces[:, cells]
    dimensions = start.shape[1]
    points, width = (GRID, SMOOTH) if dimensions == 1 else (GRID_OF_TWO, SMOOTH_OF_TWO)
    grid = (np.arange(points) + 0.5) / points
    smooth = np.exp(-0.5 * ((grid[:, None] - grid) / width) ** 2)
    if dimensions == 2:
        smooth = np.kron(smooth, smooth)
    places = np.stack(
        [each.ravel() for each in np.meshgrid(*[grid] * dimensions, indexing="ij")], 1
    )
    ranks = _ranks(start)
    weights = _on_grid(ranks, points)
    for _ in range(ROUNDS):
        tuning = smooth @ (weights.T @ traces)
        tuning /= np.maximum(smooth @ weights.sum(0), 1e-6)[:, None]
        noise = traces - weights @ tuning
        variance = noise.var(0) + 1e-3
        scale = _independent_share(noise) / variance
        chain = _Chain(tuple(_moves(column, grid) for column in ranks.T), first)
        posterior = chain.posterior(_likelihood(traces, tuning, scale))
        ranks = _ranks(posterior @ places)
        weights = posterior
        if dimensions == 1:  # half by rank, lest the course crowd on a few points
            weights = (posterior + _on_grid(ranks, points)) / 2
    found = [posterior]
    for own in hidden:
        seen = np.where(np.isin(cells, own), 0, scale)
        found.append(chain.posterior(_likelihood(traces, tuning, seen)))
    courses = [standardised(each @ places) for each in found]
    return DecodedCourse(courses[0], np.stack(courses[1:]), tuned=True)


def _ranks(course: np.ndarray) -> np.ndarray:
    """Each dimension as ranks between 0 and 1."""
    return np.stack([(rankdata(column) - 0.5) / len(column) for column in course.T], 1)


def _on_grid(ranks: np.ndarray, points: int) -> np.ndarray:
    """1 at the point of each bin: (bins, points ** dimensions)."""
    at = np.minimum((ranks * points).astype(np.int64), points - 1)
    flat = at @ points ** np.arange(ranks.shape[1])[::-1]
    found = np.zeros((len(ranks), points ** ranks.shape[1]))
    found[np.arange(len(ranks)), flat] = 1
    return found


def _likelihood(traces: np.ndarray, tuning: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Likelihood of each point at each bin, up to a factor: (bins, points)."""
    found = (traces * scale) @ tuning.T - 0.5 * (np.square(tuning) @ scale)
    found -= found.max(1, keepdims=True)
    likely: np.ndarray = np.exp(found) + 1e-30
    return likely


def _independent_share(noise: np.ndarray) -> float:
    """Share of the bins that are independent: traces decay slowly, and so does their noise."""
    frames = len(noise)
    spectrum = np.zeros(frames + 1)
    for column in noise.T:
        spectrum += np.abs(np.fft.rfft(column / (column.std() + 1e-9), 2 * frames)) ** 2
    memory = np.fft.irfft(spectrum)[: frames // 2]
    memory /= memory[0]
    end = int(np.argmax(memory < 0.05)) if (memory < 0.05).any() else len(memory)
    return float(1 / (1 + 2 * memory[1:end].sum()))


def _moves(ranks: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """Probability of each step of a bin along the grid, by how fast the course moves now."""
    slow = gaussian_filter1d(ranks, 2)
    step = max(float(np.sqrt(np.var(slow[5:] - slow[:-5]) / 5)), 0.5 / len(grid))
    moves = np.exp(-0.5 * ((grid[:, None] - grid) / step) ** 2) + 1e-6
    found: np.ndarray = moves / moves.sum(1, keepdims=True)
    return found


def groups_of_cells(cells: int) -> list[np.ndarray]:
    """Groups of cells that are left out in turn."""
    return list(cell_groups(cells, 1, min(GROUPS, cells)))
