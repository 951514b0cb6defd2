"""Fits a recording several times, in turn or in parallel: with other seeds or latents."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Executor, wait
from dataclasses import dataclass

from napari_xcebra.errors import Stopped
from napari_xcebra.learn.data.factors import Factors
from napari_xcebra.learn.fitting import fit
from napari_xcebra.learn.result import Fit
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.learn.training.progress import Progress
from napari_xcebra.recording import Recording

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
