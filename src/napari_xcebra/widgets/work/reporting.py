"""Writes a page about a run in the background and opens it in the browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from qtpy.QtCore import QUrl
from qtpy.QtGui import QDesktopServices
from qtpy.QtWidgets import QFileDialog, QWidget

from napari_xcebra.jobs import ReportTask
from napari_xcebra.report import exports
from napari_xcebra.widgets.work.background import while_exists
from napari_xcebra.widgets.work.job_queue import Work

if TYPE_CHECKING:
    from napari_xcebra.runs import Run
    from napari_xcebra.widgets.work.services import Services
    from napari_xcebra.workspace_file import Opened

HELP = (
    "One page about the run that opens in any browser: verdicts, maps, tables, controls, settings "
    "and how to reproduce it."
)
Say = Callable[[str, str, str], object]
"""Takes a sentence, its tone, and details."""


def ask_for_report(
    services: Services,
    opened: Opened,
    run: Run,
    say: Say,
    path: str | Path | None = None,
    parent: QWidget | None = None,
) -> None:
    """Write the page of a run, once other work is done, and open it.

    The user is asked for a path if none is given. `say` is told where the page was written, or what
    went wrong, unless `parent` is gone by then.
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

    found = services.statistics.of(opened, run)
    task = ReportTask(run, opened.recording, target, opened.opening, found)
    services.jobs.ask(Work("the report", task, written, say=tell))


def show_page(page: Path) -> None:
    """Open a page in the browser."""
    QDesktopServices.openUrl(QUrl.fromLocalFile(str(page.absolute())))
