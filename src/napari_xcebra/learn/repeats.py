"""Several fits of one recording, one after the other: seeds, numbers of latents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from napari_xcebra.learn.fitting import fit
from napari_xcebra.learn.parts import Factors
from napari_xcebra.learn.result import Fit
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.learn.training import Progress
from napari_xcebra.recording import Recording

OnSteps = Callable[[int, int], object] | None
"""Called with the steps done and in all, over all fits."""


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
) -> Iterator[Fit]:
    """Fits in their order, each as soon as it is done.

    When `stop` returns True they end there, without the one under way.

    Yields
    ------
    Fit
    """
    total, before = sum(each.settings.steps for each in repeats), 0
    for each in repeats:

        def advance(progress: Progress, before: int = before) -> None:
            if on_progress is not None:
                on_progress(before + progress.step, total)

        done = fit(recording, each.factors, each.settings, on_progress=advance, stop=stop)
        if done.steps < each.settings.steps:
            return
        yield done
        before += each.settings.steps
        if stop is not None and stop():
            return
