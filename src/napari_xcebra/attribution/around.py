"""Scores cells by the time from an event: when a factor appears, and in which cells.

The model of the conditional encoding predicts held-out blocks of time. The product of a factor's
part of the prediction with what all other parts leave of the trace is averaged by the time from the
event.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from napari_xcebra.attribution.encoding.model import PASS, Encoding, make_encoding
from napari_xcebra.attribution.encoding.ridge import HeldOut
from napari_xcebra.attribution.maps.conditional import both
from napari_xcebra.attribution.stream import make_stream, spread_out
from napari_xcebra.attribution.watching import OnProgress, Stop, Watch
from napari_xcebra.errors import InputError
from napari_xcebra.learn.data.factors import TIME, part_named
from napari_xcebra.learn.data.labels import Course, Labels, seconds_from_event
from napari_xcebra.learn.device import limited_threads
from napari_xcebra.recording import Recording

if TYPE_CHECKING:
    import pandas as pd

    from napari_xcebra.learn.result import Fit

FEWEST_EVENTS = 8
"""Events below which a bin of time has no score."""


@dataclass(frozen=True, eq=False)
class ScoresAround:
    """Scores of a factor by the time from an event.

    Parameters
    ----------
    factor, event : str
    seconds : (bins,) float64
        Middle of each bin, from the event; negative before it.
    scores : (bins, cells) float32
        Share of variance in held-out data; of the bin, or of the cell on average if that is more.
        NaN for a cell that was not used, and where too few events have frames.
    errors : (bins, cells) float32
        Standard errors over blocks of time.
    events : (bins,) int64
        Events that have frames in each bin.
    cell_ids : (cells,) int64
        Every ROI of the recording.
    place : (frames,) int64
        Bin of each frame, −1 where no event is near.
    """

    factor: str
    event: str
    seconds: np.ndarray
    scores: np.ndarray
    errors: np.ndarray
    events: np.ndarray
    cell_ids: np.ndarray
    place: np.ndarray

    def table(self) -> pd.DataFrame:
        """One row a bin and ROI: seconds, cell, score and error."""
        import pandas as pd

        bins, cells = self.scores.shape
        return pd.DataFrame(
            {
                "seconds": np.repeat(self.seconds, cells),
                "cell": np.tile(self.cell_ids, bins),
                "score": self.scores.ravel(),
                "error": self.errors.ravel(),
            }
        )


def scores_around(
    fit: Fit,
    recording: Recording,
    event: str,
    factor: str,
    *,
    window: tuple[float, float] = (1.0, 2.0),
    bin: float = 0.25,
    on_progress: OnProgress = None,
    stop: Stop = None,
) -> ScoresAround:
    """Conditional encoding of a factor by the time from an event.

    Parameters
    ----------
    fit : Fit
    recording : Recording
    event : str
        An event of the recording, or a variable with one value in each trial, for the time from
        when it is known.
    factor : str
    window : (float, float)
        Seconds before and after the event.
    bin : float
        Seconds.
    on_progress, stop
        As of `attribute`.

    Examples
    --------
    >>> from napari_xcebra.learn import FitSettings, fit
    >>> from napari_xcebra.simulate import task
    >>> recording = task(frames=3000).recording
    >>> trained = fit(recording, {"choice": ["choice"]}, FitSettings(steps=20))
    >>> scores_around(trained, recording, "decision", "choice", bin=0.5).scores.shape
    (6, 110)
    """
    part_named(factor, fit.parts)
    if not bin > 0 or min(window) < 0 or sum(window) < bin:
        raise InputError(
            f"window is {window!r} and bin {bin!r}: seconds before and after the event are needed, "
            "0 or more each, and bins that fit between them."
        )
    since = _seconds_from(recording, event, window)
    edges = np.arange(-window[0], window[1] + bin / 2, bin)
    stream = make_stream(fit, recording)
    watch = Watch(len(stream.frames), on_progress, stop)
    with limited_threads(fit.settings.threads):
        encoding = make_encoding(stream, watch)
        place = np.searchsorted(edges, since + 0.25 / recording.rate, side="right") - 1
        place = np.where(np.isnan(since) | (place >= len(edges) - 1), -1, place)
        scores, errors = _by_bin(encoding, factor, place, len(edges) - 1, watch)
    watch.finish()
    events = _events(place[encoding.stream.frames], len(edges) - 1)
    rare = events < FEWEST_EVENTS
    scores[rare] = errors[rare] = np.nan
    return ScoresAround(
        factor,
        event,
        (edges[1:] + edges[:-1]) / 2,
        spread_out(scores, fit, recording),
        spread_out(errors, fit, recording),
        events,
        np.asarray(recording.cell_ids),
        place,
    )


def _seconds_from(recording: Recording, event: str, window: tuple[float, float]) -> np.ndarray:
    """Seconds from the nearest event, NaN outside the window: (frames,) float64."""
    variable = recording.variable(event)
    if variable.kind == "event":
        return seconds_from_event(recording, replace(variable, window=window))
    course = Course.of(recording, Labels.of(recording, [event], event))
    if course is None:
        raise InputError(
            f"Variable {event!r} is {variable.kind} and changes within trials, or there are no "
            "trials: an event, or a variable with one value in each trial, is needed."
        )
    seconds = course.seconds(recording.rate, window[0])
    return np.where(seconds <= window[1], seconds, np.nan)


def _by_bin(
    encoding: Encoding, factor: str, place: np.ndarray, bins: int, watch: Watch
) -> tuple[np.ndarray, np.ndarray]:
    """Scores by bin, and their standard errors over blocks: (bins, cells in use) each.

    Parameters
    ----------
    place : (frames,) int64
        Bin of each frame, −1 outside.
    """
    blocks, cells = len(encoding.blocks), len(encoding.lags)
    product = np.zeros((2, blocks, bins, cells))
    variance, frames = np.zeros((blocks, bins, cells)), np.zeros((blocks, bins, 1))
    own, models = encoding.columns[factor], encoding.models(watch)
    total = np.zeros(cells)
    for cohort, model in zip(encoding.cohorts, models, strict=True):
        total[cohort.cells] = model.observed.variance.sum(0)
    for block, positions, traces in encoding.read():
        at = place[encoding.stream.frames[positions]]
        inside, at = at >= 0, at[at >= 0]
        indicator = np.zeros((bins, len(at)))
        indicator[at, np.arange(len(at))] = 1
        frames[block] += indicator.sum(1, keepdims=True)
        for cohort, (alone, with_state), x in zip(
            encoding.cohorts, models, encoding.rows(positions), strict=True
        ):
            y = traces[inside][:, cohort.cells]
            for i, held in enumerate((with_state if factor == TIME else alone, with_state)):
                width = held.weights.shape[1]
                carried = _carried(held, block, x[inside, :width], y, own)
                product[i, block][:, cohort.cells] += indicator @ carried
            away = np.square(y - alone.blocks[block].mean_y)
            variance[block][:, cohort.cells] += indicator @ away
        watch.advance(PASS * len(positions))
    usual = total / sum(len(block) for block in encoding.blocks)
    return _shares(product, variance, frames, usual)


def _carried(
    model: HeldOut, block: int, x: np.ndarray, y: np.ndarray, own: np.ndarray
) -> np.ndarray:
    """A factor's part of the prediction times what all else leaves of the trace, by frame."""
    weights, about = model.weights[block], model.blocks[block]
    x = x - about.mean_x
    part = x[:, own] @ weights[own]
    found: np.ndarray = part * (y - about.mean_y - x @ weights + part)
    return found


def _shares(
    product: np.ndarray, variance: np.ndarray, frames: np.ndarray, usual: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Shares of variance, of the bin or of the cell on average if that is more; and errors."""

    def share(kept: np.ndarray) -> np.ndarray:
        total = np.maximum(variance[kept].sum(0), frames[kept].sum(0) * usual)
        alone, beside = product[:, kept].sum(1) / np.maximum(total, 1e-12)
        return both(alone, beside)

    every = np.arange(len(variance))
    # leaving out one block after the other
    without = np.stack([share(every[every != block]) for block in every])
    errors = np.sqrt((len(every) - 1) * without.var(0))
    return share(every), errors


def _events(place: np.ndarray, bins: int) -> np.ndarray:
    """Events that have frames in each bin: (bins,) int64."""
    begins = np.diff(place, prepend=-1) != 0
    return np.bincount(place[begins & (place >= 0)], minlength=bins)
