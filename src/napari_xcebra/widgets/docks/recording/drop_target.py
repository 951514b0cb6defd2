"""Invites to drop a recording, to browse for one, or to open a sample."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import QFileDialog, QFrame, QLabel, QMenu, QPushButton, QSizePolicy

from napari_xcebra.widgets.controls.boxes import primary_button
from napari_xcebra.widgets.controls.layouts import in_column, in_row
from napari_xcebra.widgets.docks.recording.loading import SAMPLES
from napari_xcebra.widgets.state.preferences import recent_paths

RECENT = 8
"""Recordings in the menu that were opened before."""
LONGEST = 60
"""Characters of their paths."""


class DropTarget(QFrame):
    """What there is to do while no recording is open; the dock takes what is dropped on it.

    Parameters
    ----------
    open_sample : callable
        Called with the key of a sample.
    """

    chosen = Signal(str)
    """A path that was browsed for."""

    def __init__(self, open_sample: Callable[[str], None]) -> None:
        super().__init__()
        self.setObjectName("drop")
        self.setStyleSheet("#drop { border: 2px dashed #808080; border-radius: 8px; }")
        title = QLabel("Drop a recording here")
        title.setStyleSheet("font-size: 17px; font-weight: bold;")
        kinds = QLabel("suite2p · CaImAn · NWB · Minian · Inscopix · arrays …")
        for label in (title, kinds):
            label.setAlignment(Qt.AlignmentFlag.AlignCenter)
            label.setWordWrap(True)
        self.browse = primary_button("Browse…")
        self.browse.setToolTip("Choose the folder or file from your extractor.")
        self._menu = QMenu(self.browse)
        self._menu.aboutToShow.connect(self._list_choices)
        self.browse.setMenu(self._menu)
        self.sample = sample_button(open_sample)
        buttons = in_row(1, self.browse, self.sample, 1, spacing=12)
        column = in_column(1, title, kinds, buttons, 1, of=self, spacing=14)
        column.setContentsMargins(12, 24, 12, 24)
        self.setMinimumHeight(220)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Expanding)
        self._list_choices()

    def _list_choices(self) -> None:
        """A folder, a file, or what was opened before."""
        self._menu.clear()
        self._menu.addAction("Folder…", self._browse_folder)
        self._menu.addAction("File…", self._browse_file)
        self._menu.addSeparator()
        for path in recent_paths()[:RECENT]:
            self._menu.addAction(_shortened(path), partial(self.chosen.emit, path))

    def _browse_folder(self) -> None:
        self._tell(QFileDialog.getExistingDirectory(self, "Choose the recording"))

    def _browse_file(self) -> None:
        self._tell(QFileDialog.getOpenFileName(self, "Choose the recording")[0])

    def _tell(self, path: str) -> None:
        if path:
            self.chosen.emit(path)


def sample_button(open_sample: Callable[[str], None]) -> QPushButton:
    """Button with a menu of the samples."""
    button = QPushButton("Open a sample")
    button.setToolTip("No data at hand? Try a simulated recording.")
    menu = QMenu(button)
    menu.setToolTipsVisible(True)
    for key, sample in SAMPLES.items():
        action = menu.addAction(sample.title, partial(open_sample, key))
        action.setToolTip(sample.help)
    button.setMenu(menu)
    return button


def _shortened(path: str) -> str:
    """Path for a menu: its end tells recordings apart; Qt would take & for a shortcut."""
    shown = path if len(path) <= LONGEST else f"…{path[-LONGEST:]}"
    return shown.replace("&", "&&")
