"""A file with several arrays asks which holds the traces, and offers them."""

import h5py
import numpy as np
import pytest

from napari_xcebra.widgets.docks.recording.dock import RecordingDock

pytestmark = [pytest.mark.gui, pytest.mark.usefixtures("warm_child")]


def test_the_arrays_of_a_file_are_offered_and_the_chosen_one_is_opened(viewer, tmp_path, qtbot):
    path = tmp_path / "worm.h5"
    traces = np.random.default_rng(0).normal(size=(300, 8)).cumsum(axis=0)
    with h5py.File(path, "w") as file:
        file["gcamp/traces_a"], file["gcamp/traces_b"] = traces, traces + 1
        file["behavior/velocity"] = np.sin(np.arange(300))
    dock = RecordingDock(viewer)
    viewer.window.add_dock_widget(dock, name="Recording")
    dock.form.path.path = path
    dock.open_button.click()
    field = dock.form.settings.widget("array")
    qtbot.waitUntil(lambda: field.completer() is not None, timeout=20_000)
    assert "gcamp/traces_a 300 × 8" in dock.notice.text
    model = field.completer().model()
    assert [model.index(row, 0).data() for row in range(model.rowCount())] == [
        "gcamp/traces_a",
        "gcamp/traces_b",
    ]
    assert dock.form.settings.advanced.unfolded
    field.completer().popup().hide()
    field.setText("gcamp/traces_b")
    dock.form.settings.value = type(dock.form.settings.value)(array="gcamp/traces_b", rate=5.0)
    dock.open_button.click()
    qtbot.waitUntil(lambda: dock.state.recording is not None, timeout=20_000)
    np.testing.assert_allclose(dock.state.recording.traces, traces + 1, rtol=1e-5)
    assert set(dock.state.recording.behavior) == {"velocity"}
