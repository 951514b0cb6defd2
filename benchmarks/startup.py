"""How long does it take to open a dock as the first one of a napari window?

Each dock is opened in a process of its own, as napari's Plugins menu does it. Beside the clock
stands the processor time of the window's thread, which a busy machine lengthens less.

    xvfb-run -a -s "-screen 0 1600x1000x24" python benchmarks/startup.py [--runs 5]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys

import numpy as np
from report import header, row, typed

DOCKS = ("Recording", "Train", "Attribution", "Curate", "Cells")
TARGET = 1.0
OPEN_ONE = """
import json, sys, time
import napari
from qtpy.QtWidgets import QApplication

viewer = napari.Viewer()
for _ in range(20):
    QApplication.processEvents()
    time.sleep(0.01)
clock, processor = time.perf_counter(), time.thread_time()
_, dock = viewer.window.add_plugin_dock_widget("napari-xcebra", sys.argv[1])
QApplication.processEvents()
dock.repaint()
spent = time.perf_counter() - clock, time.thread_time() - processor
print(json.dumps({"spent": spent, "torch": "torch" in sys.modules}), flush=True)
import os; os._exit(0)
"""


def opened(dock: str) -> tuple[float, float]:
    """Seconds by the clock and of processor time to open a dock in a window without others."""
    command = [sys.executable, "-c", OPEN_ONE, dock]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    said = json.loads(out.splitlines()[-1])
    assert not said["torch"], "torch was imported in the window"
    return tuple(said["spent"])


def main() -> None:
    """Open docks and print how long it took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--docks", nargs="+", default=DOCKS, choices=DOCKS)
    given = typed(parser, runs=1, docks=["Train"])
    print(header("Opening the first dock"))
    print(row("dock", "clock, s: median", "least", "most", "processor, s: median", "< 1 s"))
    print(row(*["---"] * 6))
    for dock in given.docks:
        clock, processor = np.array([opened(dock) for _ in range(given.runs)]).T
        met = "met" if np.median(clock) < TARGET else "**not met**"
        times = np.median(clock), clock.min(), clock.max(), np.median(processor)
        print(row(dock, *[f"{seconds:.2f}" for seconds in times], met), flush=True)


if __name__ == "__main__":
    main()
