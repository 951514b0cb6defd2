"""Asks what to open: recording, behaviour, footprints, and how to read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from weakref import ref

from qtpy.QtCore import Signal
from qtpy.QtWidgets import QCompleter, QDoubleSpinBox, QWidget

from napari_xcebra.errors import InputError
from napari_xcebra.io.containers.video import is_video
from napari_xcebra.io.formats.array_roles import names_of_arrays
from napari_xcebra.io.guard import reading
from napari_xcebra.io.opening import Opening
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.recording import Recording
from napari_xcebra.widgets.controls.forms import PathField, PathList, SettingsForm, in_dock
from napari_xcebra.widgets.controls.layouts import in_column, in_form
from napari_xcebra.widgets.controls.napari_window import real_viewer
from napari_xcebra.widgets.services.jobs import in_background
from napari_xcebra.widgets.services.reading import has_movie, reader_of, recognised, result_of
from napari_xcebra.widgets.state.preferences import recent_paths, remember

AT_LEAST = {
    "rate": "from the file",
    "behavior_rate": "one sample per frame",
    "pixel_size": "from the file",
    "neuropil": "from the source",
    "video_rate": "from the file",
    "gap": "automatic",
}
"""What the lowest value of a setting stands for."""
HINTS = {
    "trigger": "column, or file of frame times",
    "behavior_times": "file, if behaviour has no times",
    "video": "if a camera saw the animal",
    "video_times": "file, if its clock is another",
    "array": "find it",
}
"""What empty fields of settings say."""
WAYS = {
    "behavior": "What it looks like",
    "trials": "Trials, a row each",
    "events": "Events, a row each",
}
"""Ways to read a file beside the recording: fields of an `Opening`, and the words for each."""
TABLES = (".csv", ".tsv", ".txt", ".parquet")
"""Files that hold traces as often as behaviour."""


class OpenForm(QWidget):
    """Fields of an `Opening`.

    Parameters
    ----------
    viewer : napari.Viewer
        For whose window files are looked into.
    """

    changed = Signal()
    table_taken = Signal(str)
    """Name of a dropped table that is used as the recording, as there is no other."""
    cleared = Signal(str)
    """Name of the recording whose behaviour and settings were cleared for another one."""

    def __init__(self, viewer: Any) -> None:
        super().__init__()
        self._viewer = ref(real_viewer(viewer))
        self._filled: Opening | None = None
        self._emptied = False
        self._make_fields()
        self._lay_out()
        for part in (self.path, self.behavior, self.footprints, self.movie, self.settings):
            part.changed.connect(self.changed)
        self.path.dropped.connect(self.take)
        self.path.changed.connect(self._follow_path)

    def _make_fields(self) -> None:
        self.path = PathField(
            "the recording",
            "Folder or file from your extractor: suite2p, CaImAn, NWB, Minian, EXTRACT, "
            "CNMF-E, Inscopix, or an array of traces. You can drop it here.",
            "suite2p folder, CaImAn, NWB …",
            folders=True,
        )
        self.path.offer(recent_paths())
        self.behavior = PathList(
            "behaviour files",
            "Tables, arrays, poses or NWB files of behaviour, trials and events; you can drop them "
            "here. Times are matched to the frames by the clock in the file.",
            WAYS,
        )
        self.footprints = PathField(
            "footprints",
            "Only for traces without footprints: a label image (cell 1, 2, 3 …) or an ImageJ "
            "RoiSet.zip.",
            "only if the recording has none",
        )
        self.movie = PathField(
            "the movie",
            "What was imaged: data.bin of suite2p, TIFF, HDF5, zarr, .mmap of CaImAn, or a folder "
            "of TIFF files. Left empty, one beside the recording is used. You can drop it here.",
            "found by itself beside the recording",
            folders=True,
        )
        self.settings: SettingsForm[OpenSettings] = SettingsForm(OpenSettings())
        for name, text in AT_LEAST.items():
            for box in _spin_boxes(self.settings.widget(name)):
                box.setSpecialValueText(text)
        for name, hint in HINTS.items():
            self.settings.widget(name).setPlaceholderText(hint)

    def _lay_out(self) -> None:
        rows = in_form(
            ("Recording", self.path),
            ("Behaviour", self.behavior),
            ("Footprints", self.footprints),
            ("Movie", self.movie),
        )
        in_column(rows, self.settings, of=self)

    @property
    def opening(self) -> Opening:
        """The current choice; raises `InputError` if it is invalid."""
        if self.path.path is None:
            raise InputError("Choose a recording first.")
        return Opening(
            self.path.path,
            footprints=self.footprints.path,
            movie=self.movie.path,
            settings=self.settings.value,
            behavior=self.behavior.read_as("behavior"),
            trials=self.behavior.read_as("trials"),
            events=self.behavior.read_as("events"),
        )

    @opening.setter
    def opening(self, opening: Opening) -> None:
        self._filled, self._emptied = opening, False
        self.path.path = opening.path
        self.behavior.paths = ()
        self._fill_from(opening)

    def _fill_from(self, opening: Opening) -> None:
        for way in WAYS:
            self.behavior.add(getattr(opening, way), way)
        self.footprints.path, self.movie.path = opening.footprints, opening.movie
        self.settings.value = opening.settings

    def _follow_path(self) -> None:
        """Clear what belongs to the recording that the form was filled with, or bring it back.

        What the user has chosen since then stays.
        """
        filled = self._filled
        if filled is None or (other := self.path.path != filled.path) == self._emptied:
            return
        self._emptied = other
        if not other:
            self._fill_from(filled)
            return
        own = {path for way in WAYS for path in getattr(filled, way)}
        given = bool(own or filled.footprints or filled.movie)
        given = given or filled.settings != OpenSettings()
        self.behavior.remove(own)
        for field, before in (
            (self.footprints, filled.footprints),
            (self.movie, filled.movie),
        ):
            if field.path == before:
                field.path = None
        self.settings.reset_where(filled.settings)
        if given:
            self.cleared.emit(filled.path.name)

    def offer_arrays(self) -> None:
        """Offer the arrays of the file to choose the traces from, once they are read."""
        path, viewer = self.path.path, self._viewer()
        if path is None or viewer is None:
            return
        job = reader_of(viewer).submit(reading(names_of_arrays, path, paths=[path]))
        in_background(lambda: result_of(job), self._show_arrays, lambda *_: None, self)

    def _show_arrays(self, names: list[str]) -> None:
        field = self.settings.widget("array")
        choices = QCompleter(names, field)
        choices.setCompletionMode(QCompleter.CompletionMode.UnfilteredPopupCompletion)
        field.setCompleter(choices)
        field.setPlaceholderText(f"one of {len(names)}: type to choose")
        field.setFocus()
        if field.isVisible():
            choices.complete()

    def remember(self, path: Path) -> None:
        """Put a path first in the list of recent ones."""
        remember(str(path))
        self.path.offer(recent_paths())

    def problem(self) -> str:
        """Why it cannot be opened yet; empty if it can."""
        try:
            _ = self.opening
        except InputError as error:
            return in_dock(str(error))
        return ""

    def goes_beyond(self, opening: Opening) -> bool:
        """Whether the form names the same recording with more behaviour."""
        more = set(self.behavior.paths) > {p for way in WAYS for p in getattr(opening, way)}
        return self.path.path == opening.path and more

    def recordings_among(self, paths: Sequence[str]) -> list[Path]:
        """Those paths that are known to be recordings."""
        viewer = self._viewer()
        return [path for path in map(Path, paths) if recognised(path, viewer)]

    def take(self, paths: Sequence[str], recording: Recording | None = None) -> None:
        """Put dropped paths where they belong: a recording above, behaviour below it.

        What may be the movie of the recording in front becomes its movie, and a video that of
        the animal.
        """
        known, viewer = self.recordings_among(paths), self._viewer()
        rest = list(map(Path, paths))
        for path in list(rest):
            if is_video(path):
                self.settings.value = replace(self.settings.value, video=str(path))
            elif has_movie(path, viewer, recording):
                self.movie.path = path
            else:
                continue
            rest.remove(path)
        recordings = [path for path in rest if path.is_dir() or path in known]
        others = [path for path in rest if path not in recordings]
        for path in recordings:
            before, self.path.path = self.path.path, path
            # a table that stood in for the recording is behaviour, then
            if before is not None and before.suffix.lower() in TABLES:
                others.append(before)
        for path in others:
            if self.path.path is not None:
                self.behavior.add([path])
                continue
            self.path.path = path
            if path.suffix.lower() in TABLES:
                self.table_taken.emit(path.name)


def _spin_boxes(widget: QWidget) -> list[QDoubleSpinBox]:
    own = [widget] if isinstance(widget, QDoubleSpinBox) else []
    return [*own, *widget.findChildren(QDoubleSpinBox)]
