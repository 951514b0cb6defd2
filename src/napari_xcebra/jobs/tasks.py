"""Lists what the window has computed elsewhere, and holds what is more than one function there.

Each entry names a function; called with the arguments of that function, it gives the `Call` to
submit. Nothing here is imported with it, torch least of all: that happens where the call runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.jobs.calls import SPARING, Call, current_report
from napari_xcebra.jobs.events import Sketched

if TYPE_CHECKING:
    import pandas as pd

    from napari_xcebra.attribution.stream import FrameChoice
    from napari_xcebra.learn import Fit, FitSettings, Training
    from napari_xcebra.learn.data.factors import Factors
    from napari_xcebra.recording import Recording
    from napari_xcebra.runs import Run

_US = "napari_xcebra"
_FEWER_FRAMES = "ask for fewer frames, or set `device` to cpu"
_FEWER_CELLS = "use fewer cells or frames"
_CLOSE = "close other programs"

FIT = Call(f"{__name__}:train", doing="Training", counts="step")
FIT_SESSIONS = Call(
    f"{_US}.learn.joint.fitting:fit_sessions", doing="Training together", counts="step"
)
OPEN_MODEL = Call(f"{_US}.interop.cebra_fit:open_cebra", doing="Opening a model")
ADAPT = Call(f"{_US}.learn.adaptation:adapt", doing="Carrying a run over", counts="step")
STABILITY = Call(
    f"{_US}.attribution.stability:across_seeds", doing="Training with several seeds", counts="step"
)
DIMENSION = Call(
    f"{_US}.learn.quality.consistency:suggest_dimension",
    doing="Training with several numbers of latents",
    counts="step",
)
SWEEP = Call(
    f"{_US}.batch.running:sweep_to", doing="The sweep", sparing=f"run fewer processes, {SPARING}"
)
PROJECT = Call(
    f"{_US}.batch.project:project_to",
    doing="The project",
    sparing=f"run fewer processes, {SPARING}",
)

ATTRIBUTE = Call(
    f"{_US}.attribution:attribute", doing="Attribution", sparing=_FEWER_FRAMES, counts="frame"
)
DISCOVER = Call(
    f"{_US}.attribution.discovery.finding:discover",
    doing="Discovering",
    sparing=_FEWER_CELLS,
    counts="step",
)
SIGNIFICANCE = Call(
    f"{_US}.attribution:significance", doing="The test", sparing=_FEWER_CELLS, counts="frame"
)
STATISTICS = Call(
    f"{_US}.attribution.single_cell:cell_statistics",
    doing="Computing statistics",
    sparing=_FEWER_CELLS,
    counts="cell",
)
OVER_TIME = Call(
    f"{__name__}:score_over_time",
    doing="Attribution over time",
    sparing=_FEWER_FRAMES,
    counts="frame",
)
AROUND = Call(
    f"{__name__}:score_around",
    doing="Scoring around an event",
    sparing=_FEWER_CELLS,
    counts="frame",
)
EMBED = Call(
    f"{_US}.attribution.over_time:embedding_by_frame",
    doing="Embedding",
    sparing=_FEWER_FRAMES,
    counts="frame",
)
RASTERMAP = Call(
    f"{_US}.recording.overview:by_rastermap",
    doing="Sorting by rastermap",
    sparing="sort by correlation",
)

DEVICE = Call(
    f"{_US}.learn.device:describe_device",
    doing="Finding the device",
    sparing="set `device` to cpu",
)
CLUSTER = Call(f"{_US}.batch.cluster:look_at", doing="Checking the cluster", sparing=_CLOSE)
REPORT = Call(
    f"{_US}.report.run_report:write_run_report", doing="Writing the report", sparing=_CLOSE
)
SWEEP_REPORT = Call(
    f"{_US}.batch.sweep_report:write_sweep_report", doing="Writing the report", sparing=_CLOSE
)
COHORT = Call(
    f"{_US}.batch.cohort_files:compare_runs", doing="Comparing conditions", sparing=_CLOSE
)
NWB = Call(f"{__name__}:write_nwb", doing="Writing the NWB file", sparing=_CLOSE)


def train(
    recording: Recording,
    factors: Factors | None = None,
    settings: FitSettings | None = None,
    *,
    checkpoint: Path | None = None,
    live: str = "",
    **watching: Any,
) -> Fit:
    """Train as `learn.fit` does; `live` is a method for provisional maps, "" for none."""
    from napari_xcebra.learn import fit

    look = _sketching(recording, live) if live else None
    return fit(recording, factors, settings, checkpoint=checkpoint, look=look, **watching)


def _sketching(recording: Recording, method: str) -> Callable[[Training], None]:
    from napari_xcebra.attribution.scoring import LiveMap

    report = current_report()
    sketches = LiveMap(recording, method, report.stop)

    def look(training: Training) -> None:
        if (sketch := sketches.look(training)) is not None:
            report(Sketched(sketch, training.step, training.steps))

    return look


def score_over_time(
    fit: Fit,
    recording: Recording,
    factor: str,
    frames: FrameChoice,
    method: str,
    latent: int | None = None,
    smooth: float = 0.0,
    **watching: Any,
) -> np.ndarray:
    """Score every cell at every frame of a stretch, unless it was done before.

    Parameters
    ----------
    fit, recording
    factor : str
    frames, method, smooth
        As of `Attribution.over_time`.
    latent : int, optional
        One of the factor's latents; the mean over all of them if not given.
    **watching
        `on_progress` and `stop`.

    Returns
    -------
    (frames asked for, cells) float32
    """
    from napari_xcebra.attribution.over_time import kept_scores, key_of, scores_by_frame
    from napari_xcebra.attribution.stream import resolve_frames

    asked = resolve_frames(recording, frames)
    every = np.arange(recording.n_frames) if asked is None else np.unique(asked)
    question = fit, recording, _latents(fit, factor, latent), method, every
    compute = partial(scores_by_frame, *question, smooth=smooth, **watching)
    return kept_scores().get(key_of(*question, smooth), compute)


def _latents(fit: Fit, factor: str, latent: int | None) -> slice:
    """Dimensions of the embedding to score."""
    part = fit.part(factor)
    if latent is None:
        return part.latents
    if not 0 <= latent < part.stop - part.start:
        raise InputError(
            f"Factor {factor!r} has no latent {latent}: it has 0 to {part.stop - part.start - 1}."
        )
    return slice(part.start + latent, part.start + latent + 1)


def score_around(
    fit: Fit, recording: Recording, event: str, factor: str, **how: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Score a factor by the time from an event: arrays, which the window reads without torch.

    Returns
    -------
    seconds : (bins,) float64
    scores : (bins, cells) float32
    place : (frames,) int
        Bin of each frame, −1 outside.
    """
    from napari_xcebra.attribution import scores_around

    found = scores_around(fit, recording, event, factor, **how)
    return found.seconds, found.scores, found.place


def write_nwb(
    run: Run,
    recording: Recording,
    path: Path,
    decisions: pd.DataFrame | None = None,
    threshold: float = 0.0,
) -> Path:
    """Write a run with its recording as NWB, whole or not at all."""
    from napari_xcebra.attribution.methods import first_to_look_at
    from napari_xcebra.io.formats.nwb.writing import write_nwb

    maps = [replace(each, fit=run.fit) for each in first_to_look_at(run.attributions)]
    return write_nwb(recording, path, maps, decisions=decisions, threshold=threshold)
