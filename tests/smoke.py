"""Drive the installed plugin as a user would, from the Plugins menu to painted cells.

    python tests/smoke.py [--picture FILE]      # under a display, or xvfb-run

Takes nothing from the repository, so that it can be run where only the wheel is installed
(`make wheel-check`). Ends with an error where anything on the way does not happen.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace

import napari
import numpy as np
from qtpy import API_NAME, QT_VERSION
from qtpy.QtWidgets import QApplication

import napari_xcebra
from napari_xcebra.widgets.window import services_of

PLUGIN = "napari-xcebra"


def main() -> None:
    """Open the workspace and a sample, train for a few steps, paint, decide on a cell, close."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--picture", help="file to write what the window shows to")
    given = parser.parse_args()
    os.environ["NAPARI_XCEBRA_DATA"] = tempfile.mkdtemp()
    say(f"{PLUGIN} {napari_xcebra.__version__} in {napari_xcebra.__file__}")
    say(f"napari {napari.__version__}, {API_NAME} with Qt {QT_VERSION}, Python {sys.version[:6]}")

    viewer = napari.Viewer(show=True)
    state = services_of(viewer).state
    viewer.window.add_plugin_dock_widget(PLUGIN, "Workspace")
    wait("docks", lambda: f"Train ({PLUGIN})" in viewer.window.dock_widgets)
    train = viewer.window.dock_widgets[f"Train ({PLUGIN})"]
    curate = viewer.window.dock_widgets[f"Curate ({PLUGIN})"]

    viewer.open_sample(PLUGIN, "navigating_animal")
    wait("recording", lambda: state.recording is not None)
    train.form.value = replace(train.form.value, steps=60)
    train.train()
    wait("training", lambda: state.shown_run is not None and not train.busy)
    wait("both maps", lambda: state.shown_run is not None and state.shown_run.complete)
    scores = state.scores
    assert scores is not None and np.isfinite(scores).any(), "no cell has a score"
    for factor in state.attribution.factors:
        state.shown = replace(state.shown, factor=factor)
    state.select([int(np.nanargmax(scores))])
    curate.act("accept")
    wait("window", lambda: True)
    if given.picture:
        viewer.screenshot(given.picture, canvas_only=False, flash=False)

    child = services_of(state.viewer).processes.worker.pid
    services_of(state.viewer).close()
    viewer.close()
    wait("the background process to end", lambda: not is_alive(child))
    say("From the menu to painted cells and back: all of it worked.")


def wait(what: str, until: Callable[[], object], seconds: float = 300) -> None:
    """Let the window live until something has happened."""
    start = time.monotonic()
    while not until():
        if time.monotonic() > start + seconds:
            raise TimeoutError(f"{what}: not there after {seconds:g} s")
        QApplication.processEvents()
        time.sleep(0.005)
    for _ in range(5):
        QApplication.processEvents()
    say(f"{what}: after {time.monotonic() - start:.1f} s")


def is_alive(pid: int | None) -> bool:
    """Whether a process is still there."""
    import psutil

    return pid is not None and psutil.pid_exists(pid)


def say(line: str) -> None:
    """Print at once, also into a pipe."""
    print(line, flush=True)


if __name__ == "__main__":
    main()
