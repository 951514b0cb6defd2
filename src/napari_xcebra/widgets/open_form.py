"""What to open: recording, behaviour, footprints, and how to read them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from qtpy.QtCore import Signal
from qtpy.QtWidgets import QDoubleSpinBox, QFormLayout, QLabel, QVBoxLayout, QWidget

from napari_xcebra.errors import InputError
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.opening import Opening
from napari_xcebra.readers import recognised
from napari_xcebra.widgets.forms import SettingsForm
from napari_xcebra.widgets.path_fields import PathField, PathList
from napari_xcebra.widgets.recent import recent_paths
from napari_xcebra.widgets.wording import in_dock

AT_LEAST = {
    "rate": "as the file says",
    "behavior_rate": "one sample a frame",
    "neuropil": "as the source says",
    "gap": "automatic",
}
"""What the lowest value of a setting stands for."""
TABLES = (".csv", ".tsv", ".txt", ".parquet")
"""Files that hold traces as often as behaviour."""


class OpenForm(QWidget):
    """Fields of an `Opening`."""

    changed = Signal()
    table_taken = Signal(str)
    """Name of a table that was dropped and taken as the recording, for want of another."""

    def __init__(self) -> None:
        super().__init__()
        self.path = PathField(
            "the recording",
            "Folder or file that your extractor wrote: suite2p, CaImAn, NWB, Minian, EXTRACT, "
            "CNMF-E, Inscopix, or an array of traces. You can drop it here.",
            "suite2p folder, CaImAn, NWB …",
            folders=True,
        )
        self.path.offer(recent_paths())
        self.behavior = PathList(
            "behaviour files",
            "Tables, arrays, poses or NWB files with what the animal did; drop them here. Times "
            "are matched to the frames by the clock in the file.",
        )
        self.footprints = PathField(
            "footprints",
            "Only for traces that came without: a label image (cell 1, 2, 3 …) or an ImageJ "
            "RoiSet.zip.",
            "only if the recording has none",
        )
        self.settings: SettingsForm[OpenSettings] = SettingsForm(OpenSettings())
        for name, text in AT_LEAST.items():
            for box in _spin_boxes(self.settings.widget(name)):
                box.setSpecialValueText(text)
        self.settings.widget("trigger").setPlaceholderText("column, or .npy of frame times")
        rows = QFormLayout()
        rows.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        for title, field in (
            ("Recording", self.path),
            ("Behaviour", self.behavior),
            ("Footprints", self.footprints),
        ):
            label = QLabel(title)
            label.setBuddy(field)
            rows.addRow(label, field)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addLayout(rows)
        layout.addWidget(self.settings)
        for part in (self.path, self.behavior, self.footprints, self.settings):
            part.changed.connect(self.changed)
        self.path.dropped.connect(self.take)

    @property
    def opening(self) -> Opening:
        """What is chosen; raises `InputError` where that does not fit."""
        if self.path.path is None:
            raise InputError("Choose a recording first.")
        return Opening(
            self.path.path,
            self.behavior.paths,
            self.footprints.path,
            settings=self.settings.value,
        )

    @opening.setter
    def opening(self, opening: Opening) -> None:
        self.path.path = opening.path
        self.behavior.paths = opening.behavior
        self.footprints.path = opening.footprints
        self.settings.value = opening.settings

    def problem(self) -> str:
        """Why it cannot be opened yet, in a sentence; empty if it can."""
        try:
            _ = self.opening
        except InputError as error:
            return in_dock(str(error))
        return ""

    def goes_beyond(self, opening: Opening) -> bool:
        """Whether this is chosen, and more behaviour with it."""
        more = set(self.behavior.paths) > set(opening.behavior)
        return self.path.path == opening.path and more

    def take(self, paths: Sequence[str]) -> None:
        """Put dropped paths where they belong: a recording above, behaviour below it."""
        recordings = [path for path in map(Path, paths) if path.is_dir() or recognised(path)]
        others = [path for path in map(Path, paths) if path not in recordings]
        for path in recordings:
            before, self.path.path = self.path.path, path
            # what was taken as a recording for want of another is behaviour, then
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
