"""Writes a page about a run, or the run as NWB, in the background; asks where to write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from qtpy.QtCore import QUrl
from qtpy.QtGui import QDesktopServices
from qtpy.QtWidgets import QFileDialog, QWidget

from napari_xcebra.jobs import Call, tasks
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


class RunWriter:
    """Writes runs to files for a widget, once other work is done.

    The user is asked for a path where none is given.

    Parameters
    ----------
    services : Services
    say : callable
        Told where a file was written, or what went wrong, unless `parent` is gone by then.
    parent : QWidget
    """

    def __init__(self, services: Services, say: Say, parent: QWidget) -> None:
        self._services, self._say, self._parent = services, say, parent

    def report(self, opened: Opened, run: Run, path: str | Path | None = None) -> None:
        """Write the page of a run, and open it."""
        if (target := self._target(opened, run, "report", ".html", path)) is not None:
            found = self._services.statistics.of(opened, run)
            call = tasks.REPORT(run, opened.recording, target, opened.opening, found)
            self._write("the report", call, show_page)

    def nwb(self, opened: Opened, run: Run, path: str | Path | None = None) -> None:
        """Write a run with its recording as NWB, and decisions if there are any."""
        if (target := self._target(opened, run, "results", ".nwb", path)) is not None:
            curation = self._services.curations.of(opened)
            table = curation.table() if curation.status.any() or curation.all_tags else None
            threshold = self._services.state.shown.threshold
            self._write("the NWB file", tasks.NWB(run, opened.recording, target, table, threshold))

    def _target(
        self, opened: Opened, run: Run, word: str, suffix: str, path: str | Path | None
    ) -> Path | None:
        start = exports.default_path(opened.recording, run.name, word, suffix=suffix)
        return chosen_target(self._parent, word.capitalize(), start, (suffix,), path)

    def _write(
        self, title: str, call: Call, show: Callable[[Path], object] = lambda _: None
    ) -> None:
        exists, say = while_exists(self._parent), self._say

        def tell(sentence: str, tone: str, details: str) -> None:
            if exists():
                say(sentence, tone, details)

        def written(file: Path) -> None:
            tell(f"Wrote {file}.", "good", "")
            show(file)

        self._services.jobs.ask(Work(title, call, written, say=tell))


def chosen_target(
    parent: QWidget,
    title: str,
    start: Path,
    suffixes: Sequence[str],
    path: str | Path | None = None,
) -> Path | None:
    """Where to write, as given or as the user says; None if they cancel.

    A path without an ending gets that of the kind that was chosen.
    """
    suffix = suffixes[0]
    if path is None:
        kinds = ";;".join(f"*{each}" for each in suffixes)
        path, kind = QFileDialog.getSaveFileName(parent, title, str(start), kinds)
        suffix = kind.removeprefix("*") or suffix
    if not path:
        return None
    target = Path(path)
    return target if target.suffix else target.with_suffix(suffix)


def show_page(page: Path) -> None:
    """Open a page in the browser."""
    QDesktopServices.openUrl(QUrl.fromLocalFile(str(page.absolute())))
