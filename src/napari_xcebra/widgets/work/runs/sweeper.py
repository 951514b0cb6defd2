"""Runs sweeps in the background, and reports on them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from napari_xcebra.jobs import Cancelled, Failed, Finished, Job, tasks
from napari_xcebra.sweeps.task import Place
from napari_xcebra.widgets.work.job_queue import JobQueue, Processes, Work
from napari_xcebra.widgets.work.runs.reporting import show_page

if TYPE_CHECKING:
    from napari_xcebra.jobs import Call, Event
    from napari_xcebra.sweeps import Sweep

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

    def start(self, sweep: Sweep, folder: Path, place: Place) -> Job | None:
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
