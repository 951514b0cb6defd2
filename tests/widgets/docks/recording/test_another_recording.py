"""Another recording gets nothing of the one before it, and the user says whether both stay."""

import numpy as np
import pandas as pd
import pytest
from qtpy.QtCore import Qt

from napari_xcebra.io import save_recording
from napari_xcebra.recording import Recording
from napari_xcebra.runs import Run, now
from napari_xcebra.widgets.app.workspace import open_workspace
from napari_xcebra.widgets.docks.recording.dock import RecordingDock
from napari_xcebra.widgets.window import services_of

pytestmark = [pytest.mark.gui, pytest.mark.usefixtures("warm_child")]
LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def animals(tmp_path):
    """Two recordings: one with behaviour in a table, the other at 10 frames per second with its
    own."""
    rng = np.random.default_rng(0)
    np.save(tmp_path / "first.npy", rng.random((900, 6)))
    pd.DataFrame({"time": np.arange(900) / 15, "speed": rng.random(900)}).to_csv(
        tmp_path / "first.csv", index=False
    )
    second = Recording.from_arrays(
        rng.random((1200, 5)), rate=10.0, behavior={"lick": rng.random(1200)}
    )
    save_recording(second, tmp_path / "second.npz")
    return tmp_path


@pytest.fixture
def dock(make_napari_viewer, qtbot, animals):
    """The first animal is open, read at 15 frames per second with an offset."""
    viewer = make_napari_viewer(show=True)
    open_workspace(viewer)
    dock = next(w for w in viewer.window.dock_widgets.values() if isinstance(w, RecordingDock))
    dock.form.settings.widget("rate").setValue(15.0)
    dock.form.settings.widget("offset").setValue(0.5)
    type_path(dock, qtbot, animals / "first.npy")
    dock.form.behavior.add([animals / "first.csv"])
    press(dock.open_button, qtbot)
    read(dock, qtbot)
    assert list(dock.state.recording.behavior) == ["speed"] and dock.state.recording.rate == 15
    yield dock
    services_of(viewer).close()


def type_path(dock, qtbot, path):
    dock.fold.unfolded = True
    line = dock.form.path.box.lineEdit()
    line.selectAll()
    qtbot.keyClicks(line, str(path))


def press(button, qtbot):
    assert button.isVisible() and button.isEnabled()
    qtbot.mouseClick(button, LEFT)


def read(dock, qtbot):
    qtbot.waitUntil(lambda: not dock.is_busy, timeout=20_000)


def test_a_typed_path_clears_behaviour_rate_and_offset_of_the_recording_before(
    dock, qtbot, animals
):
    type_path(dock, qtbot, animals / "second.npz")
    assert dock.form.behavior.paths == ()
    assert (dock.form.settings.value.rate, dock.form.settings.value.offset) == (0.0, 0.0)
    assert dock.notice.text == (
        "Cleared the behaviour and settings of first.npy: they belong to it alone."
    )
    press(dock.open_button, qtbot)
    press(dock.question.add, qtbot)
    read(dock, qtbot)
    assert dock.state.recording.rate == 10 and list(dock.state.recording.behavior) == ["lick"]


def test_what_was_cleared_comes_back_with_its_path(dock, qtbot, animals):
    type_path(dock, qtbot, animals / "second.npz")
    type_path(dock, qtbot, animals / "first.npy")
    assert dock.form.behavior.paths == (animals / "first.csv",)
    assert (dock.form.settings.value.rate, dock.form.settings.value.offset) == (15.0, 0.5)


def test_what_the_user_chose_for_the_next_recording_stays(dock, qtbot, animals):
    pd.DataFrame({"x": np.arange(1200.0)}).to_csv(animals / "next.csv", index=False)
    dock.form.behavior.add([animals / "next.csv"])
    dock.form.settings.widget("behavior_rate").setValue(25.0)
    type_path(dock, qtbot, animals / "second.npz")
    assert dock.form.behavior.paths == (animals / "next.csv",)
    assert dock.form.settings.value.behavior_rate == 25.0
    assert dock.form.settings.value.rate == 0.0


def test_a_rate_that_the_file_denies_is_said(dock, qtbot, animals):
    type_path(dock, qtbot, animals / "second.npz")
    dock.form.settings.widget("rate").setValue(15.0)
    press(dock.open_button, qtbot)
    press(dock.question.replace, qtbot)
    read(dock, qtbot)
    assert "The file says 10 frames per second" in dock.notice.text
    assert "Frame rate" in dock.notice.text  # as the dock calls it


@pytest.mark.parametrize("answer", ["replace", "add", "cancel"])
def test_opening_another_recording_asks_whether_it_replaces_the_first(dock, qtbot, animals, answer):
    (first,) = dock.state.opened
    type_path(dock, qtbot, animals / "second.npz")
    press(dock.open_button, qtbot)
    assert dock.state.opened == [first] and not dock.is_busy
    assert dock.question.sentence.text() == (
        "first.npy is open. Replace it with second.npz, or keep both?"
    )
    press(getattr(dock.question, answer), qtbot)
    read(dock, qtbot)
    names = {"replace": ["second.npz"], "add": ["first.npy", "second.npz"], "cancel": ["first.npy"]}
    assert [opened.name for opened in dock.state.opened] == names[answer]
    assert dock.question.isHidden()
    frames = int(dock.state.viewer.dims.range[0].stop) + 1
    assert frames == (900 if answer == "cancel" else 1200)


def test_unsaved_runs_of_the_recording_to_replace_are_named(dock, qtbot, animals):
    class Fit:
        goodness, factors, parts, notes = {}, (), (), ()

    dock.state.current.runs.append(Run("run 1", now(), {}, Fit()))
    type_path(dock, qtbot, animals / "second.npz")
    press(dock.open_button, qtbot)
    assert "Replacing it loses 1 unsaved run." in dock.question.sentence.text()
    assert dock.question.add.hasFocus() or not dock.isActiveWindow()
    dock.question.withdraw()


def open_from_menu(dock, qtbot, path):
    """File ▸ Open, by its action, with a path chosen in napari's own dialog."""
    window = dock.state.viewer.window._qt_window
    part = window._qt_viewer
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(part, "_open_file_dialog_uni", lambda *_, **__: [str(path)])
        for menu in window.menuBar().actions():
            for action in menu.menu().actions() if menu.menu() else ():
                if action.text().startswith("Open File(s)"):
                    action.trigger()
                    return
    raise AssertionError("napari's File menu has no Open File(s)")


def test_a_behaviour_table_opened_from_the_file_menu_is_added_to_the_recording(
    dock, qtbot, animals
):
    pd.DataFrame({"time": np.arange(900) / 15, "lick": np.arange(900.0)}).to_csv(
        animals / "licks.csv", index=False
    )
    open_from_menu(dock, qtbot, animals / "licks.csv")
    read(dock, qtbot)
    assert set(dock.state.recording.behavior) == {"speed", "lick"}
    assert "Added licks.csv" in dock.notice.text


def test_a_picture_opened_from_the_file_menu_is_naparis(dock, qtbot, animals):
    np.save(animals / "picture.npy", np.zeros((20, 30)))
    open_from_menu(dock, qtbot, animals / "picture.npy")
    assert "picture" in dock.state.viewer.layers


def test_the_same_recording_is_opened_again_without_a_question(dock, qtbot):
    dock.fold.unfolded = True
    press(dock.open_button, qtbot)
    assert dock.question.isHidden()
    read(dock, qtbot)
    assert len(dock.state.opened) == 1
