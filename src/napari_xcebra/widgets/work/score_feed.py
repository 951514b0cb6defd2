"""Computes scores over time in the background, a stretch at a time, as the docks want them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

import numpy as np

from napari_xcebra.jobs import tasks
from napari_xcebra.widgets.state.score_cache import Question, ScoresOverTime
from napari_xcebra.widgets.state.signals import Signal
from napari_xcebra.widgets.work.job_queue import JobQueue, Processes, Work

GRACE = 30.0
"""Seconds to wait for an unwanted stretch: restarting the process would take longer."""
SLIDER = "slider"
"""What the feed knows the painter by."""
KEPT = 2
"""Questions whose scores are kept."""
Next = Callable[[ScoresOverTime], slice | None]
"""Returns the frames that are wanted next, given the scores so far."""


class ScoreFeed:
    """Computes the stretches that the docks want, one after the other, and keeps them."""

    changed = Signal()
    """A stretch was begun, arrived or failed."""
    arrived = Signal(object, object)
    """Scores over time, and the frames (slice) that were added."""

    def __init__(self, processes: Processes) -> None:
        self._jobs = JobQueue(processes, latest=True)
        self._wants: dict[str, tuple[Question, Next]] = {}
        self._kept: OrderedDict[tuple, tuple[Question, ScoresOverTime]] = OrderedDict()
        self._failed: dict[tuple, str] = {}
        self._jobs.changed.connect(self._follow)

    @property
    def started(self) -> bool:
        """Whether the process has begun with a stretch; it may be busy with something else."""
        return self._jobs.started

    def scores(self, question: Question) -> ScoresOverTime:
        """Scores, as far as they are computed."""
        _, found = self._kept.setdefault(
            question.key, (question, ScoresOverTime.answering(question))
        )
        self._kept.move_to_end(question.key)
        if len(self._kept) > KEPT:
            gone, _ = self._kept.popitem(last=False)
            self._failed.pop(gone, None)
        return found

    def problem(self, question: Question) -> str:
        """Why there are no scores, in a sentence; empty if nothing went wrong."""
        return self._failed.get(question.key, "")

    def want(self, who: str, question: Question | None, frames: Next | None = None) -> None:
        """Compute what `frames` asks for; replaces the earlier wish of the same dock."""
        self._wants.pop(who, None)
        if question is not None and frames is not None:
            self._wants[who] = question, frames
        wanted = {wanted.key for wanted, _ in self._wants.values()}
        if self._jobs.current is not None and self._jobs.current.key not in wanted:
            self._jobs.cancel()
        self.go_on()

    def go_on(self) -> None:
        """Compute the next stretch, unless one is under way or none is wanted."""
        if self._jobs.busy:
            return
        # the image, at which the user looks, comes before the plot
        for who in sorted(self._wants, key=lambda who: who != SLIDER):
            question, frames = self._wants[who]
            scores = self.scores(question)
            wanted = None if self.problem(question) else frames(scores)
            if wanted is not None:
                self._compute(question, scores, wanted)
                return

    def _compute(self, question: Question, scores: ScoresOverTime, frames: slice) -> None:
        def keep(result: np.ndarray) -> None:
            scores.put(frames, result)
            self.arrived.emit(scores, frames)

        def say(sentence: str, *_: str) -> None:
            if question.key in self._kept:  # which holds what the key is made of
                self._failed[question.key] = sentence

        call = tasks.OVER_TIME(
            question.fit,
            question.recording,
            question.factor,
            np.arange(frames.start, frames.stop, frames.step),
            question.method,
            question.latent,
        )
        work = Work("scores over time", call, keep, key=question.key, say=say, grace=GRACE)
        self._jobs.ask(work)

    def _follow(self) -> None:
        self.go_on()
        self.changed.emit()
