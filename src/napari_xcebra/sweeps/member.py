"""Runs one member of a sweep, in any process.

It writes nothing: its result travels back to the one process that keeps the folder, so workers need
not share a disk with it, and can be killed at any time.
"""

from __future__ import annotations

import contextlib
import platform
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_xcebra.attribution.methods import FIRST
from napari_xcebra.errors import InputError, Stopped
from napari_xcebra.jobs.calls import current_report
from napari_xcebra.jobs.events import Counter
from napari_xcebra.recording import Recording
from napari_xcebra.sweeps.plan import Member

if TYPE_CHECKING:
    from napari_xcebra.attribution import Attribution
    from napari_xcebra.learn import Fit

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


def run_member(recording: Recording, member: Member, test: bool = True) -> MemberResult:
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


def lean(recording: Recording) -> Recording:
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
