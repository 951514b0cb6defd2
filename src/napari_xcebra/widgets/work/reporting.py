"""Writes a page about a run, or the run as NWB, in the background."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from qtpy.QtCore import QUrl
from qtpy.QtGui import QDesktopServices
from qtpy.QtWidgets import QFileDialog, QWidget

from napari_xcebra.jobs import NwbTask, ReportTask, Task
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
NWB_HELP = (
    "Traces, ROIs, behaviour, scores, embedding, decisions and settings in one file for pynwb, "
    "neurosift and archives. An NWB recording is copied, and stays as it is."
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
    if (target := _target(opened, run, "report", ".html", path, parent)) is None:
        return
    found = services.statistics.of(opened, run)
    task = ReportTask(run, opened.recording, target, opened.opening, found)
    _ask(services, "the report", task, say, parent, show_page)


def ask_for_nwb(
    services: Services,
    opened: Opened,
    run: Run,
    say: Say,
    path: str | Path | None = None,
    parent: QWidget | None = None,
) -> None:
    """Write a run with its recording as NWB, once other work is done.

    The user is asked for a path if none is given. Decisions are written if there are any.
    """
    if (target := _target(opened, run, "results", ".nwb", path, parent)) is None:
        return
    curation = services.curations.of(opened)
    table = curation.table() if curation.status.any() or curation.all_tags else None
    threshold = services.state.shown.threshold
    task = NwbTask(run, opened.recording, target, table, threshold)
    _ask(services, "the NWB file", task, say, parent)


def _target(
    opened: Opened,
    run: Run,
    word: str,
    suffix: str,
    path: str | Path | None,
    parent: QWidget | None,
) -> Path | None:
    """Where to write, as given or as the user says; None if they cancel."""
    if path is None:
        start = exports.default_path(opened.recording, run.name, word, suffix=suffix)
        path, _ = QFileDialog.getSaveFileName(parent, word.capitalize(), str(start), f"*{suffix}")
    if not path:
        return None
    target = Path(path)
    return target if target.suffix else target.with_suffix(suffix)


def _ask(
    services: Services,
    title: str,
    task: Task,
    say: Say,
    parent: QWidget | None,
    show: Callable[[Path], object] = lambda _: None,
) -> None:
    """Have a file written, then say where it is and show it, unless `parent` is gone by then."""
    exists = while_exists(parent)

    def tell(sentence: str, tone: str, details: str) -> None:
        if exists():
            say(sentence, tone, details)

    def written(file: Path) -> None:
        tell(f"Wrote {file}.", "good", "")
        show(file)

    services.jobs.ask(Work(title, task, written, say=tell))


def show_page(page: Path) -> None:
    """Open a page in the browser."""
    QDesktopServices.openUrl(QUrl.fromLocalFile(str(page.absolute())))
