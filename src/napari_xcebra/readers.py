"""Recordings that are dropped on napari's window, or opened from its File menu.

napari asks the user which reader to take wherever two know a kind of file, before any of them can
look into it. So the manifest names only kinds of files that extractors write, folders among them;
plain arrays and tables, which are mostly something else, are opened in the Recording dock. Once
that is open, `widgets.canvas_drops` takes what belongs there before napari asks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from napari_xcebra.errors import InputError
from napari_xcebra.io.discovery import formats_in
from napari_xcebra.opening import Opening
from napari_xcebra.widgets.layers import KEY, LayerTuple, recording_layers

Paths = str | PathLike[str] | Sequence[str]
Reader = Callable[[Paths], list[LayerTuple]]


def get_reader(path: Paths) -> Reader | None:
    """What reads this path; None where nothing says that it is a recording."""
    single = _single(path)
    if single is None or not recognised(single):
        return None
    return read


def read(path: Paths) -> list[LayerTuple]:
    """Layers of the recording at a path."""
    single = _single(path)
    assert single is not None, "get_reader refuses stacks"
    opening = Opening(single)
    try:
        return layers_to_adopt(opening.open(), opening)
    except InputError as error:
        _ask_in_dock(opening, str(error))
        raise


def recognised(path: Path) -> bool:
    """Whether a format other than those for any array or table knows what is at the path."""
    formats = formats_in("napari_xcebra.io.formats")
    return any(form.sniff(path) for form in formats if not getattr(form, "GENERIC", False))


def layers_to_adopt(recording: Any, opening: Opening | None = None) -> list[LayerTuple]:
    """Layers of a recording, from which a session learns how it was opened."""
    layers = recording_layers(recording)
    point_to_docks()
    for _, arguments, _ in layers:
        if "value" in arguments["metadata"][KEY]:
            arguments["metadata"][KEY]["opening"] = opening
    return layers


def _ask_in_dock(opening: Opening, sentence: str) -> None:
    """Show what is missing (a frame rate, say) where it can be given.

    napari's own message does not say what was wrong.
    """
    viewer = _viewer_in_sight()
    if viewer is None:
        return
    from napari_xcebra.widgets.workspace import open_dock

    dock: Any = open_dock(viewer, "Recording").widget()
    dock.ask(opening, sentence)


def point_to_docks() -> None:
    """Say where to go on, to a user who opens a recording without any of the docks."""
    viewer = _viewer_in_sight()
    if viewer is None or any("napari-xcebra" in name for name in viewer.window.dock_widgets):
        return
    from napari.utils.notifications import show_info

    show_info("Next: choose Plugins ▸ napari-xcebra ▸ Workspace to train on this recording.")


def _viewer_in_sight() -> Any:
    """The viewer that the user looks at; None where napari is used without a window."""
    import napari

    viewer = napari.current_viewer()
    viewer = getattr(viewer, "__wrapped__", viewer)
    window = getattr(viewer, "window", None)
    return viewer if window is not None and window._qt_window.isVisible() else None


def _single(path: Paths) -> Path | None:
    """The one path; None for a stack of several."""
    if isinstance(path, str | PathLike):
        return Path(path)
    return Path(path[0]) if len(path) == 1 else None
