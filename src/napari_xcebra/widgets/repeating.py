"""Trainings of a run repeated with other seeds; they go on when the dock is closed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from napari_xcebra.attribution.method_notes import frames_for, method_behind, title_of_method
from napari_xcebra.jobs import StabilityTask
from napari_xcebra.learn.duration import seconds_to_fit
from napari_xcebra.widgets.computation import Work, computation_of
from napari_xcebra.widgets.per_session import OfSession, one_per_session

if TYPE_CHECKING:
    from napari_xcebra.attribution.stability import Stability
    from napari_xcebra.learn import Fit
    from napari_xcebra.recording import Recording
    from napari_xcebra.runs import Run
    from napari_xcebra.widgets.session import Opened, Session


class Repeating(OfSession):
    """Has runs trained again with other seeds, and gives their scores to the map they are of.

    Parameters
    ----------
    session : Session
    """

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._asked: list[tuple[Fit, Work]] = []

    def start(self, opened: Opened, run: Run, method: str, more: int) -> None:
        """Train with so many more seeds after what is under way, and score the cells by a method.

        That of a consensus is the method it is of.
        """
        method = method_behind(method)
        if method not in run.attributions or self.awaited(run):
            return
        computation = computation_of(self.session)
        # one entry a run: those that came to their end are forgotten
        self._asked = [each for each in self._asked if computation.awaits(each[1])]
        work = _repeat(self.session, opened, run, method, more)
        self._asked.append((run.fit, work))
        computation.ask([work])

    def awaited(self, run: Run) -> bool:
        """Whether a run is being repeated, or waits for its turn."""
        computation = computation_of(self.session)
        return any(fit is run.fit and computation.awaits(work) for fit, work in self._asked)

    @property
    def running(self) -> bool:
        """Whether a repetition is what is being computed."""
        current = computation_of(self.session).current
        return current is not None and any(work is current for _, work in self._asked)


def seconds_to_repeat(run: Run, more: int) -> float:
    """About how long more seeds take, by how long the run took itself if that is known."""
    fit = run.fit
    # one that was stopped says how long the rest would have taken, but not one that was settled
    share = 1.0 if fit.complete or fit.steps == 0 else fit.steps / fit.settings.steps
    whole = replace(fit, seconds=fit.seconds / share)
    cells, latents = len(fit.inputs.cell_ids), fit.parts[-1].stop
    return more * seconds_to_fit(fit.settings, cells, latents, like=whole)


def _repeat(session: Session, opened: Opened, run: Run, method: str, more: int) -> Work:
    """Repetition of a run, which may be renamed or removed meanwhile."""
    fit, first = run.fit, run.attributions[method]
    known = first.stability.seeds if first.stability else (first.seed,)

    def keep(found: Stability) -> None:
        run = opened.run_of(fit)
        if run is not None and method in run.attributions:
            session.replace_run(run.name, run.with_stability(found))

    task = StabilityTask(
        _with_cells_of(fit, opened.recording),
        run.factors,
        fit.settings,
        tuple(range(max(known) + 1, max(known) + 1 + more)),
        method,
        frames_for(method),
    )
    return Work(f"{title_of_method(method)} with {more} more seeds", task, keep, long=True)


def _with_cells_of(fit: Fit, recording: Recording) -> Recording:
    """Recording with those cells accepted that the fit used: others may be accepted by now."""
    used = np.isin(np.asarray(recording.cell_ids), fit.inputs.cell_ids)
    return replace(recording, accepted=used)


repeating_of = one_per_session(Repeating)
"""The repetitions of a session; made when first asked for."""
