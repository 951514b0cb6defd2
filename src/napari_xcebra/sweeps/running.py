"""Runs a sweep, and estimates the time it takes.

Members on disk are not run again, those that fail are reported, the others are kept.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from dataclasses import dataclass, replace
from typing import Any

from napari_xcebra.attribution.shift_test.result import seconds_to_test
from napari_xcebra.errors import Stopped
from napari_xcebra.jobs import failures
from napari_xcebra.jobs.calls import SPARING, CallFailed, Running
from napari_xcebra.sweeps.folder import SweepFolder
from napari_xcebra.sweeps.member import lean, run_member
from napari_xcebra.sweeps.plan import Member, Shard, Sweep

INTERVAL = 0.2
"""Seconds between two reports, at most."""
SUMMARY_EVERY = 5.0
"""Seconds between two writings of the summary while the sweep runs."""
FAREWELL = 5.0
"""Seconds that members under way have to end when the sweep is stopped."""
TRIED = 10, 30
"""Steps of the two short runs whose difference is the cost of a step."""
NAN = float("nan")


@dataclass(frozen=True)
class SweepProgress:
    """Progress of a sweep.

    Parameters
    ----------
    total : int
        All members.
    finished, failed : int
        Those found on disk included.
    share : float
        Of the training steps of all members, from 0 to 1; failed ones count as done.
    seconds_left : float
        At the pace so far; NaN while unknown.
    last : Member or None
        The one that ended last.
    """

    total: int
    finished: int
    failed: int
    share: float
    seconds_left: float = NAN
    last: Member | None = None

    @property
    def waiting(self) -> int:
        """Members that have not ended."""
        return self.total - self.finished - self.failed


def run_sweep(
    sweep: Sweep,
    folder: str | os.PathLike[str],
    executor: Executor,
    *,
    on_progress: Callable[[SweepProgress], object] | None = None,
    stop: Callable[[], bool] | None = None,
    command: str = "",
    shard: Shard | None = None,
) -> SweepFolder:
    """Run every member of a sweep that is not finished in the folder yet.

    Parameters
    ----------
    sweep : Sweep
    folder : path
        See `sweeps.folder` for its content. It may hold an earlier start of this sweep, or another
        sweep: members of both are run once.
    executor : Executor
        `jobs.pool.ProcessPool`, `jobs.cluster.Cluster`, or any other.
    on_progress : callable, optional
        Called with a `SweepProgress` a few times a second.
    stop : callable, optional
        Asked a few times a second; when it returns True, members under way are stopped, and those
        that are finished are kept.
    command : str
        What was typed to start it, for the record.
    shard : Shard, optional
        Only these members, while other programs run the other shards into the same folder. No
        summary is written: `SweepFolder.write_summary` does once all are done.

    Returns
    -------
    SweepFolder
    """
    kept = SweepFolder(folder)
    if shard is not None:
        with kept.shared(sweep, shard, command):
            _Sweeping(sweep, kept, executor, on_progress, shard.of(sweep)).run(stop)
        return kept
    with kept.locked():
        kept.plan(sweep, command)
        try:
            _Sweeping(sweep, kept, executor, on_progress, sweep.members).run(stop)
        finally:
            kept.write_summary()
    return kept


class _Sweeping:
    """A sweep under way."""

    def __init__(
        self,
        sweep: Sweep,
        kept: SweepFolder,
        executor: Executor,
        on_progress: Callable[[SweepProgress], object] | None,
        members: Sequence[Member],
    ) -> None:
        self._sweep, self._kept, self._executor = sweep, kept, executor
        self._tell_progress, self._members = on_progress, members
        self._alone = len(members) == len(sweep.members)
        there = [each for each in members if kept.status(each.id) == "finished"]
        self._finished, self._failed = len(there), 0
        self._total = sum(each.settings.steps for each in members)
        self._ended = self._before = sum(each.settings.steps for each in there)
        notes = {each.id: kept.read(each.id).get("note", "") for each in members}
        self._again = {member: note for member, note in notes.items() if note}
        self._began = time.monotonic()
        self._written = self._began
        self._last: Member | None = None

    def run(self, stop: Callable[[], bool] | None) -> None:
        """See it to its end, or until it is stopped."""
        futures = self._submitted()
        self._tell(futures)
        while futures:
            ended, _ = wait(futures, timeout=INTERVAL, return_when=FIRST_COMPLETED)
            for future in ended:
                self._settle(future, futures.pop(future))
            self._tell(futures)
            if stop is not None and stop():
                self._stop(futures)
                return

    def _submitted(self) -> dict[Future[Any], Member]:
        recordings = {name: lean(each) for name, each in self._sweep.recordings.items()}
        return {
            self._executor.submit(run_member, recordings[member.recording], member): member
            for member in self._members
            if self._kept.status(member.id) != "finished"
        }

    def _stop(self, futures: Mapping[Future[Any], Member]) -> None:
        for future in reversed(list(futures)):  # the last first, or a waiting one would begin
            if isinstance(future, Running):
                future.stop()
            else:
                future.cancel()
        for future in wait(futures, timeout=FAREWELL).done:
            self._settle(future, futures[future])
        self._tell({})

    def _settle(self, future: Future[Any], member: Member) -> None:
        """Keep the result of a member."""
        try:
            result = future.result(timeout=0)
        except (CancelledError, Stopped):
            return
        except Exception as error:
            why = (
                error
                if isinstance(error, CallFailed)
                else failures.from_exception(error, "The run", SPARING)
            )
            self._kept.keep_failure(member, why.sentence, why.details)
            self._failed += 1
        else:
            truth = self._sweep.truth.get(member.recording)
            self._kept.keep(member, result, truth, self._again.get(member.id, ""))
            self._finished += 1
        self._last = member
        self._ended += member.settings.steps
        if self._alone and time.monotonic() - self._written > SUMMARY_EVERY:
            self._kept.write_summary()
            self._written = time.monotonic()

    def _tell(self, futures: Mapping[Future[Any], Member]) -> None:
        if self._tell_progress is None:
            return
        # what follows training counts as a twentieth of a member
        under_way = sum(
            0.95 * getattr(future, "progress", 0.0) * member.settings.steps
            for future, member in futures.items()
        )
        done, elapsed = self._ended + under_way, time.monotonic() - self._began
        here = done - self._before
        left = elapsed / here * (self._total - done) if here > 0 else NAN
        # a shard may have no members
        members, share = len(self._members), done / self._total if self._total else 1.0
        self._tell_progress(
            SweepProgress(members, self._finished, self._failed, share, left, self._last)
        )


def seconds_for(sweep: Sweep, waiting: Sequence[Member], folder: SweepFolder) -> float:
    """Seconds of computing that these members take on one core of this computer.

    Estimated from finished members of the same recording; without any, from two short runs, which
    give the cost of a step and of all the rest.
    """
    total = 0.0
    for name in dict.fromkeys(member.recording for member in waiting):
        those = [member for member in waiting if member.recording == name]
        taken = [
            folder.read(member.id)["seconds"]
            for member in sweep.members
            if member.recording == name and folder.status(member.id) == "finished"
        ]
        if taken:
            total += sum(taken) / len(taken) * len(those)
            continue
        step, rest = _tried(sweep, those[0])
        total += sum(rest + step * member.settings.steps for member in those)
    return total


def _tried(sweep: Sweep, member: Member) -> tuple[float, float]:
    """Seconds per step, and for all the rest, of processor time."""
    recording, taken = sweep.recordings[member.recording], []
    for steps in (2, *TRIED):  # the first imports torch, and does not count
        began = time.process_time()
        short = replace(member, settings=replace(member.settings, steps=steps))
        made = run_member(recording, short, test=False)
        taken.append(time.process_time() - began)
    _, fewer, more = taken
    step = max(0.0, (more - fewer) / (TRIED[1] - TRIED[0]))
    rest = max(0.0, more - TRIED[1] * step)
    return step, rest + seconds_to_test(made.fit, recording)
