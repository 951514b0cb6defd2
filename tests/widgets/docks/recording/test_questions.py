"""Where a file does not tell which array or axis is what, the dock asks, and offers them."""

import h5py
import numpy as np
import pytest

from napari_xcebra.errors import InputError
from napari_xcebra.readers import read
from napari_xcebra.widgets.controls.napari_window import docked_widget
from napari_xcebra.widgets.docks.recording.dock import RecordingDock
from napari_xcebra.widgets.docks.recording.panels import _most_varied
from napari_xcebra.widgets.plots.pictures import Sparkline

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


RNG = np.random.default_rng(0)
NOISE = RNG.normal(size=(200, 60)).astype(np.float32)


@pytest.fixture
def dock(viewer):
    dock = RecordingDock(viewer)
    viewer.window.add_dock_widget(dock, name="Recording")
    return dock


@pytest.fixture
def unclear(tmp_path):
    np.save(tmp_path / "a.npy", NOISE)
    return tmp_path / "a.npy"


@pytest.mark.parametrize(("first", "shape"), [(True, (60, 200)), (False, (200, 60))])
def test_an_array_that_may_lie_either_way_is_shown_in_both_and_read_as_chosen(
    dock, qtbot, unclear, first, shape
):
    dock.form.path.path = unclear
    dock.form.settings.value = type(dock.form.settings.value)(rate=5.0)
    dock.open_button.click()
    question = dock.footer.which_axis
    qtbot.waitUntil(lambda: not question.isHidden(), timeout=20_000)
    assert "a.npy: which picture" in question.sentence.text()
    assert question.buttons[True].text() == "200 cells × 60 frames"
    assert question.buttons[False].text() == "200 frames × 60 cells"
    for picture in question.pictures.values():
        assert len(picture.findChildren(Sparkline)) == 5
    assert dock.state.recording is None and not dock.is_busy and not dock.notice.text
    question.buttons[first].click()
    qtbot.waitUntil(lambda: dock.state.recording is not None, timeout=20_000)
    assert question.isHidden()
    assert dock.state.recording.traces.shape == shape
    layout = "cells-frames" if first else "frames-cells"
    assert dock.state.current.opening.settings.layout == layout
    assert dock.form.opening.settings.layout == layout
    assert dock.form.opening.settings.rate == 5.0


def test_the_question_goes_when_another_file_is_chosen(dock, qtbot, unclear, tmp_path):
    dock.form.path.path = unclear
    dock.form.settings.value = type(dock.form.settings.value)(rate=5.0)
    dock.open()
    question = dock.footer.which_axis
    qtbot.waitUntil(lambda: not question.isHidden(), timeout=20_000)
    dock.form.path.path = tmp_path / "another.npy"
    assert question.isHidden()


def test_a_file_opened_by_napari_is_asked_about_in_the_dock(viewer, qtbot, tmp_path, monkeypatch):
    monkeypatch.setattr("napari_xcebra.readers._current_viewer", lambda: viewer)
    viewer.window._qt_window.show()
    (tmp_path / "session").mkdir()
    np.savez(tmp_path / "session.npz", traces=NOISE, rate=5.0)
    with pytest.raises(InputError, match="cells-frames"):
        read(str(tmp_path / "session.npz"))
    dock = docked_widget(viewer, "Recording").widget()
    question = dock.footer.which_axis
    qtbot.waitUntil(lambda: not question.isHidden(), timeout=20_000)
    question.buttons[False].click()
    qtbot.waitUntil(lambda: dock.state.recording is not None, timeout=20_000)
    assert dock.state.recording.traces.shape == (200, 60)


def test_a_picture_shows_the_cells_that_vary_most_and_stands_what_is_not_known():
    block = np.zeros((9, 50), np.float32)
    block[[2, 3, 5, 7, 8]] = RNG.normal(size=(5, 50)) * [[1], [2], [3], [4], [5]]
    block[5, :3] = np.nan
    np.testing.assert_allclose(_most_varied(block), np.nan_to_num(block[[2, 3, 5, 7, 8]]))
    assert _most_varied(np.full((2, 4), np.nan)).shape == (2, 4)
