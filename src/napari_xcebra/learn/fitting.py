"""Trains an encoder on a recording and measures it, in one call; or several of them."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Executor, wait
from dataclasses import dataclass, replace
from functools import partial
from importlib import metadata
from os import PathLike
from pathlib import Path

import numpy as np
import torch

from napari_xcebra.errors import Stopped
from napari_xcebra.learn.data.factors import Factors, Part
from napari_xcebra.learn.device import embedded, limited_threads
from napari_xcebra.learn.quality.goodness import check_measurable, measure_goodness
from napari_xcebra.learn.result import Fit
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.learn.training.checkpoint import Checkpoint
from napari_xcebra.learn.training.lambda_search import UNSEARCHED
from napari_xcebra.learn.training.progress import Progress
from napari_xcebra.learn.training.start import average, note_on_length
from napari_xcebra.learn.training.training import Training
from napari_xcebra.recording import Recording
from napari_xcebra.recording.fingerprint import confirmed_fingerprint

NAN = float("nan")

REPORTED_BYTES = 2**28
"""Traces from which on preparing and measuring take so long that they are reported."""

FEW_STEPS = 100
"""Steps below which a variable that is in the cells can still be at chance."""


def fit(
    recording: Recording,
    factors: Factors | None = None,
    settings: FitSettings | None = None,
    *,
    on_progress: Callable[[Progress], object] | None = None,
    stop: Callable[[], bool] | None = None,
    checkpoint: str | PathLike[str] | None = None,
    every: int = 10,
    look: Callable[[Training], object] | None = None,
) -> Fit:
    """Train the encoder on a recording and measure it on held-out blocks.

    Parameters
    ----------
    recording : Recording
    factors : mapping of str to list of str, or to Factor
        What to attribute, by behaviour variables: ``{"place": ["x_cm", "y_cm"]}``. Mode "time"
        needs none.
    settings : FitSettings, optional
    on_progress : callable, optional
        Called with a `Progress` every so many steps.
    stop : callable, optional
        Asked every so many steps; when it returns True, training ends and the fit so far is
        returned. Before the first step of a large recording, `Stopped` is raised instead.
    checkpoint : path, optional
        File in which the state of the run is kept about every 5 seconds and when it is stopped;
        if it exists and belongs to the same run, training goes on from it. Removed at the end.
    every : int
        Steps between two reports.
    look : callable, optional
        Called with the run itself as often as `on_progress`; it must not change it.

    Returns
    -------
    Fit

    Examples
    --------
    >>> from napari_xcebra.simulate import box
    >>> simulation = box(frames=3000)
    >>> result = fit(simulation.recording, simulation.factors, FitSettings(steps=20))
    >>> result.factors
    ('z2', 'time')
    """
    settings = settings or FitSettings()
    large = 4 * recording.n_cells * recording.n_frames > REPORTED_BYTES
    report = partial(_report, on_progress, stop) if large else None
    training = Training(
        recording, factors, settings, report=partial(report, settings) if report else _unsaid
    )
    check_measurable(training)
    began, resumed = time.monotonic(), checkpoint is not None and Path(checkpoint).exists()
    kept = train(
        training, on_progress=on_progress, stop=stop, checkpoint=checkpoint, every=every, look=look
    )
    measuring = partial(report, training.settings, training) if report else _unsaid
    result = finish(training, recording, measuring)
    if not resumed:
        result = replace(result, seconds=time.monotonic() - began)
    if kept is not None and result.complete:
        kept.remove()
    return result


def train(
    training: Training,
    *,
    on_progress: Callable[[Progress], object] | None = None,
    stop: Callable[[], bool] | None = None,
    checkpoint: str | PathLike[str] | None = None,
    every: int = 10,
    look: Callable[[Training], object] | None = None,
) -> Checkpoint | None:
    """Run a training to its end or until it is stopped; arguments as of `fit`.

    Returns
    -------
    Checkpoint or None
        To be removed once the fit is measured.
    """
    kept = Checkpoint(checkpoint, training) if checkpoint is not None else None
    if kept is not None:
        kept.restore()
    for progress in training.run(every):
        if on_progress is not None:
            on_progress(progress)
        if look is not None:
            look(training)
        stopped = stop is not None and stop()
        if kept is not None:
            kept.keep(now=stopped)
        if stopped:
            break
    return kept


def _unsaid() -> None:
    """Report nothing: it takes a moment."""


def _report(
    on_progress: Callable[[Progress], object] | None,
    stop: Callable[[], bool] | None,
    settings: FitSettings,
    training: Training | None = None,
) -> None:
    """Say that a run is prepared or, if there is one, measured; before its first step it stops."""
    if training is None and stop is not None and stop():
        raise Stopped("Stopped before the first step.")
    if on_progress is None:
        return
    nothing: dict[str, float] = {}
    if training is None:
        on_progress(Progress(0, settings.steps, "preparing", nothing, NAN, 0.0, 0.0))
        return
    lambda_ = training.lambda_at(training.step)
    on_progress(Progress(training.step, training.steps, "measuring", nothing, NAN, lambda_, NAN))


def finish(training: Training, recording: Recording, report: Callable[[], object] = _unsaid) -> Fit:
    """Measure an encoder trained on a recording and return it as a `Fit`.

    Parameters
    ----------
    report : callable, optional
        Called before each part is measured.
    """
    with limited_threads(training.settings.threads):
        average(training)
        goodness = measure_goodness(training, report)
    result = replace(snapshot(training, recording.source), goodness=goodness)
    return replace(result, notes=_notes(training), fingerprint=confirmed_fingerprint(recording))


def snapshot(training: Training, source: str) -> Fit:
    """The fit so far, not measured; valid until the next step."""
    with torch.no_grad():
        scale = training.psi.scale().cpu().numpy()
    weights = {name: w.cpu().numpy() for name, w in training.encoder.state_dict().items()}
    return Fit(
        settings=training.settings,
        parts=_learned(training),
        inputs=training.inputs,
        weights=weights,
        scale=scale,
        history={name: np.array(values) for name, values in training.history.items()},
        goodness={},
        steps=training.step,
        source=source,
        versions=_versions(),
        lambda_reason="" if training.search is None else training.search.reason,
        stop_reason=_stop_reason(training),
        repeated=training.repeated,
    )


def _learned(training: Training) -> tuple[Part, ...]:
    """Parts with the temperatures and weights that learning ended with."""
    with torch.no_grad():
        temperatures = training.psi.log_tau().exp().tolist()
        weights = training.psi.log_time_weight.exp().tolist()
    return tuple(
        replace(
            part,
            time_weight=weight,
            temperature=temperature if part.learned else part.temperature,
            lambda_=lambda_,
        )
        for part, temperature, weight, lambda_ in zip(
            training.parts, temperatures, weights, training.lambdas_at(training.step), strict=True
        )
    )


def _stop_reason(training: Training) -> str:
    settled = training.settled
    return settled.reason if settled is not None and training.step == settled.last else ""


def _notes(training: Training) -> tuple[str, ...]:
    notes: list[str] = []
    if training.step < training.steps:
        notes.append(f"Stopped after {training.step} of {training.steps} steps.")
    if training.step < FEW_STEPS and not _stop_reason(training):
        notes.append(
            f"{training.step} steps are few: a factor at chance may not be learned yet. Raise "
            f"`steps` ({FitSettings().steps} by default) before you trust the result."
        )
    if training.batch_size < training.asked_batch:
        notes.append(
            f"The recording has few training frames: `batch_size` was lowered from "
            f"{training.asked_batch} to {training.batch_size}."
        )
    if training.settings.lambda_ == "auto" and training.search is None:
        notes.append(
            f"The recording is too short to set frames aside and find λ on them: {UNSEARCHED:g} "
            "was used."
        )
    frames = training.split.training.anchors
    frames = frames[:: max(1, len(frames) // 2000)]
    values = embedded(training.encoder, training.data, frames)[frames]
    share = float((np.abs(values) > 0.98 * training.encoder.bound).mean())
    if share > 0.02:
        notes.append(
            f"{share:.0%} of the embedding lies at its bound (±{training.encoder.bound:g}), where "
            "its gradient vanishes: raise `bound` or `time_offset`."
        )
    length = len(training.split.training.anchors)
    if short := note_on_length(length, training.inputs.smoothing):
        notes.append(short)
    return tuple(notes)


def _versions() -> dict[str, str]:
    packages = ("napari-xcebra", "torch", "numpy", "scipy")
    return {name: metadata.version(name) for name in packages} | {
        "python": platform.python_version()
    }


OnSteps = Callable[[int, int], object] | None
"""Called with the steps done and in all, over all fits."""
INTERVAL = 0.2
"""Seconds between two looks at fits that run elsewhere."""


@dataclass(frozen=True)
class Repeat:
    """One of several fits: what to train, and how."""

    factors: Factors | None
    settings: FitSettings


def fit_each(
    recording: Recording,
    repeats: Sequence[Repeat],
    *,
    on_progress: OnSteps = None,
    stop: Callable[[], bool] | None = None,
    executor: Executor | None = None,
) -> Generator[Fit, None, None]:
    """Fits in their order, each as soon as it is done.

    When `stop` returns True it ends, without the fits under way.

    Parameters
    ----------
    executor : Executor, optional
        Runs the fits; by default they run here, one after the other.

    Yields
    ------
    Fit
    """
    if executor is not None:
        yield from _fit_through(executor, recording, repeats, on_progress, stop)
        return
    total, before = sum(each.settings.steps for each in repeats), 0
    for each in repeats:

        def advance(progress: Progress, before: int = before, each: Repeat = each) -> None:
            if on_progress is not None:
                on_progress(before + min(progress.step, each.settings.steps), total)
            if stop is not None and stop():
                # one that is not finished is of no use here, and not measured
                raise Stopped

        try:
            done = fit(recording, each.factors, each.settings, on_progress=advance)
        except Stopped:
            return
        yield done
        before += each.settings.steps
        if stop is not None and stop():
            return


def _fit_through(
    executor: Executor,
    recording: Recording,
    repeats: Sequence[Repeat],
    on_progress: OnSteps,
    stop: Callable[[], bool] | None,
) -> Iterator[Fit]:
    futures = [executor.submit(_fitted, recording, each) for each in repeats]
    total = sum(each.settings.steps for each in repeats)
    try:
        for future in futures:
            while not future.done():
                wait([future], timeout=INTERVAL)
                if stop is not None and stop():
                    return
                if on_progress is not None:
                    both = zip(repeats, futures, strict=True)
                    on_progress(sum(e.settings.steps for e, its in both if its.done()), total)
            yield future.result()
    finally:
        for future in reversed(futures):  # the last first, or a waiting one would begin
            getattr(future, "stop", future.cancel)()  # some executors can stop one that runs


def _fitted(recording: Recording, each: Repeat) -> Fit:
    return fit(recording, each.factors, each.settings)
