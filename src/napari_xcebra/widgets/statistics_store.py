"""Single-cell statistics of the runs of a session, computed when they are wanted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from psygnal import Signal

from napari_xcebra.attribution.single_cell import STATISTICS, CellStatistics
from napari_xcebra.errors import InputError
from napari_xcebra.jobs import StatisticsTask
from napari_xcebra.tuning import columns_of
from napari_xcebra.widgets.computation import Work, computation_of
from napari_xcebra.widgets.per_session import OfSession, one_per_session
from napari_xcebra.widgets.ranking import CellColumn

if TYPE_CHECKING:
    from napari_xcebra.learn import Fit
    from napari_xcebra.recording import Recording
    from napari_xcebra.runs import Run
    from napari_xcebra.widgets.session import Opened, Session


@dataclass(eq=False)
class _Of:
    """Statistics of one fit: what was asked for, what was answered, and what is there."""

    fit: Fit
    recording: Recording
    asked: set[str] = field(default_factory=set)
    answered: set[str] = field(default_factory=set)
    found: CellStatistics | None = None


class StatisticsStore(OfSession):
    """Keeps statistics by run, and has those computed that are missing.

    Parameters
    ----------
    session : Session
    """

    changed = Signal()
    """There are more."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._kept: list[_Of] = []

    def of(self, opened: Opened, run: Run) -> CellStatistics | None:
        """Statistics of the cells of a run, as far as they are there."""
        return self._entry(opened, run.fit).found

    def answered(self, opened: Opened, run: Run) -> set[str]:
        """Names of the statistics of a run that are there, or were found to be impossible."""
        return self._entry(opened, run.fit).answered

    def ask(self, opened: Opened, run: Run, names: Sequence[str], *, again: bool = False) -> None:
        """Have statistics computed for all factors of a run, unless they were asked for before.

        Parameters
        ----------
        again : bool
            Ask also for those that were asked for but did not come, because the user stopped it.
        """
        entry = self._entry(opened, run.fit)
        before = entry.answered if again else entry.asked
        missing = tuple(name for name in names if name in STATISTICS and name not in before)
        if not missing:
            return
        entry.asked.update(missing)
        computation = computation_of(self.session)
        try:
            cells = run.fit.inputs.columns(opened.recording)
        except InputError as error:
            computation.said.emit(str(error), "problem", "")
            return
        task = StatisticsTask(opened.recording, _variables(opened.recording, run), missing, cells)
        titles = ", ".join(name.replace("_", " ") for name in missing)
        title = titles if len(missing) < 3 else "single-cell statistics"
        computation.ask([Work(title, task, lambda found: self._keep(entry, missing, found))])

    def _keep(self, entry: _Of, names: Sequence[str], found: CellStatistics) -> None:
        entry.answered.update(names)
        entry.found = found if entry.found is None else entry.found.merged(found)
        if found.notes:
            computation_of(self.session).said.emit(" ".join(found.notes), "plain", "")
        self.changed.emit()

    def _entry(self, opened: Opened, fit: Fit) -> _Of:
        """The entry of a fit; a new one if the recording has changed since."""
        recording = opened.recording
        for entry in self._kept:
            if entry.fit is fit and _same(entry.recording, recording):
                return entry
        there = [run.fit for one in self.session.opened for run in one.runs]
        self._kept = [e for e in self._kept if e.fit is not fit and any(e.fit is f for f in there)]
        self._kept.append(_Of(fit, recording))
        return self._kept[-1]


def statistic_columns(
    found: CellStatistics | None, factor: str, names: Sequence[str]
) -> list[CellColumn]:
    """Columns of the table of cells for some statistics, those that are there for the factor."""
    values = found.of(factor) if found is not None else {}
    return [
        CellColumn(STATISTICS[n].title, values[n], help_on(n), ".3g") for n in names if n in values
    ]


def help_on(name: str) -> str:
    """What a statistic is, for a tooltip."""
    statistic = STATISTICS[name]
    unit = f", in {statistic.unit}" if statistic.unit else ""
    return f"{name.replace('_', ' ').capitalize()}{unit}. {statistic.help}"


def applicable(recording: Recording, variables: Sequence[str]) -> tuple[str, ...]:
    """Statistics that can be computed for some variables; none where one is not there."""
    if not variables or any(name not in recording.behavior for name in variables):
        return ()
    columns = columns_of(recording, variables)
    return tuple(name for name, statistic in STATISTICS.items() if statistic.applies(columns))


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


statistics_of = one_per_session(StatisticsStore)
"""The statistics of a session; made when first asked for."""
