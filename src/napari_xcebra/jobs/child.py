"""Runs calls in the child process, until the window is gone."""

from __future__ import annotations

import _thread
import contextlib
import ctypes
import faulthandler
import gc
import os
import queue
import shutil
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from napari_xcebra.jobs import failures
from napari_xcebra.jobs.events import Advanced, Event, Finished, Outcome, Sketched, Started
from napari_xcebra.jobs.limits import within
from napari_xcebra.jobs.sending import EVENT, IDLE, JOB, STOP, Borrower, Channel
from napari_xcebra.support.leftovers import give_back_memory
from napari_xcebra.support.logs import LOGGER, start_logging

INTERVAL = 1 / 15
"""Seconds between two reports, so that the window is not flooded."""
FAREWELL = 1.0
"""Seconds that a running call has to clean up when the window is gone."""
PR_SET_PDEATHSIG = 1
"""Of Linux: choose the signal that the end of the parent sends."""


def main(folder: str, parent: int, warm_up: str = "computing") -> None:
    """Serve until the window is gone.

    Parameters
    ----------
    folder : str
        For large arrays; removed at the end.
    parent : int
        Process of the window.
    warm_up : {"computing", "reading"}
        What to import ahead of the first call.
    """
    _wake_without_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _exit)
    faulthandler.enable()
    start_logging("background")
    if warm_up == "computing":
        _step_back()
    # torch makes a folder for compiled code, which we have none of, when it is imported
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", folder)
    code = 1
    try:
        _Child(_channel(), Path(folder)).serve(parent, _WARM_UPS[warm_up])
        code = 0
    except BrokenPipeError:
        pass  # the window is gone
    except Exception:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        # nothing is left to be done, and torch takes its time
        os._exit(code)


def _wake_without_parent() -> None:
    """Have the system continue this process, should it be stopped, when the window dies: to leave.

    Elsewhere than on Linux, the next start of any window ends it.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGCONT)


def _step_back() -> None:
    """Let the window go first when both want a core: it has little to do, and a user waits."""
    with contextlib.suppress(OSError, AttributeError):
        if os.name == "nt":
            psutil.Process().nice(psutil.BELOW_NORMAL_PRIORITY_CLASS)
        else:
            os.nice(5)


class _Child:
    """One call at a time in the main thread, while another thread listens."""

    def __init__(self, channel: Channel, folder: Path) -> None:
        self._channel, self._folder = channel, folder
        self._borrower = Borrower(folder)
        self._calls: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._stopped = threading.Event()

    def serve(self, parent: int, warm_up: Callable[[], None]) -> None:
        """Run calls until the window, process `parent`, is gone."""
        threading.Thread(target=self._listen, daemon=True).start()
        threading.Thread(target=self._watch_parent, args=[parent], daemon=True).start()
        self._channel.greet()
        with contextlib.suppress(Exception):  # a call will meet it too, and there is whom to tell
            warm_up()
        gc.freeze()  # modules stay; collecting the leavings of a call need not go through them
        self._tell_idle()
        while (payload := self._calls.get()) is not None:
            self._tell_outcome(self._outcome(payload))
            del payload
            _release_memory()
            self._tell_idle()

    def tell(self, event: Event) -> None:
        """Send an event to the window."""
        self._channel.send(EVENT, self._borrower.pack(event))

    def stop(self) -> bool:
        """Whether the running call should stop."""
        return self._stopped.is_set()

    def _listen(self) -> None:
        while (message := self._channel.receive()) is not None:
            kind, payload = message
            if kind == JOB:
                # a request to stop that came too late for the last call is not for this one
                self._stopped.clear()
                self._calls.put(payload)
            elif kind == STOP:
                self._stopped.set()
        self._leave()

    def _watch_parent(self, parent: int) -> None:
        # the pipe does not close if a fork of the window still holds it
        while os.getppid() == parent:
            time.sleep(0.5)
        self._leave()

    def _leave(self) -> None:
        """Let the main thread clean up and exit; if it does not, exit without."""
        self._calls.put(None)
        _thread.interrupt_main(signal.SIGTERM)
        time.sleep(FAREWELL)
        shutil.rmtree(self._folder, ignore_errors=True)
        os._exit(1)

    def _outcome(self, payload: bytes) -> Outcome:
        try:
            folder, call = self._borrower.unpack(payload)
        except Exception as error:
            failed = failures.from_exception(
                error, "Receiving the call", "use fewer cells or frames"
            )
            failures.log(failed)
            return failed
        with contextlib.suppress(OSError):
            os.chdir(folder)
        self.tell(Started())
        began = time.monotonic()
        with within(call.limits):
            outcome: Outcome = call.outcome(_Reporter(self))
        if isinstance(outcome, Finished):
            LOGGER.info("%s: done in %.1f s", call.doing, time.monotonic() - began)
        return outcome

    def _tell_outcome(self, outcome: Event) -> None:
        try:
            self.tell(outcome)
        except BrokenPipeError:
            raise
        except Exception as error:
            self.tell(failures.from_exception(error, "Handing over the result", "ask for less"))

    def _tell_idle(self) -> None:
        self._channel.send(IDLE, str(psutil.Process().memory_info().rss).encode())


class _Reporter:
    """Passes on the first and last report, changes of phase, and otherwise a few a second."""

    def __init__(self, child: _Child) -> None:
        self._child = child
        self._last, self._phase = -INTERVAL, ""

    def __call__(self, advanced: Advanced | Sketched) -> None:
        """Tell the window, unless it was told a moment ago."""
        if isinstance(advanced, Sketched):
            self._child.tell(advanced)
            return
        now = time.monotonic()
        due = now - self._last >= INTERVAL or advanced.done == advanced.total
        if due or advanced.phase != self._phase:
            self._child.tell(advanced)
            self._last, self._phase = now, advanced.phase

    def stop(self) -> bool:
        """Whether the call should stop."""
        return self._child.stop()


def _channel() -> Channel:
    """Reserve standard input and output for messages; what is printed goes to standard error."""
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return Channel(source, sink)


def _import_computing() -> None:
    """Import what trainings and scores need, while the user is still choosing."""
    import napari_xcebra.attribution.over_time
    import napari_xcebra.attribution.scoring
    import napari_xcebra.learn.fitting  # noqa: F401


def _import_reading() -> None:
    """Import what opens files; it takes a third of the time that torch does."""
    # arrow's own allocator sets aside a GB at a time, which would count as memory in use
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    import napari_xcebra.io.opening  # noqa: F401
    from napari_xcebra.io.discovery import formats_of

    formats_of("recording"), formats_of("behaviour file")


_WARM_UPS = {"computing": _import_computing, "reading": _import_reading}


def _release_memory() -> None:
    """Give back what the last call used, above all on the GPU."""
    give_back_memory()
    torch = sys.modules.get("torch")
    if torch is None:
        return
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()
    if torch.backends.mps.is_available():
        torch.mps.empty_cache()


def _exit(*_: Any) -> None:
    sys.exit(1)
