"""Computes scores over time in the background, a stretch at a time, keeps and averages them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from napari_xcebra.attribution.methods import method_named
from napari_xcebra.attribution.score_map import Latent
from napari_xcebra.jobs import tasks
from napari_xcebra.widgets.services.jobs import JobQueue, Processes, Work
from napari_xcebra.widgets.state.signals import Signal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from napari_xcebra.learn import Fit
    from napari_xcebra.recording import Recording


MOST_FRAMES = 2000
"""Frames of a stretch, where there are few cells."""
STRETCH_BYTES = 16 * 2**20
BUDGET = 256 * 2**20
"""Bytes of all stretches that are kept."""
MOST_FRAMES_IN_VIEW = 1500
"""Frames that are scored in a plot; of a longer view every second, fourth, eighth … frame is."""
MOST_VALUES = 8_000_000
"""Frames × cells that are scored in a plot."""


@dataclass(frozen=True, eq=False)
class Question:
    """What is scored over time.

    Parameters
    ----------
    fit : Fit
    recording : Recording
    factor : str
    latent : int or None
    method : str
        One that scores single frames.
    """

    fit: Fit
    recording: Recording
    factor: str
    latent: int | None
    method: str

    @classmethod
    def of(
        cls, fit: Fit, recording: Recording, factor: str, latent: Latent, method: str
    ) -> Question:
        """By the method that stands in for this one over time, and of one latent if it has them."""
        # a method that scores factors as a whole is not painted by latent, nor followed by one
        about = method_named(method)
        one = latent if isinstance(latent, int) and about.has_latents else None
        return cls(fit, recording, factor, one, about.over_time)

    @property
    def key(self) -> tuple[int, int, str, int | None, str]:
        """The same for the same question; fit and recording are known by their identity."""
        return id(self.fit), id(self.recording), self.factor, self.latent, self.method


@dataclass(frozen=True, eq=False)
class _Drawn:
    """Scores to draw.

    Parameters
    ----------
    frames : (n,) int64
        Ascending, `step` apart.
    step : int
    scores : (n, cells) float32
    """

    frames: np.ndarray
    step: int
    scores: np.ndarray


def _stretch_length(cells: int, *, slow: bool = False) -> int:
    """Frames that are computed at once, few enough to be there soon.

    >>> _stretch_length(150), _stretch_length(10_000), _stretch_length(150, slow=True)
    (2000, 419, 100)
    """
    frames = min(MOST_FRAMES, STRETCH_BYTES // (4 * max(cells, 1)))
    return max(20, frames // 20 if slow else frames)


def step_in_view(first: int, last: int, cells: int) -> int:
    """Distance of the frames that are scored for a plot from `first` to `last`.

    >>> step_in_view(0, 600, 100), step_in_view(0, 100_000, 100)
    (1, 128)
    """
    most = min(MOST_FRAMES_IN_VIEW, max(100, MOST_VALUES // cells))
    step = 1
    while (last - first) / step > most:
        step *= 2
    return step


class ScoresOverTime:
    """Stands for (frames, cells) scores, averaged over a window; NaN where not yet computed.

    Scores come in stretches of every frame, or of every second, fourth … for long views. A mean is
    that of the scored frames in the window.

    Parameters
    ----------
    recording : Recording
    length : int
        Scored frames of a stretch.
    window : int
        Frames that are averaged around each one, within its trial.
    budget : int
        Bytes of the stretches that are kept; those looked at longest ago go first.
    """

    def __init__(
        self, recording: Recording, length: int, window: int = 1, budget: int = BUDGET
    ) -> None:
        self.shape = (recording.n_frames, recording.n_cells)
        self.length = length
        self.window = window
        self._rate = recording.rate
        self._budget = budget
        self._edges = np.r_[np.asarray(recording.starts), recording.n_frames]
        self._stretches: OrderedDict[tuple[int, int], np.ndarray] = OrderedDict()

    @classmethod
    def answering(cls, question: Question) -> ScoresOverTime:
        """For a question, with no scores yet."""
        recording = question.recording
        length = _stretch_length(recording.n_cells, slow=method_named(question.method).slow)
        return cls(recording, length)

    def smooth(self, seconds: float) -> None:
        """Average over so many seconds from now on."""
        self.window = max(1, round(seconds * self._rate))

    # ------------------------------------------------------------ means

    def __getitem__(self, frame: int) -> np.ndarray:
        """(cells,) float32, averaged over the window around the frame."""
        if (1, int(frame) // self.length) not in self._stretches:
            return np.full(self.shape[1], np.nan, np.float32)
        return self.means(np.array([int(frame)]))[0]

    def means(
        self, frames: np.ndarray, step: int = 1, cells: Sequence[int] | slice = slice(None)
    ) -> np.ndarray:
        """Scores averaged over the window around each frame: (frames, cells) float32.

        Parameters
        ----------
        frames : (n,) int
            Ascending.
        step : int
            Distance of the scored frames that are averaged.
        cells : sequence of int or slice
        """
        first, last = self._around(frames)
        at, rows = self._rows(int(first.min()), int(last.max()), step, cells)
        # frames whose window leaves the trial have no score at all
        usable = np.isfinite(rows).any(1)
        begin, end = np.searchsorted(at, first), np.searchsorted(at, last)
        if len(frames) == 1:
            total = (rows if usable.all() else rows[usable]).sum(0)[None]
        else:
            filled = np.where(usable[:, None], rows, 0)
            total = np.diff(_sums(filled)[np.stack([begin, end])], axis=0)[0]
        count = np.diff(_sums(usable)[np.stack([begin, end])], axis=0)[0][:, None]
        return np.where(count, total / np.maximum(count, 1), np.nan).astype(np.float32)

    def drawn(self, first: int, last: int, step: int, cells: Sequence[int]) -> _Drawn | None:
        """Scores around a view: as fine as asked for or finer if they are there, else others."""
        steps = sorted({known for known, _ in self._stretches})
        fine = [s for s in steps if s <= step and not self._missing(first, last, s)]
        if not steps:
            return None
        best = fine[0] if fine else min(steps, key=lambda s: len(self._missing(first, last, s)))
        margin = (last - first) // 2
        at, _ = self._rows(first - margin, last + margin, best, [0])
        return _Drawn(at, best, self.means(at, best, cells)) if len(at) else None

    def _rows(
        self, first: int, last: int, step: int, cells: Sequence[int] | slice
    ) -> tuple[np.ndarray, np.ndarray]:
        """Scored frames from `first` to before `last`, ascending, and their scores."""
        at, rows = [np.zeros(0, np.int64)], [np.zeros((0, self.shape[1]), np.float32)[:, cells]]
        for number in self._numbers(first, last, step):
            if (stretch := self._stretches.get((step, number))) is not None:
                self._stretches.move_to_end((step, number))
                start = number * self.length * step
                low, high = (max(0, -(-(end - start) // step)) for end in (first, last))
                rows.append(stretch[low:high][:, cells])
                at.append(start + step * np.arange(len(stretch))[low:high])
        if len(rows) == 2:  # one stretch is not copied
            return at[1], rows[1]
        return np.concatenate(at), np.concatenate(rows)

    # ------------------------------------------------------------ stretches

    def wanted(self, frame: int) -> slice | None:
        """Frames to compute next: around the slider first, then a little ahead."""
        first, last = (int(end) for end in self._around(np.array(frame)))
        ahead = min(frame + self.length // 2, self.shape[0] - 1)
        for place in (frame, last - 1, first, ahead):
            if (1, place // self.length) not in self._stretches:
                return self._frames(place // self.length, 1)
        return None

    def wanted_between(self, first: int, last: int, step: int) -> slice | None:
        """Frames to compute next for a view: those in it, then as much again around it."""
        # so that a little scrolling costs nothing, and means at the edges are whole
        margin = max((last - first) // 2, self.window)
        for low, high in ((first, last), (first - margin, last + margin)):
            if missing := self._missing(low, high, step):
                return self._frames(missing[0], step)
        return None

    def put(self, frames: slice, scores: np.ndarray) -> None:
        """Keep the scores of a stretch that was wanted."""
        step = frames.step or 1
        self._stretches[step, frames.start // (self.length * step)] = scores
        while self.nbytes > self._budget and len(self._stretches) > 2:
            self._stretches.popitem(last=False)

    @property
    def nbytes(self) -> int:
        """Bytes of the stretches that are kept."""
        return sum(scores.nbytes for scores in self._stretches.values())

    def sample(self) -> np.ndarray:
        """Scores that are known so far, some thousands of them: (n,) float32."""
        thinned = [s[:: max(1, len(s) // 50)].ravel() for s in self._stretches.values()]
        scores = np.concatenate(thinned) if thinned else np.zeros(0, np.float32)
        return scores[np.isfinite(scores)]

    def _missing(self, first: int, last: int, step: int) -> list[int]:
        """Numbers of the stretches of a view that are not there."""
        return [n for n in self._numbers(first, last, step) if (step, n) not in self._stretches]

    def _numbers(self, first: int, last: int, step: int) -> range:
        first, last = max(0, first), min(last, self.shape[0])
        size = self.length * step
        return range(first // size, -(-last // size))

    def _frames(self, number: int, step: int) -> slice:
        start = number * self.length * step
        stop = min(start + self.length * step, self.shape[0])
        return slice(start, stop) if step == 1 else slice(start, stop, step)

    def _around(self, frames: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """First frame of the window around each frame, and the one after its last."""
        trial = np.searchsorted(self._edges, frames, side="right")
        first = np.maximum(frames - (self.window - 1) // 2, self._edges[trial - 1])
        return first, np.minimum(frames + self.window // 2 + 1, self._edges[trial])


def _sums(rows: np.ndarray) -> np.ndarray:
    """Sums of all rows before each, and of all: one row more."""
    return np.concatenate([np.zeros((1, *rows.shape[1:])), np.cumsum(rows, axis=0, dtype=float)])


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
