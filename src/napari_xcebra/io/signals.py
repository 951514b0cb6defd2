"""Chooses the traces of a recording: raw, corrected, ΔF/F, denoised, events or z-scored."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import scipy  # whose parts are imported when they are first used

from napari_xcebra.errors import InputError
from napari_xcebra.io.extraction import Extraction
from napari_xcebra.io.settings import OpenSettings, TraceKind
from napari_xcebra.recording.traces import CorrectedTraces, LazyTraces, are_events, read_block

USUAL_NEUROPIL = 0.7
"""Share of the neuropil where the source does not say (suite2p's own default)."""
KNOTS = 24
"""Points a window at which the running baseline is taken; it is straight between them."""

EVENTS = "events, as most values are 0; cells with few events weigh less in training"

Traces = LazyTraces | np.ndarray


@dataclass(frozen=True)
class Choice:
    """Traces, and how they were computed."""

    traces: Traces
    how: str


def chosen_traces(
    found: Extraction, settings: OpenSettings, rate: float, path: Path
) -> tuple[TraceKind, Choice]:
    """The kind of traces asked for, or the best there is."""
    choices = available(found, settings, rate)
    kind = settings.traces if settings.traces != "auto" else next(iter(choices))
    if kind not in choices:
        raise InputError(
            f"{path} has no {kind} traces; it has: {', '.join(choices)}. Set `traces` to one of "
            "these."
        )
    return kind, choices[kind]


def available(found: Extraction, settings: OpenSettings, rate: float) -> dict[TraceKind, Choice]:
    """Kinds of traces that the signals allow, the preferred one first.

    This costs little: traces are read and computed when they are used, but for some that may be
    events.
    """
    signals = found.signals
    choices: dict[TraceKind, Choice] = {}
    best = None
    if "fluorescence" in signals:
        best = _corrected(found, settings)
        choices["dff"] = _relative(best, settings, rate)
    elif "traces" in signals:
        best = Choice(signals["traces"], "as they are in the file")
        if are_events(signals["traces"]):
            choices["events"] = Choice(signals["traces"], EVENTS)
    if "dff" in signals:
        choices["dff"] = Choice(signals["dff"], "ΔF/F as in the file")
    if "denoised" in signals:
        choices["denoised"] = Choice(signals["denoised"], "denoised by the extractor")
    if best is not None and "neuropil" in signals:
        choices["corrected"] = best
    if "fluorescence" in signals:
        choices["raw"] = Choice(signals["fluorescence"], "raw fluorescence")
    elif best is not None:
        choices["raw"] = best
    if "events" in signals:
        choices["events"] = Choice(signals["events"], "deconvolved events")
    best = best or next(iter(choices.values()))
    choices["zscored"] = Choice(
        StandardTraces(best.traces), f"{best.how}, in standard deviations of each cell"
    )
    return choices


def _corrected(found: Extraction, settings: OpenSettings) -> Choice:
    """Fluorescence, minus a share of the neuropil if there is any."""
    raw = found.signals["fluorescence"]
    if "neuropil" not in found.signals:
        return Choice(raw, "fluorescence")
    share = settings.neuropil
    if share < 0:
        said = found.neuropil_coefficient
        share = USUAL_NEUROPIL if said is None else said
    traces = CorrectedTraces(raw, found.signals["neuropil"], share)
    return Choice(traces, f"fluorescence minus {share:g} × neuropil")


def _relative(best: Choice, settings: OpenSettings, rate: float) -> Choice:
    seconds, percentile = settings.baseline_seconds, settings.baseline_percentile
    return Choice(
        RelativeTraces(best.traces, seconds * rate, percentile),
        f"ΔF/F: {best.how}, over a running baseline (percentile {percentile:g} of {seconds:g} s)",
    )


class _TracesByCell(LazyTraces):
    """Traces computed from others with some statistics of each cell.

    These are computed for a group of cells when one of them is first read, because all their
    frames are needed.
    """

    source: Traces

    @property
    def shape(self) -> tuple[int, int]:
        """Frames and cells."""
        return self.source.shape

    def known(self, traces: np.ndarray) -> tuple[np.ndarray, ...]:
        """Statistics of cells with these traces (frames, cells): arrays (…, cells)."""
        raise NotImplementedError

    def made(self, traces: np.ndarray, frames: slice, *known: np.ndarray) -> np.ndarray:
        """New traces (frames, cells) of some cells at some frames."""
        raise NotImplementedError

    def block(self, frames: slice, cells: slice) -> np.ndarray:
        """(frames, cells) float32."""
        block = np.empty((frames.stop - frames.start, cells.stop - cells.start), np.float32)
        for group in self.cell_blocks():
            here = slice(max(group.start, cells.start), min(group.stop, cells.stop))
            if here.start < here.stop:
                inside = slice(here.start - group.start, here.stop - group.start)
                known = (about[..., inside] for about in self._known(group))
                place = slice(here.start - cells.start, here.stop - cells.start)
                with np.errstate(all="ignore"):  # what is not finite is reported where it is used
                    traces = read_block(self.source, frames, here)
                    block[:, place] = self.made(traces, frames, *known)
        return block

    def _known(self, group: slice) -> tuple[np.ndarray, ...]:
        if group.start not in self._found:
            traces = read_block(self.source, slice(0, self.shape[0]), group)
            with np.errstate(all="ignore"):
                self._found[group.start] = self.known(traces)
        return self._found[group.start]

    @cached_property
    def _found(self) -> dict[int, tuple[np.ndarray, ...]]:
        return {}


@dataclass(frozen=True)
class RelativeTraces(_TracesByCell):
    """(F − F₀) / F₀ over a running percentile F₀.

    Where neuropil correction brings F₀ near zero, it is divided by a tenth of the cell's usual
    fluorescence instead, or by its noise if that is more, so that no cell explodes.

    Parameters
    ----------
    source : (frames, cells)
        F.
    window : float
        Frames over which the percentile is taken.
    percentile : float
    """

    source: Traces
    window: float
    percentile: float

    @property
    def _bin(self) -> int:
        """Frames that are averaged before the percentile is taken, which removes its noise."""
        return max(1, min(round(self.window / KNOTS), self.shape[0]))

    def known(self, traces: np.ndarray) -> tuple[np.ndarray, ...]:
        """F₀ at its knots, (knots, cells), and the least divisor of each cell, (cells,)."""
        binned = bin_means(traces, self._bin)
        size = min(max(3, round(self.window / self._bin)), len(binned))
        knots = scipy.ndimage.percentile_filter(
            binned, self.percentile, size=(size, 1), mode="nearest"
        )
        least = np.maximum(0.1 * np.median(np.abs(binned), axis=0), noise(traces))
        return knots.astype(np.float32), np.where(least > 0, least, 1).astype(np.float32)

    def made(self, traces: np.ndarray, frames: slice, *known: np.ndarray) -> np.ndarray:
        """ΔF/F, (frames, cells)."""
        knots, least = known
        place = (np.arange(frames.start, frames.stop) + 0.5) / self._bin - 0.5
        place = np.clip(place, 0, len(knots) - 1)
        before = place.astype(np.int64)
        after = np.minimum(before + 1, len(knots) - 1)
        share = (place - before).astype(np.float32)[:, None]
        baseline = knots[before] + share * (knots[after] - knots[before])
        return (traces - baseline) / np.maximum(baseline, least)


@dataclass(frozen=True)
class StandardTraces(_TracesByCell):
    """Traces in standard deviations from their mean; constant ones are 0."""

    source: Traces

    def known(self, traces: np.ndarray) -> tuple[np.ndarray, ...]:
        """Mean and standard deviation, (cells,) each; values that are not finite do not count."""
        finite = np.isfinite(traces)
        count = np.maximum(finite.sum(axis=0), 1)
        mean = np.where(finite, traces, 0).sum(axis=0, dtype=np.float64) / count
        squares = np.where(finite, traces - mean, 0) ** 2
        deviation = np.sqrt(squares.sum(axis=0) / count)
        # a constant trace may still deviate from its mean by rounding
        moving = deviation > 1e-6 * np.abs(mean)
        return mean.astype(np.float32), np.where(moving, deviation, 1).astype(np.float32)

    def made(self, traces: np.ndarray, frames: slice, *known: np.ndarray) -> np.ndarray:
        """Standardised, (frames, cells)."""
        mean, deviation = known
        return (traces - mean) / deviation


def noise(traces: np.ndarray) -> np.ndarray:
    """How much a cell usually changes from one frame to the next, (cells,)."""
    some = np.unique(np.linspace(0, max(len(traces) - 2, 0), 2000).astype(np.int64))
    steps = np.abs(traces[some + 1] - traces[some]) if len(traces) > 1 else traces * 0
    return np.median(np.where(np.isfinite(steps), steps, 0), axis=0)


def bin_means(traces: np.ndarray, width: int) -> np.ndarray:
    """Means over bins of frames, (bins, cells) float64; gaps in the traces do not count.

    Parameters
    ----------
    traces : (frames, cells)
    width : int
        Frames a bin; the last one may have fewer.
    """
    edges = np.arange(0, len(traces), width)
    finite = np.isfinite(traces)
    if finite.all():
        sums = np.add.reduceat(traces, edges, axis=0, dtype=np.float64)
        return sums / np.diff(np.r_[edges, len(traces)])[:, None]
    sums = np.add.reduceat(np.where(finite, traces, 0), edges, axis=0, dtype=np.float64)
    counts = np.add.reduceat(finite, edges, axis=0, dtype=np.int64)
    means = sums / np.maximum(counts, 1)
    for cell in np.flatnonzero((counts == 0).any(axis=0) & (counts > 0).any(axis=0)):
        filled = counts[:, cell] > 0
        means[:, cell] = np.interp(edges, edges[filled], means[filled, cell])
    return means
