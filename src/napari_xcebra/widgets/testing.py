"""Tests of the cells of runs against chance; they go on when the dock is closed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from napari_xcebra.attribution.tested import Significance, seconds_to_test
from napari_xcebra.errors import InputError
from napari_xcebra.jobs import SignificanceTask
from napari_xcebra.widgets.computation import Work, computation_of
from napari_xcebra.widgets.per_session import OfSession, one_per_session

if TYPE_CHECKING:
    from napari_xcebra.learn import Fit
    from napari_xcebra.recording import Recording
    from napari_xcebra.runs import Run
    from napari_xcebra.widgets.session import Opened, Session


@dataclass(eq=False)
class _Of:
    """What is known of the test of one fit: how long it takes, and what was asked for."""

    fit: Fit
    seconds: float
    work: Work | None = None


class Testing(OfSession):
    """Has the cells of runs tested, and gives what came of it to all scores of the run.

    Parameters
    ----------
    session : Session
    """

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._kept: list[_Of] = []

    def start(self, opened: Opened, run: Run) -> None:
        """Test all factors of a run, after what is under way."""
        if not self.awaited(run):
            self._entry(opened, run.fit).work = work = _test(self.session, opened, run.fit)
            computation_of(self.session).ask([work])

    def awaited(self, run: Run) -> bool:
        """Whether the test of a run is under way, or waits for its turn."""
        work = next((entry.work for entry in self._kept if entry.fit is run.fit), None)
        return computation_of(self.session).awaits(work)

    @property
    def running(self) -> bool:
        """Whether a test is what is being computed."""
        current = computation_of(self.session).current
        return current is not None and any(entry.work is current for entry in self._kept)

    def seconds(self, opened: Opened, run: Run) -> float:
        """About how long a test of a run takes; NaN if its variables are not there any more."""
        return self._entry(opened, run.fit).seconds

    def _entry(self, opened: Opened, fit: Fit) -> _Of:
        """The entry of a fit, made when first asked for; those of removed runs are not kept."""
        found = next((entry for entry in self._kept if entry.fit is fit), None)
        if found is None:
            there = [run.fit for one in self.session.opened for run in one.runs]
            self._kept = [each for each in self._kept if any(each.fit is f for f in there)]
            found = _Of(fit, _seconds(fit, opened.recording))
            self._kept.append(found)
        return found


def _seconds(fit: Fit, recording: Recording) -> float:
    try:
        return seconds_to_test(fit, recording)
    except InputError:  # the test will say what is wrong
        return np.nan


def _test(session: Session, opened: Opened, fit: Fit) -> Work:
    """Test of a run, which may be renamed or removed meanwhile."""

    def keep(significance: Significance) -> None:
        run = opened.run_of(fit)
        if run is not None:
            session.replace_run(run.name, run.with_significance(significance))

    task = SignificanceTask(fit, opened.recording)
    return Work("the test against chance", task, keep)


testing_of = one_per_session(Testing)
"""The tests of a session; made when first asked for."""
