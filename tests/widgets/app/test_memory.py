"""A closed window gives back what it held."""

import gc
from weakref import ref

import numpy as np
import pytest
from qtpy.QtCore import QEvent
from qtpy.QtWidgets import QApplication
from scored import METHOD, scored_recording, scored_run

from napari_xcebra.recording import Variable
from napari_xcebra.widgets import window
from napari_xcebra.widgets.app.workspace import open_workspace
from napari_xcebra.widgets.controls.napari_window import DOCKS, open_dock
from napari_xcebra.widgets.window import services_of

pytestmark = [pytest.mark.gui, pytest.mark.usefixtures("warm_child")]


def used_window(make_napari_viewer):
    """A window in which everything was looked at; what it holds, by weak references."""
    viewer = make_napari_viewer()
    services = services_of(viewer)
    rng = np.random.default_rng(0)
    behavior = {name: Variable(name, rng.random((200, 1))) for name in "xyv"}
    recording = scored_recording(behavior=behavior)
    held = {"services": ref(services), "state": ref(services.state), "recording": ref(recording)}
    held["traces"] = ref(recording.traces)
    services.state.show(recording)
    open_workspace(viewer)
    run = scored_run()
    run.fit.history.update(step=np.arange(3), penalty=np.ones(3))
    services.state.add_run(run)
    held["fit"], held["scores"] = ref(run.fit), ref(run.attributions[METHOD])
    for name in DOCKS:
        held[name] = ref(open_dock(viewer, name).widget())
    for made in ("painter", "time_painter", "lasso", "run_jobs", "training", "retraining",
                 "statistics", "scores_over_time", "dimension_search", "sweeper"):  # fmt: skip
        held[made] = ref(getattr(services, made))
    QApplication.processEvents()
    return viewer, held


def settle():
    """Let Qt delete what is to be deleted later, and Python what nobody holds."""
    for _ in range(3):
        QApplication.processEvents()
        QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
        gc.collect()


def test_nothing_of_a_closed_window_is_kept(make_napari_viewer):
    viewer, held = used_window(make_napari_viewer)
    viewer.close()
    del viewer
    settle()
    assert [name for name, thing in held.items() if thing() is not None] == []


def test_a_closed_window_gives_memory_back_to_the_system(make_napari_viewer, qtbot, monkeypatch):
    given = []
    monkeypatch.setattr(window, "give_back_memory", lambda: given.append(True))
    viewer = make_napari_viewer()
    services_of(viewer)
    viewer.close()
    del viewer
    settle()
    qtbot.waitUntil(lambda: bool(given), timeout=20_000)
