"""Pools sessions: shared variables on one scale, frames numbered throughout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.learn.data.factors import (
    TIME,
    Factor,
    Plan,
    factor_labels,
    label_offsets,
    lay_out,
    time_offset,
)
from napari_xcebra.learn.data.labels import Labels
from napari_xcebra.learn.data.split import Frames, Split
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.recording import Recording, Variable

Recordings = Mapping[str, Recording] | Sequence[Recording]

MOST_APART = 1.05
"""Ratio of two frame rates that still count as one: offsets are in frames."""


@dataclass(frozen=True)
class Pool:
    """Sessions with shared variables.

    Parameters
    ----------
    recordings : mapping of str to Recording
        By the name of the session.
    behavior : Recording
        The shared variables of all sessions, one after the other; it has no cells to speak of.
    first : (sessions + 1,) int64
        Frame at which each session begins there, and the number of frames.
    """

    recordings: Mapping[str, Recording]
    behavior: Recording
    first: np.ndarray

    def session_of(self, frames: np.ndarray) -> np.ndarray:
        """Number of the session of each pooled frame: (frames,) int64."""
        return np.searchsorted(self.first, frames, side="right") - 1


def pooled(recordings: Recordings, factors: Mapping[str, Factor]) -> Pool:
    """Check that sessions share the variables of these factors, and put them together."""
    named = named_sessions(recordings)
    if len(named) < 2:
        raise InputError(f"{len(named)} session was given: joint training needs 2 or more.")
    rates = {name: each.rate for name, each in named.items()}
    slow, fast = min(rates, key=lambda n: rates[n]), max(rates, key=lambda n: rates[n])
    if rates[fast] > MOST_APART * rates[slow]:
        raise InputError(
            f"Session {slow!r} has {rates[slow]:g} frames per second and {fast!r} has "
            f"{rates[fast]:g}: joint training needs one rate; resample the others to it first."
        )
    names = dict.fromkeys(v for factor in factors.values() for v in factor.variables)
    frames = [each.n_frames for each in named.values()]
    first = np.r_[0, np.cumsum(frames)].astype(np.int64)
    behavior = Recording(
        traces=np.zeros((first[-1], 1), np.float32),
        rate=float(np.mean(list(rates.values()))),
        behavior={name: _joined(name, named) for name in names},
        starts=np.concatenate(
            [np.asarray(r.starts) + start for r, start in zip(named.values(), first, strict=False)]
        ),
        excluded=np.concatenate([np.asarray(r.excluded) for r in named.values()]),
    )
    return Pool(named, behavior, first)


def named_sessions(recordings: Recordings) -> dict[str, Recording]:
    """Sessions by name; "session 1" and so on where none was given."""
    if isinstance(recordings, Mapping):
        return dict(recordings)
    return {f"session {i + 1}": recording for i, recording in enumerate(recordings)}


def _joined(name: str, recordings: Mapping[str, Recording]) -> Variable:
    """One variable over all sessions, of the same kind and unit in each."""
    found = {}
    for session, recording in recordings.items():
        if name not in recording.behavior:
            known = ", ".join(recording.behavior) or "none"
            raise InputError(
                f"Session {session!r} has no variable {name!r}, which the others share; it has: "
                f"{known}."
            )
        found[session] = recording.behavior[name]
    session, one = next(iter(found.items()))
    for other, variable in found.items():
        for what, a, b in (
            ("kind", one.kind, variable.kind),
            ("unit", one.unit, variable.unit),
            ("period", one.period, variable.period),
            ("number of columns", one.values.shape[1], variable.values.shape[1]),
        ):
            if a != b and not (what == "period" and one.kind != "circular"):
                raise InputError(
                    f"Variable {name!r} has the {what} {a!r} in session {session!r} and {b!r} in "
                    f"{other!r}: the same is needed in all sessions."
                )
    return replace(one, values=np.concatenate([v.values for v in found.values()]))


def joint_plan(pool: Pool, factors: Mapping[str, Factor], settings: FitSettings) -> Plan:
    """Labels on one scale, and one embedding; steps are as long as in the usual session."""
    labels = factor_labels(pool.behavior, factors)
    each = [
        label_offsets(recording, part_of(labels, pool, number), settings)
        for number, recording in enumerate(pool.recordings.values())
    ]
    offsets = {name: int(np.median([found[name] for found in each])) for name in labels}
    offset = time_offset(pool.behavior, offsets, settings)
    segment = pool.behavior.segment
    parts = lay_out(factors, labels, segment, {**offsets, TIME: offset}, settings)
    return Plan(labels, offsets, offset, parts)


def part_of(labels: Mapping[str, Labels], pool: Pool, number: int) -> dict[str, Labels]:
    """Labels of one session, on the scale of all."""
    own = slice(pool.first[number], pool.first[number + 1])
    return {
        name: Labels(**{field: values[own] for field, values in vars(label).items()})
        for name, label in labels.items()
    }


def joined_split(splits: Sequence[Split], pool: Pool) -> Split:
    """Training frames and held-out blocks of all sessions, by pooled frames."""
    blocks = [split.block for split in splits]
    return Split(
        training=_joined_frames([split.training for split in splits], pool),
        held_out=_joined_frames([split.held_out for split in splits], pool),
        block=_counted_through(blocks),
    )


def _joined_frames(frames: Sequence[Frames], pool: Pool) -> Frames:
    anchors = [each.anchors + start for each, start in zip(frames, pool.first, strict=False)]
    return Frames(np.concatenate(anchors), _counted_through([each.run for each in frames]))


def _counted_through(numbers: Sequence[np.ndarray]) -> np.ndarray:
    """Numbers that go on from session to session, with −1 where there is none."""
    joined, highest = [], 0
    for each in numbers:
        joined.append(np.where(each >= 0, each + highest, -1))
        highest += int(each.max(initial=-1)) + 1
    return np.concatenate(joined)
