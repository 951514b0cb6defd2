"""Runs a sweep as a task of the window's background process."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path

from napari_xcebra.jobs.calls import current_report
from napari_xcebra.jobs.events import Advanced
from napari_xcebra.sweeps.plan import Sweep
from napari_xcebra.sweeps.running import SweepProgress, run_sweep

PARTS = 1000
"""Steps of the progress bar."""


@dataclass(frozen=True)
class Place:
    """Where to run.

    Parameters
    ----------
    processes : int
        On this computer; 0 for as many as cores and memory allow.
    address : str
        Of a Dask scheduler; empty for this computer.
    """

    processes: int = 0
    address: str = ""

    def executor(self, sweep: Sweep) -> Executor:
        """Executor that runs the members there."""
        if self.address:
            from napari_xcebra.jobs.cluster import Cluster

            return Cluster(self.address)
        from napari_xcebra.jobs.pool import ProcessPool, room_for

        settings = sweep.settings
        processes = self.processes or room_for(
            sweep.recordings.values(), device=settings.device, threads=settings.threads
        )
        return ProcessPool(min(processes, len(sweep.members)))


def sweep_to(sweep: Sweep, folder: Path, place: Place) -> Path:
    """Run a sweep as `run_sweep` does; if stopped, finished members are kept.

    The process that runs it has children of its own, or talks to a cluster: if they fail, the
    window is not affected.
    """
    report = current_report()

    def tell(at: SweepProgress) -> None:
        failed = f", {at.failed} failed" if at.failed else ""
        words = f"{at.finished} of {at.total} runs{failed}"
        report(Advanced(int(PARTS * at.share), PARTS, "run", at.seconds_left, words))

    executor = place.executor(sweep)
    try:
        run_sweep(sweep, folder, executor, on_progress=tell, stop=report.stop)
    finally:
        executor.shutdown(cancel_futures=True)
    return folder
