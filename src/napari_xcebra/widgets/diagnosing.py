"""What a report of an error needs, on the clipboard: from a notice, or napari's commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qtpy.QtWidgets import QApplication

from napari_xcebra.diagnostics import diagnostics

if TYPE_CHECKING:
    import napari

    from napari_xcebra.learn.settings import FitSettings


def copy_diagnostics(error: str = "", settings: FitSettings | None = None) -> str:
    """Put it on the clipboard, and return it."""
    told = diagnostics(settings, error)
    clipboard = QApplication.clipboard()
    if clipboard is not None:
        clipboard.setText(told)
    return told


def copy_of_window(viewer: napari.Viewer) -> None:
    """The same with the settings of the run that is shown, and the last error of the log."""
    from napari.utils.notifications import show_info

    from napari_xcebra.logs import log_folder
    from napari_xcebra.widgets.session import session_of

    run = session_of(viewer).shown_run
    copy_diagnostics(settings=run.fit.settings if run is not None else None)
    show_info(f"Copied: paste it into your report.\nThe log can be attached: {log_folder()}")
