"""Does anything grow in a window that is used all day? Driven for as long as one likes.

Round after round in a real window: a recording is opened, a training begun and cancelled, another
trained to the end, every factor and both methods looked at, scores played over time, cells decided
on and taken back, docks closed and opened again. After some rounds the window is closed and another
one opened. After each round: memory of the window and of the child process, threads, open files,
processes, and how late the event loop was.

    xvfb-run -a -s "-screen 0 1600x1000x24" python benchmarks/soak.py [--minutes 30]

Recordings are not closed one by one within a window, since software GL may crash when layers are
removed; that happens with the window.
"""

from __future__ import annotations

import argparse
import gc
import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import napari
import numpy as np
import psutil
from qtpy.QtWidgets import QApplication
from report import header, row
from responsiveness import Lag

from napari_xcebra.recording import Recording
from napari_xcebra.simulate import field
from napari_xcebra.widgets.session import Session, session_of
from napari_xcebra.widgets.workspace import DOCKS, docked_widget, full_name, open_workspace

MB = 2**20
SETTLED = 0.3
"""Share of the rounds in which what is only made once is made; growth is measured after it."""


@dataclass(frozen=True)
class Measured:
    """What was there at the end of a round."""

    window: int
    round: int
    own: float
    """MB of the window's process."""
    child: float
    """MB of its child."""
    threads: int
    files: int
    processes: int
    objects: int
    late: float
    """Seconds by which the event loop was late at most, over the round."""
    turn: float
    """Processor seconds of its longest turn."""


class Window:
    """A window, and what is done in it again and again."""

    def __init__(self, recording: Recording, steps: int) -> None:
        self.viewer = napari.Viewer()
        self.session: Session = session_of(self.viewer)
        self.steps = steps
        self.lag = Lag()
        self.late, self.turn = 0.0, 0.0
        open_workspace(self.viewer)
        self.session.show(recording)
        self.live(lambda: self.session.recording is not None)

    def live(self, until: Callable[[], object], timeout: float = 300) -> None:
        """Let the window live until something has happened."""
        lags = self.lag.measure(until, timeout)
        if not until():
            raise TimeoutError("the window did not come so far")
        self.late = max(self.late, float(lags.max(initial=0)))
        self.turn = max(self.turn, max(self.lag.turns, default=0.0))

    def rest(self, seconds: float) -> None:
        """Let the window live for a while."""
        end = time.monotonic() + seconds
        self.live(lambda: time.monotonic() > end)

    def dock(self, name: str) -> Any:
        """The widget in a dock."""
        return self.viewer.window.dock_widgets[full_name(name)]

    def go_round(self) -> None:
        """Do everything once."""
        self.late = self.turn = 0.0
        train, session = self.dock("Train"), self.session
        train.form.value = replace(train.form.value, steps=100_000)
        train.train()
        self.live(lambda: train.progress.value() > 0)
        train.cancel()
        self.live(lambda: not train.busy)
        train.form.value = replace(train.form.value, steps=self.steps)
        train.train()
        self.live(lambda: not train.busy and session.shown_run and session.shown_run.complete)
        self._look()
        self._decide()
        for run in session.runs:
            session.remove_run(run.name)
        self._close_docks()

    def _look(self) -> None:
        """Every factor by both methods, single cells, and scores over time."""
        session = self.session
        run = session.shown_run
        assert run is not None
        for method, attribution in run.attributions.items():
            for factor in attribution.factors:
                session.shown = replace(session.shown, method=method, factor=factor)
                self.rest(0.1)
        scores = session.scores
        assert scores is not None
        session.select(np.argsort(-np.nan_to_num(scores))[:4])
        self.rest(0.3)
        gradient = replace(session.shown, method="inverted-neuron-gradient", over_time=True)
        session.shown = gradient
        for frame in range(0, 300, 10):
            session.frame = frame
            self.rest(0.03)
        session.shown = replace(session.shown, over_time=False)
        self.rest(0.1)

    def _decide(self) -> None:
        """Decide on some cells, and take it back."""
        curate = self.dock("Curate")
        keys = ["accept", "reject", "accept", "undecided"]
        for key in keys:
            curate.act(key)
            self.rest(0.05)
        for _ in keys:
            curate.act("undo")
            self.rest(0.05)

    def _close_docks(self) -> None:
        """Close every dock and open the workspace again."""
        for name in DOCKS:
            dock = docked_widget(self.viewer, name)
            if dock is not None:
                self.viewer.window.remove_dock_widget(dock.widget())
        self.rest(0.2)
        open_workspace(self.viewer)
        self.rest(0.2)

    def close(self) -> None:
        """End the window and its child."""
        self.session.close()
        self.viewer.close()
        self.viewer = self.session = None  # type: ignore[assignment]
        for _ in range(20):
            QApplication.processEvents()
            time.sleep(0.01)


def main() -> None:
    """Go round until the time is over, and print what grew."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--rounds", type=int, default=8, help="rounds in one window")
    parser.add_argument("--cells", type=int, default=60)
    parser.add_argument("--frames", type=int, default=2000)
    parser.add_argument("--steps", type=int, default=40)
    given = parser.parse_args()
    os.environ["NAPARI_XCEBRA_DATA"] = tempfile.mkdtemp()
    recording = field(cells=given.cells, frames=given.frames, shape=(128, 128), seed=0).recording
    end, measured, number = time.monotonic() + 60 * given.minutes, [], 0
    kinds: list[Counter[str]] = []
    left: list[tuple[int, int, int]] = []
    while time.monotonic() < end:
        window = Window(recording, given.steps)
        for turn in range(given.rounds):
            window.go_round()
            measured.append(measure(window, number, turn))
            say(measured[-1])
            kinds.append(Counter(type(thing).__qualname__ for thing in gc.get_objects()))
            if time.monotonic() > end:
                break
        window.close()
        del window
        number += 1
        left.append(remains())
        print(f"closed: {left[-1]}", flush=True)
    report(measured, kinds, left, given)


def measure(window: Window, number: int, turn: int) -> Measured:
    """What is there now."""
    gc.collect()
    me = psutil.Process()
    children = me.children(recursive=True)
    workers = [child for child in children if child.pid == window.session.worker.pid]
    return Measured(
        window=number,
        round=turn,
        own=me.memory_info().rss / MB,
        child=sum(child.memory_info().rss for child in workers) / MB,
        threads=me.num_threads(),
        files=me.num_fds() if hasattr(me, "num_fds") else me.num_handles(),
        processes=len(children),
        objects=len(gc.get_objects()),
        late=window.late,
        turn=window.turn,
    )


def remains() -> tuple[int, int, int]:
    """Sessions, widgets of ours, and processes that outlived a window."""
    for _ in range(3):
        gc.collect()
        QApplication.processEvents()
    sessions = sum(isinstance(thing, Session) for thing in gc.get_objects())
    widgets = sum(
        type(widget).__module__.startswith("napari_xcebra") for widget in QApplication.allWidgets()
    )
    processes = [
        child
        for child in psutil.Process().children(recursive=True)
        # Python's own, which watches for shared memory that is left
        if "resource_tracker" not in " ".join(child.cmdline())
    ]
    return sessions, widgets, len(processes)


def say(now: Measured) -> None:
    """One line a round, for those who watch."""
    print(
        f"window {now.window} round {now.round}: {now.own:.0f} MB + {now.child:.0f} MB, "
        f"{now.threads} threads, {now.files} files, {now.processes} processes, "
        f"{now.objects} objects, {1e3 * now.late:.0f} ms late, turn {1e3 * now.turn:.0f} ms",
        flush=True,
    )


def report(
    measured: list[Measured],
    kinds: list[Counter[str]],
    left: list[tuple[int, int, int]],
    given: argparse.Namespace,
) -> None:
    """Print beginning, end and growth of everything that was measured."""
    print(header("Soak"))
    windows = measured[-1].window + 1
    print(
        f"{given.minutes:g} minutes, {len(measured)} rounds in {windows} windows; "
        f"{given.cells} cells, {given.frames:,} frames; software GL.\n"
    )
    print(row("", "first round", "settled", "last round", "growth a round, settled"))
    print(row(*["---"] * 5))
    settled = int(SETTLED * len(measured))
    for name, title in {
        "own": "memory of the window, MB",
        "child": "memory of its child, MB",
        "threads": "threads",
        "files": "open files",
        "processes": "child processes",
        "objects": "Python objects",
        "turn": "longest turn of the event loop, processor seconds",
    }.items():
        values = np.array([getattr(one, name) for one in measured], float)
        after = values[settled:]
        slope = np.polyfit(np.arange(len(after)), after, 1)[0] if len(after) > 2 else np.nan
        print(row(title, *(f"{v:.4g}" for v in (values[0], after[0], values[-1])), f"{slope:+.3g}"))
    sessions, widgets, processes = left[-1]
    print(
        f"\nLeft after the last window was closed: {sessions} sessions, {widgets} widgets, "
        f"{processes} processes.\n"
    )
    if len(kinds) > settled + 1:
        more = kinds[-1] - kinds[settled]
        rounds = len(kinds) - 1 - settled
        print("Kinds of objects that became most:", end=" ")
        print(", ".join(f"{kind} {n / rounds:+.1f} a round" for kind, n in more.most_common(12)))


if __name__ == "__main__":
    main()
