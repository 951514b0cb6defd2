"""Reads for a window: files of others, traces of single cells, and what a cell is judged by.

No library opens a file of others in the process of the window: libhdf5 can loop for ever over a
damaged file, and a file of a few KB can unpack to GBs. A process that such a file may end reads it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary, ref

import numpy as np
from qtpy.QtCore import QEventLoop, QThreadPool, QTimer
from qtpy.QtWidgets import QProgressDialog

from napari_xcebra import jobs
from napari_xcebra.attribution.score_map import ScoreMap
from napari_xcebra.curation.evidence import CellEvidence, Proposal, measure, propose
from napari_xcebra.curation.order import Doubts, find_doubts
from napari_xcebra.errors import InputError, Stopped
from napari_xcebra.io.discovery import is_pose, is_recording, needs_library
from napari_xcebra.io.guard import open_task, question
from napari_xcebra.io.movie.finding import is_movie, may_be_of
from napari_xcebra.recording import Recording
from napari_xcebra.recording.footprints import CellShapes, Neighbor, correlation
from napari_xcebra.recording.overview import Clips, read_clips
from napari_xcebra.recording.traces import LazyTraces
from napari_xcebra.widgets.controls.napari_window import main_window, real_viewer
from napari_xcebra.widgets.services.jobs import in_background
from napari_xcebra.widgets.state.preferences import kept_pixel_size
from napari_xcebra.widgets.state.shown import shown_map
from napari_xcebra.widgets.state.signals import OfState, Signal

if TYPE_CHECKING:
    from qtpy.QtWidgets import QWidget

    from napari_xcebra.attribution import Attribution
    from napari_xcebra.io.opening import Opening
    from napari_xcebra.jobs import Call, Job, Worker
    from napari_xcebra.widgets.state.cell_queue import CellQueue
    from napari_xcebra.widgets.state.curations import Curations
    from napari_xcebra.widgets.state.state import State


Result = TypeVar("Result")

PATIENCE = 0.3
"""Seconds after which a dialog says what is being waited for."""

REMEMBERED = 32
"""Answers: a file that is dropped is asked about several times."""

_ANSWERS: dict[Any, bool] = {}
_READERS: WeakKeyDictionary[Any, Worker] = WeakKeyDictionary()


def reader_of(viewer: Any) -> Worker:
    """The process that reads files for a viewer; made when first asked for."""
    viewer = real_viewer(viewer)
    if viewer not in _READERS:
        _READERS[viewer] = worker = jobs.Worker(warm_up="reading")
        worker.start()
        if (window := main_window(viewer)) is not None:
            window.destroyed.connect(worker.close)
    return _READERS[viewer]


def close_reader(viewer: Any) -> None:
    """End that process, if there is one."""
    if (worker := _READERS.pop(real_viewer(viewer), None)) is not None:
        worker.close()


class Openings:
    """Recordings that are opened for a widget; whatever is under way ends with it.

    The process for it is started at once, while the user is still choosing.

    Parameters
    ----------
    owner : QWidget
    viewer : napari.Viewer
    """

    def __init__(self, owner: QWidget, viewer: Any) -> None:
        self._viewer = ref(real_viewer(viewer))
        self._jobs: list[Job] = []
        reader_of(viewer)
        owner.destroyed.connect(self.cancel)

    def submit(self, opening: Opening) -> Job:
        """Open a recording; the result of the job is a `Recording`."""
        job = reader_of(self._viewer()).submit(open_task(opening))
        self._jobs = [*(each for each in self._jobs if each.outcome is None), job]
        return job

    def cancel(self) -> None:
        """Stop at once."""
        for job in self._jobs:
            job.cancel(0)


def add_kept_size(opening: Opening) -> Opening:
    """How to open a recording, with the size of a pixel that was given for it before."""
    if opening.settings.pixel_size or not (size := kept_pixel_size(opening.path)):
        return opening
    return replace(opening, settings=replace(opening.settings, pixel_size=size))


def result_of(job: Job) -> Any:
    """Wait for the result of a job, in a thread of `in_background`."""
    # Qt has a thread a core: those that only wait must not keep others from working
    pool = QThreadPool.globalInstance()
    pool.releaseThread()
    try:
        return job.result()
    finally:
        pool.reserveThread()


def read_now(call: Call, viewer: Any) -> Any:
    """Result of a call that napari waits for; a window stays alive, and offers to cancel.

    Parameters
    ----------
    call : Call
    viewer : napari.Viewer or None
        Whose window it is; None if there is none.
    """
    if viewer is None:
        with jobs.Worker(warm_up="reading") as worker:
            return worker.submit(call).result()
    job = reader_of(viewer).submit(call)
    window = main_window(viewer)
    if window is not None and window.isVisible() and job.wait(PATIENCE) is None:
        ended, cancel = lambda: job.outcome is not None, lambda: job.cancel(0)
        _wait_with_dialog(ended, cancel, f"{call.doing} …", window)
    return job.result()


def make_now(make: Callable[[], Result], doing: str, viewer: Any) -> Result:
    """What a function makes that napari waits for; it runs in a thread, and a window stays alive.

    Parameters
    ----------
    make : callable
    doing : str
        What it does, for the dialog.
    viewer : napari.Viewer or None
        Whose window it is; None if there is none.
    """
    window = None if viewer is None else main_window(viewer)
    if window is None or not window.isVisible():
        return make()
    with ThreadPoolExecutor(1) as thread:
        made = thread.submit(make)
        if not wait([made], PATIENCE).done:
            _wait_with_dialog(made.done, None, f"{doing} …", window)
        return made.result()


def _wait_with_dialog(
    done: Callable[[], bool], cancel: Callable[[], object] | None, text: str, window: Any
) -> None:
    dialog = QProgressDialog(text, "Cancel" if cancel else "", 0, 0, window)
    dialog.setWindowTitle("napari-xcebra")
    dialog.setMinimumDuration(0)
    dialog.setModal(True)
    if cancel is None:
        dialog.setCancelButton(None)
    else:
        dialog.canceled.connect(cancel)
    loop, timer = QEventLoop(), QTimer()
    timer.timeout.connect(lambda: done() and loop.quit())
    timer.start(30)
    dialog.show()
    loop.exec()
    timer.stop()
    if cancel is not None:
        dialog.canceled.disconnect()
    dialog.close()
    dialog.deleteLater()


def recognised(path: Path, viewer: Any) -> bool:
    """Whether a specific format, not one for any array or table, recognises the path.

    A file that cannot even be looked into counts as recognised: opening it says what is wrong.
    """
    return _answer(is_recording, path, viewer)


def has_poses(path: Path, viewer: Any) -> bool:
    """Whether it is a file of poses."""
    return _answer(is_pose, path, viewer)


def has_movie(path: Path, viewer: Any, recording: Recording | None) -> bool:
    """Whether it is a movie that may be that of the recording in front."""
    return (
        recording is not None
        and may_be_of(path, recording)
        and not recognised(path, viewer)
        and _answer(is_movie, path, viewer)
    )


def _answer(ask: Callable[[Path], bool], path: Path, viewer: Any) -> bool:
    if path.is_dir() or not needs_library(path):
        return ask(path)  # by names and first bytes
    about = path.stat()
    key = ask, path.absolute(), about.st_mtime_ns, about.st_size
    if key not in _ANSWERS:
        try:
            answer = bool(read_now(question(ask, path), viewer))
        except Stopped:
            return False
        except InputError:
            answer = True
        if len(_ANSWERS) >= REMEMBERED:
            _ANSWERS.pop(next(iter(_ANSWERS)))
        _ANSWERS[key] = answer
    return _ANSWERS[key]


MOST_BYTES = 128 * 2**20
"""Traces that are kept."""


class ColumnReader:
    """Traces by cell.

    `ready` is called in the window's thread when missing traces have been read, or cannot be.
    """

    def __init__(self, ready: Callable[[], object]) -> None:
        self._ready = ready
        self._traces: np.ndarray | LazyTraces | None = None
        self._kept: OrderedDict[int, np.ndarray] = OrderedDict()
        self._asked: set[int] = set()
        self._problems: dict[int, str] = {}
        self._closed = False

    def columns(self, recording: Recording, cells: Sequence[int]) -> dict[int, np.ndarray]:
        """Traces, (frames,) float32 each, that are at hand; the others are fetched."""
        if recording.traces is not self._traces:
            self._traces = recording.traces
            self._kept.clear()
            self._asked, self._problems = set(), {}
        missing = [cell for cell in cells if cell not in self._kept]
        if missing and isinstance(recording.traces, LazyTraces):
            self._fetch(recording.traces, [cell for cell in missing if cell not in self._asked])
        else:
            # rows of a large array lie far apart: a column is copied once
            self._keep({c: np.ascontiguousarray(recording.traces[:, c]) for c in missing}, cells)
        return {cell: self._kept[cell] for cell in cells if cell in self._kept}

    def problem(self, cells: Sequence[int]) -> str:
        """Why some of these cells cannot be read, in a sentence; empty if all can."""
        return next((self._problems[cell] for cell in cells if cell in self._problems), "")

    def close(self) -> None:
        """Stop calling back."""
        self._closed = True

    def _fetch(self, traces: LazyTraces, cells: list[int]) -> None:
        if not cells:
            return
        self._asked.update(cells)

        def read() -> tuple[dict[int, np.ndarray], dict[int, str]]:
            columns, problems = {}, {}
            for cell in cells:
                try:
                    columns[cell] = np.ascontiguousarray(traces[:, cell])
                except InputError as error:
                    problems[cell] = str(error)
            return columns, problems

        def done(read: tuple[dict[int, np.ndarray], dict[int, str]]) -> None:
            if self._traces is traces and not self._closed:
                columns, problems = read
                # cells that failed count as asked for: they would fail again at every refresh
                self._asked.difference_update(columns)
                self._problems |= problems
                self._keep(columns, list(columns))
                self._ready()

        def failed(sentence: str, _: str) -> None:
            done(({}, dict.fromkeys(cells, sentence)))

        in_background(read, done, failed)

    def _keep(self, columns: dict[int, np.ndarray], wanted: Sequence[int]) -> None:
        self._kept.update(columns)
        for cell in wanted:
            if cell in self._kept:
                self._kept.move_to_end(cell)
        size = sum(column.nbytes for column in self._kept.values())
        while size > MOST_BYTES and len(self._kept) > len(wanted):
            size -= self._kept.popitem(last=False)[1].nbytes


NO_MOVIE = "No movie: there are no clips of its transients."
KEPT = 8
"""Cells whose clips are kept."""


@dataclass(frozen=True, eq=False)
class CellStudy:
    """What was found about a cell.

    Parameters
    ----------
    neighbors : sequence of (Neighbor, float)
        With the correlation of their traces to that of the cell, the most alike first.
    clips : Clips or None
    why_no_clips : str
        In a short sentence; empty if there are some.
    """

    neighbors: tuple[tuple[Neighbor, float], ...]
    clips: Clips | None
    why_no_clips: str = ""


def _study(
    recording: Recording, shapes: CellShapes, cell: int, stopped: Callable[[], bool]
) -> CellStudy:
    """Read traces and movie around a cell; `stopped` is asked between two reads."""
    near = shapes.neighbors(cell)
    traces = recording.traces[:, np.array([cell, *(each.cell for each in near)])]
    alike = [
        (each, correlation(traces[:, 0], traces[:, i])) for i, each in enumerate(near, start=1)
    ]
    ranked = sorted(alike, key=lambda found: -np.nan_to_num(found[1], nan=-2))
    try:
        clips = read_clips(recording, shapes, cell, traces[:, 0], stopped)
    except InputError as error:
        return CellStudy(tuple(ranked), None, str(error))
    none = "No clear transients." if recording.movie else NO_MOVIE
    return CellStudy(tuple(ranked), clips, "" if clips else none)


class CellStudies(OfState):
    """Studies the cell that was asked for last, then the one that comes next."""

    ready = Signal(int)
    """The study of this cell is there."""

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self._kept: OrderedDict[int, CellStudy] = OrderedDict()
        self._wanted: tuple[int, ...] = ()
        self._busy = False
        state.recording_changed.connect(self._forget)

    def of(self, cell: int) -> CellStudy | None:
        """What is known of a cell; None before it was studied."""
        return self._kept.get(cell)

    def ask(self, cell: int, following: int | None = None) -> None:
        """Study a cell, and then the following one; what was asked before is dropped."""
        self._wanted = (cell,) if following is None else (cell, following)
        self._go_on()

    def _go_on(self) -> None:
        opened = self.state.current if self.state_open else None
        missing = [cell for cell in self._wanted if cell not in self._kept]
        if self._busy or opened is None or not missing:
            return
        cell, recording, shapes = missing[0], opened.recording, opened.shapes
        self._busy = True

        def stopped() -> bool:
            return cell not in self._wanted

        def done(found: CellStudy | None) -> None:
            self._busy = False
            current = self.state.current if self.state_open else None
            if current is None:
                return
            if found is not None and current.recording is recording:
                self._kept[cell] = found
                while len(self._kept) > KEPT:
                    self._kept.popitem(last=False)
                self.ready.emit(cell)
            self._go_on()

        def failed(sentence: str, _: str) -> None:
            done(CellStudy((), None, sentence))

        def work() -> CellStudy | None:
            try:
                return _study(recording, shapes, cell, stopped)
            except Stopped:
                return None

        in_background(work, done, failed)

    def _forget(self) -> None:
        self._kept.clear()
        self._wanted = ()


class CallChecks(OfState):
    """Measures the ROIs of the recording in front, and tells the queue which calls are doubtful.

    Also proposes decisions, once asked to, after each decision by hand.
    """

    changed = Signal()
    """Doubts or proposals are others."""

    def __init__(self, state: State, curations: Curations, queue: CellQueue) -> None:
        super().__init__(state)
        self._curations, self._queue = curations, queue
        self._measured: tuple[Recording, CellEvidence] | None = None
        self._judged: tuple[Attribution | None, float] | None = None
        self._learned = b""
        self._busy = False
        self.proposal: Proposal | None = None
        self.why_none = ""
        """Why there is no proposal, in a sentence."""
        self.failed = ""
        state.front_changed.connect(self._forget)

    def ask(self, *, proposal: bool) -> None:
        """Find out what is not known yet of the recording in front."""
        opened = self.state.current if self.state_open else None
        if self._busy or opened is None or self.failed:
            return
        recording, before = opened.recording, self._measured
        evidence = before[1] if before is not None and before[0] is recording else None
        calls = self._curations.extractor(opened)
        painted = None if self.state.shown.blind else shown_map(self.state)
        about = painted.attribution if painted else None, self.state.shown.threshold
        curation = self._curations.of(opened)
        status, by_hand = curation.status, curation.by_hand
        last = self._judged or (None, np.nan)
        judge = evidence is None or last[0] is not about[0] or last[1] != about[1]
        taught = np.where(by_hand, status, 0).tobytes()
        learn = proposal and (evidence is None or self._learned != taught)
        if not judge and not learn:
            return
        self._busy = True

        def work() -> tuple[CellEvidence, Doubts | None, Proposal | None, str]:
            found = measure(recording, lambda: self.state.closed) if evidence is None else evidence
            doubts = _doubts(recording, found, calls, *about) if judge else None
            if not learn:
                return found, doubts, None, ""
            try:
                return found, doubts, propose(found, status, by_hand, calls), ""
            except InputError as error:
                return found, doubts, None, str(error)

        def done(found: tuple[CellEvidence, Doubts | None, Proposal | None, str]) -> None:
            self._busy = False
            if not self.state_open or self.state.current is not opened:
                return
            measured, doubts, learned, why_none = found
            self._measured = recording, measured
            if learn:
                self._learned, self.proposal, self.why_none = taught, learned, why_none
            if doubts is not None:
                self._judged = about
                self._queue.measured = measured.own(recording)
                self._queue.doubts = doubts
            self.changed.emit()

        def failed(sentence: str, _: str) -> None:
            self._busy = False
            self.failed = sentence
            self.changed.emit()

        in_background(work, done, failed)

    def _forget(self) -> None:
        self._measured = self._judged = None
        self._learned = b""
        self.proposal, self.why_none, self.failed = None, "", ""
        self._queue.measured, self._queue.doubts = {}, None


def _doubts(
    recording: Recording,
    evidence: CellEvidence,
    calls: np.ndarray,
    attribution: Attribution | None,
    threshold: float,
) -> Doubts:
    """Doubts by the evidence, and by a map where it was made by two routes."""
    routes = {}
    if attribution is not None and {"from_variables", "from_encoder"} <= set(attribution.details):
        for factor in attribution.factors:
            painted = ScoreMap(attribution, factor, None, "")
            if not painted.at_chance:
                both = [attribution.detail(factor, f"from_{r}") for r in ("variables", "encoder")]
                routes[factor] = np.where(painted.above(threshold), both, np.nan)
    return find_doubts(recording, evidence, calls, routes)
