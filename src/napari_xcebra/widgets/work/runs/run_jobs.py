"""Scores the cells of a trained run, tests them against chance, and repeats it with other seeds."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from napari_xcebra.attribution.methods import method_behind, method_named, title_of_method
from napari_xcebra.attribution.shift_test.result import Significance, seconds_to_test
from napari_xcebra.errors import InputError
from napari_xcebra.jobs import tasks
from napari_xcebra.learn.training.progress import seconds_to_fit
from napari_xcebra.widgets.state.of_state import OfState
from napari_xcebra.widgets.work.job_queue import SEVERAL, JobQueue, Work

if TYPE_CHECKING:
    from napari_xcebra.attribution import Attribution
    from napari_xcebra.attribution.stability import Stability
    from napari_xcebra.jobs import Call, Job
    from napari_xcebra.learn import Fit
    from napari_xcebra.recording import Recording
    from napari_xcebra.runs import Run
    from napari_xcebra.widgets.state.state import State
    from napari_xcebra.workspace_file import Opened

Kind = Literal["scores", "test", "repeat"]


class RunJobs(OfState):
    """Asks for work on runs, and adds the results to them.

    A run may be renamed or removed meanwhile, so it is identified by its fit.
    """

    def __init__(self, state: State, jobs: JobQueue) -> None:
        super().__init__(state)
        self._jobs = jobs
        self._seconds: list[tuple[Fit, float]] = []

    def awaits(self, kind: Kind, run: Run) -> bool:
        """Whether such work on a run is under way, or waits for its turn."""
        return self._jobs.awaits((kind, id(run.fit)))

    def score(self, opened: Opened, run: Run, *methods: str) -> Job | None:
        """Score the cells of a run by some methods, once other work is done."""
        return self._jobs.ask(*(self._score(opened, run.fit, method) for method in methods))

    def test(self, opened: Opened, run: Run) -> None:
        """Test the cells of a run against chance for all factors, once other work is done."""
        if self.awaits("test", run):
            return
        fit = run.fit

        def keep(significance: Significance) -> None:
            if (run := opened.run_of(fit)) is not None:
                self.state.replace_run(run.name, run.with_significance(significance))

        call = tasks.SIGNIFICANCE(fit, opened.recording)
        key = ("test", id(fit))
        self._jobs.ask(self._work(opened, "the test against chance", call, keep, key))

    def repeat(self, opened: Opened, run: Run, method: str, more: int) -> None:
        """Train with more seeds once other work is done, and score the cells by a method.

        That of a consensus is the method it is of.
        """
        method, fit = method_behind(method), run.fit
        if method not in run.attributions or self.awaits("repeat", run):
            return
        first = run.attributions[method]
        known = first.stability.seeds if first.stability else (first.seed,)

        def keep(found: Stability) -> None:
            run = opened.run_of(fit)
            if run is not None and method in run.attributions:
                self.state.replace_run(run.name, run.with_stability(found))

        call = tasks.STABILITY(
            _with_cells_of(fit, opened.recording),
            run.factors,
            fit.settings,
            tuple(range(max(known) + 1, max(known) + 1 + more)),
            method,
            frames=method_named(method).frames,
        )
        title = f"{title_of_method(method)} with {more} more seeds"
        key = ("repeat", id(fit))
        self._jobs.ask(self._work(opened, title, call, keep, key, long=True, grace=SEVERAL))

    def seconds_to_test(self, opened: Opened, run: Run) -> float:
        """About how long a test of a run takes; NaN if its variables are gone."""
        for fit, seconds in self._seconds:
            if fit is run.fit:
                return seconds
        try:
            seconds = seconds_to_test(run.fit, opened.recording)
        except InputError:  # the test will say what is wrong
            seconds = np.nan
        there = [run.fit for one in self.state.opened for run in one.runs]
        kept = [entry for entry in self._seconds if any(entry[0] is fit for fit in there)]
        self._seconds = [*kept, (run.fit, seconds)]
        return seconds

    def _score(self, opened: Opened, fit: Fit, method: str) -> Work:
        def keep(attribution: Attribution) -> None:
            if (run := opened.run_of(fit)) is not None:
                self.state.replace_run(run.name, run.with_attribution(attribution))

        frames = method_named(method).frames
        call = tasks.ATTRIBUTE(fit, opened.recording, method, frames=frames)
        return self._work(opened, title_of_method(method), call, keep, ("scores", id(fit)))

    def _work(
        self,
        opened: Opened,
        title: str,
        call: Call,
        keep: Callable[[Any], object],
        key: Hashable,
        **how: Any,
    ) -> Work:
        """Work on a run that names its recording, where another one may be looked at meanwhile."""
        named = f"{title} of {opened.name}" if len(self.state.opened) > 1 else title
        name = opened.name

        def say(sentence: str, tone: str, details: str) -> None:
            in_front = not self.state_open or opened is self.state.current or name in sentence
            self._jobs.said.emit(sentence if in_front else f"{name}: {sentence}", tone, details)

        return Work(named, call, keep, key, say, **how)


def seconds_to_repeat(run: Run, more: int) -> float:
    """About how long more seeds take, by how long the run took itself if that is known."""
    fit = run.fit
    # one that was stopped says how long the rest would have taken, but not one that was settled
    share = 1.0 if fit.complete or fit.steps == 0 else fit.steps / fit.settings.steps
    whole = replace(fit, seconds=fit.seconds / share)
    cells, latents = len(fit.inputs.cell_ids), fit.parts[-1].stop
    return more * seconds_to_fit(fit.settings, cells, latents, like=whole)


def _with_cells_of(fit: Fit, recording: Recording) -> Recording:
    """Recording with those cells accepted that the fit used: others may be accepted by now."""
    used = np.isin(np.asarray(recording.cell_ids), fit.inputs.cell_ids)
    return replace(recording, accepted=used)
