"""Opens, saves and restores a workspace and copies diagnostics, in napari's menus; paints a map."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from napari.utils.notifications import show_error, show_info
from qtpy.QtCore import QRect, Qt, QTimer
from qtpy.QtWidgets import QFileDialog, QMainWindow, QTabWidget, QVBoxLayout, QWidget

from napari_xcebra.io.guard import open_task
from napari_xcebra.support.logs import log_folder
from napari_xcebra.widgets.controls.napari_window import (
    AREAS,
    DOCKS,
    main_window,
    open_dock,
    real_viewer,
)
from napari_xcebra.widgets.controls.notice import copy_diagnostics
from napari_xcebra.widgets.layers.layers import recording_layers
from napari_xcebra.widgets.layers.scores import score_layer
from napari_xcebra.widgets.services.jobs import in_background
from napari_xcebra.widgets.services.reading import reader_of, result_of
from napari_xcebra.widgets.state.state import LayerTuple, collect_while_waiting
from napari_xcebra.widgets.window import services_of
from napari_xcebra.workspace_file import WorkspaceFile, load_workspace
from napari_xcebra.workspace_file import save_workspace as write_workspace

if TYPE_CHECKING:
    import napari
    from napari.layers import Labels

    from napari_xcebra.attribution import Attribution
    from napari_xcebra.io.opening import Opening
    from napari_xcebra.recording import Recording


CELLS_HEIGHT = 230


def open_workspace(viewer: napari.Viewer) -> None:
    """Open all docks, arranged, with the first step in front."""
    docks = {name: open_dock(viewer, name) for name in DOCKS}
    window = docks["Recording"].parent()
    assert isinstance(window, QMainWindow)
    # tabs at the top, where users look for them
    window.setTabPosition(AREAS["right"], QTabWidget.TabPosition.North)
    window.resizeDocks([docks["Cells"]], [CELLS_HEIGHT], Qt.Orientation.Vertical)
    docks["Recording"].raise_()
    # fading a control makes Qt lay out all that is hidden: done now, while the user waits anyway
    window.grab(QRect(0, 0, 1, 1))
    collect_while_waiting()


class Workspace(QWidget):
    """Entry of the Plugins menu: opens all docks, then removes itself."""

    def __init__(self, napari_viewer: napari.viewer.Viewer) -> None:
        super().__init__()
        QVBoxLayout(self)
        self._viewer = napari_viewer
        # once napari has put this widget into a dock of its own
        QTimer.singleShot(0, self._make_way)

    def _make_way(self) -> None:
        viewer = real_viewer(self._viewer)
        viewer.window.remove_dock_widget(self)
        self.deleteLater()
        open_workspace(viewer)


def save_workspace(viewer: napari.Viewer, folder: str | Path | None = None) -> Any:
    """Write recordings, runs and view settings to a folder that the user names."""
    state = services_of(viewer).state
    if state.current is None:
        show_info("No recording to save: open one first.")
        return None
    if folder is None:
        start = Path(state.current.recording.source or ".").absolute().parent
        suggested = start / f"{state.current.name}-workspace"
        folder, _ = QFileDialog.getSaveFileName(
            main_window(viewer), "Save workspace as a folder", str(suggested)
        )
    if not folder:
        return None
    now = state.as_file()

    def saved(path: Path) -> None:
        for opened in now.opened:
            state.saved_runs.mark(opened.runs)
        show_info(f"Saved the workspace to {path}.")

    return in_background(
        lambda: write_workspace(now, folder),
        saved,
        lambda sentence, _: show_error(sentence),
    )


def open_saved_workspace(viewer: napari.Viewer, folder: str | Path | None = None) -> Any:
    """Open a saved workspace; ask for files that were moved."""
    if folder is None:
        folder = QFileDialog.getExistingDirectory(main_window(viewer), "Open a saved workspace")
    if not folder:
        return None
    return _load(viewer, Path(folder), {})


def _load(viewer: napari.Viewer, folder: Path, moved: dict[Path, Path]) -> Any:
    """Read in the background; ask for a missing file, then read again."""
    missing: list[Path] = []

    def find(path: Path) -> Path | None:
        if path not in moved:
            missing.append(path)
        return moved.get(path)

    services, reader = services_of(viewer), reader_of(viewer)
    bar = services.processes.activity.begin(f"Opening {folder.name}")

    def failed(sentence: str, _: str) -> None:
        bar.close()
        told = _ask_where(viewer, missing[0]) if missing else None
        if told is None:
            show_error(sentence)
        else:
            _load(viewer, folder, {**moved, missing[0]: told})

    def read(opening: Opening) -> Recording:
        return result_of(reader.submit(open_task(opening)))

    def load() -> tuple[WorkspaceFile, list[LayerTuple] | None]:
        saved = load_workspace(folder, find, read)
        front = saved.front
        return saved, recording_layers(front.recording, front.token) if front else None

    def done(loaded: tuple[WorkspaceFile, list[LayerTuple] | None]) -> None:
        bar.close()
        _show(viewer, *loaded)

    show_info(f"Opening the workspace {folder.name} …")
    return in_background(load, done, failed)


def _show(viewer: napari.Viewer, saved: WorkspaceFile, layers: list[LayerTuple] | None) -> None:
    """Show what was read: recordings, map and all docks, with the one in front that is next."""
    services = services_of(viewer)
    # first, as a dock that opens may choose a cell to begin with
    open_workspace(viewer)
    front = saved.front
    open_dock(viewer, "Attribution" if front and front.runs else "Recording")
    _ = services.painter  # which paints the map from now on

    def restore() -> None:
        if not services.state.closed:
            services.state.restore(saved, layers)

    QTimer.singleShot(0, restore)


def _ask_where(viewer: napari.Viewer, path: Path) -> Path | None:
    title = f"Where is {path.name} now? It was at {path}"
    if path.suffix:
        told, _ = QFileDialog.getOpenFileName(main_window(viewer), title)
    else:
        told = QFileDialog.getExistingDirectory(main_window(viewer), title)
    return Path(told) if told else None


def copy_diagnostics_of(viewer: napari.Viewer) -> None:
    """Copy diagnostics with the settings of the shown run and the last error of the log."""
    run = services_of(viewer).state.shown_run
    copy_diagnostics(settings=run.fit.settings if run is not None else None)
    show_info(
        f"Diagnostics copied: paste them into your report.\nYou can attach the log: {log_folder()}"
    )


def paint(
    viewer: napari.Viewer,
    recording: Recording,
    attribution: Attribution,
    factors: Sequence[str] | None = None,
) -> list[Labels]:
    """Add the recording's images and one painted Labels layer per factor to a viewer.

    Parameters
    ----------
    viewer : napari.Viewer
    recording : Recording
    attribution : Attribution
    factors : sequence of str, optional
        All, if not given.

    Returns
    -------
    list of Labels
        Those of the factors; the first is shown, the others are hidden.
    """
    token = services_of(viewer).state.show(recording).token
    layers = [
        score_layer(recording, attribution, factor, token=token)
        for factor in factors or attribution.factors
    ]
    for number, layer in enumerate(layers):
        layer.visible = number == 0
        viewer.add_layer(layer)
    return layers
