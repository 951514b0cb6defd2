"""Reading and writing recordings.

    path ──formats/──▶ Extraction ─┐
                                   ├─assemble─▶ Recording
    path ──behavior/─▶ Behavior ───┘

Nothing that is read here can run code, and nothing is read from outside the path that was given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from napari_xcebra.io.assemble import assemble
from napari_xcebra.io.clocks.placing import check_names, on_frames
from napari_xcebra.io.discovery import format_of
from napari_xcebra.io.extraction import Behavior, Extraction
from napari_xcebra.io.footprint_files import read_footprints
from napari_xcebra.io.formats.native import save_recording
from napari_xcebra.io.kinds import told, with_kinds
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.recording import InputError, Kind, Recording

__all__ = ["OpenSettings", "open_recording", "save_recording"]


def open_recording(
    path: str | PathLike[str],
    behavior: str | PathLike[str] | Sequence[str | PathLike[str]] | None = None,
    *,
    footprints: Any = None,
    kinds: Mapping[str, Kind] | None = None,
    settings: OpenSettings | None = None,
    **choices: Any,
) -> Recording:
    """Recording at a path, in any format that is known.

    Parameters
    ----------
    path : path
        What an extractor wrote (suite2p, CaImAn, NWB, Minian, EXTRACT, CNMF-E, Inscopix), an
        array of traces, or a recording that `save_recording` wrote.
    behavior : path or several, optional
        Tables, arrays, poses, NWB files, or tables of trials. A variable replaces one of the same
        name that came before.
    footprints : path or (height, width) integer array or napari Labels layer, optional
        A label image (cell i has the i-th label) or an ImageJ RoiSet.zip, for traces that came
        without footprints or to replace theirs.
    kinds : mapping of str to {"continuous", "circular", "discrete"}, optional
        For variables whose kind should not be guessed.
    settings : OpenSettings, optional
    **choices
        Single fields of `OpenSettings`, such as ``rate=30`` or ``traces="events"``.

    Returns
    -------
    Recording
    """
    settings = _settings(settings, choices)
    path = Path(path)
    form = format_of(path, "napari_xcebra.io.formats", "recording")
    found = form.load(path, settings)
    if footprints is not None:
        field = next((np.shape(image) for image in found.images.values()), None)
        given = read_footprints(footprints, found.n_cells, field)
        found = replace(found, footprints=given)
    # kinds matter before behaviour is brought to the frames: angles are not averaged as numbers are
    sources = [told(source, kinds or {}) for source in _behaviors(behavior, settings)]
    if isinstance(found, Extraction):
        found = replace(found, behavior=told(found.behavior, kinds or {}))
        check_names([found.behavior, *sources], settings)
        note = f"Opened {path.name} as {form.NAME}."
        found = replace(found, notes=(note, *found.notes))
        recording = assemble(found, [found.behavior, *sources], settings, path)
    else:
        check_names(sources, settings)
        recording = _with_behavior(found, sources, settings)
    return with_kinds(recording, kinds or {})


def _settings(settings: OpenSettings | None, choices: Mapping[str, Any]) -> OpenSettings:
    known = [field.name for field in fields(OpenSettings)]
    unknown = [name for name in choices if name not in known]
    if unknown:
        raise InputError(f"open_recording has no {unknown[0]}; it has: {', '.join(known)}.")
    given = {name: value for name, value in choices.items() if value is not None}
    return replace(settings or OpenSettings(), **given)


def _behaviors(behavior: Any, settings: OpenSettings) -> list[Behavior]:
    if behavior is None:
        return []
    paths = [behavior] if isinstance(behavior, str | PathLike) else behavior
    found = []
    for path in map(Path, paths):
        form = format_of(path, "napari_xcebra.io.behavior", "behaviour file")
        try:
            found.append(form.load(path, settings))
        except InputError as error:
            named = str(path) in str(error)
            raise error if named else InputError(f"{path}: {error}") from error
    return found


def _with_behavior(
    recording: Recording, sources: Sequence[Behavior], settings: OpenSettings
) -> Recording:
    """A recording of ours with behaviour added, or replaced where the name is the same."""
    for source in sources:
        placed = on_frames(source, np.asarray(recording.times), settings)
        recording = replace(
            recording.with_behavior(*placed.variables),
            starts=np.r_[np.asarray(recording.starts), placed.starts],
            excluded=np.asarray(recording.excluded) | placed.excluded,
            notes=(*recording.notes, *placed.notes),
        )
    return recording
