"""Reads files of others for a window, in a process that a damaged file may end.

No library opens such a file in the process of the window: libhdf5 can loop for ever over a damaged
file, and a file of a few KB can unpack to GBs.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary, ref

from qtpy.QtCore import QEventLoop, QThreadPool, QTimer
from qtpy.QtWidgets import QProgressDialog

from napari_xcebra import jobs
from napari_xcebra.errors import InputError, Stopped
from napari_xcebra.io.discovery import is_pose, is_recording, needs_library
from napari_xcebra.io.guard import open_task, question
from napari_xcebra.io.movie.opening import is_movie, may_be_of
from napari_xcebra.widgets.controls.napari_window import main_window, real_viewer
from napari_xcebra.widgets.state.preferences import kept_pixel_size

if TYPE_CHECKING:
    from qtpy.QtWidgets import QWidget

    from napari_xcebra.io.opening import Opening
    from napari_xcebra.jobs import Call, Job, Worker
    from napari_xcebra.recording import Recording

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


def with_kept_size(opening: Opening) -> Opening:
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


def made_now(make: Callable[[], Result], doing: str, viewer: Any) -> Result:
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
