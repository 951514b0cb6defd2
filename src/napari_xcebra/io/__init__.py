"""Reads and writes recordings.

    path ──suite2p/, caiman/, nwb/ …──▶ Extraction ─┐
                                                    ├─assemble─▶ Recording
    path ──behavior/──────────────────▶ Behavior ───┤
    path ──movie/─────────────────────▶ Movie ──────┘

Nothing that is read here can run code, and nothing is read from outside the path that was given,
except label images, ROIs and a movie that lie beside it, or where suite2p says that it left one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from napari_xcebra.errors import InputError, printable
from napari_xcebra.io.decisions.backups import unfinished_in
from napari_xcebra.io.discovery import format_of
from napari_xcebra.io.extraction import Behavior, Extraction
from napari_xcebra.io.formats.native import save_recording
from napari_xcebra.io.formats.suite2p.folder import folders_near
from napari_xcebra.io.kinds import told, with_kinds
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.plugins import problems
from napari_xcebra.recording.recording import Recording
from napari_xcebra.recording.variables import Kind

__all__ = ["OpenSettings", "open_recording", "save_recording"]


Found = TypeVar("Found", Extraction, Recording)
Paths = str | PathLike[str] | Sequence[str | PathLike[str]] | None
"""One file, several, or none."""


def open_recording(
    path: str | PathLike[str],
    behavior: Paths = None,
    *,
    trials: Paths = None,
    events: Paths = None,
    footprints: Any = None,
    kinds: Mapping[str, Kind] | None = None,
    movie: str | PathLike[str] | None = None,
    settings: OpenSettings | None = None,
    guarded: bool | None = None,
    **choices: Any,
) -> Recording:
    """Recording at a path, in any format that is known.

    The files are read in a child process: one that hangs or crashes a library, or unpacks to any
    size, is an `InputError` here.

    Parameters
    ----------
    path : path
        What an extractor wrote (suite2p, CaImAn, NWB, Minian, EXTRACT, CNMF-E, Inscopix), an
        array of traces, or a recording that `save_recording` wrote.
    behavior : path or several, optional
        Tables, arrays, poses, NWB files, or tables of trials. Where two files have a variable of
        the same name, that of the second gets the name of its file behind it.
    trials : path or several, optional
        Tables with a row for each trial: when it starts and stops, and what is known of it.
    events : path or several, optional
        Tables with a row for each event: when it happened, and which it was.
    footprints : path or (height, width) integer array or napari Labels layer, optional
        A label image (cell i has the i-th label) or an ImageJ RoiSet.zip, for traces that came
        without footprints or to replace theirs.
    kinds : mapping of str to {"continuous", "circular", "discrete", "event"}, optional
        For variables whose kind should not be guessed.
    movie : path, optional
        What was imaged: suite2p's data.bin, TIFF, HDF5, zarr, CaImAn's .mmap, or a folder of
        TIFF files; it stays on disk. Without it, one is looked for beside the recording.
    settings : OpenSettings, optional
    guarded : bool, optional
        False reads the files in this process, as a script that forks or a debugger may need: a
        damaged file can then hang or end it. The environment variable ``NAPARI_XCEBRA_GUARDED=0``
        does the same everywhere.
    **choices
        Single fields of `OpenSettings`, such as ``rate=30`` or ``traces="events"``.

    Returns
    -------
    Recording
    """
    from napari_xcebra.io.guard import read

    settings = _settings(settings, choices)
    files = [_paths(given) for given in (behavior, trials, events)]
    drawn = [Path(footprints)] if isinstance(footprints, str | PathLike) else []
    if footprints is not None and not drawn:
        from napari_xcebra.io.footprint_files import regions_of

        footprints = regions_of(footprints)  # no layer of napari enters the child
    return read(
        _open,
        Path(path),
        *files,
        drawn[0] if drawn else footprints,
        dict(kinds or {}),
        None if movie is None else Path(movie),
        settings,
        paths=[Path(path), *chain(*files), *drawn],
        guarded=guarded,
    )


def _open(
    path: Path,
    behavior: list[Path],
    trials: list[Path],
    events: list[Path],
    footprints: Any,
    kinds: Mapping[str, Kind],
    movie: Path | None,
    settings: OpenSettings,
) -> Recording:
    """See `open_recording`; whatever the files hold happens to this process."""
    form = format_of(path, "recording")
    # kinds matter before behaviour is brought to the frames: angles are not averaged as numbers are
    sources = [told(source, kinds or {}) for source in _behaviors(behavior, settings)]
    sources += _told_apart(trials, events)
    # the length of the behaviour may tell frames from cells where the file does not
    more = (sources,) if getattr(form, "TAKES_BEHAVIOR", False) else ()
    found = form.load(path, settings, *more)
    if footprints is not None:
        found = _with_footprints(found, footprints)
    if isinstance(found, Extraction):
        found = replace(found, behavior=told(found.behavior, kinds or {}))
        recording = _assembled(found, sources, settings, path, form.NAME)
    else:
        recording = _with_behavior(found, sources, settings)
    recording = _with_movie(recording, path, movie)
    if settings.video:
        recording = _with_video(recording, settings)
    begun = unfinished_in(folders_near(path.resolve()))
    said = (*(each.sentence for each in begun), *problems())
    recording = replace(recording, notes=(*recording.notes, *said))
    return with_kinds(_with_plain_names(recording), kinds or {})


def _settings(settings: OpenSettings | None, choices: Mapping[str, Any]) -> OpenSettings:
    known = [field.name for field in fields(OpenSettings)]
    unknown = [name for name in choices if name not in known]
    if unknown:
        raise InputError(f"open_recording has no {unknown[0]}; it has: {', '.join(known)}.")
    given = {name: value for name, value in choices.items() if value is not None}
    return replace(settings or OpenSettings(), **given)


def _behaviors(behavior: Paths, settings: OpenSettings) -> list[Behavior]:
    found = [format_of(p, "behaviour file").load(p, settings) for p in _paths(behavior)]
    if not settings.behavior_times:
        return found
    from napari_xcebra.io.clocks.time_files import timed

    return timed(found, settings)


# what brings files together is imported when there is something to bring together


def _with_footprints(found: Found, given: Any) -> Found:
    from napari_xcebra.io.footprint_files import read_footprints, read_regions

    field = next((np.shape(image) for image in found.images.values()), None)
    footprints = read_footprints(given, found.n_cells, field)
    size = read_regions(Path(given)).pixel_size if isinstance(given, str | PathLike) else None
    return replace(found, footprints=footprints, pixel_size=found.pixel_size or size)


def _told_apart(trials: Paths, events: Paths) -> list[Behavior]:
    """Files of which the user says what they hold."""
    if not _paths(trials) and not _paths(events):
        return []
    from napari_xcebra.io.behavior.tables import load_events, load_trials

    return [*map(load_trials, _paths(trials)), *map(load_events, _paths(events))]


def _assembled(
    found: Extraction, sources: list[Behavior], settings: OpenSettings, path: Path, form: str
) -> Recording:
    from napari_xcebra.io.assemble import assemble
    from napari_xcebra.io.clocks.placing import check_names

    every = [found.behavior, *sources]
    check_names(every, settings)
    return assemble(found, every, settings, path, form)


def _with_movie(recording: Recording, path: Path, movie: str | PathLike[str] | None) -> Recording:
    from napari_xcebra.io.movie.finding import with_movie

    return with_movie(recording, path, None if movie is None else Path(movie))


def _with_video(recording: Recording, settings: OpenSettings) -> Recording:
    from napari_xcebra.io.containers.video import open_video

    return replace(recording, video=open_video(settings, recording))


def _paths(given: Paths) -> list[Path]:
    if given is None:
        return []
    return [Path(given)] if isinstance(given, str | PathLike) else [Path(path) for path in given]


def _with_behavior(
    recording: Recording, sources: Sequence[Behavior], settings: OpenSettings
) -> Recording:
    """A recording of ours with behaviour added."""
    if not sources and not (settings.trigger or settings.only or settings.exclude):
        return recording
    from napari_xcebra.io.assemble import with_behavior
    from napari_xcebra.io.clocks.placing import check_names

    check_names(sources, settings)
    return with_behavior(recording, sources, settings)


def _with_plain_names(recording: Recording) -> Recording:
    """Recording in whose names, words and notes no character commands a terminal."""
    words = [str(word) for c in recording.cells.values() if np.asarray(c).dtype.kind == "U"
             for word in c]  # fmt: skip
    labels = [word for v in recording.behavior.values() for word in (v.name, *v.words)]
    text = "".join([*recording.notes, *recording.warnings, *recording.cells, *labels, *words])
    if printable(text) == text:
        return recording
    trials = recording.trials
    if trials is not None:
        trials = replace(
            trials,
            columns={printable(name): values for name, values in trials.columns.items()},
            words={printable(n): tuple(map(printable, w)) for n, w in trials.words.items()},
        )
    variables = [
        replace(v, name=printable(v.name), words=tuple(map(printable, v.words)))
        for v in recording.behavior.values()
    ]
    cells = {printable(name): values for name, values in recording.cells.items()}
    for name, values in cells.items():
        if np.asarray(values).dtype.kind == "U":
            cells[name] = np.array([printable(word) for word in values])
    return replace(
        recording,
        behavior={variable.name: variable for variable in variables},
        trials=trials,
        cells=cells,
        notes=tuple(map(printable, recording.notes)),
        warnings=tuple(map(printable, recording.warnings)),
    )
