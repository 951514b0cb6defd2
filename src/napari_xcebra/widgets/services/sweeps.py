"""Trains many times in the background: sweeps, and fits with several numbers of latents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from napari_xcebra.batch.running import ComputePlace
from napari_xcebra.jobs import Call, Cancelled, Failed, Finished, Job, tasks
from napari_xcebra.learn.data.suggestions import latents_for
from napari_xcebra.learn.training.progress import seconds_to_fit
from napari_xcebra.widgets.services.jobs import SEVERAL, JobQueue, Processes, Work
from napari_xcebra.widgets.services.run_jobs import show_page
from napari_xcebra.widgets.state.of_state import OfState
from napari_xcebra.widgets.state.signals import Signal

if TYPE_CHECKING:
    from napari_xcebra.batch import Sweep
    from napari_xcebra.jobs import Event
    from napari_xcebra.learn.data.factors import Factor
    from napari_xcebra.learn.quality.consistency import Dimensions
    from napari_xcebra.learn.result import Fit
    from napari_xcebra.learn.settings import FitSettings
    from napari_xcebra.recording import Recording
    from napari_xcebra.widgets.state.state import State
    from napari_xcebra.workspace_file import Opened


GRACE = 10.0
"""Seconds in which a sweep that is stopped writes what it has."""
NEXT = "Next: select a run in the table and press Open run to see its map, or press Report."
AT_STAKE = "A sweep is running. Finished runs are kept; press Start to continue it next time."


class Sweeper(JobQueue):
    """Runs one sweep at a time, in a process of its own: training and maps need not wait."""

    def __init__(self, processes: Processes) -> None:
        super().__init__(processes)
        self._reports = JobQueue(processes, latest=True)
        self.stopping = False
        self.folder: Path | None = None
        """Where the last sweep was written."""

    def start(self, sweep: Sweep, folder: Path, place: ComputePlace) -> Job | None:
        """Run a sweep; None if one is under way."""
        if self.busy:
            return None
        self.folder, self.stopping = folder, False
        call = tasks.SWEEP(sweep, folder, place)
        work = Work("a sweep", call, heard=self._hear, long=True, grace=GRACE, at_stake=AT_STAKE)
        return self.ask(work)

    def cancel(self, grace: float | None = None) -> None:
        """Stop; what is finished is kept."""
        self.stopping = self.busy
        super().cancel(grace)
        self.changed.emit()

    def report(self, folder: Path) -> None:
        """Write a page about a sweep into its folder, and open it in the browser."""

        def written(page: Path) -> None:
            self.said.emit(f"Wrote {page}.", "good", "")
            show_page(page)

        self.said.emit("Writing the report …", "plain", "")
        call = tasks.SWEEP_REPORT(folder)
        self._reports.ask(Work("the report", call, written, say=self.said.emit))

    def compare(
        self, call: Call, keep: Callable[[str], object], say: Callable[[str, str, str], object]
    ) -> None:
        """Compare the conditions of a sweep; `say` is told what goes wrong.

        Parameters
        ----------
        call : Call
            `tasks.COHORT` of a folder.
        keep : callable
            Called with what was found, in sentences.
        say : callable
            Takes a sentence, its tone, and details.
        """
        self._reports.ask(Work("the comparison", call, keep, say=say))

    def _hear(self, event: Event) -> None:
        if isinstance(event, Finished | Cancelled | Failed):
            self.changed.emit()
        if isinstance(event, Failed):
            self.said.emit(event.sentence, "problem", event.details)
        elif isinstance(event, Finished) and self.progress is not None:
            self.said.emit(f"{self.progress.phase} are finished. {NEXT}", "good", "")
        elif isinstance(event, Cancelled):
            self.said.emit("Stopped. Finished runs are kept; press Start to continue.", "plain", "")


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
