"""Discovers what is in the cells that nobody recorded: how many factors, their courses and cells.

Directions that cells share are counted and grouped, the course of each group is decoded, and every
cell is compared with the courses that the other cells give, as they are and shifted in time. A
factor that is not in several cells by that test is not claimed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.ndimage import uniform_filter1d
from scipy.optimize import linear_sum_assignment
from scipy.stats import false_discovery_control, gamma, pearsonr, spearmanr

from napari_xcebra.attribution.discovery.courses import (
    DecodedCourse,
    block_sums,
    decode_factors,
    expand,
    groups_of_cells,
    held_out_share,
)
from napari_xcebra.attribution.discovery.hidden import FOLLOWS, HiddenFactor, HiddenFactors
from napari_xcebra.attribution.discovery.shared import SharedActivity, shared_activity
from napari_xcebra.attribution.encoding.predictors import Predictors
from napari_xcebra.attribution.encoding.ridge import fit_held_out
from napari_xcebra.attribution.shift_test.result import LEVEL
from napari_xcebra.attribution.watching import OnProgress, Stop, Watch
from napari_xcebra.errors import InputError
from napari_xcebra.learn.data.factors import Part
from napari_xcebra.recording import Recording
from napari_xcebra.standardise import standardised

BIN = 0.2
"""Seconds of a bin: indicators are slower."""
MOST_BINS = 20_000
FEWEST_BINS, FEWEST_USED = 200, 6
"""Bins and cells with which nothing can be discovered."""
FEWEST_CELLS = 3
"""Cells in which a factor must be: two may be parts of one cell."""
DECAYS = (0.0, 0.4, 0.8, 1.6)
"""Seconds of the decay of the indicator: of variables that are given, all of them are removed."""
MOST_CELLS, ONE_SIGN = 0.5, 0.95
"""Share of cells that have a factor, and of all cells that move with it one way, from which on
light or tissue is suspected."""
MONOTONE = 0.9
"""Rank correlation with time from which on a course is called a drift."""
TRACES_LEFT = (
    "Traces of the variables that were removed may be left, as brief factors in few cells each: "
    "compare with what is found without removing them."
)
MOST_REMOVED = 0.2
"""Columns of variables that are removed with all decays, as a share of the bins."""
ADMIXTURE = 0.05
"""Share of what another factor explains in a cell, below which a score may be a trace of that."""
LEADING, CHANCE = 2, 0.01
"""Smooth columns of a course whose weights are compared over halves, and p of their likeness."""
EXTREME = 3.0
"""Standard deviations at which what is compared is clipped."""
BRIEF = 1.0
"""Seconds below which what moves nearly all cells is more likely movement than a state."""


def discover(
    recording: Recording,
    *,
    given: Sequence[str] = (),
    seed: int = 0,
    on_progress: OnProgress = None,
    stop: Stop = None,
) -> HiddenFactors:
    """Find the factors that several cells share and that nobody recorded.

    Parameters
    ----------
    recording : Recording
        Its accepted cells are used, at frames that are not excluded.
    given : sequence of str
        Variables to remove from the traces first: what is found is beyond them.
    seed : int
        Of the surrogates.
    on_progress : callable, optional
        Called with the work done and all of it, in hundredths.
    stop : callable, optional
        Asked now and then; if it returns True, `Stopped` is raised.

    Returns
    -------
    HiddenFactors
        Its `summary()` says what was found; there may be nothing.

    Examples
    --------
    >>> from napari_xcebra.simulate import box
    >>> recording = box(cells=(12, 12), frames=3000, seed=0).recording
    >>> len(discover(recording)) > 0
    True
    """
    watch = Watch(100, on_progress, stop)
    binned = _BinnedTraces.of(recording)
    removed = _columns_of(recording, given, binned, jointly=True) if given else None
    known = held_out_share(removed, binned.traces) if removed is not None else np.zeros(1)
    watch.advance(10)
    rng = np.random.default_rng(seed)
    shared = shared_activity(binned.traces, rng, removed)
    watch.advance(15)
    decoded = _decode_all(shared, binned.first, watch)
    while True:
        columns = _CourseColumns.of(shared.traces, decoded)
        scores = columns.scores()
        p_values = columns.p_values(scores, known)
        kept = [
            i
            for i, p in enumerate(p_values)
            if (_q(p) <= LEVEL).sum() >= FEWEST_CELLS and columns.comes_back(i)
        ]
        if len(kept) == len(decoded):
            break
        decoded = [decoded[i] for i in kept]
    watch.advance(10)
    found = _described(recording, binned, decoded, scores, p_values)
    found = replace(
        found,
        given=tuple(given),
        notes=(TRACES_LEFT,) if given and decoded else (),
        seed=seed,
        baselines=_baselines(shared, decoded, columns, rng) if decoded else {},
        source=recording.source,
        fingerprint=recording.fingerprint,
    )
    watch.finish()
    return found


@dataclass(frozen=True)
class _BinnedTraces:
    """Traces of the cells in use, in bins of time.

    Parameters
    ----------
    frames : (bins, width) int64
    traces : (bins, cells) float64
    first : (bins,) bool
        Where a stretch without gaps begins.
    columns : (cells,) int64
        Which ROIs they are.
    """

    frames: np.ndarray
    traces: np.ndarray
    first: np.ndarray
    columns: np.ndarray

    @classmethod
    def of(cls, recording: Recording) -> _BinnedTraces:
        """Bins that cross no gap; cells that never change are left out."""
        used = np.flatnonzero(~np.asarray(recording.excluded))
        width = max(1, int(BIN * recording.rate), -(-len(used) // MOST_BINS))
        run = recording.segment[used] + np.r_[0, np.cumsum(np.diff(used) > 1)]
        stretches = np.split(used, np.flatnonzero(np.diff(run)) + 1)
        whole = [part[: len(part) // width * width].reshape(-1, width) for part in stretches]
        frames = np.concatenate(whole)
        first = np.zeros(len(frames), bool)
        starts = np.cumsum([0, *map(len, whole)])[:-1]
        first[starts[starts < len(frames)]] = True
        columns = np.flatnonzero(np.asarray(recording.accepted))
        traces = np.asarray(recording.traces[:, columns], np.float64)
        binned = traces[frames].mean(1)
        changing = binned.std(0) > 1e-6 * np.maximum(np.abs(binned.mean(0)), 1e-30)
        columns, binned = columns[changing], binned[:, changing]
        if len(binned) < FEWEST_BINS or len(columns) < FEWEST_USED:
            raise InputError(
                f"There are {len(columns)} cells that change, over {len(binned)} steps of "
                f"{width / recording.rate:.2g} s: to discover what they share, at least "
                f"{FEWEST_USED} cells and {FEWEST_BINS} steps are needed."
            )
        return cls(frames, standardised(binned), first, columns)

    def on_frames(self, course: np.ndarray, total: int) -> np.ndarray:
        """Values of bins at every frame, NaN where none is near: (frames, columns) float32."""
        found = np.full((total, course.shape[1]), np.nan, np.float32)
        middle = self.frames.mean(1)
        run = np.cumsum(self.first)
        width = self.frames.shape[1]
        for number in range(1, run[-1] + 1):
            own = np.flatnonzero(run == number)
            inside = np.arange(self.frames[own[0], 0], min(self.frames[own[-1], -1] + width, total))
            for column in range(course.shape[1]):
                found[inside, column] = np.interp(inside, middle[own], course[own, column])
        return found


# ------------------------------------------------------------ variables


def _columns_of(
    recording: Recording, names: Sequence[str], binned: _BinnedTraces, *, jointly: bool = False
) -> np.ndarray:
    """Columns of variables in bins, with the decay of the indicator that suits the traces best.

    Parameters
    ----------
    jointly : bool
        With all decays at once, for what is to leave nothing behind.
    """
    parts = [Part(name, (name,), 0, 0, "euclidean", 1.0) for name in names]
    plain = Predictors.of(recording, parts, 0.0)
    own = np.concatenate([plain.columns[name] for name in names])
    found = []
    for decay in DECAYS:
        rows = replace(plain, decay=decay * recording.rate).rows(np.arange(recording.n_frames))[0]
        found.append(rows[:, own][binned.frames].mean(1).astype(np.float64))
    together = sum(each.shape[1] for each in found)
    if jointly and together < MOST_REMOVED * len(binned.traces):
        return np.hstack(found)
    return max(found, key=lambda columns: float(held_out_share(columns, binned.traces).mean()))


# ------------------------------------------------------------ courses


def _decode_all(shared: SharedActivity, first: np.ndarray, watch: Watch) -> list[DecodedCourse]:
    """Decode each group of directions."""
    hidden, groups = groups_of_cells(shared.traces.shape[1]), shared.kin()
    decoded: list[DecodedCourse] = []
    for group in groups:
        decoded += decode_factors(shared, group, hidden, first)
        watch.advance(60 / len(groups))
    return decoded


# ------------------------------------------------------------ cells


@dataclass(frozen=True)
class _CourseColumns:
    """Splines along the courses of all factors, from the other cells, for each group of cells.

    Parameters
    ----------
    traces : (bins, cells) float64
    groups : list of (n,) int64
    designs : list of (bins, columns) float64
        A group each.
    owner : (columns,) int64
        Factor of each column.
    """

    traces: np.ndarray
    groups: list[np.ndarray]
    designs: list[np.ndarray]
    owner: np.ndarray
    factors: int

    @classmethod
    def of(cls, traces: np.ndarray, decoded: list[DecodedCourse]) -> _CourseColumns:
        """Columns of these courses."""
        groups = groups_of_cells(traces.shape[1])
        designs, owner = [], np.zeros(0, np.int64)
        for number in range(len(groups)):
            parts = [expand(each.without[number], few=True) for each in decoded]
            sizes = [part.shape[1] for part in parts]
            owner = np.repeat(np.arange(len(parts)), sizes)
            designs.append(np.hstack(parts) if parts else np.zeros((len(traces), 0)))
        return cls(traces, groups, designs, owner, len(decoded))

    def explained(self) -> np.ndarray:
        """Share of each cell that all factors explain: (cells,)."""
        found = np.zeros(self.traces.shape[1])
        for own, design in zip(self.groups, self.designs, strict=True):
            found[own] = held_out_share(design, self.traces[:, own])
        return found

    def scores(self) -> np.ndarray:
        """Share that each factor adds to the others: (factors, cells)."""
        found = np.zeros((self.factors, self.traces.shape[1]))
        if not self.factors:
            return found
        for own, design in zip(self.groups, self.designs, strict=True):
            sums = block_sums(design, self.traces[:, own])
            whole = fit_held_out(sums).r2
            for factor in range(self.factors):
                others = np.flatnonzero(self.owner != factor)
                less = fit_held_out(sums.of(others)).r2 if len(others) else 0.0
                found[factor, own] = np.maximum(whole - less, 0)
        return found

    def p_values(self, scores: np.ndarray, known: np.ndarray) -> np.ndarray:
        """P of each cell having each factor beyond the others: (factors, cells).

        Courses are not free of each other, nor are variables removed to the last trace: a cell
        that one explains is not said to have another one that adds a hundredth of that.

        Parameters
        ----------
        scores : (factors, cells) float64
        known : (cells,) or (1,) float64
            Share of each cell that variables explained before they were removed.
        """
        found = np.ones((self.factors, self.traces.shape[1]))
        for own, design in zip(self.groups, self.designs, strict=True):
            for factor in range(self.factors):
                mine, others = design[:, self.owner == factor], design[:, self.owner != factor]
                found[factor, own] = _p_of_shifts(mine, self.traces[:, own], others)
        leaked = scores < ADMIXTURE * np.maximum(scores.max(0, initial=0), known)
        return np.where(leaked, 1.0, found)

    def comes_back(self, factor: int) -> bool:
        """Whether both halves of the recording show the factor in the same cells.

        Of slow cells some go together by chance, over all the recording but not in each half.
        """
        halves: list[list[np.ndarray]] = [[], []]
        middle = len(self.traces) // 2
        for own, design in zip(self.groups, self.designs, strict=True):
            mine = standardised(design[:, self.owner == factor][:, :LEADING])
            for found, here in zip(halves, (slice(middle), slice(middle, None)), strict=True):
                x, y = mine[here] - mine[here].mean(0), self.traces[here, own]
                gram = x.T @ x + 0.1 * len(x) * np.eye(x.shape[1])
                found.append(np.linalg.solve(gram, x.T @ (y - y.mean(0))).ravel())
        one, other = (np.concatenate(half) for half in halves)
        return bool(pearsonr(one, other, alternative="greater")[1] < CHANCE)


def _p_of_shifts(
    columns: np.ndarray, traces: np.ndarray, others: np.ndarray | None = None
) -> np.ndarray:
    """P of traces going with columns, against all shifts of the columns in time: (cells,).

    Parameters
    ----------
    columns : (bins, columns) float64
    traces : (bins, cells) float64
    others : (bins, columns) float64, optional
        What is removed from both first.
    """
    columns, traces = columns - columns.mean(0), traces - traces.mean(0)
    if others is not None and others.shape[1]:
        others = others - others.mean(0)
        gram = others.T @ others
        gram[np.diag_indices_from(gram)] += 1e-4 * len(others)
        weights = np.linalg.solve(gram, others.T)
        columns = columns - others @ (weights @ columns)
        traces = traces - others @ (weights @ traces)
    values, vectors = np.linalg.eigh(columns.T @ columns / len(columns))
    kept = values > max(1e-3 * values.max(), 1e-12)
    columns = columns @ (vectors[:, kept] / np.sqrt(values[kept]))
    # what is left after bursts is larger in traces and columns at once: that is no tie
    traces = standardised(np.clip(standardised(traces), -EXTREME, EXTREME))
    columns = standardised(np.clip(columns, -EXTREME, EXTREME))
    bins = len(traces)
    strength = np.zeros((bins, traces.shape[1]))
    seen = np.fft.rfft(traces, axis=0)
    for column in columns.T:
        moved = np.fft.irfft(seen * np.conj(np.fft.rfft(column))[:, None], bins, axis=0)
        strength += np.square(moved / bins)
    edge = max(bins // 20, 1)
    by_chance = strength[edge : bins - edge]
    mean = by_chance.mean(0)
    variance = np.maximum(by_chance.var(0), 1e-18)
    found: np.ndarray = gamma.sf(strength[0], mean**2 / variance, scale=variance / mean)
    return found


def _q(p_values: np.ndarray) -> np.ndarray:
    found: np.ndarray = false_discovery_control(np.clip(p_values, 0, 1))
    return found


# ------------------------------------------------------------ what they are


def _described(
    recording: Recording,
    binned: _BinnedTraces,
    decoded: list[DecodedCourse],
    scores: np.ndarray,
    p_values: np.ndarray,
) -> HiddenFactors:
    """The factors, those in most cells first, and what each goes with."""
    q = np.array([_q(p) for p in p_values]).reshape(p_values.shape)
    order = np.argsort([-np.sum(each <= LEVEL) for each in q], kind="stable")
    traces, total = binned.traces, recording.n_frames
    goes = _recorded(recording, binned)
    factors, courses, signs = [], [], []
    for number, at in enumerate(order):
        course = decoded[at].course
        towards = np.sign(traces.T @ course[:, 0])
        own = q[at] <= LEVEL
        if towards[own].sum() < 0:
            course, towards = course * [-1.0, *[1.0] * (course.shape[1] - 1)], -towards
        seconds = _memory(course, binned.first) * binned.frames.shape[1] / recording.rate
        with_variables = {
            name: float(np.clip(held_out_share(columns, course).mean(), 0, 1))
            for name, columns in goes.items()
        }
        limit = 0.05 / max(len(goes), 1)
        follows = [
            name
            for name, share in sorted(with_variables.items(), key=lambda each: -each[1])
            if share >= FOLLOWS and _p_of_shifts(goes[name], course).min() <= limit
        ]
        factors.append(
            HiddenFactor(
                f"hidden {number + 1}",
                course.shape[1],
                float(seconds),
                float(scores[at, own].mean()),
                decoded[at].tuned,
                with_variables,
                tuple(follows),
                _suspicion(course, towards, own, seconds),
            )
        )
        courses.append(course)
        signs.append(towards)
    shape = (len(order), recording.n_cells)
    joined = np.hstack(courses) if courses else np.zeros((len(traces), 0))

    def on_all(values: np.ndarray) -> np.ndarray:
        found = np.full(shape, np.nan, np.float32)
        if len(order):
            found[:, binned.columns] = values
        return found

    return HiddenFactors(
        tuple(factors),
        binned.on_frames(joined, total),
        on_all(scores[order]),
        on_all(p_values[order]),
        on_all(q[order]),
        on_all(np.array(signs)),
        np.asarray(recording.cell_ids),
    )


def _recorded(recording: Recording, binned: _BinnedTraces) -> dict[str, np.ndarray]:
    """Columns of each recorded variable in bins; those that cannot be expanded are left out."""
    found = {}
    for name, variable in recording.behavior.items():
        if variable.known.sum() < FEWEST_BINS:
            continue
        try:
            found[name] = _columns_of(recording, [name], binned)
        except InputError:
            continue
    return found


def _memory(course: np.ndarray, first: np.ndarray) -> float:
    """Bins after which the autocorrelation is below 1/e."""
    run = np.cumsum(first)
    for lag in range(1, len(course)):
        same = run[lag:] == run[:-lag]
        if not same.any():
            return float(lag)
        product = (course[lag:][same] * course[:-lag][same]).sum(1).mean() / course.shape[1]
        if product < np.exp(-1):
            return float(lag)
    return float(len(course))


def _suspicion(course: np.ndarray, signs: np.ndarray, own: np.ndarray, seconds: float) -> str:
    """What a factor may be if it is no state of the brain."""
    smooth = uniform_filter1d(course[:, 0], max(len(course) // 50, 1))
    if course.shape[1] == 1 and abs(spearmanr(smooth, np.arange(len(smooth)))[0]) > MONOTONE:
        return "drifts one way through the recording: probably photobleaching or slow drift"
    if own.mean() >= MOST_CELLS and abs(signs.mean()) >= 2 * ONE_SIGN - 1:
        if seconds < BRIEF:
            return "brief and of one sign in nearly all cells: probably movement of the tissue"
        return "of one sign in nearly all cells: light of the neuropil, or a state of all cells"
    return ""


# ------------------------------------------------------------ linear methods beside it


def _baselines(
    shared: SharedActivity,
    decoded: list[DecodedCourse],
    columns: _CourseColumns,
    rng: np.random.Generator,
) -> dict[str, tuple[float, float]]:
    """Share of the cells that linear methods explain, and how their components match."""
    courses = np.hstack([each.course for each in decoded])
    count, traces = courses.shape[1], shared.traces
    analysis = shared.leading(count)
    vectors = np.linalg.eigh(traces.T @ traces / len(traces))
    size = np.maximum(vectors[0][::-1][:count], 1e-6)
    noise = max(float(vectors[0][::-1][count:].mean()), 1e-3)
    pca = replace(
        analysis,
        loadings=vectors[1][:, ::-1][:, :count] * np.sqrt(np.maximum(size - noise, 1e-6)),
        own=np.full(traces.shape[1], noise),
    )
    ica = replace(pca, loadings=pca.loadings @ _independent(pca.courses(), rng))
    found = {"discover": (float(columns.explained().mean()), 1.0)}
    for name, method in {"PCA": pca, "ICA": ica, "factor analysis": analysis}.items():
        share = np.zeros(traces.shape[1])
        for own in columns.groups:
            each = method.courses(own)
            design = np.hstack([expand(standardised(each[:, [i]]), few=True) for i in range(count)])
            share[own] = held_out_share(design, traces[:, own])
        likeness = np.abs(standardised(method.courses()).T @ courses) / len(courses)
        rows, others = linear_sum_assignment(-likeness)
        found[name] = (float(share.mean()), float(likeness[rows, others].mean()))
    return found


def _independent(courses: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Rotation of components to independent ones (FastICA, symmetric, tanh)."""
    white, count = standardised(courses), courses.shape[1]
    turn = np.linalg.qr(rng.normal(size=(count, count)))[0]
    for _ in range(200):
        bent = np.tanh(white @ turn)
        new = white.T @ bent / len(white) - turn * (1 - bent**2).mean(0)
        left, _, right = np.linalg.svd(new)
        change = np.abs(np.abs(np.diag((left @ right).T @ turn)) - 1).max()
        turn = left @ right
        if change < 1e-5:
            break
    return turn
