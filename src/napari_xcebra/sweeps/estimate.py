"""How long a sweep will take, found by trying a little of it."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace

from napari_xcebra.sweeps.folder import SweepFolder
from napari_xcebra.sweeps.member import run_member
from napari_xcebra.sweeps.plan import Member, Sweep

TRIED = 10, 30
"""Steps of the two short runs whose difference is the cost of a step."""


def seconds_for(sweep: Sweep, waiting: Sequence[Member], folder: SweepFolder) -> float:
    """Seconds of computing that these members take on one core of this computer.

    What members in the folder took counts; where a recording has none, two short runs on it tell
    the cost of a step and that of all the rest.
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
    """Seconds a step, and of all the rest, on the processor's own clock."""
    recording, taken = sweep.recordings[member.recording], []
    for steps in (2, *TRIED):  # the first imports torch, and does not count
        began = time.process_time()
        run_member(recording, replace(member, settings=replace(member.settings, steps=steps)))
        taken.append(time.process_time() - began)
    _, fewer, more = taken
    step = max(0.0, (more - fewer) / (TRIED[1] - TRIED[0]))
    return step, max(0.0, more - TRIED[1] * step)


def in_words(seconds: float) -> str:
    """Such a time in words.

    >>> in_words(40), in_words(150), in_words(9000)
    ('40 s', '3 min', '2.5 h')
    """
    if math.isnan(seconds):
        return "an unknown time"
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 100 * 60 else f"{seconds / 3600:.1f} h"
