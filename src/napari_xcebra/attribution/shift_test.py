"""Which cells carry a factor by more than chance: p and q from labels that are truly others.

The factor's columns and the trace are stripped of what everything else predicts of them. What is
left of both is compared, as it is, and with the columns shifted in time, or in stretches put in
another order where the label comes back again and again. That keeps the time scale of both, and
breaks what ties them together. A cell may lead or follow the label by a little, also by chance.
Overlapping shifts of a slow label are few samples, so p comes from a Student distribution with as
many degrees of freedom as there are truly different shifts. `benchmarks/maps.py` has the evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.stats import false_discovery_control

from napari_xcebra.attribution.encoding.model import Effort, Encoding, make_encoding
from napari_xcebra.attribution.stream import FrameChoice, make_stream, spread_out
from napari_xcebra.attribution.tested import SHIFTS, Significance
from napari_xcebra.attribution.watching import OnProgress, Stop, Watch
from napari_xcebra.learn.chance import LEAST_SAMPLES, Shifts, rearranged, tail
from napari_xcebra.learn.device import limited_threads
from napari_xcebra.learn.labels import Labels, correlation_time
from napari_xcebra.learn.parts import TIME, part_named
from napari_xcebra.learn.result import Fit
from napari_xcebra.recording import InputError, Recording

BINS = 3000
"""Bins of time that are compared, if the label is slow enough."""
MOST_BINS = 4000
"""Bins at most: more are thinned."""
BIN_SHARE = 0.2
"""Of the time after which a label has forgotten itself, that a bin may take."""
LEAD, LEADS = 0.4, 3
"""Seconds by which a cell may lead or follow, and how many ways there are: or neither."""
GROUPS = 4
"""Groups of cells, each compared beside the state that the others tell."""
COLUMNS = 24
"""Directions of a factor's columns that are compared, at most."""
STRIP_RIDGE = 1e-4
"""Penalty on what is stripped, in variances of a column."""
TEST_RIDGE = 0.1
"""Penalty of the comparison, in mean variances of the stripped columns."""
ENCODING_SHARE = 0.5
"""Share of the work that comes before the shifts."""


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
        Factors to test; if not given all that can be. Of the others the result says why not.
    shifts : int
        Other labels to compare with, at most.
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
        binned = Binned.of(encoding, names, watch)
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
            "All cells are constant over the frames asked for: at least one that changes is needed."
        )
    # if no cell carries a factor, all that are found are false: the verdict says how likely that is
    least = [_p_of(fit, name) for name in fit.factors]
    q, beside_variables = (
        spread_out(
            np.array([np.maximum(_q(row), by) for row, by in zip(rows, least, strict=True)]),
            fit,
            recording,
        )
        for rows in p
    )
    second = recording.rate / binned.width
    return Significance(
        factors=fit.factors,
        p_values=spread_out(p[0], fit, recording),
        q_values=q,
        q_beside_variables=beside_variables,
        shifts=max((min(int(shifts), len(plan)) for plan in plans.values()), default=0),
        shortest={
            name: float((plan.stretch or plan.frames.min(initial=plan.total)) / second)
            for name, plan in plans.items()
        },
        reordered=tuple(name for name, plan in plans.items() if plan.stretch),
        different={n: float(min(plan.different, shifts)) for n, plan in plans.items()},
        impossible=impossible,
    )


class Problem(NamedTuple):
    """Cells, and what is left of a factor's columns.

    Parameters
    ----------
    cells : (n,) int64
    columns : (bins, leads × columns) float32
    state : bool
        Whether also the unobserved state is stripped.
    """

    cells: np.ndarray
    columns: np.ndarray
    state: bool


@dataclass(frozen=True)
class Binned:
    """Everything that is compared, in bins of time.

    Parameters
    ----------
    encoding : Encoding
    width : int
        Frames of a bin.
    frames : (bins,) int64
        The frame in the middle of each bin.
    traces : (bins, cells) float64
    columns : (bins, columns) float64
        Of the observed variables, without any lag.
    state : (groups, bins, columns) float64
        Of the unobserved state, without the cells of the group.
    """

    encoding: Encoding
    width: int
    frames: np.ndarray
    traces: np.ndarray
    columns: np.ndarray
    state: np.ndarray

    @classmethod
    def of(cls, encoding: Encoding, factors: Sequence[str], watch: Watch) -> Binned:
        """Means over bins as wide as the fastest of the labels allows."""
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
        return cls(encoding, width, used[edges + width // 2], traces, columns, state)

    def labels(self, factor: str) -> Labels:
        """Label in every bin; of the unobserved state, what the latents say."""
        if factor != TIME:
            labels = self.encoding.predictors.bases[factor].labels
            return rearranged(labels, self.frames)
        latents = self.state[0][:, : self.encoding.latents.shape[2]]
        bins = len(latents)
        return Labels(latents, latents[:, :0], np.zeros(bins, np.int64), np.ones(bins, bool))

    def compared(self, factor: str) -> Iterator[Problem]:
        """What is compared for which cells.

        Once beside the other variables, and once beside the state too; both for cells that lead,
        follow, or do neither: the other variables are taken at the cells' own lag.
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
                yield Problem(cells, self._left(self.columns[:, own], beside), state=False)
            for group, state in zip(groups, self.state, strict=False):
                mine = np.intersect1d(group, cells)
                if len(mine) == 0:
                    continue
                if factor == TIME:
                    left = self._left(state, beside)
                else:
                    left = self._left(self.columns[:, own], np.hstack([beside, state]))
                yield Problem(mine, left, state=factor != TIME)

    @property
    def leads(self) -> tuple[int, ...]:
        """Bins by which a cell may lead or follow."""
        lead = max(1, round(LEAD * self.encoding.stream.recording.rate / self.width))
        return (-lead, 0, lead)

    def _left(self, columns: np.ndarray, others: np.ndarray) -> np.ndarray:
        """What others do not predict of the columns, by lead, whitened: float32."""
        others = others - others.mean(0)
        moved = np.stack([np.roll(columns - columns.mean(0), lead, axis=0) for lead in self.leads])
        gram = others.T @ others
        gram[np.diag_indices_from(gram)] += STRIP_RIDGE * max(np.diag(gram).mean(), 1e-12)
        left = moved - others @ np.linalg.solve(gram, others.T @ moved)
        return np.hstack([_whitened(each) for each in left])


def _whitened(columns: np.ndarray) -> np.ndarray:
    """Columns turned and scaled so that directions count alike, faint ones less: float32."""
    values, vectors = np.linalg.eigh(columns.T @ columns / len(columns))
    values, vectors = np.maximum(values[-COLUMNS:], 0), vectors[:, -COLUMNS:]
    scale = np.sqrt(values + TEST_RIDGE * max(values.mean(), 1e-12))
    whitened: np.ndarray = (columns @ (vectors / scale)).astype(np.float32)
    return whitened


def _p_values(
    binned: Binned,
    factor: str,
    plan: Shifts,
    chosen: np.ndarray,
    advance: Callable[[], object],
) -> np.ndarray:
    """Test every cell beside variables and state, and beside the variables alone: (2, cells).

    The first is the larger p of both.

    Parameters
    ----------
    chosen : (n,) int64
        Numbers of the other labels.
    """
    traces = (binned.traces - binned.traces.mean(0)).T.astype(np.float32)
    problems = list(binned.compared(factor))
    order = np.concatenate([each.cells for each in problems])
    # traces are moved rather than columns: each but once for all problems
    null = np.empty((len(chosen), len(order)))
    for i, number in enumerate(chosen):
        moved = traces[:, np.argsort(plan.source(int(number)))]
        null[i] = _follow(moved, problems)
        advance()
    found = _follow(traces, problems)
    values = tail(found, null, min(plan.different, len(chosen)))
    with_state = np.concatenate([np.full(len(each.cells), each.state) for each in problems])
    p = np.zeros((2, len(traces)))
    np.maximum.at(p[0], order, values)
    np.maximum.at(p[1], order[~with_state], values[~with_state])
    p[:, np.ptp(traces, axis=1) == 0] = np.nan
    return p


def _follow(traces: np.ndarray, problems: Sequence[Problem]) -> np.ndarray:
    """How closely cells follow the columns, by the closest of the leads: (cells of problems,).

    The cube root, whose distribution is nearly normal.

    Parameters
    ----------
    traces : (cells, bins) float32
    """
    closest = []
    for cells, columns, _ in problems:
        product = (traces[cells] @ columns).reshape(len(cells), LEADS, -1)
        closest.append(np.square(product).sum(2).max(1))
    root: np.ndarray = np.cbrt(np.concatenate(closest))
    return root


def _plans(
    binned: Binned, factors: Sequence[str], *, all_needed: bool
) -> tuple[dict[str, Shifts], dict[str, str]]:
    """Other labels of each factor that can be tested, and why the others cannot."""
    plans: dict[str, Shifts] = {}
    impossible: dict[str, str] = {}
    segment = binned.encoding.stream.recording.segment[binned.frames]
    for name in factors:
        plan = Shifts.of(binned.labels(name), segment)
        if plan.enough:
            plans[name] = plan
            continue
        what = "The unobserved state" if name == TIME else f"Factor {name!r}"
        impossible[name] = (
            f"{what} has about {plan.samples:.0f} independent samples and {plan.different:.0f} "
            f"truly different shifts in the frames that can be used; {LEAST_SAMPLES} and "
            f"{LEAST_SAMPLES / 4:g} are needed to tell chance from tuning: record longer, or test "
            "the other factors."
        )
        # the unobserved state was chosen by nobody: alone it is not what was asked for
        if all_needed or set(factors) - {TIME} <= set(impossible):
            raise InputError(impossible[name])
    return plans, impossible


def _p_of(fit: Fit, factor: str) -> float:
    """Of the factor being in the cells at all, by the verdict; 0 if it was not tested."""
    verdict = fit.goodness.get(factor)
    return 0.0 if verdict is None or np.isnan(verdict.p) else verdict.p


def _q(p: np.ndarray) -> np.ndarray:
    """Benjamini and Hochberg's q of those that were tested."""
    q = np.full(len(p), np.nan)
    tested = ~np.isnan(p)
    if tested.any():
        q[tested] = false_discovery_control(p[tested])
    return q
