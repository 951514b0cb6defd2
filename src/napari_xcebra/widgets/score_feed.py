"""Scores of the cells over the stretch of time in view, computed in the background and kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from napari_xcebra.attribution.method_notes import method_over_time, scores_latents
from napari_xcebra.jobs import Job, OverTimeTask, Task
from napari_xcebra.recording import Recording
from napari_xcebra.widgets.latest_job import LatestJob, Request
from napari_xcebra.widgets.looked_at import LookedAt
from napari_xcebra.widgets.score_map import never_over_time

if TYPE_CHECKING:
    from napari_xcebra.learn.result import Fit

MOST_FRAMES = 1500
"""Frames of a stretch; of a longer one every second, fourth, eighth … frame is scored."""
MOST_VALUES = 8_000_000
"""Frames × cells of a stretch."""
KEPT = 6
"""Stretches that are kept."""


@dataclass(frozen=True)
class Question:
    """What is scored; two are the same if all of it is."""

    fit: int
    recording: int
    factor: str
    latent: int | None
    method: str
    smoothing: float


@dataclass(frozen=True, eq=False)
class Stretch:
    """Scores at some frames.

    Parameters
    ----------
    question : Question
    of : (Fit, Recording)
        Held, so that their places in memory cannot be taken by others.
    frames : (n,) int64
        Ascending, `step` apart.
    step : int
    scores : (n, cells) float32
    """

    question: Question
    of: tuple[Fit, Recording]
    frames: np.ndarray
    step: int
    scores: np.ndarray

    def covers(self, question: Question, frames: np.ndarray, step: int) -> bool:
        """Whether it answers the question for these frames as finely."""
        return (
            question == self.question
            and len(frames) > 0
            and self.frames[0] <= frames[0]
            and self.frames[-1] >= frames[-1]
            and self.step <= step
        )


class ScoreFeed:
    """Scores over time, as far as they have been computed.

    Parameters
    ----------
    submit : callable
        `Worker.submit`.
    changed : callable
        Called in the window's thread when there is something new to show or to say.
    """

    def __init__(self, submit: Callable[[Task], Job], changed: Callable[[], object]) -> None:
        self._jobs = LatestJob(submit, changed)
        self._kept: list[Stretch] = []
        self._failed: dict[Question, str] = {}

    def at_hand(self, looked: LookedAt, first: int, last: int) -> Stretch | None:
        """Scores that cover the frames, or else some of the same question, or None."""
        question = _question(looked)
        frames, step = frames_to_score(first, last, looked.recording)
        same = [stretch for stretch in self._kept if stretch.question == question]
        covering = [stretch for stretch in same if stretch.covers(question, frames, step)]
        found = min(covering, key=lambda s: s.step, default=same[-1] if same else None)
        if found is not None:
            self._kept.remove(found)
            self._kept.append(found)
        return found

    def ask(self, looked: LookedAt, first: int, last: int) -> None:
        """Have the frames scored, unless they have been or cannot be."""
        question, run = _question(looked), looked.run
        frames, step = frames_to_score(first, last, looked.recording)
        if run is None or self.problem(looked):
            return
        if any(stretch.covers(question, frames, step) for stretch in self._kept):
            return
        # as much again to either side, so that a little scrolling costs nothing
        margin = (last - first) // 2
        frames, step = frames_to_score(first - margin, last + margin, looked.recording)
        fit, recording = run.fit, looked.recording
        smooth = question.smoothing * recording.rate if step == 1 else 0.0
        task = OverTimeTask(
            fit, recording, question.factor, frames, question.method, question.latent, smooth
        )

        def done(scores: np.ndarray) -> None:
            self._kept.append(Stretch(question, (fit, recording), frames, step, scores))
            del self._kept[:-KEPT]

        def failed(sentence: str, _: str) -> None:
            self._failed[question] = sentence

        self._jobs.ask(Request(task, done, failed))

    def state(self, looked: LookedAt) -> str:
        """How far it is, in a few words; empty if the scores are there."""
        if self.problem(looked):
            return "(failed)"
        if self._jobs.busy:
            return "(computing …)" if self._jobs.running else "(waiting for its turn …)"
        return ""

    def problem(self, looked: LookedAt) -> str:
        """Why there are no scores, in a sentence; empty if nothing went wrong."""
        return never_over_time(looked.shown.method) or self._failed.get(_question(looked), "")

    def stop(self) -> None:
        """Compute nothing any more."""
        self._jobs.stop()

    def close(self) -> None:
        """Stop, and call nobody any more."""
        self._jobs.close()


def frames_to_score(first: int, last: int, recording: Recording) -> tuple[np.ndarray, int]:
    """Frames of a stretch, thinned out where it is long, and how far apart they are."""
    first, last = max(0, first), min(recording.n_frames, last)
    most = min(MOST_FRAMES, max(100, MOST_VALUES // recording.n_cells))
    step = 1
    while (last - first) / step > most:
        step *= 2
    return np.arange(-(-first // step) * step, last, step), step


def _question(looked: LookedAt) -> Question:
    shown = looked.shown
    fit = id(looked.run.fit) if looked.run else 0
    # a method that scores factors as a whole is not painted by latent, nor followed by one
    of_one = isinstance(shown.latent, int) and scores_latents(shown.method)
    latent = int(shown.latent) if of_one and shown.latent is not None else None
    method = method_over_time(shown.method)
    return Question(fit, id(looked.recording), looked.factor, latent, method, shown.smoothing)
