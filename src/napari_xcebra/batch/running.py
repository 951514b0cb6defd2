"""Runs a sweep: its members in any process, here or in the background, and how long they take.

Members on disk are not run again, those that fail are reported, the others are kept. A member
writes nothing: its result travels back to the one process that keeps the folder, so workers need
not share a disk with it, and can be killed at any time.
"""

from __future__ import annotations

import contextlib
import os
import platform
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_xcebra.attribution.methods import FIRST
from napari_xcebra.attribution.shift_test.result import seconds_to_test
from napari_xcebra.batch.folder import SweepFolder
from napari_xcebra.batch.plan import Member, Shard, Sweep
from napari_xcebra.errors import InputError, Stopped
from napari_xcebra.jobs import failures
from napari_xcebra.jobs.calls import SPARING, CallFailed, Running, current_report
from napari_xcebra.jobs.events import Advanced, Counter
from napari_xcebra.recording import Recording

if TYPE_CHECKING:
    from napari_xcebra.attribution import Attribution
    from napari_xcebra.learn import Fit


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
        See `batch.folder` for its content. It may hold an earlier start of this sweep, or another
        sweep: members of both are run once.
    executor : Executor
        `jobs.pool.ProcessPool`, `batch.cluster.Cluster`, or any other.
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
        recordings = {name: _lean(each) for name, each in self._sweep.recordings.items()}
        return {
            self._executor.submit(_run_member, recordings[member.recording], member): member
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
        made = _run_member(recording, short, test=False)
        taken.append(time.process_time() - began)
    _, fewer, more = taken
    step = max(0.0, (more - fewer) / (TRIED[1] - TRIED[0]))
    rest = max(0.0, more - TRIED[1] * step)
    return step, rest + seconds_to_test(made.fit, recording)


# a worker of a cluster may have several threads, but a process has one seed and one thread count
_ALONE = threading.Lock()


@dataclass(frozen=True, eq=False)
class MemberResult:
    """Result of a member.

    Parameters
    ----------
    fit : Fit
    attribution : Attribution
        By the method that was asked for, tested if that is possible. Without its recording, which
        need not travel back.
    seconds : float
        Time it took.
    host : str
        Computer that it ran on.
    others : tuple of Attribution
        Other maps that are made of every run.
    """

    fit: Fit
    attribution: Attribution
    seconds: float
    host: str
    others: tuple[Attribution, ...] = ()


def _run_member(recording: Recording, member: Member, test: bool = True) -> MemberResult:
    """Train, attribute and test, as `napari-xcebra run` does.

    Parameters
    ----------
    recording : Recording
    member : Member
    test : bool
        Whether to test which cells are above chance.

    Raises
    ------
    Stopped
        It was asked to stop.
    """
    from napari_xcebra.learn import fit as train

    report = current_report()
    with _ALONE:
        began = time.perf_counter()
        recording = shifted(recording, member.shift)
        watching: dict[str, Any] = {"on_progress": Counter(report, "step"), "stop": report.stop}
        fit = train(recording, member.factors, member.settings, **watching)
        if fit.steps < member.settings.steps and report.stop():
            raise Stopped("It was stopped during training.")
        first, *others = _scored(fit, recording, member.method, test, report.stop)
        seconds = time.perf_counter() - began
    return MemberResult(fit, first, seconds, platform.node(), tuple(others))


def _scored(
    fit: Fit, recording: Recording, method: str, test: bool, stop: Callable[[], bool]
) -> Iterator[Attribution]:
    """The map that was asked for, tested; then the others that are made of every run."""
    from napari_xcebra.attribution import attribute, significance

    # the other cores have members of their own
    score = partial(attribute, fit, recording, workers=1, stop=stop)
    first = replace(score(method), fit=None, recording=None)
    try:
        if test:
            first = first.with_significance(significance(fit, recording, stop=stop))
    except InputError as error:  # too little to test with is no reason to lose the scores
        first = replace(first, notes=(*first.notes, f"No p and q: {error}"))
    yield first
    for other in FIRST:
        with contextlib.suppress(InputError):  # costs a column, not the table
            if other != method:
                yield replace(score(other), fit=None, recording=None)


def _lean(recording: Recording) -> Recording:
    """The recording without what a run does not use: pictures, movie, footprints."""
    return replace(recording, footprints=None, images={}, cells={}, movie=None, video=None)


def shifted(recording: Recording, seconds: float) -> Recording:
    """The recording with its labels moved by some seconds, the last ones to the beginning.

    The labels keep their own time course but lose what ties them to the cells. Where the labels of
    one trial now meet those of another, a boundary keeps pairs apart.
    """
    frames = round(seconds * recording.rate) % recording.n_frames
    if frames == 0:
        return recording
    moved = [
        replace(v, values=np.roll(v.values, frames, axis=0)) for v in recording.behavior.values()
    ]
    starts = np.asarray(recording.starts)
    met = (starts + frames) % recording.n_frames
    return replace(recording.with_behavior(*moved), starts=np.union1d(starts, met))


PARTS = 1000
"""Steps of the progress bar."""


@dataclass(frozen=True)
class ComputePlace:
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
            from napari_xcebra.batch.cluster import Cluster

            return Cluster(self.address)
        from napari_xcebra.jobs.pool import ProcessPool, room_for

        settings = sweep.settings
        processes = self.processes or room_for(
            sweep.recordings.values(), device=settings.device, threads=settings.threads
        )
        return ProcessPool(min(processes, len(sweep.members)))


def sweep_to(sweep: Sweep, folder: Path, place: ComputePlace) -> Path:
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
