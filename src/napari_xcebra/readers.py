"""Reads recordings that are dropped on napari's window or opened from its File menu.

Where two readers accept a kind of file, napari asks the user to choose before either can look into
it. So the manifest names only files that extractors write, and folders; plain arrays and tables,
which are mostly something else, are opened in the Recording dock. Once that is open, its
`CanvasDrops` takes what belongs there before napari asks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from napari_xcebra.errors import InputError, Stopped
from napari_xcebra.io.guard import open_task
from napari_xcebra.io.opening import Opening
from napari_xcebra.widgets.controls.napari_window import main_window, real_viewer
from napari_xcebra.widgets.layers.layers import recording_layers
from napari_xcebra.widgets.services.reading import read_now, recognised, with_kept_size
from napari_xcebra.widgets.state.own_layers import KEY, LayerTuple

Paths = str | PathLike[str] | Sequence[str]
Reader = Callable[[Paths], list[LayerTuple]]


def get_reader(path: Paths) -> Reader | None:
    """Reader of this path; None if it is not recognised as a recording."""
    single = _single(path)
    if single is None or not recognised(single, current_viewer()):
        return None
    return read


def read(path: Paths) -> list[LayerTuple]:
    """Layers of the recording at a path."""
    single = _single(path)
    assert single is not None, "get_reader refuses stacks"
    opening = with_kept_size(Opening(single))
    try:
        return layers_to_adopt(read_now(open_task(opening), current_viewer()), opening)
    except Stopped:
        raise InputError(f"Reading {single} was cancelled.") from None
    except InputError as error:
        _ask_in_dock(opening, error)
        raise


def layers_to_adopt(recording: Any, opening: Opening | None = None) -> list[LayerTuple]:
    """Layers of a recording, which carry how it was opened."""
    layers = recording_layers(recording)
    point_to_docks()
    for _, arguments, _ in layers:
        if "value" in arguments["metadata"][KEY]:
            arguments["metadata"][KEY]["opening"] = opening
    return layers


def _ask_in_dock(opening: Opening, error: InputError) -> None:
    """Ask for what is missing, such as a frame rate, in the Recording dock.

    napari's own message does not say what was wrong.
    """
    viewer = _viewer_in_sight()
    if viewer is None:
        return
    from napari_xcebra.widgets.controls.napari_window import open_dock

    dock: Any = open_dock(viewer, "Recording").widget()
    dock.ask(opening, error)


def point_to_docks() -> None:
    """Point users who open a recording without any dock to the next step."""
    viewer = _viewer_in_sight()
    if viewer is None or any("napari-xcebra" in name for name in viewer.window.dock_widgets):
        return
    from napari.utils.notifications import show_info

    show_info("Next: choose Plugins ▸ napari-xcebra ▸ Workspace to train on this recording.")


def current_viewer() -> Any:
    """The viewer that files are opened in; None if there is none."""
    import napari

    return real_viewer(napari.current_viewer())


def _viewer_in_sight() -> Any:
    """The viewer on screen; None if napari runs without a window."""
    viewer = current_viewer()
    window = main_window(viewer)
    return viewer if window is not None and window.isVisible() else None


def _single(path: Paths) -> Path | None:
    """The one path; None for a stack of several."""
    if isinstance(path, str | PathLike):
        return Path(path)
    return Path(path[0]) if len(path) == 1 else None
