"""Computes single-cell statistics of a run, and compares them with its maps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from napari_xcebra.attribution.comparison import Comparison, compare
from napari_xcebra.attribution.methods import METHODS
from napari_xcebra.attribution.score_map import attribution_of
from napari_xcebra.attribution.single_cell import STATISTICS, CellStatistics, applicable
from napari_xcebra.errors import InputError
from napari_xcebra.jobs import tasks
from napari_xcebra.widgets.state.of_state import OfState
from napari_xcebra.widgets.state.signals import Signal
from napari_xcebra.widgets.work.job_queue import JobQueue, Work

if TYPE_CHECKING:
    from napari_xcebra.attribution import Attribution
    from napari_xcebra.learn import Fit
    from napari_xcebra.recording import Recording
    from napari_xcebra.runs import Run
    from napari_xcebra.widgets.state.state import State
    from napari_xcebra.workspace_file import Opened


@dataclass(eq=False)
class _Of:
    """Statistics of one fit: names asked for, names answered, and values."""

    fit: Fit
    recording: Recording
    asked: set[str] = field(default_factory=set)
    answered: set[str] = field(default_factory=set)
    found: CellStatistics | None = None


class StatisticsStore(OfState):
    """Keeps statistics by run, and computes missing ones in the background."""

    changed = Signal()
    """More statistics have been computed."""

    def __init__(self, state: State, jobs: JobQueue) -> None:
        super().__init__(state)
        self._jobs = jobs
        self._kept: list[_Of] = []

    def of(self, opened: Opened, run: Run) -> CellStatistics | None:
        """Statistics of the cells of a run, as far as they are there."""
        return self._entry(opened, run.fit).found

    def answered(self, opened: Opened, run: Run) -> set[str]:
        """Names of the statistics of a run that are computed, or found to be impossible."""
        return self._entry(opened, run.fit).answered

    def ask(self, opened: Opened, run: Run, names: Sequence[str], *, again: bool = False) -> None:
        """Compute statistics for all factors of a run, unless they were asked for before.

        With `again`, those that were asked for but stopped by the user are computed as well.
        """
        entry = self._entry(opened, run.fit)
        before = entry.answered if again else entry.asked
        missing = tuple(name for name in names if name in STATISTICS and name not in before)
        if not missing:
            return
        entry.asked.update(missing)
        try:
            cells = run.fit.inputs.columns(opened.recording)
        except InputError as error:
            self._jobs.said.emit(str(error), "problem", "")
            return
        variables = _variables(opened.recording, run)
        call = tasks.STATISTICS(opened.recording, variables, missing, cells=cells)
        titles = ", ".join(name.replace("_", " ") for name in missing)
        title = titles if len(missing) < 3 else "single-cell statistics"
        self._jobs.ask(Work(title, call, lambda found: self._keep(entry, missing, found)))

    def comparison(self) -> Comparison | None:
        """Computed methods and statistics of the shown run; None without any method."""
        opened, run, attributions = self.state.current, self.state.shown_run, computed(self.state)
        if opened is None or run is None or not attributions:
            return None
        return compare(attributions, self.of(opened, run))

    def missing(self) -> tuple[list[str], list[str]]:
        """Methods, and statistics of any factor, that the shown run lacks."""
        opened, run = self.state.current, self.state.shown_run
        if opened is None or run is None:
            return [], []
        done, answered = computed(self.state), self.answered(opened, run)
        wanted = {n for part in run.fit.parts for n in applicable(opened.recording, part.variables)}
        lacking = [name for name in STATISTICS if name in wanted - answered]
        return [method for method in METHODS if method not in done], lacking

    def _keep(self, entry: _Of, names: Sequence[str], found: CellStatistics) -> None:
        entry.answered.update(names)
        entry.found = found if entry.found is None else entry.found.merged(found)
        if found.notes:
            self._jobs.said.emit(" ".join(found.notes), "plain", "")
        self.changed.emit()

    def _entry(self, opened: Opened, fit: Fit) -> _Of:
        """The entry of a fit; a new one if the recording has changed since."""
        recording = opened.recording
        for entry in self._kept:
            if entry.fit is fit and _same(entry.recording, recording):
                return entry
        there = [run.fit for one in self.state.opened for run in one.runs]
        self._kept = [e for e in self._kept if e.fit is not fit and any(e.fit is f for f in there)]
        self._kept.append(_Of(fit, recording))
        return self._kept[-1]


def _variables(recording: Recording, run: Run) -> dict[str, tuple[str, ...]]:
    """Variables of the factors of a run; those are left out that the recording does not have."""
    parts = {part.name: part.variables for part in run.fit.parts}
    return {f: names for f, names in parts.items() if applicable(recording, names)}


def _same(one: Recording, other: Recording) -> bool:
    """Whether traces and behaviour are the same; which cells are accepted does not matter."""
    return one is other or (
        one.traces is other.traces
        and np.array_equal(np.asarray(one.excluded), np.asarray(other.excluded))
        and one.behavior.keys() == other.behavior.keys()
        and all(one.behavior[name] is other.behavior[name] for name in one.behavior)
    )


def computed(state: State) -> dict[str, Attribution]:
    """Attributions of the shown run for the cells of the recording, by method in their order."""
    run, recording = state.shown_run, state.recording
    found = {method: attribution_of(run, method, recording) for method in METHODS}
    return {method: one for method, one in found.items() if one is not None}
