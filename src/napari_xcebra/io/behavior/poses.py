"""Turns tracked poses of any source into variables: (x, y) for each body part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.io.extraction import Behavior, Series
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.text import percent

AXES = ("x", "y", "z")
MOST_TOLD = 6
"""Body parts of which a note says how often they are unknown."""


@dataclass(frozen=True)
class Track:
    """One body part of one animal, over the frames of a video.

    Parameters
    ----------
    animal : str
        Empty if the source does not tell animals apart.
    part : str
    points : (frames, 2) or (frames, 3) float64
        Pixels; NaN where not found.
    likelihood : (frames,) float64 or None
        How sure the source is; NaN where it does not say.
    """

    animal: str
    part: str
    points: np.ndarray
    likelihood: np.ndarray | None = None


def track_of(animal: str, part: str, columns: Mapping[str, np.ndarray]) -> Track:
    """Track of the columns x, y, maybe z, and likelihood or score."""
    points = np.stack([columns[axis] for axis in AXES if axis in columns], axis=1)
    return Track(animal, part, points, columns.get("likelihood", columns.get("score")))


def behavior_of(
    tracks: Sequence[Track], settings: OpenSettings, path: Path, *, sparse: bool = False
) -> Behavior:
    """Behaviour of tracks: points less likely than `settings.likelihood` are unknown.

    Parameters
    ----------
    tracks : sequence of Track
    settings : OpenSettings
    path : Path
        Of the file, for sentences.
    sparse : bool
        Whether the source may leave out frames at the end.
    """
    name, animals = path.name, {track.animal for track in tracks}
    series, notes, unsure, found = [], [], 0, 0
    poor: dict[str, float] = {}
    for track in tracks:
        points = np.array(track.points, np.float64)
        present = ~np.isnan(points).any(axis=1)
        low = np.zeros(len(points), bool)
        if track.likelihood is not None:
            low = present & (track.likelihood < settings.likelihood)
        points[low | ~present] = np.nan
        unsure, found = unsure + int(low.sum()), found + int(present.sum())
        label = f"{track.animal}_{track.part}" if track.animal and len(animals) > 1 else track.part
        poor[label] = float(np.isnan(points).any(axis=1).mean())
        if np.isnan(points).all():
            notes.append(f"{label} of {name} is below `likelihood` in every frame: left out.")
            continue
        series.append(Series(label, points, unit="px", kind="continuous", sparse=sparse))
    if not series:
        raise InputError(
            f"{path} has no body part with a likelihood of {settings.likelihood:g} or more in any "
            "frame: lower `likelihood`."
        )
    if unsure:
        notes.insert(
            0,
            f"{percent(unsure / found)} of the points in {name} are less likely than "
            f"{settings.likelihood:g} and treated as unknown (`likelihood`): {_told(poor)}.",
        )
    return Behavior(tuple(series), notes=tuple(notes), name=name)


def _told(poor: Mapping[str, float]) -> str:
    """Share of the frames at which each part is unknown, the worst first."""
    worst = sorted(poor, key=lambda part: -poor[part])
    told = ", ".join(f"{part} {percent(poor[part])}" for part in worst[:MOST_TOLD])
    return f"{told} …" if len(worst) > MOST_TOLD else told
