"""Does anything grow in a window that is used all day? Driven for as long as one likes.

Round after round in a real window, phase by phase:

- open: another recording is read from disk, switched to and from, and closed again;
- train: a training is begun and cancelled, another one trained to the end, the old run deleted;
- look: every factor by both methods, single cells, scores played over time;
- watch: the movie played, beside the heat map of all cells;
- decide: cells decided on close up, with their clips, and taken back;
- docks: all docks closed and opened again.

Each leaves the window as it found it, so that what it adds to memory is what it leaks. Everything
is done from within the event loop, as a click does it: Qt deletes nothing that is given up outside
it. After some rounds the window is closed and another one opened. After each phase: memory of the
window and of its child processes, and how late the event loop was; after each round also objects,
threads, open files and processes.

    xvfb-run -a -s "-screen 0 1600x1000x24" python benchmarks/soak.py [--minutes 30]
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import napari
import numpy as np
import psutil
from qtpy.QtCore import QTimer
from qtpy.QtWidgets import QApplication
from report import header, row, typed
from responsiveness import Lag

from napari_xcebra.io.opening import Opening
from napari_xcebra.recording import Recording
from napari_xcebra.simulate import field
from napari_xcebra.widgets.app.workspace import open_workspace
from napari_xcebra.widgets.controls.napari_window import DOCKS, docked_widget, full_name
from napari_xcebra.widgets.state.state import State
from napari_xcebra.widgets.window import services_of

MB = 2**20
SETTLED = 2
"""Rounds of a window in which what is only made once is made; growth is measured after them."""


@dataclass(frozen=True)
class Phase:
    """What one phase of a round left, and how late the event loop was in it."""

    name: str
    own: float
    """MB by which the window's process grew."""
    child: float
    """MB by which its child processes grew."""
    late: float
    """Seconds by which the event loop was late, 99th percentile."""
    latest: float
    """Seconds by which it was late at most."""
    turn: float
    """Processor seconds of its longest turn."""


@dataclass(frozen=True)
class Round:
    """What was there at the end of a round."""

    window: int
    number: int
    own: float
    """MB of the window's process."""
    child: float
    """MB of its child processes."""
    threads: int
    files: int
    processes: int
    objects: int
    widgets: int
    phases: tuple[Phase, ...]

    @property
    def settled(self) -> bool:
        """Whether growth counts by now."""
        return self.number >= SETTLED


class Window:
    """A window, and what is done in it again and again."""

    def __init__(self, recording: Recording, other: Path, steps: int) -> None:
        self.viewer = napari.Viewer()
        self.state: State = services_of(self.viewer).state
        self.other, self.steps = other, steps
        self.lag = Lag()
        self.lags: list[np.ndarray] = []
        self.turn = 0.0
        self.do(lambda: open_workspace(self.viewer))
        self.do(lambda: self.state.show(recording))
        self.do(services_of(self.state.viewer).processes.warm_up)
        self.live(lambda: services_of(self.state.viewer).processes.ready())

    # ------------------------------------------------------------ as a user does it

    def do(self, action: Callable[[], object]) -> None:
        """Do something from within the event loop, as a click would."""
        done: list[object] = []

        def act() -> None:
            # what fails must not be waited for
            done.append(None)
            action()

        QTimer.singleShot(0, act)
        self.live(lambda: done)

    def live(self, until: Callable[[], object], timeout: float = 300) -> None:
        """Let the window live until something has happened."""
        self.lags.append(self.lag.measure(until, timeout))
        if not until():
            raise TimeoutError("the window did not come so far")
        self.turn = max(self.turn, max(self.lag.turns, default=0.0))

    def rest(self, seconds: float) -> None:
        """Let the window live for a while."""
        end = time.monotonic() + seconds
        self.live(lambda: time.monotonic() > end)

    def show(self, **what: object) -> None:
        """Show another factor, method or kind of map."""
        self.do(lambda: setattr(self.state, "shown", replace(self.state.shown, **what)))

    def dock(self, name: str) -> Any:
        """The widget in a dock."""
        return self.viewer.window.dock_widgets[full_name(name)]

    # ------------------------------------------------------------ a round

    def go_round(self) -> tuple[Phase, ...]:
        """Do everything once, and measure what each phase left."""
        doing = [self.open, self.train, self.look, self.watch, self.decide, self.docks]
        return tuple(self._measured(phase) for phase in doing)

    def _measured(self, phase: Callable[[], None]) -> Phase:
        before = memory()
        self.lags, self.turn = [], 0.0
        phase()
        self.rest(0.2)
        lags, turn = np.concatenate(self.lags), self.turn
        after = memory()
        grown = [now - then for now, then in zip(after, before, strict=True)]
        late, latest = np.percentile(lags, [99, 100])
        return Phase(phase.__name__, *grown, float(late), float(latest), turn)

    def open(self) -> None:
        """Open another recording from disk, switch, and close it."""
        dock, state = self.dock("Recording"), self.state
        first = state.current
        dock.form.opening = Opening(self.other)
        self.do(dock.open)
        self.do(dock.question.add.click)
        self.live(lambda: state.current is not first)
        self.rest(0.3)
        for opened in [*state.opened, *state.opened]:
            self.do(lambda opened=opened: setattr(state, "current", opened))
            self.rest(0.1)
        self.do(dock.close_recording)
        assert state.opened == [first]

    def train(self) -> None:
        """Begin to train and cancel, train to the end, delete the runs of before."""
        train, state = self.dock("Train"), self.state
        before = [run.name for run in state.runs]
        train.form.value = replace(train.form.value, steps=100_000)
        self.do(train.train)
        self.live(lambda: train.progress.value() > 0)
        self.do(train.cancel)
        self.live(lambda: not train.busy)
        train.form.value = replace(train.form.value, steps=self.steps)
        self.do(train.train)
        self.live(lambda: not train.busy and state.shown_run and state.shown_run.complete)
        for name in before:
            self.do(lambda name=name: state.remove_run(name))

    def look(self) -> None:
        """Every factor by both methods, single cells, and scores over time."""
        state = self.state
        run = state.shown_run
        assert run is not None
        for method, attribution in run.attributions.items():
            for factor in attribution.factors:
                self.show(method=method, factor=factor)
                self.rest(0.1)
        scores = state.scores
        assert scores is not None
        for first in range(0, 8, 2):
            cells = np.argsort(-np.nan_to_num(scores))[first : first + 4]
            self.do(lambda cells=cells: state.select(cells))
            self.rest(0.1)
        self.show(method="inverted-neuron-gradient", over_time=True)
        self.play()
        self.show(over_time=False)

    def watch(self) -> None:
        """Play the movie, with the traces and with the heat map of all cells."""
        self.raise_dock("Attribution")
        cells = self.dock("Cells")
        for panel in (cells.raster, cells.traces):
            self.do(lambda panel=panel: cells.over_time.setCurrentWidget(panel))
            self.play()

    def play(self) -> None:
        """Play a stretch of whatever is shown over time."""
        for frame in range(0, 300, 10):
            self.do(lambda frame=frame: setattr(self.state, "frame", frame))
            self.rest(0.03)

    def decide(self) -> None:
        """Decide on some cells, and take it back."""
        self.raise_dock("Curate")
        curate = self.dock("Curate")
        keys = ["accept", "reject", "accept", "undecided"]
        for key in [*keys, *["undo"] * len(keys)]:
            self.do(lambda key=key: curate.act(key))
            self.rest(0.5)

    def raise_dock(self, name: str) -> None:
        """Bring a dock to the front, as a click on its tab does."""
        dock = docked_widget(self.viewer, name)
        assert dock is not None
        self.do(dock.raise_)

    def docks(self) -> None:
        """Close every dock and open the workspace again."""
        for name in DOCKS:
            self.do(lambda name=name: self._close_dock(name))
        self.rest(0.2)
        self.do(lambda: open_workspace(self.viewer))

    def _close_dock(self, name: str) -> None:
        dock = docked_widget(self.viewer, name)
        assert dock is not None
        self.viewer.window.remove_dock_widget(dock.widget())

    def close(self) -> None:
        """End the window and its child."""
        self.do(self.viewer.close)
        self.viewer = self.state = None  # type: ignore[assignment]
        self.rest(0.2)


def main() -> None:
    """Go round until the time is over, and print what grew."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--rounds", type=int, default=8, help="rounds in one window")
    parser.add_argument("--cells", type=int, default=60)
    parser.add_argument("--frames", type=int, default=2000)
    parser.add_argument("--steps", type=int, default=40)
    given = typed(parser, minutes=0.01, rounds=1, cells=20, frames=600, steps=5)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["NAPARI_XCEBRA_DATA"] = folder
        drive(given, Path(folder))


def drive(given: argparse.Namespace, folder: Path) -> None:
    """Open one window after the other, and go round in each."""
    first, second = (
        field(cells=given.cells, frames=given.frames, shape=(128, 128), seed=seed).recording
        for seed in (0, 1)
    )
    other = second.save(folder / "other.zarr")
    end, rounds = time.monotonic() + 60 * given.minutes, []
    more, left, number = Counter[str](), "", 0
    while time.monotonic() < end:
        window, kinds = Window(first, other, given.steps), Counter[str]()
        for turn in range(given.rounds):
            rounds.append(measure(window, number, turn))
            say(rounds[-1])
            if turn == SETTLED:
                kinds = kinds_of_objects()
            if time.monotonic() > end:
                break
        if turn > SETTLED:
            more = kinds_of_objects()
            more.subtract(kinds)
            more = Counter({kind: n / (turn - SETTLED) for kind, n in more.items()})
        window.close()
        del window
        number += 1
        left = remains()
        print(f"closed; left: {left}", flush=True)
    report(rounds, more, left, given)


# ---------------------------------------------------------------------- measuring


def memory() -> tuple[float, float]:
    """MB that this process and its children hold, after all that is free was given back."""
    gc.collect()
    if sys.platform == "linux":
        # else the allocator keeps what is free, here and there, and it looks like growth
        ctypes.CDLL(None).malloc_trim(0)
    return own_memory(os.getpid()), sum(own_memory(child.pid) for child in children())


def own_memory(pid: int) -> float:
    """MB that a process filled itself; pages of libraries come and go as the system likes."""
    status = Path(f"/proc/{pid}/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if "RssAnon" in line)
        return int(line.split()[1]) / 1024
    return psutil.Process(pid).memory_full_info().uss / MB


def measure(window: Window, number: int, turn: int) -> Round:
    """Go round once, and look what is there."""
    phases = window.go_round()
    own, child = memory()
    me = psutil.Process()
    return Round(
        window=number,
        number=turn,
        own=own,
        child=child,
        threads=me.num_threads(),
        files=me.num_fds() if hasattr(me, "num_fds") else me.num_handles(),
        processes=len(children()),
        objects=len(gc.get_objects()),
        widgets=len(QApplication.allWidgets()),
        phases=phases,
    )


def children() -> list[psutil.Process]:
    """Child processes, without Python's own that watches for shared memory that is left."""
    there = psutil.Process().children(recursive=True)
    return [child for child in there if "resource_tracker" not in " ".join(child.cmdline())]


def kinds_of_objects() -> Counter[str]:
    """How many objects there are of each type."""
    return Counter(type(thing).__qualname__ for thing in gc.get_objects())


def remains() -> str:
    """What outlived a window."""
    for _ in range(3):
        gc.collect()
        QApplication.processEvents()
    sessions = sum(isinstance(thing, State) for thing in gc.get_objects())
    widgets = sum(
        type(widget).__module__.startswith("napari_xcebra") for widget in QApplication.allWidgets()
    )
    return f"{sessions} sessions, {widgets} widgets, {len(children())} processes"


# ---------------------------------------------------------------------- telling


def say(now: Round) -> None:
    """One line a round, for those who watch."""
    phases = ", ".join(
        f"{phase.name} {phase.own:+.1f} {phase.child:+.1f} MB {1e3 * phase.turn:.0f} ms"
        for phase in now.phases
    )
    print(
        f"window {now.window} round {now.number}: {now.own:.0f} MB + {now.child:.0f} MB, "
        f"{now.threads} threads, {now.files} files, {now.processes} processes, "
        f"{now.objects} objects, {now.widgets} widgets; {phases}",
        flush=True,
    )


LEVELS = {
    "own": "memory of the window, MB",
    "child": "memory of its child processes, MB",
    "threads": "threads",
    "files": "open files",
    "processes": "child processes",
    "objects": "Python objects",
    "widgets": "Qt widgets",
}


def report(rounds: list[Round], more: Counter[str], left: str, given: argparse.Namespace) -> None:
    """Print beginning, end and growth of everything that was measured."""
    windows = rounds[-1].window + 1
    print(header("Soak"))
    print(
        f"{given.minutes:g} minutes, {len(rounds)} rounds in {windows} windows; "
        f"{given.cells} cells, {given.frames:,} frames; software GL.\n"
    )
    print(row("", "first round", "last round", "growth a round", "growth a window"))
    print(row(*["---"] * 5))
    for name, title in LEVELS.items():
        levels = [f"{getattr(one, name):.5g}" for one in (rounds[0], rounds[-1])]
        growth = (within(rounds, name), between(rounds, name))
        print(row(title, *levels, *(f"{value:+.3g}" for value in growth)))
    print()
    print_phases(rounds)
    print(f"\nLeft after the last window was closed: {left}.\n")
    print("Kinds of objects that became most in the last window:", end=" ")
    print(", ".join(f"{kind} {n:+.1f} a round" for kind, n in more.most_common(12)))


def within(rounds: list[Round], name: str) -> float:
    """Growth a round between settled rounds of the same window."""
    steps = [
        getattr(after, name) - getattr(before, name)
        for before, after in pairwise(rounds)
        if before.settled and after.window == before.window
    ]
    return float(np.mean(steps)) if steps else np.nan


def between(rounds: list[Round], name: str) -> float:
    """Growth from one window to the next, in the same settled round; the first window is left out,
    in which modules were imported and caches filled."""
    levels = [getattr(one, name) for one in rounds if one.number == SETTLED and one.window > 0]
    return float(np.mean(np.diff(levels))) if len(levels) > 1 else np.nan


def print_phases(rounds: list[Round]) -> None:
    """Print what each phase of a round adds, and how late the event loop was in it."""
    titles = ["window, MB a round", "child, MB a round", "late by, 99 %, ms", "at most, ms"]
    print(row("phase", *titles, "own time of the longest turn, ms"))
    print(row(*["---"] * 6))
    settled = [one.phases for one in rounds if one.settled] or [one.phases for one in rounds]
    for phases in zip(*settled, strict=True):
        grown = [f"{np.mean([getattr(p, what) for p in phases]):+.2f}" for what in ("own", "child")]
        late = f"{1e3 * np.median([phase.late for phase in phases]):.0f}"
        most = [f"{1e3 * max(getattr(p, what) for p in phases):.0f}" for what in ("latest", "turn")]
        print(row(phases[0].name, *grown, late, *most))


if __name__ == "__main__":
    main()
