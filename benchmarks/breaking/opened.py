"""Opens files in a process that is watched: hangs and memory are counted, not suffered.

Run as a program, it opens recordings as the window does, one after the other, and stands for the
window: one JSON object a line (path, behavior, footprints) is answered by a line, "ready" at the
start, then a word and a sentence for each. Whatever happens to it happens to the window.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from breaking.processes import OwnTime, family_of
from breaking.tally import Tally, World
from napari_xcebra.errors import InputError
from napari_xcebra.io import OpenSettings
from napari_xcebra.io.guard import open_task
from napari_xcebra.io.opening import Opening
from napari_xcebra.jobs import CallFailed, Worker
from napari_xcebra.jobs.limits import COMPUTING as GUARD_SECONDS
from napari_xcebra.recording import Recording
from napari_xcebra.widgets.layers.layers import recording_layers

PATIENCE = 20.0
"""Seconds of its own (see `OwnTime`) that an answer may take, beyond the program's own limit."""
MOST = 2 * 2**30
"""Bytes that the window and its children may take, each."""
ENDED_AT = 3 * 2**30
"""Bytes at which the trial is ended from here."""
INTERVAL = 0.02


@dataclass(frozen=True)
class Outcome:
    """How opening a file went.

    Parameters
    ----------
    word : str
        "recording", "sentence" (an `InputError`), "hang", "memory", "crash", or the name of
        another exception.
    said : str
    seconds : float
    peak : int
        Bytes, the most that the window or one of its children took.
    """

    word: str
    said: str = ""
    seconds: float = 0.0
    peak: int = 0

    @property
    def broken(self) -> str:
        """Column of the table that this belongs to; empty if all is well."""
        if self.word in ("hang", "memory"):
            return self.word
        if self.peak > MOST:
            return "memory"
        return "" if self.word in ("recording", "sentence") else "other"


class Window:
    """A process that opens files as the window does; one that dies or hangs is replaced."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._process: subprocess.Popen[bytes] | None = None

    def opened(
        self, path: Path, behavior: Sequence[Path] = (), footprints: Path | None = None
    ) -> Outcome:
        """Open a recording, and say how it went."""
        process = self._started()
        wanted: dict[str, Any] = {"path": str(path), "behavior": [str(p) for p in behavior]}
        wanted["footprints"] = str(footprints) if footprints else None
        for each in family_of(process.pid):
            _forget_peak(each.pid)
        began = time.monotonic()
        assert process.stdin is not None
        process.stdin.write(json.dumps(wanted).encode() + b"\n")
        process.stdin.flush()
        answer, peak = self._watched(process, PATIENCE + GUARD_SECONDS)
        seconds = time.monotonic() - began
        if answer is None:
            word = "memory" if peak > ENDED_AT else "hang"
            if process.poll() is not None:
                word, answer = "crash", f"crash ended with {process.returncode}"
            self.close()
            return Outcome(word, answer or "", seconds, peak)
        word, _, said = answer.partition(" ")
        return Outcome(word, said, seconds, peak)

    def close(self) -> None:
        """End the process and its children."""
        process, self._process = self._process, None
        if process is None:
            return
        for each in family_of(process.pid):
            with contextlib.suppress(psutil.Error):
                each.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()

    def __enter__(self) -> Window:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        self.close()
        home = str(Path(__file__).parents[1])
        environment = self._world.environment()
        environment["PYTHONPATH"] = os.pathsep.join([home, *filter(None, sys.path)])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "breaking.opened"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            bufsize=0,
        )
        ready, _ = self._watched(self._process, 60)
        if ready != "ready":
            raise RuntimeError("the process that opens files does not start")
        return self._process

    def _watched(self, process: subprocess.Popen[bytes], most: float) -> tuple[str | None, int]:
        """The next answer, or None; and the most memory that a process of the family took."""
        assert process.stdout is not None
        peak, line, own = 0, b"", OwnTime(process.pid)
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while own.look() < most:
                if selector.select(INTERVAL):
                    more = os.read(process.stdout.fileno(), 4096)
                    line += more
                    if line.endswith(b"\n"):
                        return line.decode(errors="replace").strip(), max(peak, _peak(process.pid))
                    if not more:
                        process.wait()
                        return None, peak
                peak = max(peak, _peak(process.pid))
                if peak > ENDED_AT:
                    return None, peak
        return None, peak


def count(tally: Tally, outcome: Outcome, case: str) -> None:
    """Add the outcome of opening a file to a tally."""
    tally.trials += 1
    if outcome.broken:
        how = f"{outcome.word} {outcome.said}"[:90] if outcome.broken == "other" else ""
        tally.broke(outcome.broken, f"{case}{f': {how}' if how else ''}")


def _peak(pid: int) -> int:
    """Most bytes that a process or one of its children took since `_forget_peak`."""
    most = 0
    for each in family_of(pid):
        with contextlib.suppress(OSError, ValueError, IndexError):
            status = Path(f"/proc/{each.pid}/status").read_text()
            of_peak = [line for line in status.splitlines() if line.startswith("VmHWM")]
            most = max(most, int(of_peak[0].split()[1]) * 1024)
    return most


def _forget_peak(pid: int) -> None:
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/clear_refs").write_text("5")


def opening_of(wanted: Mapping[str, Any]) -> Opening:
    footprints = wanted.get("footprints")
    return Opening(
        Path(wanted["path"]),
        tuple(map(Path, wanted.get("behavior", ()))),
        Path(footprints) if footprints else None,
        settings=OpenSettings(rate=10.0),
    )


def shown(recording: Recording) -> str:
    """What the window makes of a recording at once: layers, notes, and one trace."""
    recording_layers(recording)
    recording.traces[:, 0]
    return f"{recording.n_cells} cells, {recording.n_frames} frames, {len(recording.notes)} notes"


def guarded() -> Callable[[Opening], Recording]:
    """Opens recordings with the program's own guard, as the window does."""
    worker = Worker(warm_up="reading")
    worker.start()

    def opened(opening: Opening) -> Recording:
        try:
            return worker.submit(open_task(opening)).result()
        except CallFailed as failed:
            # a sentence about an exception that nobody thought of is none
            if "Traceback" in failed.details:
                raise RuntimeError(failed.details.strip().splitlines()[-1]) from failed
            raise

    return opened


def serve(opened: Callable[[Opening], Recording]) -> None:
    """Answer until there is nothing more to open."""
    answers, sys.stdout = sys.stdout, sys.stderr
    print("ready", flush=True, file=answers)
    for line in sys.stdin:
        try:
            word, said = "recording", shown(opened(opening_of(json.loads(line))))
        except InputError as error:
            word, said = "sentence", str(error)
        except Exception as error:
            word, said = type(error).__name__, str(error)
        print(word, " ".join(said.split())[:300], flush=True, file=answers)


if __name__ == "__main__":
    serve(guarded())
