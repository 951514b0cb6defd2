"""Tests which cells carry a factor by more than chance: p and q from truly different labels.

What everything else predicts is removed from the factor's columns and from the trace. What is left
of both is compared as it is, and with the columns shifted in time, cut into stretches that are
reordered where the label recurs, or made with the values of other trials. That keeps the time scale
of both and breaks the tie between them. A cell may lead or follow the label a little, also by
chance. Traces count by their ranks over time, as events have heavy tails. Overlapping shifts of a
slow label are few samples, so p comes from a Student distribution with as many degrees of freedom
as there are truly different labels. `benchmarks/maps.py` and `benchmarks/trials.py` have the
evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from scipy.stats import false_discovery_control, rankdata

from napari_xcebra.attribution.encoding.courses import TrialBasis
from napari_xcebra.attribution.encoding.model import Effort, make_encoding
from napari_xcebra.attribution.shift_test.bins import LEADS, Binned, Problem
from napari_xcebra.attribution.shift_test.result import SHIFTS, Significance
from napari_xcebra.attribution.stream import FrameChoice, make_stream, spread_out
from napari_xcebra.attribution.watching import OnProgress, Stop, Watch
from napari_xcebra.errors import InputError
from napari_xcebra.learn.data.factors import TIME, part_named
from napari_xcebra.learn.quality.chance import LEAST_SAMPLES, Shifts, null_of, tail
from napari_xcebra.learn.quality.permutations import trial_orders
from napari_xcebra.learn.quality.verdict import FOUND
from napari_xcebra.learn.result import Fit
from napari_xcebra.learn.training.device import limited_threads
from napari_xcebra.recording import Recording

GROUPS = 4
"""Groups of cells, each compared beside the state estimated from the others."""
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
        confounded={n: plan.orders.confounded for n, plan in plans.items() if plan.orders},
    )


def _shortest(plan: Shifts) -> float:
    """Shortest shift or stretch, in bins; 0 where trials are exchanged."""
    if plan.orders is not None:
        return 0.0
    return float(plan.stretch or plan.frames.min(initial=plan.total))


def _p_values(
    binned: Binned,
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
    # ranks: a few large events would be most of the variance, and their shifts few samples
    traces = (rankdata(binned.traces, axis=0) / len(binned.traces) - 0.5).T.astype(np.float32)
    traces -= traces.mean(1, keepdims=True)
    beside, own = list(binned.beside(factor)), binned.own(factor)
    problems = [each.problem(own) for each in beside]
    order = np.concatenate([each.cells for each in problems])
    null = np.empty((len(chosen), len(order)))
    for i, number in enumerate(map(int, chosen)):
        if plan.orders is not None:
            columns = binned.in_order(factor, plan.orders.order(number))
            null[i] = _follow(traces, [each.problem(columns) for each in beside])
        else:
            # traces are moved rather than columns: once for all problems
            null[i] = _follow(traces[:, np.argsort(plan.source(number))], problems)
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
    """How closely cells follow the columns, at their best lead: (cells of problems,).

    As a cube root, whose distribution is nearly normal.

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
