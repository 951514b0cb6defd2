"""Runs one member of a sweep, in any process.

It writes nothing: its result travels back to the one process that keeps the folder, so workers need
not share a disk with it, and can be killed at any time.
"""

from __future__ import annotations

import platform
import threading
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from napari_xcebra.jobs.calls import CallStopped, current_report
from napari_xcebra.jobs.tasks import FitTask
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
        Without its recording, which need not travel back.
    seconds : float
        Time it took.
    host : str
        Computer that it ran on.
    """

    fit: Fit
    attribution: Attribution
    seconds: float
    host: str


def run_member(recording: Recording, member: Member) -> MemberResult:
    """Train and attribute.

    Raises
    ------
    CallStopped
        It was asked to stop.
    """
    from napari_xcebra.attribution import AttributionStopped, attribute

    report = current_report()
    with _ALONE:
        began = time.perf_counter()
        recording = shifted(recording, member.shift)
        fit = FitTask(recording, member.factors, member.settings).run(report)
        if fit.steps < member.settings.steps and report.stop():
            raise CallStopped("It was stopped during training.")
        try:
            # the other cores have members of their own
            scored = attribute(fit, recording, member.method, workers=1, stop=report.stop)
        except AttributionStopped as stopped:
            raise CallStopped("It was stopped while cells were scored.") from stopped
        seconds = time.perf_counter() - began
    scored = replace(scored, fit=None, recording=None)
    return MemberResult(fit, scored, seconds, platform.node())


def lean(recording: Recording) -> Recording:
    """The recording without what a run does not use: pictures, movie, footprints."""
    return replace(recording, footprints=None, images={}, cells={}, movie=None)


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
