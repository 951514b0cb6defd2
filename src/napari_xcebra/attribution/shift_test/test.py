"""Tests which cells carry a factor by more than chance: p and q from truly different labels.

What everything else predicts is removed from the factor's columns and from the trace. What is left
of both is compared as it is, and with the columns shifted in time, cut into stretches that are
reordered where the label recurs, or made with the values of other trials. That keeps the time scale
of both and breaks the tie between them. A cell may lead or follow the label a little, also by
chance. Traces are compared by their values and by their ranks, as events have heavy tails, and both
p are combined. Overlapping shifts of a slow label are few samples, so p comes from a Student
distribution with as many degrees of freedom as there are truly different labels.
`benchmarks/maps.py` and `benchmarks/trials.py` have the evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.stats import false_discovery_control, rankdata

from napari_xcebra.attribution.encoding.basis import TrialBasis
from napari_xcebra.attribution.encoding.model import Effort, Encoding, make_encoding
from napari_xcebra.attribution.shift_test.result import SHIFTS, Significance
from napari_xcebra.attribution.stream import FrameChoice, make_stream, spread_out
from napari_xcebra.attribution.watching import OnProgress, Stop, Watch
from napari_xcebra.errors import InputError
from napari_xcebra.learn.data.factors import TIME, part_named
from napari_xcebra.learn.data.labels import Labels, correlation_time
from napari_xcebra.learn.device import limited_threads
from napari_xcebra.learn.quality.chance import (
    LEAST_SAMPLES,
    Shifts,
    goes_with,
    null_of,
    rearranged,
    tail,
    trial_orders,
)
from napari_xcebra.learn.quality.verdict import FOUND
from napari_xcebra.learn.result import Fit
from napari_xcebra.recording import Recording

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
GROUPS = 4
"""Groups of cells, each compared beside the state estimated from the others."""
ENCODING_SHARE = 0.5
"""Share of the work that comes before the shifts."""


class _Remainder(NamedTuple):
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
class _Others:
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
    ) -> _Others:
        """Prepare the regression on the other columns, (bins, columns)."""
        others = others - others.mean(0)
        gram = others.T @ others
        gram[np.diag_indices_from(gram)] += STRIP_RIDGE * max(np.diag(gram).mean(), 1e-12)
        return cls(cells, others, np.linalg.solve(gram, others.T), leads, state, own)

    def problem(self, columns: np.ndarray) -> _Remainder:
        """What is left of a factor's columns, (bins, columns), by lead, whitened."""
        columns = columns if self.own is None else self.own
        moved = np.stack([np.roll(columns - columns.mean(0), lead, axis=0) for lead in self.leads])
        left = moved - self.others @ (self.weights @ moved)
        return _Remainder(self.cells, np.hstack([_whitened(each) for each in left]), self.state)


@dataclass(frozen=True)
class _Binned:
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
    def of(cls, encoding: Encoding, factors: Sequence[str], watch: Watch) -> _Binned:
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
            (rows,) = self.encoding.predictors.filter_columns(permuted.rows, members.ravel())
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

    def others(self, factor: str) -> Iterator[_Others]:
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
                yield _Others.of(cells, beside, self.leads, state=False)
            for group, state in zip(groups, self.state, strict=False):
                mine = np.intersect1d(group, cells)
                if len(mine) == 0:
                    continue
                if factor == TIME:
                    yield _Others.of(mine, beside, self.leads, state=False, own=state)
                else:
                    yield _Others.of(mine, np.hstack([beside, state]), self.leads, state=True)

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


def significance(
    fit: Fit,
    recording: Recording,
    *,
    factors: Sequence[str] | None = None,
    shifts: int = SHIFTS,
    frames: FrameChoice = None,
    on_progress: OnProgress = None,
    stop: Stop = None,
) -> Significance:
    """Test every cell for every factor.

    Parameters
    ----------
    fit : Fit
    recording : Recording
        The one the fit was trained on, or another of the same cells.
    factors : sequence of str, optional
        Factors to test; by default all that can be. The result says why others cannot.
    shifts : int
        Most labels to compare with.
    frames : slice, (n,) int or (frames,) bool, optional
        All frames if not given.
    on_progress : callable, optional
        Called with the number of frames done and in all.
    stop : callable, optional
        When it returns True, `AttributionStopped` is raised.

    Returns
    -------
    Significance

    Examples
    --------
    >>> from napari_xcebra.learn import FitSettings, fit
    >>> from napari_xcebra.simulate import box
    >>> simulation = box(frames=3000)
    >>> trained = fit(simulation.recording, simulation.factors, FitSettings(steps=20))
    >>> significance(trained, simulation.recording, shifts=200).q("z2").shape
    (50,)
    """
    if isinstance(shifts, bool) or not isinstance(shifts, int | np.integer) or shifts < 19:
        raise InputError(f"shifts is {shifts!r}: a whole number of at least 19 is needed.")
    names = [part_named(name, fit.parts).name for name in factors or fit.factors]
    stream = make_stream(fit, recording, frames)
    watch = Watch(len(stream.frames), on_progress, stop, ENCODING_SHARE / 0.8)
    with limited_threads(fit.settings.threads):
        encoding = make_encoding(stream, watch, Effort(groups=GROUPS))
        binned = _Binned.of(encoding, names, watch)
        watch.share = 1 - ENCODING_SHARE
        plans, impossible = _plans(binned, names, all_needed=factors is not None)
        p = np.full((2, len(fit.parts), len(fit.inputs.cell_ids)), np.nan)
        for name, plan in plans.items():
            chosen = np.unique(np.linspace(0, len(plan) - 1, min(shifts, len(plan))).astype(int))
            share = len(stream.frames) / (len(chosen) * len(plans))
            advance = partial(watch.advance, share)
            p[:, fit.factors.index(name)] = _p_values(binned, name, plan, chosen, advance)
    watch.finish()
    if np.isnan(p).all():
        raise InputError(
            "All cells are constant over these frames: at least one that changes is needed."
        )
    # if no cell carries a factor, every cell found is false: the verdict has the probability
    least = [_least_q(fit, name) for name in fit.factors]
    q, beside_variables = (
        spread_out(
            np.array([np.maximum(_q(row), by) for row, by in zip(rows, least, strict=True)]),
            fit,
            recording,
        )
        for rows in p
    )
    labels = {name: basis.labels for name, basis in encoding.predictors.bases.items()}
    second = recording.rate / binned.width
    return Significance(
        factors=fit.factors,
        p_values=spread_out(p[0], fit, recording),
        q_values=q,
        q_beside_variables=beside_variables,
        shifts=max((min(int(shifts), len(plan)) for plan in plans.values()), default=0),
        shortest={name: _shortest(plan) / second for name, plan in plans.items()},
        reordered=tuple(name for name, plan in plans.items() if plan.stretch),
        different={n: float(min(plan.different, shifts)) for n, plan in plans.items()},
        impossible=impossible,
        nulls={name: null_of(plan) for name, plan in plans.items()},
        within={n: plan.orders.within for n, plan in plans.items() if plan.orders},
        confounded={
            n: plan.orders.confounded if plan.orders else goes_with(n, labels)
            for n, plan in plans.items()
            if n != TIME
        },
    )


def _shortest(plan: Shifts) -> float:
    """Shortest shift or stretch, in bins; 0 where trials are exchanged."""
    if plan.orders is not None:
        return 0.0
    return float(plan.stretch or plan.frames.min(initial=plan.total))


def _p_values(
    binned: _Binned,
    factor: str,
    plan: Shifts,
    chosen: np.ndarray,
    advance: Callable[[], object],
) -> np.ndarray:
    """Test every cell beside variables and state, and beside the variables alone: (2, cells).

    The first is the larger of both p.

    Parameters
    ----------
    chosen : (n,) int64
        Numbers of the other labels.
    """
    # by ranks, a few large events do not count for all; by values, rare tuned ones count
    ranks = rankdata(binned.traces, axis=0) / len(binned.traces)
    traces = np.stack([binned.traces.T, ranks.T]).astype(np.float32)
    traces -= traces.mean(2, keepdims=True)
    beside, own = list(binned.others(factor)), binned.own(factor)
    remainders = [each.problem(own) for each in beside]
    activity = [traces[:, each.cells].reshape(-1, traces.shape[2]) for each in remainders]
    order = np.concatenate([each.cells for each in remainders])
    null = np.empty((len(chosen), 2 * len(order)))
    for i, number in enumerate(map(int, chosen)):
        if plan.orders is not None:
            columns = binned.in_order(factor, plan.orders.order(number))
            null[i] = _follow(activity, [each.problem(columns).columns for each in beside])
        else:
            source = plan.source(number)
            null[i] = _follow(activity, [each.columns[source] for each in remainders])
        advance()
    found = _follow(activity, [each.columns for each in remainders])
    values = _combine(tail(found, null, min(plan.different, len(chosen))).reshape(2, -1))
    with_state = np.concatenate([np.full(len(each.cells), each.state) for each in remainders])
    p = np.zeros((2, traces.shape[1]))
    np.maximum.at(p[0], order, values)
    np.maximum.at(p[1], order[~with_state], values[~with_state])
    p[:, np.ptp(traces[0], axis=1) == 0] = np.nan
    return p


def _follow(activity: Sequence[np.ndarray], columns: Sequence[np.ndarray]) -> np.ndarray:
    """How closely cells follow the columns, at their best lead: (2 × cells of remainders,).

    By values, then by ranks; as a cube root, whose distribution is nearly normal.

    Parameters
    ----------
    activity : sequence of (2 × cells, bins) float32
        By values, then by ranks.
    columns : sequence of (bins, leads × columns) float32
    """
    closest = []
    for traces, own in zip(activity, columns, strict=True):
        product = (traces @ own).reshape(len(traces), LEADS, -1)
        closest.append(np.square(product).sum(2).max(1).reshape(2, -1))
    root: np.ndarray = np.cbrt(np.hstack(closest).ravel())
    return root


def _combine(p: np.ndarray) -> np.ndarray:
    """One p of several that depend on each other, by the Cauchy combination (Liu & Xie 2020).

    >>> _combine(np.array([[0.3, 1e-6], [0.3, 0.9]])).round(6).tolist()
    [0.3, 2e-06]
    """
    cauchy = (1 / np.tan(np.pi * np.clip(p, 1e-300, 0.99))).mean(0)
    combined: np.ndarray = np.arctan2(1, cauchy) / np.pi
    return combined


def _plans(
    binned: _Binned, factors: Sequence[str], *, all_needed: bool
) -> tuple[dict[str, Shifts], dict[str, str]]:
    """Shifted labels of each factor that can be tested, and why the others cannot."""
    plans: dict[str, Shifts] = {}
    impossible: dict[str, str] = {}
    segment = binned.encoding.stream.recording.segment[binned.frames]
    bases = binned.encoding.predictors.bases
    labels = {name: basis.labels for name, basis in bases.items()}
    courses = {n: b.course if isinstance(b, TrialBasis) else None for n, b in bases.items()}
    for name in factors:
        orders = trial_orders(name, labels, courses)
        plan = Shifts.of(binned.labels(name), segment, orders)
        if plan.enough:
            plans[name] = plan
            continue
        what = "The unobserved state" if name == TIME else f"Factor {name!r}"
        samples, shifts = "independent samples", "shifts in the frames that can be used"
        if orders is not None:
            samples, shifts = "trials", "orders of them"
        impossible[name] = (
            f"{what} has about {plan.samples:.0f} {samples} and {plan.different:.0f} "
            f"truly different {shifts}; {LEAST_SAMPLES} and "
            f"{LEAST_SAMPLES / 4:g} are needed to tell chance from tuning: record longer, or test "
            "the other factors."
        )
        # nobody asked for the unobserved state: a test of it alone is not enough
        if all_needed or set(factors) - {TIME} <= set(impossible):
            raise InputError(impossible[name])
    return plans, impossible


def _least_q(fit: Fit, factor: str) -> float:
    """The p of a factor by the verdict; 1 where it was not found, and 0 without a verdict."""
    verdict = fit.goodness.get(factor)
    if verdict is None or factor == TIME:
        return 0.0
    return 1.0 if verdict.strength not in FOUND else float(np.nan_to_num(verdict.p))


def _q(p: np.ndarray) -> np.ndarray:
    """Benjamini and Hochberg's q of the tested cells."""
    q = np.full(len(p), np.nan)
    tested = ~np.isnan(p)
    if tested.any():
        q[tested] = false_discovery_control(p[tested])
    return q
