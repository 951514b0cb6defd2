"""A page about a run, written in the background and then opened in the browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from qtpy.QtCore import QUrl
from qtpy.QtGui import QDesktopServices
from qtpy.QtWidgets import QFileDialog, QWidget

from napari_xcebra import exports
from napari_xcebra.jobs import ReportTask
from napari_xcebra.widgets.background import while_exists
from napari_xcebra.widgets.computation import Work, computation_of
from napari_xcebra.widgets.statistics_store import statistics_of

if TYPE_CHECKING:
    from napari_xcebra.runs import Run
    from napari_xcebra.widgets.session import Opened, Session

HELP = (
    "One page about the run that opens in any browser: verdicts, maps, tables, controls, settings "
    "and how to make it again."
)
Say = Callable[[str, str, str], object]
"""Takes a sentence, its tone, and details."""


def ask_for_report(
    session: Session,
    opened: Opened,
    run: Run,
    say: Say,
    path: str | Path | None = None,
    parent: QWidget | None = None,
) -> None:
    """Have the page of a run written, after what is being computed, and open it.

    Parameters
    ----------
    session, opened, run
        The run, and the recording it is of.
    say : callable
        Told where it was written, or what went wrong, unless `parent` is gone by then.
    path : path, optional
        The user is asked if not given.
    parent : QWidget, optional
        Of the dialog.
    """
    if path is None:
        start = exports.default_path(opened.recording, run.name, "report", suffix=".html")
        path, _ = QFileDialog.getSaveFileName(parent, "Report", str(start), "*.html")
    if not path:
        return
    target = Path(path)
    target = target if target.suffix else target.with_suffix(".html")

    exists = while_exists(parent)

    def tell(sentence: str, tone: str, details: str) -> None:
        if exists():
            say(sentence, tone, details)

    def written(page: Path) -> None:
        tell(f"Wrote {page}.", "good", "")
        show_page(page)

    found = statistics_of(session).of(opened, run)
    task = ReportTask(run, opened.recording, target, opened.opening, found)
    computation_of(session).ask([Work("the report", task, written, tell)])


def show_page(page: Path) -> None:
    """Open a page in the browser."""
    QDesktopServices.openUrl(QUrl.fromLocalFile(str(page.absolute())))
