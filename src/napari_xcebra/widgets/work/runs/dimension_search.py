"""Searches for the number of latents in the background."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from napari_xcebra.jobs import Call, tasks
from napari_xcebra.learn.data.suggestions import latents_for
from napari_xcebra.learn.training.progress import seconds_to_fit
from napari_xcebra.widgets.state.of_state import OfState
from napari_xcebra.widgets.state.signals import Signal
from napari_xcebra.widgets.work.job_queue import SEVERAL, JobQueue, Work

if TYPE_CHECKING:
    from napari_xcebra.learn.data.factors import Factor
    from napari_xcebra.learn.quality.consistency import Dimensions
    from napari_xcebra.learn.result import Fit
    from napari_xcebra.learn.settings import FitSettings
    from napari_xcebra.recording import Recording
    from napari_xcebra.widgets.state.state import State
    from napari_xcebra.workspace_file import Opened


KEY = "dimensions"


@dataclass(frozen=True)
class Latents:
    """Chosen numbers of latents.

    Parameters
    ----------
    of_time : int
        0 where there are none.
    of_factors : mapping of str to int
        Of those factors whose number was looked for.
    """

    of_time: int
    of_factors: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Trial:
    """What is tried.

    Parameters
    ----------
    recording : Recording
    factors : mapping of str to Factor
    settings : FitSettings
    time_latents : tuple of int
        None of them in modes without time latents.
    factor_latents : tuple of int
        Of the one factor there is; empty for as many as its variables have.
    seeds : int
        Trainings at each number of latents.
    """

    recording: Recording
    factors: Mapping[str, Factor]
    settings: FitSettings
    time_latents: tuple[int, ...]
    factor_latents: tuple[int, ...]
    seeds: int

    @property
    def sizes(self) -> list[tuple[int, int]]:
        """Latents of all factors together, and of time."""
        usual = sum(
            factor.latents or latents_for(self.recording, factor.variables)
            for factor in self.factors.values()
        )
        return list(product(self.factor_latents or (usual,), self.time_latents or (0,)))

    def seconds(self, like: Fit | None) -> float:
        """About how long it takes; `like` is a fit that was timed on this machine."""
        cells = int(np.asarray(self.recording.accepted).sum())
        each = (seconds_to_fit(self.settings, cells, sum(size), like) for size in self.sizes)
        return self.seeds * sum(each)

    @property
    def call(self) -> Call:
        """The call for the background process."""
        return tasks.DIMENSION(
            self.recording,
            dict(self.factors),
            self.settings,
            time_latents=self.time_latents or (self.settings.time_latents,),
            factor_latents=self.factor_latents or None,
            seeds=self.seeds,
        )

    def latents(self, found: Dimensions) -> Latents:
        """The suggestion as numbers for the Train dock."""
        chosen = found.suggested
        names = list(self.factors) if self.factor_latents else []
        return Latents(chosen.time_latents, {name: chosen.factor_latents for name in names})


class DimensionSearch(OfState):
    """Tries numbers of latents, and keeps the last result."""

    changed = Signal()
    """A result has arrived."""

    def __init__(self, state: State, jobs: JobQueue) -> None:
        super().__init__(state)
        self._jobs = jobs
        self._found: tuple[Opened, Trial, Dimensions] | None = None

    @property
    def found(self) -> tuple[Trial, Dimensions] | None:
        """What was tried on the current recording, and the result."""
        current = self.state.current
        if self._found is None or self._found[0] is not current:
            return None
        return self._found[1:]

    @property
    def awaited(self) -> bool:
        """Whether it is under way, or waits for its turn."""
        return self._jobs.awaits(KEY)

    @property
    def running(self) -> bool:
        """Whether it is being computed now."""
        return self._jobs.runs(KEY)

    def start(self, trial: Trial) -> None:
        """Try numbers of latents on the current recording, once other work is done."""
        opened = self.state.current
        if opened is None or self.awaited:
            return

        def keep(found: Dimensions) -> None:
            self._found = (opened, trial, found)
            self.changed.emit()

        work = Work("the number of latents", trial.call, keep, KEY, long=True, grace=SEVERAL)
        self._jobs.ask(work)
