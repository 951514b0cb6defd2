"""How long the window waits when a cell is decided on and the next one comes up.

A real window with the Curate, Attribution and Cells docks. What is measured is the processor time
of the window's own thread, from the press of a key until nothing is left to be done for it:
deciding, writing the journal, outlining, centring, painting the decision and filling the docks.
What the graphics card draws is left out where there is one; without one, its work is in it too.

    xvfb-run -a python benchmarks/curating.py [--cells 10000]
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace

import napari
import numpy as np
from painting import field_of_discs
from qtpy.QtWidgets import QApplication
from report import row, typed

from napari_xcebra.widgets.controls.napari_window import full_name, open_dock
from napari_xcebra.widgets.window import services_of

FIELDS = {1_000: 512, 10_000: 2048}
TIMES = 20


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--cells", type=int, choices=FIELDS, help="only this size")
    only = typed(parser, cells=1000).cells
    print(row("cells", "what", "median ms", "most ms"))
    print(row("---:", "---", "---:", "---:"))
    for cells in [only] if only else FIELDS:
        for what, taken in curated(cells, FIELDS[cells]).items():
            print(row(f"{cells:,}", what, f"{np.median(taken):.1f}", f"{max(taken):.1f}"))


def curated(cells: int, side: int) -> dict[str, list[float]]:
    """Milliseconds of each thing that the user does, several times each."""
    os.environ["NAPARI_XCEBRA_DATA"] = tempfile.mkdtemp()
    recording, run = field_of_discs(cells, side)
    viewer = napari.Viewer(show=True)
    state = services_of(viewer).state
    for name in ("Attribution", "Cells", "Curate"):
        open_dock(viewer, name)
    state.show(recording)
    state.add_run(run)
    state.shown = replace(state.shown, run="run", factor="place")
    dock = viewer.window.dock_widgets[full_name("Curate")]
    settle()
    dock.act("accept")
    settle()
    times = {
        what: timed(lambda name=name: dock.act(name), TIMES)
        for what, name in {
            "accept, next cell": "accept",
            "reject, next cell": "reject",
            "next cell": "next",
            "cell before": "previous",
            "tag": "tag 1",
            "undo": "undo",
        }.items()
    }
    wait_for(lambda: dock.queue.doubts is not None)
    dock.act("extractor")
    settle()
    for what, name in {"by doubt: next": "next", "by doubt: flip, next": "flip"}.items():
        times[what] = timed(lambda name=name: dock.act(name), TIMES)
    dock.act("undo")
    thresholds = iter(np.linspace(0, 1, 5))
    times["accept all above the threshold"] = timed(
        lambda: accept_above(dock, state, float(next(thresholds))), 5
    )
    services_of(state.viewer).close()
    viewer.close()
    return times


def accept_above(dock, state, threshold: float) -> None:  # type: ignore[no-untyped-def]
    """Move the threshold and accept what is above."""
    state.shown = replace(state.shown, threshold=threshold)
    dock.deciding.accept_above()


def timed(call: Callable[[], object], times: int) -> list[float]:
    """Milliseconds of this thread that each call takes, with all that it leads to."""
    taken = []
    for _ in range(times):
        start = time.thread_time()
        call()
        settle()
        taken.append(1e3 * (time.thread_time() - start))
    return taken


def wait_for(ready: Callable[[], bool]) -> None:
    """Let the window go on until something is there."""
    until = time.monotonic() + 300
    while not ready() and time.monotonic() < until:
        QApplication.processEvents()
        time.sleep(0.01)


def settle() -> None:
    """Let the window do what it has to do."""
    for _ in range(3):
        QApplication.processEvents()


if __name__ == "__main__":
    main()
