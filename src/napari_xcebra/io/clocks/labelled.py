"""Leaves frames out by the labels that behaviour gives them: `only` and `exclude`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.io.extraction import Behavior
from napari_xcebra.io.settings import OpenSettings


@dataclass(frozen=True)
class Labelled:
    """Labels of frames.

    Parameters
    ----------
    names : tuple of str
        Names under which the labels may be asked for.
    labels : tuple of str
        What the values 0, 1, 2 … stand for; empty if they are plain numbers.
    values : (frames,) float64
    """

    names: tuple[str, ...]
    labels: tuple[str, ...]
    values: np.ndarray

    def frames(self, wanted: str) -> np.ndarray | None:
        """(frames,) bool, where the label is ``label`` or ``name=label``; None if unknown here."""
        name, _, label = wanted.rpartition("=")
        if name and _plain(name) not in map(_plain, self.names):
            return None
        labels = [_plain(known) for known in self.labels]
        if _plain(label) in labels:
            return self.values == labels.index(_plain(label))
        if not name or self.labels:
            return None
        try:
            return self.values == float(label)
        except ValueError:
            return None


def left_out(labelled: Sequence[Labelled], n_frames: int, settings: OpenSettings) -> np.ndarray:
    """(frames,) bool, frames that `only` and `exclude` leave out by labels found here."""
    excluded = np.zeros(n_frames, bool)
    for frames in _found(labelled, settings.exclude):
        excluded |= frames
    chosen = _found(labelled, settings.only)
    return excluded | ~np.any(chosen, axis=0) if chosen else excluded


def check_labels(behaviors: Sequence[Behavior], settings: OpenSettings) -> None:
    """Raise if `only` or `exclude` names what no behaviour has."""
    known = [labelled for behavior in behaviors for labelled in _unplaced(behavior)]
    for knob in ("only", "exclude"):
        for wanted in _parts(getattr(settings, knob)):
            if not any(labelled.frames(wanted) is not None for labelled in known):
                labels = [f"{k.names[0]}={label}" for k in known for label in k.labels]
                raise InputError(
                    f"{knob} names {wanted!r}, which is not a label of the behaviour; there are: "
                    f"{', '.join(labels[:20]) or 'none'}."
                )


def _unplaced(behavior: Behavior) -> list[Labelled]:
    """Labels of a behaviour before it is placed on the frames."""
    nothing = np.zeros(0)
    known = [Labelled((s.name,), s.labels, nothing) for s in behavior.series]
    for intervals in behavior.intervals:
        known.append(Labelled((intervals.name,), (intervals.name,), nothing))
        for name, values in intervals.columns.items():
            values = np.asarray(values)
            words = () if values.dtype.kind in "biuf" else tuple({str(v) for v in values})
            known.append(Labelled((name, f"{intervals.name}_{name}"), words, nothing))
    return known


def _found(labelled: Sequence[Labelled], wanted: str) -> list[np.ndarray]:
    found = [known.frames(part) for part in _parts(wanted) for known in labelled]
    return [frames for frames in found if frames is not None]


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _plain(text: str) -> str:
    return text.strip().casefold()
