"""Which trace of a cell to use: raw, less neuropil, ΔF/F, denoised, events or z-scored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from scipy.ndimage import percentile_filter

from napari_xcebra.io.extraction import Extraction
from napari_xcebra.io.settings import OpenSettings, TraceKind
from napari_xcebra.recording import InputError
from napari_xcebra.traces import CorrectedTraces, LazyTraces, in_blocks, read_block

USUAL_NEUROPIL = 0.7
"""Share of the neuropil where the source does not say (suite2p's own default)."""
KNOTS = 24
"""Points a window at which the running baseline is taken; it is straight between them."""

Traces = LazyTraces | np.ndarray


@dataclass(frozen=True)
class Choice:
    """Traces, and how they came about."""

    traces: Traces
    how: str


def chosen_traces(
    found: Extraction, settings: OpenSettings, rate: float, path: Path
) -> tuple[Traces, tuple[str, ...]]:
    """Traces of the kind asked for, and a note saying what was done."""
    makers = available(found, settings, rate)
    kind = settings.traces if settings.traces != "auto" else next(iter(makers))
    if kind not in makers:
        raise InputError(
            f"{path} has no {kind} traces; it has: {', '.join(makers)}. Set traces to one of these."
        )
    choice = makers[kind]()
    return choice.traces, (f"Traces are {choice.how}.",)


def available(
    found: Extraction, settings: OpenSettings, rate: float
) -> dict[TraceKind, Callable[[], Choice]]:
    """Kinds of traces that can be made of the signals, the one to prefer first."""
    signals = found.signals
    makers: dict[TraceKind, Callable[[], Choice]] = {}
    raw = signals.get("fluorescence", signals.get("traces"))
    corrected: Traces | None = None
    how = "fluorescence"
    if raw is not None:
        corrected = raw
        if "fluorescence" not in signals:
            how = "as they are in the file"
        if "neuropil" in signals:
            share = settings.neuropil
            if share < 0:
                said = found.neuropil_coefficient
                share = USUAL_NEUROPIL if said is None else said
            corrected = CorrectedTraces(raw, signals["neuropil"], share)
            how = f"fluorescence less {share:g} of the neuropil"
    if "dff" in signals:
        makers["dff"] = lambda: Choice(signals["dff"], "ΔF/F as in the file")
    elif "fluorescence" in signals and corrected is not None:
        traces = RelativeTraces(
            corrected, settings.baseline_seconds * rate, settings.baseline_percentile
        )
        text = (
            f"ΔF/F: {how}, over a running baseline (percentile {settings.baseline_percentile:g} of "
            f"{settings.baseline_seconds:g} s)"
        )
        makers["dff"] = lambda: Choice(traces, text)
    if "denoised" in signals:
        makers["denoised"] = lambda: Choice(signals["denoised"], "denoised by the extractor")
    if raw is not None and corrected is not None:
        if "neuropil" in signals:
            makers["corrected"] = lambda: Choice(corrected, how)
        name = "as they are in the file" if "fluorescence" not in signals else "raw fluorescence"
        makers["raw"] = lambda: Choice(raw, name)
    if "events" in signals:
        makers["events"] = lambda: Choice(signals["events"], "deconvolved events")
    if corrected is not None:
        z = StandardTraces(corrected)
        makers["zscored"] = lambda: Choice(z, f"{how}, in standard deviations of each cell")
    return makers


@dataclass(frozen=True)
class RelativeTraces(LazyTraces):
    """(F − F₀) / F₀ over a running percentile F₀.

    Where neuropil correction brings F₀ near zero, it is divided by a tenth of the cell's usual
    fluorescence instead, so that no cell explodes.

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
    def shape(self) -> tuple[int, int]:
        """Frames and cells."""
        return self.source.shape

    @property
    def _bin(self) -> int:
        """Frames that are averaged before the percentile is taken, which removes its noise."""
        return max(1, min(round(self.window / KNOTS), self.shape[0]))

    @cached_property
    def _baseline(self) -> tuple[np.ndarray, np.ndarray]:
        """F₀ at its knots, (knots, cells), and the least divisor of each cell, (cells,)."""
        edges = np.arange(0, self.shape[0], self._bin)
        counts = np.diff(np.r_[edges, self.shape[0]])[:, None]
        size = min(max(3, round(self.window / self._bin)), len(edges))
        knots = np.empty((len(edges), self.shape[1]), np.float32)
        least = np.empty(self.shape[1], np.float32)
        for cells, traces in in_blocks(self.source):
            binned = np.add.reduceat(traces, edges, axis=0, dtype=np.float64) / counts
            knots[:, cells] = percentile_filter(
                binned, self.percentile, size=(size, 1), mode="nearest"
            )
            least[cells] = 0.1 * np.median(np.abs(binned), axis=0)
        return knots, np.where(least > 0, least, 1)

    def block(self, frames: slice, cells: slice) -> np.ndarray:
        """(frames, cells) float32."""
        knots, least = self._baseline
        place = (np.arange(frames.start, frames.stop) + 0.5) / self._bin - 0.5
        place = np.clip(place, 0, len(knots) - 1)
        before = place.astype(np.int64)
        after = np.minimum(before + 1, len(knots) - 1)
        share = (place - before).astype(np.float32)[:, None]
        baseline = (1 - share) * knots[before, cells] + share * knots[after, cells]
        traces = read_block(self.source, frames, cells)
        return (traces - baseline) / np.maximum(baseline, least[cells])


@dataclass(frozen=True)
class StandardTraces(LazyTraces):
    """Traces in standard deviations from their mean; constant ones are 0."""

    source: Traces

    @property
    def shape(self) -> tuple[int, int]:
        """Frames and cells."""
        return self.source.shape

    @cached_property
    def _scale(self) -> tuple[np.ndarray, np.ndarray]:
        mean, deviation = np.empty(self.shape[1]), np.empty(self.shape[1])
        for cells, traces in in_blocks(self.source):
            mean[cells] = traces.mean(0, dtype=np.float64)
            deviation[cells] = traces.std(0, dtype=np.float64)
        return mean.astype(np.float32), np.where(deviation > 0, deviation, 1).astype(np.float32)

    def block(self, frames: slice, cells: slice) -> np.ndarray:
        """(frames, cells) float32."""
        mean, deviation = self._scale
        return (read_block(self.source, frames, cells) - mean[cells]) / deviation[cells]
