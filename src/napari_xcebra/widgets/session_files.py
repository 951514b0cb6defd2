"""Save what is open, and open it again: entries of napari's File menu."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from napari.utils.notifications import show_error, show_info
from qtpy.QtWidgets import QFileDialog

from napari_xcebra.sessions import SavedSession, load_session
from napari_xcebra.widgets.background import in_background
from napari_xcebra.widgets.kept_runs import mark_as_kept
from napari_xcebra.widgets.session import session_of

if TYPE_CHECKING:
    import napari


def save_session_as(viewer: napari.Viewer, folder: str | Path | None = None) -> Any:
    """Write recordings, runs and view settings to a folder that the user names."""
    session = session_of(viewer)
    if session.current is None:
        show_info("There is no recording to save: open one first.")
        return None
    if folder is None:
        start = Path(session.current.recording.source or ".").absolute().parent
        suggested = start / f"{session.current.name}-session"
        folder, _ = QFileDialog.getSaveFileName(
            _window(viewer), "Save session as a folder", str(suggested)
        )
    if not folder:
        return None
    runs = [run for opened in session.opened for run in opened.runs]

    def saved(path: Path) -> None:
        mark_as_kept(runs)
        show_info(f"Saved the session to {path}.")

    return in_background(
        lambda: session.save(folder),
        saved,
        lambda sentence, _: show_error(sentence),
    )


def open_session(viewer: napari.Viewer, folder: str | Path | None = None) -> Any:
    """Open a session that was saved; asks where files are that were moved."""
    if folder is None:
        folder = QFileDialog.getExistingDirectory(_window(viewer), "Open a saved session")
    if not folder:
        return None
    return _load(viewer, Path(folder), {})


def _load(viewer: napari.Viewer, folder: Path, moved: dict[Path, Path]) -> Any:
    """Read in the background; a file that is not there ends it, is asked for, and read again."""
    missing: list[Path] = []

    def find(path: Path) -> Path | None:
        if path not in moved:
            missing.append(path)
        return moved.get(path)

    def failed(sentence: str, _: str) -> None:
        told = _ask_where(viewer, missing[0]) if missing else None
        if told is None:
            show_error(sentence)
        else:
            _load(viewer, folder, {**moved, missing[0]: told})

    def done(saved: SavedSession) -> None:
        session_of(viewer).restore(saved)

    return in_background(lambda: load_session(folder, find), done, failed)


def _ask_where(viewer: napari.Viewer, path: Path) -> Path | None:
    title = f"Where is {path.name} now? It was {path}"
    if path.suffix:
        told, _ = QFileDialog.getOpenFileName(_window(viewer), title)
    else:
        told = QFileDialog.getExistingDirectory(_window(viewer), title)
    return Path(told) if told else None


def _window(viewer: napari.Viewer) -> Any:
    # a menu hands over a proxy, which warns of this; dialogs need the window itself
    return getattr(viewer, "__wrapped__", viewer).window._qt_window
