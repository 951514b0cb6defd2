"""Which cells carry a factor by more than chance: p and q from traces shifted in time.

The factor's columns are stripped of what everything else predicts of them (the other factors,
drift, the unobserved state). What is left is compared with a cell's trace, as it is and shifted
against it around the recording. A shift keeps the time scale of both, and breaks what ties them
together. `benchmarks/significance.py` has the evidence, and what else was tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from scipy.fft import irfft, prev_fast_len, rfft
from scipy.stats import false_discovery_control

from napari_xcebra.attribution.block_ridge import BlockSums, held_out_weights, ridge_weights
from napari_xcebra.attribution.conditional import Encoding, make_encoding
from napari_xcebra.attribution.stream import FrameChoice, make_stream, spread_out
from napari_xcebra.attribution.tested import SHIFTS, Significance
from napari_xcebra.attribution.watching import OnProgress, Stop, Watch
from napari_xcebra.learn.device import limited_threads
from napari_xcebra.learn.parts import TIME, part_named
from napari_xcebra.learn.result import Fit
from napari_xcebra.recording import InputError, Recording

Null = Literal["trace", "remainder"]

FEWEST_SAMPLES = 10
"""Times a variable must forget itself for chance to be told from tuning."""
FORGOTTEN = 0.1
"""Autocorrelation at which a variable has forgotten itself."""
STRIP_RIDGE = 1e-6
TEST_RIDGE = 0.1
"""Penalty of the comparison, in mean variances of the stripped columns."""
ENCODING_SHARE = 0.3
"""Share of the work that comes before the shifts."""


def significance(
    fit: Fit,
    recording: Recording,
    *,
    factors: Sequence[str] | None = None,
    shifts: int = SHIFTS,
    frames: FrameChoice = None,
    null: Null = "trace",
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
        Shifts in time to compare with; p is 1 / (shifts + 1) or more.
    frames : slice, (n,) int or (frames,) bool, optional
        All frames if not given.
    null : {"trace", "remainder"}
        What is shifted: the trace, or what everything else does not predict of it, which finds
        more cells, and more that have the factor only in light of their neighbours.
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
    if null not in get_args(Null):
        raise InputError(f"null is {null!r}: one of {', '.join(get_args(Null))} is needed.")
    names = [part_named(name, fit.parts).name for name in factors or fit.factors]
    stream = make_stream(fit, recording, frames)
    watch = Watch(len(stream.frames), on_progress, stop, ENCODING_SHARE)
    with limited_threads(fit.settings.threads):
        encoding = make_encoding(stream, watch)
        sums = encoding.sums(encoding.rows, watch)
        watch.share = 1 - ENCODING_SHARE
        plans, impossible = _plans(encoding, names, int(shifts), all_needed=factors is not None)
        names = list(plans)
        p = np.full((len(fit.parts), len(fit.inputs.cell_ids)), np.nan)
        for group, cells in enumerate(encoding.groups):
            left = left_over(encoding, sums[group], group, names, null)
            for name in names:
                p[fit.factors.index(name), cells] = left.p_values(name, plans[name])
                watch.advance(len(stream.frames) * len(cells) / (p.shape[1] * len(names)))
    watch.finish()
    if np.isnan(p).all():
        raise InputError(
            "All cells are constant over the frames asked for: at least one that changes is needed."
        )
    return Significance(
        factors=fit.factors,
        p_values=spread_out(p, fit, recording),
        q_values=spread_out(np.array([_q(row) for row in p]), fit, recording),
        shifts=int(shifts),
        shortest={name: float(plan[0] / recording.rate) for name, plan in plans.items()},
        impossible=impossible,
    )


@dataclass(frozen=True)
class LeftOver:
    """What is compared for one group of cells.

    Parameters
    ----------
    traces : (frames, cells) float32
    columns : mapping of str to (frames, columns) float32
        Of each factor, without what everything else predicts of them.
    shifted : mapping of str to (frames, cells) float32
        What is shifted to know chance: the traces, or what is left of them.
    """

    traces: np.ndarray
    columns: dict[str, np.ndarray]
    shifted: dict[str, np.ndarray]

    def p_values(self, factor: str, shifts: np.ndarray) -> np.ndarray:
        """Share of shifts at which a cell follows the factor as closely: (cells,)."""
        columns, shifted = _whitened(self.columns[factor]), self.shifted[factor]
        found = np.square(columns.T @ (self.traces - self.traces.mean(0))).sum(0)
        spectrum = np.conj(rfft(columns, axis=0)).T
        p = np.full(len(found), np.nan)
        for cell in np.flatnonzero(np.ptp(self.traces, axis=0) > 0):
            around = irfft(spectrum * rfft(shifted[:, cell]), n=len(shifted), axis=1)[:, shifts]
            chance = np.square(around).sum(0)
            p[cell] = (1 + (chance >= found[cell]).sum()) / (1 + len(shifts))
        return p


def left_over(
    encoding: Encoding, sums: BlockSums, group: int, factors: Sequence[str], null: Null
) -> LeftOver:
    """Read the traces of a group of cells, and strip the columns of each factor."""
    compared = {name: encoding.compared(name) for name in factors}
    strip = {name: _predicted_columns(sums, *both) for name, both in compared.items()}
    predict = {}
    if null == "remainder":
        predict = {
            name: held_out_weights(sums.of(others)) for name, (others, _) in compared.items()
        }
    traces: list[np.ndarray] = []
    columns: dict[str, list[np.ndarray]] = {name: [] for name in factors}
    shifted: dict[str, list[np.ndarray]] = {name: [] for name in factors}
    for block, positions, read in encoding.read():
        x = np.c_[encoding.rows_of(group, positions), np.ones(len(positions), np.float32)]
        traces.append(read[:, encoding.groups[group]])
        for name, (others, own) in compared.items():
            everything = x[:, np.r_[others, -1]]
            columns[name].append(x[:, own] - everything @ strip[name])
            if predict:
                guess = everything @ predict[name][block].astype(np.float32)
                shifted[name].append(traces[-1] - guess)
    length = prev_fast_len(sum(len(chunk) for chunk in traces), real=True)
    joined = np.concatenate(traces)[:length]
    return LeftOver(
        joined,
        {name: np.concatenate(chunks)[:length] for name, chunks in columns.items()},
        {name: np.concatenate(c)[:length] if c else joined for name, c in shifted.items()},
    )


def _predicted_columns(sums: BlockSums, others: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Weights that predict a factor's columns from all others: (others + 1, own) float32."""
    kept = np.r_[others, sums.xx.shape[1] - 1]
    chosen = sums.of(others)
    as_cells = BlockSums(chosen.xx, sums.xx[:, kept[:, None], own], sums.xx[:, own, own])
    weights: np.ndarray = ridge_weights(as_cells, None, (STRIP_RIDGE,))[0].astype(np.float32)
    return weights


def _whitened(columns: np.ndarray) -> np.ndarray:
    """Columns turned and scaled so that directions count alike, faint ones less."""
    centred = columns - columns.mean(0)
    values, vectors = np.linalg.eigh((centred.T @ centred).astype(np.float64) / len(centred))
    values = np.maximum(values, 0)
    scale = np.sqrt(values + TEST_RIDGE * max(values.mean(), 1e-12))
    whitened: np.ndarray = centred @ (vectors / scale).astype(np.float32)
    return whitened


def _plans(
    encoding: Encoding, factors: Sequence[str], shifts: int, *, all_needed: bool
) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Shifts of each factor that can be tested, and why the others cannot."""
    plans: dict[str, np.ndarray] = {}
    impossible: dict[str, str] = {}
    for name in factors:
        try:
            plans[name] = _plan(encoding, name, shifts)
        except InputError as error:
            impossible[name] = str(error)
            # the unobserved state was chosen by nobody: alone it is not what was asked for
            if all_needed or set(factors) - {TIME} <= set(impossible):
                raise
    return plans, impossible


def _plan(encoding: Encoding, factor: str, shifts: int) -> np.ndarray:
    """Shifts in frames, evenly spaced and beyond what the factor remembers: (shifts,) int64."""
    positions = np.concatenate(encoding.blocks)
    frames, rate = len(positions), encoding.stream.recording.rate
    own = encoding.columns[factor]
    chunks = [encoding.rows_of(0, block)[:, own] for block in encoding.blocks]
    memory = _memory(np.concatenate(chunks))
    if frames < FEWEST_SAMPLES * memory:
        what = "The unobserved state" if factor == TIME else f"Factor {factor!r}"
        raise InputError(
            f"{what} keeps its value for about {memory / rate:.0f} s, and {frames / rate:.0f} s "
            f"of it can be used: fewer than {FEWEST_SAMPLES} independent samples, too few to tell "
            "chance from tuning; record longer, or test the other factors."
        )
    shortest = max(2 * memory, round(rate))
    length = prev_fast_len(frames, real=True)
    possible = length - 2 * shortest
    if possible < shifts:
        raise InputError(
            f"{max(possible, 0)} shifts of at least {shortest / rate:.0f} s are possible in the "
            f"{frames} frames that can be used, and {shifts} were asked for: lower shifts, or "
            "record longer."
        )
    return np.linspace(shortest, length - shortest, shifts).astype(np.int64)


def _memory(columns: np.ndarray) -> int:
    """Frames after which columns have forgotten themselves."""
    centred = columns - columns.mean(0)
    power = np.square(np.abs(rfft(centred, n=2 * len(centred), axis=0))).sum(1)
    correlation = irfft(power)[: len(centred)]
    below = np.flatnonzero(correlation < FORGOTTEN * correlation[0])
    return int(below[0]) if len(below) else len(centred)


def _q(p: np.ndarray) -> np.ndarray:
    """Benjamini and Hochberg's q of those that were tested."""
    q = np.full(len(p), np.nan)
    tested = ~np.isnan(p)
    if tested.any():
        q[tested] = false_discovery_control(p[tested])
    return q
