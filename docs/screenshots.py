"""The pictures of README and docs: drives a real window through the whole journey.

    make screenshots        # or: xvfb-run -a -s "-screen 0 1600x1000x24" python docs/screenshots.py

Writes docs/images/*.png. `--check` trains for a few steps only, to see that the journey works.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import napari
import numpy as np
from qtpy.QtWidgets import QApplication

from napari_xcebra.attribution.methods import DEFAULT
from napari_xcebra.widgets.app.workspace import open_workspace
from napari_xcebra.widgets.controls.napari_window import full_name, open_dock
from napari_xcebra.widgets.window import services_of

IMAGES = Path(__file__).parent / "images"
SIZE = (1600, 1000)


class Journey:
    """A window, and what a user does in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.viewer = napari.Viewer()
        self.viewer.window.resize(*SIZE)
        self.state = services_of(self.viewer).state

    def dock(self, name: str) -> Any:
        """The widget in a dock of ours, brought to the front."""
        open_dock(self.viewer, name)
        return self.viewer.window.dock_widgets[full_name(name)]

    def wait(self, until: Callable[[], object], timeout: float = 300) -> None:
        """Let the window live until something has happened."""
        application, end = QApplication.instance(), time.monotonic() + timeout
        while not until():
            if time.monotonic() > end:
                raise TimeoutError("the window did not come so far")
            application.processEvents()
            time.sleep(0.005)

    def rest(self, seconds: float = 1.5) -> None:
        """Let the window live for a while."""
        end = time.monotonic() + seconds
        self.wait(lambda: time.monotonic() > end)

    def picture(self, name: str) -> None:
        """Write what the window shows now."""
        self.rest()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.viewer.screenshot(str(self.folder / f"{name}.png"), canvas_only=False, flash=False)

    def end(self) -> None:
        """Close the window."""
        services_of(self.viewer).close()
        self.viewer.close()


def main() -> None:
    """Go through the journey and take pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="few steps: shows that it works")
    parser.add_argument("--folder", type=Path, default=IMAGES)
    parser.add_argument("--only-trials", action="store_true", help="the picture of trials alone")
    parser.add_argument("--only-curation", action="store_true", help="those by exception alone")
    given = parser.parse_args()
    # decisions of this journey are nobody's
    os.environ["NAPARI_XCEBRA_DATA"] = tempfile.mkdtemp()
    os.environ["LOGNAME"] = "Ann"
    by_exception(Journey(given.folder))
    if given.only_curation:
        return
    if not given.only_trials:
        from_empty_to_decisions(Journey(given.folder), check=given.check)
    journey = Journey(given.folder)
    open_workspace(journey.viewer)
    journey.viewer.open_sample("napari-xcebra", "choice_task")
    journey.wait(lambda: journey.state.recording is not None)
    around_events(journey)
    hidden_factors(Journey(given.folder))


def hidden_factors(journey: Journey) -> None:
    """Discover what nobody recorded, in three clicks."""
    open_workspace(journey.viewer)
    journey.viewer.open_sample("napari-xcebra", "hard_case")
    journey.wait(lambda: journey.state.recording is not None)
    panel = journey.dock("Train").hidden
    panel.button.click()
    panel.start.click()
    journey.wait(lambda: panel.found is not None, timeout=900)
    panel.table.selectRow(0)
    journey.picture("discover")
    journey.end()


def by_exception(journey: Journey) -> None:
    """Look at doubtful ROIs, then at what a few decisions propose for the others."""
    # the field that proposals are measured on
    sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
    from proposing import field_with_artefacts

    recording, is_cell = field_with_artefacts(300, cells=100, each=10)
    open_workspace(journey.viewer)
    journey.state.show(recording)
    dock = journey.dock("Curate")
    journey.wait(lambda: dock.queue.doubts is not None)
    dock.act("extractor")
    journey.rest(2)
    journey.picture("curate-doubtful")
    for cell in np.random.default_rng(0).permutation(recording.n_cells)[:40]:
        journey.state.select([cell])
        dock.deciding.decide("accepted" if is_cell[cell] else "rejected", step_on=False)
    dock.proposal_fold.button.click()
    journey.state.select([recording.n_cells - 4])
    journey.wait(lambda: "Learned from 40" in dock.proposal.sentence.text())
    journey.rest(2)
    journey.picture("curate-proposal")
    dock.proposal_fold.button.click()
    dock.queue_fold.button.click()
    dock.property_row.column.activated.emit(dock.property_row.column.findData("SNR"))
    dock.property_row.slider.setValue((8.0, dock.property_row.slider.maximum()))
    dock.property_row.paint.click()
    journey.rest(2)
    journey.picture("curate-property")
    journey.end()


def around_events(journey: Journey) -> None:
    """Look at a cell of a task around its event."""
    journey.rest(3)
    journey.state.select([20])
    cells = journey.dock("Cells")
    journey.dock("Recording")
    journey.wait(lambda: cells.events.plot.around is not None)
    cells.events.choose("decision", "choice")
    cells.events.before.setValue(2)
    cells.events.after.setValue(3)
    journey.state.frame = 500
    journey.picture("trials")
    journey.end()


def from_empty_to_decisions(journey: Journey, *, check: bool) -> None:
    """Open, train, look at the scores and judge cells."""
    viewer, state = journey.viewer, journey.state
    open_workspace(viewer)
    journey.picture("1-empty")
    viewer.open_sample("napari-xcebra", "navigating_animal")
    journey.wait(lambda: state.recording is not None)
    journey.picture("2-recording")
    train = journey.dock("Train")
    if check:
        train.form.value = replace(train.form.value, steps=60)
    train.train()
    # the map so far is painted behind the curves
    far = 0.4 * train.form.value.steps
    journey.wait(lambda: train.progress.value() > far and state.painted_live)
    journey.picture("3-training")
    journey.wait(lambda: state.shown.run and not train.busy)
    journey.picture("4-verdict")
    journey.dock("Attribution")
    scores = state.scores
    assert scores is not None
    state.select(np.argsort(-np.nan_to_num(scores))[:4])
    journey.rest(4)
    journey.picture("5-attribution")
    state.frame = state.recording.n_frames // 3 if state.recording else 0
    state.shown = replace(state.shown, over_time=True)
    journey.rest(6)
    journey.picture("6-over-time")
    viewer.window.resize(1280, 800)
    journey.picture("7-small-screen")
    viewer.window.resize(*SIZE)
    viewer.theme = "light"
    journey.picture("8-light")
    viewer.theme = "dark"
    state.shown = replace(state.shown, method=DEFAULT, over_time=False)
    curate = journey.dock("Curate")
    journey.rest()
    for key in ("accept", "tag 1", "accept", "reject", "accept", "undecided", "accept", "reject"):
        curate.act(key)
        journey.rest(0.3)
    journey.rest(3)
    journey.picture("9-curate")
    journey.end()


if __name__ == "__main__":
    main()
