"""Discover in the Train dock: three clicks from a recording to painted cells of a hidden factor."""

from dataclasses import replace

import numpy as np
import pytest
from qtpy.QtCore import Qt
from scipy.signal import lfilter

from napari_xcebra.simulate import field
from napari_xcebra.widgets.docks.train.dock import TrainDock
from napari_xcebra.widgets.state.state import KEY
from napari_xcebra.widgets.window import services_of

pytestmark = [pytest.mark.gui, pytest.mark.usefixtures("warm_child")]


@pytest.fixture(scope="module")
def recording():
    """An imaged field in which 20 of 30 cells rise with one slow state."""
    imaged = field(cells=30, frames=1500, shape=(96, 96), seed=0).recording
    rng = np.random.default_rng(0)
    state = lfilter([1], [1, -0.97], rng.normal(size=1500))
    traces = rng.normal(size=(1500, imaged.n_cells))
    traces[:, :20] += 0.8 * (state / state.std())[:, None]
    return replace(imaged, traces=traces.astype(np.float32))


def test_three_clicks_show_the_cells_of_a_hidden_factor(
    make_napari_viewer, recording, qtbot, tmp_path
):
    viewer = make_napari_viewer()
    services = services_of(viewer)
    services.state.show(recording)
    dock = TrainDock(viewer)
    viewer.window.add_dock_widget(dock, name="Train")
    panel = dock.hidden
    assert not panel.unfolded

    qtbot.mouseClick(panel.button, Qt.MouseButton.LeftButton)
    qtbot.mouseClick(panel.start, Qt.MouseButton.LeftButton)
    assert panel.busy
    assert panel.stop.isEnabled() or services.jobs.waits_for
    qtbot.waitUntil(lambda: panel.found is not None and not panel.busy, timeout=60_000)

    # the first factor is selected: its cells are painted, its course is drawn
    assert panel.table.rowCount() == len(panel.found) == 1
    assert set(range(20)) <= {recording.cell_ids.tolist().index(c) for c in _cells(panel)}
    layer = _layer(viewer, "hidden 1")
    assert layer.visible
    assert np.nanmean(layer.features["score"][1:21]) > np.nanmean(layer.features["score"][21:])
    assert "hidden 1: " in panel.sentence.text()
    assert not panel.course.isHidden()

    # a name, which stays with it as a variable
    panel.table.item(0, 0).setText("arousal")
    assert panel.found.names == ("arousal",)
    assert "arousal" in _layer(viewer, "arousal").name
    panel.use_as_variables()
    assert "arousal" in services.state.recording.behavior
    assert panel.found.names == ("arousal",)

    # what is saved opens again
    panel.save(tmp_path)
    qtbot.waitUntil(lambda: (tmp_path / "hidden-courses.csv").exists(), timeout=20_000)
    panel._found.clear()
    panel.load(tmp_path / "hidden.npz")
    qtbot.waitUntil(lambda: panel.found is not None, timeout=20_000)
    assert panel.found.names == ("arousal",)

    # cancelled, it leaves what there was
    panel.discover()
    panel.stop.click()
    services.jobs.cancel()
    qtbot.waitUntil(lambda: not panel.busy, timeout=60_000)
    assert panel.found.names == ("arousal",)
    services.close()


def _cells(panel):
    return panel.found.cells(panel.found.names[0])


def _layer(viewer, factor):
    (layer,) = [
        each
        for each in viewer.layers
        if each.metadata.get(KEY, {}).get("factor") == factor and each.visible
    ]
    return layer
