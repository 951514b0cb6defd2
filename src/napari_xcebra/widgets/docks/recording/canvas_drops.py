"""Takes recordings, behaviour and movies dropped on the image, or opened by File ▸ Open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import ref

from qtpy.QtCore import QEvent, QObject, Qt, QTimer
from qtpy.QtGui import QDragLeaveEvent
from qtpy.QtWidgets import QApplication

from napari_xcebra.errors import InputError
from napari_xcebra.io.containers.npy import mapped_header
from napari_xcebra.io.containers.video import is_video
from napari_xcebra.widgets.controls.forms import dropped_paths
from napari_xcebra.widgets.controls.napari_window import (
    before_opening,
    main_window,
    parts_that_take_drops,
    real_viewer,
)
from napari_xcebra.widgets.docks.recording.open_form import TABLES
from napari_xcebra.widgets.services.reading import has_movie, has_poses, recognised

if TYPE_CHECKING:
    from qtpy.QtWidgets import QWidget

    from napari_xcebra.recording import Recording

NAPARIS_COLUMN = "axis-0"
"""In the header of every table that napari itself writes: points, shapes, their features."""
FOR_NAPARI = Qt.KeyboardModifier.AltModifier | Qt.KeyboardModifier.ShiftModifier
"""Keys with which napari asks for a reader, or makes a stack."""


class CanvasDrops(QObject):
    """Takes what belongs in the Recording dock, for as long as that is open; the rest is napari's.

    napari would ask which reader to use for a folder, its own first, and fail on tables. A reader
    for tables would make it ask about every table.

    Parameters
    ----------
    owner : QWidget
        Widget it ends with.
    viewer : napari.Viewer
    current : callable
        Gives the recording that is open, if any.
    take : callable
        Called with the paths.
    """

    def __init__(
        self,
        owner: QWidget,
        viewer: Any,
        current: Callable[[], Recording | None],
        take: Callable[[Sequence[str]], object],
    ) -> None:
        super().__init__(owner)
        self._current, self._take = current, take
        self._dropping = False
        self._viewer = ref(real_viewer(viewer))
        window = main_window(viewer)
        if window is None:
            return
        for widget in parts_that_take_drops(window):
            widget.installEventFilter(self)
        before_opening(viewer, self._take_from_menu, self)

    def eventFilter(self, watched: QObject | None, event: Any) -> bool:
        """Take a drop of files that belong in the dock."""
        if event is None or event.type() != QEvent.Type.Drop:
            return False
        # napari opens what is left to it at once, as from its menu
        self._dropping = True
        QTimer.singleShot(0, self._end_drop)
        paths = dropped_paths(event)
        if event.modifiers() & FOR_NAPARI or len(paths) != len(event.mimeData().urls()):
            return False
        if not self._take_if_ours(paths):
            return False
        event.acceptProposedAction()
        if watched is not None:  # napari has marked where the drop would go
            QApplication.sendEvent(watched, QDragLeaveEvent())
        return True

    def _end_drop(self) -> None:
        self._dropping = False

    def _take_from_menu(self, paths: list[str]) -> bool:
        return not self._dropping and self._take_if_ours(paths)

    def _take_if_ours(self, paths: list[str]) -> bool:
        viewer = self._viewer()
        if not belong(list(map(Path, paths)), self._current(), viewer):
            return False
        if viewer is not None:  # where napari has said which keys to hold
            viewer.status = "Passed to the Recording dock"
        self._take(paths)
        return True


def belong(paths: Sequence[Path], recording: Recording | None, viewer: Any) -> bool:
    """Whether all of these are recordings, behaviour or a movie, as far as can be told at once."""
    return bool(paths) and all(
        recognised(path, viewer)
        or (path.is_file() and _may_be_behavior(path, recording, viewer))
        or has_movie(path, viewer, recording)
        or (recording is not None and is_video(path))
        for path in paths
    )


def _may_be_behavior(path: Path, recording: Recording | None, viewer: Any) -> bool:
    suffix = path.suffix.lower()
    if suffix in TABLES:
        return not _is_naparis(path)
    if suffix == ".npy":
        return recording is not None and _has_frames_of(path, recording)
    if suffix in (".mat", ".npz"):
        return recording is not None
    return suffix in (".h5", ".hdf5") and has_poses(path, viewer)


def _is_naparis(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return NAPARIS_COLUMN.encode() in file.readline(10_000)
    except OSError:
        return False


def _has_frames_of(path: Path, recording: Recording) -> bool:
    """Whether an array holds values per frame rather than a picture."""
    try:
        shape = mapped_header(path).shape
    except InputError:
        return False
    return len(shape) == 1 or (len(shape) == 2 and recording.n_frames in shape)
