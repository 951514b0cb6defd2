"""Training from the dock: it tells what it does, can be stopped, and survives what may happen."""

import os
import signal
from dataclasses import replace

import numpy as np
import psutil
import pytest
from qtpy.QtCore import Qt
from qtpy.QtWidgets import QApplication, QMessageBox, QPushButton
from scored import scored_recording, scored_run

from napari_xcebra.attribution.methods import FIRST
from napari_xcebra.recording import Recording, Variable
from napari_xcebra.simulate import field
from napari_xcebra.widgets.app.workspace import open_workspace
from napari_xcebra.widgets.controls.napari_window import docked_widget, open_dock
from napari_xcebra.widgets.docks.train.dock import TrainDock
from napari_xcebra.widgets.state.shown import shown_map
from napari_xcebra.widgets.state.state import role_of
from napari_xcebra.widgets.window import services_of

pytestmark = [pytest.mark.gui, pytest.mark.usefixtures("warm_child")]

QUICK = {"steps": 60, "batch_size": 128, "penalty_batch": 32}
LONG = QUICK | {"steps": 100_000, "stop_when_settled": False}


@pytest.fixture(scope="module")
def recording():
    return field(cells=40, frames=3000, seed=0).recording


@pytest.fixture
def dock(make_napari_viewer, recording, qtbot):
    viewer = make_napari_viewer()
    state = services_of(viewer).state
    state.show(recording)
    dock = TrainDock(viewer)
    viewer.window.add_dock_widget(dock, name="Train")
    yield dock
    services_of(state.viewer).close()


def set_(dock, **settings):
    dock.form.value = replace(dock.form.value, **settings)


def wait_idle(dock, qtbot, timeout=60_000):
    qtbot.waitUntil(lambda: not dock.busy, timeout=timeout)


def wait_painted(state, qtbot):
    """Until the first map of a trained run is shown, not one that is provisional."""
    qtbot.waitUntil(lambda: shown_map(state) is not None, timeout=60_000)


def test_a_run_is_trained_scored_and_shown(dock, qtbot):
    set_(dock, **QUICK)
    qtbot.mouseClick(dock.train_button, Qt.MouseButton.LeftButton)
    assert dock.busy
    assert not dock.train_button.isEnabled()
    assert "being trained" in dock.train_button.toolTip()
    wait_painted(dock.state, qtbot)
    (run,) = dock.state.runs
    assert run.complete
    assert set(run.factors) == {"position", "direction", "speed"}
    assert dock.state.shown.method == "both-routes"  # the map to look at first
    assert dock.state.scores.shape == (40,)
    assert "nats" in dock.verdict.text
    assert list(dock.verdict.rows) == ["position", "direction", "speed", "time"]
    assert "λ" in dock.course.facts.text() and not dock.course.unfolded
    assert dock.runs.selected is run
    assert dock.choice.device.text() == "Trains on CPU, 1 thread"
    assert "see which cells" in dock.next.sentence.text()
    assert dock.choice.title == "What to train: position, direction, speed"
    assert not dock.choice.unfolded
    for line in ("position", "direction", "speed", "time", "chance"):
        assert line in dock.course.plot.key.text()  # above the curves, not over them
    wait_idle(dock, qtbot)
    (run,) = dock.state.runs
    assert set(run.attributions) == set(FIRST)
    assert dock.state.shown.method == "both-routes"


def test_a_device_that_is_not_there_is_said_before_training(dock, qtbot):
    set_(dock, device="abacus")
    qtbot.waitUntil(lambda: "abacus" in dock.choice.device.text(), timeout=60_000)
    assert dock.choice.device.text() == "“Device” is 'abacus', which this computer does not have."
    set_(dock, device="cpu", threads=2)
    qtbot.waitUntil(lambda: "Trains on" in dock.choice.device.text(), timeout=60_000)
    assert dock.choice.device.text() == "Trains on CPU, 2 threads"


def scored(name):
    """A run without training, as the list and the verdict need it."""
    run = scored_run(name)
    history = {"step": np.arange(1, 4), "penalty": np.ones(3), "place": np.linspace(6, 5, 3)}
    notes = ("A note on the fit.",)
    return replace(run, fit=replace(run.fit, history=history, notes=notes))


@pytest.fixture
def small_screen(make_napari_viewer, qtbot):
    """All docks in a window of 1280 × 800 pixels, with two runs."""
    viewer = make_napari_viewer(show=True)
    state = services_of(viewer).state
    state.show(scored_recording())
    open_workspace(viewer)
    dock = open_dock(viewer, "Train").widget()
    viewer.window.resize(1280, 800)
    for name in ("run 1", "run 2"):
        state.add_run(scored(name))
    state.shown = replace(state.shown, run="run 2", factor="place")
    dock.choice.unfolded = False
    yield dock
    services_of(state.viewer).close()


def in_sight(dock, widget):
    """Whether all of a widget is shown without scrolling."""
    viewport = dock._area.viewport()
    corner = widget.mapTo(viewport, widget.rect().topLeft())
    return widget.isVisible() and viewport.rect().contains(widget.rect().translated(corner))


def test_the_buttons_stay_under_the_mouse_whatever_is_said_above(small_screen, qtbot):
    dock = small_screen
    places = []
    for change in (
        lambda: None,
        lambda: dock.choice.fold(unfolded=True),
        lambda: dock.factors.tick(),  # says what is missing
        lambda: dock.notice.say("A long notice. " * 20, "problem", "details"),
        lambda: dock.verdict.rows["place"].head.click(),
        lambda: dock.next.say(""),
    ):
        change()
        QApplication.processEvents()  # for the layout
        places.append(dock.train_button.mapTo(dock, dock.train_button.rect().topLeft()))
    assert set(map(str, places)) == {str(places[0])}


def test_on_a_small_screen_runs_and_verdict_are_in_sight(small_screen, qtbot):
    dock = small_screen
    for widget in (dock.runs, dock.verdict):
        qtbot.waitUntil(lambda w=widget: in_sight(dock, w), timeout=10_000)
    assert dock.notice.isVisible() and dock.notice.text == "A note on the fit."
    assert dock.verdict.text.startswith("These cells encode place")
    assert dock.progress.isHidden()


def test_nothing_is_left_of_the_verdict_on_a_run_that_was_deleted(small_screen):
    dock = small_screen
    assert dock.notice.text and dock.verdict.text
    for name in ("run 2", "run 1"):
        dock.state.remove_run(name)
    assert dock.notice.text == dock.verdict.text == ""
    assert dock.verdict.isHidden() and dock.course.isHidden()
    assert dock.next.button.isHidden()


def test_a_run_is_not_deleted_by_a_slip_of_the_hand(small_screen, monkeypatch, qtbot):
    dock = small_screen
    answers = [QMessageBox.StandardButton.No, QMessageBox.StandardButton.Yes]
    monkeypatch.setattr(QMessageBox, "question", lambda *_: answers.pop(0))
    for left in (2, 1):
        qtbot.mouseClick(dock.runs._delete, Qt.MouseButton.LeftButton)
        assert len(dock.state.runs) == left


def test_a_run_is_compared_with_another_from_the_list(small_screen):
    dock = small_screen
    (other,) = dock.runs._others.actions()
    other.trigger()
    assert services_of(dock.state.viewer).painter.beside == ("run 1", "place")
    assert docked_widget(dock.state.viewer, "Attribution") is not None


def test_cancelling_keeps_what_was_learned_and_the_next_run_works(dock, qtbot):
    """However long it takes to measure it."""
    set_(dock, **LONG)
    dock.train()
    qtbot.waitUntil(lambda: dock.progress.value() > 0, timeout=60_000)
    qtbot.mouseClick(dock.cancel_button, Qt.MouseButton.LeftButton)
    assert dock.cancel_button.text() == "Discard"
    assert dock.progress.format() == "stopping: measuring what was learned …"
    assert "press Discard to throw it away" in dock.next.sentence.text()
    wait_idle(dock, qtbot)
    (run,) = dock.state.runs
    assert not run.complete and 0 < run.fit.steps < LONG["steps"] and run.fit.goodness
    short = f"cut short at step {run.fit.steps:,} of 100,000"
    assert short in dock.runs._table.item(0, 2).text() and short in dock.notice.text
    assert dock.state.shown.run == run.name
    assert dock.cancel_button.text() == "Cancel"
    set_(dock, **QUICK)
    dock.train()
    qtbot.waitUntil(lambda: len(dock.state.runs) == 2, timeout=60_000)
    assert dock.state.runs[-1].complete
    wait_idle(dock, qtbot)


def test_cancelling_twice_throws_the_run_away(dock, qtbot):
    set_(dock, **LONG)
    dock.train()
    qtbot.waitUntil(lambda: dock.progress.value() > 0, timeout=60_000)
    for _ in range(2):
        qtbot.mouseClick(dock.cancel_button, Qt.MouseButton.LeftButton)
    wait_idle(dock, qtbot)
    assert dock.state.runs == []
    assert dock.notice.text == "Stopped; nothing of this run is kept."
    assert not [layer for layer in dock.state.viewer.layers if role_of(layer) == "scores"]


def test_a_killed_child_gives_one_sentence_and_leaves_the_session_usable(dock, qtbot):
    set_(dock, **LONG)
    dock.train()
    qtbot.waitUntil(lambda: dock.progress.value() > 0, timeout=60_000)
    for child in psutil.Process().children(recursive=True):
        if "python" in child.name():  # and not the screen of these tests
            os.kill(child.pid, signal.SIGKILL)
    wait_idle(dock, qtbot)
    assert "memory" in dock.notice.text
    assert dock.state.runs == []
    set_(dock, **QUICK)
    dock.train()
    qtbot.waitUntil(lambda: len(dock.state.runs) == 1, timeout=60_000)
    wait_idle(dock, qtbot)


def test_training_goes_on_when_the_dock_is_closed_and_shows_in_the_next(dock, qtbot):
    viewer, state = dock.state.viewer, dock.state
    set_(dock, **QUICK | {"steps": 300, "stop_when_settled": False})
    dock.train()
    qtbot.waitUntil(lambda: dock.progress.value() > 0, timeout=60_000)
    viewer.window.remove_dock_widget(dock)
    again = TrainDock(viewer)
    viewer.window.add_dock_widget(again, name="Train again")
    assert again.busy
    assert "of 300" in again.progress.format()
    wait_painted(state, qtbot)
    assert state.runs[0].complete
    assert "nats" in again.verdict.text


def test_a_sentence_of_the_core_is_shown_as_it_is(dock, qtbot):
    set_(dock, **QUICK, time_latents=60)
    dock.train()
    wait_idle(dock, qtbot)
    assert "latents but only 40 cells" in dock.notice.text


def test_the_button_says_why_it_cannot_be_pressed(dock):
    dock.factors.tick()
    assert not dock.train_button.isEnabled()
    assert dock.train_button.toolTip() == "Tick at least one factor."
    # a tip on a button that does nothing is not found
    assert not dock.why_not.isHidden()
    assert dock.why_not.text() == "Tick at least one factor."
    dock.factors.tick("speed")
    assert dock.train_button.isEnabled()
    assert dock.why_not.isHidden()
    assert "press Train" in dock.next.sentence.text()


def test_variables_that_cannot_be_asked_about_are_named(dock, recording):
    assert dock.factors.left_out.isHidden()
    lamp = Variable("lamp", np.ones(recording.n_frames), "discrete")
    dock.state.change_recording(recording.with_behavior(lamp))
    assert dock.factors.left_out.text() == "Left out: lamp (never changes)."


def test_equipment_copies_and_what_is_too_much_are_not_ticked_and_all_or_none_is_one_click(
    dock, recording, qtbot
):
    """40 cells, with as many variables as a rig logs."""
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(recording.n_frames, 40))
    log = {f"value_{letter}{i}": numbers[:, 8 * i + k] for i in range(5) for k, letter in
           enumerate("abcdefgh")}  # fmt: skip
    log = {"speed": numbers[:, 0], "wheel": 3 * numbers[:, 0] + 1, "sync_2": numbers[:, 1]} | log
    dock.state.show(Recording.from_arrays(recording.traces, recording.rate, log))
    said = dock.factors.left_out.text()
    assert "wheel (the same as speed)" in said and "sync_2 (a signal of the equipment)" in said
    assert "(more latents than cells)" in said
    ticked = dock.factors.factors
    assert "speed" in ticked and not {"wheel", "sync_2"} & ticked.keys()
    assert len(ticked) + dock.form.value.time_latents <= 40
    assert dock.train_button.isEnabled()
    for text, count in (("None", 0), ("All", 43)):
        (button,) = (b for b in dock.factors.findChildren(QPushButton) if b.text() == text)
        qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
        assert len(dock.factors.factors) == count


def test_without_behaviour_it_says_where_to_add_it(dock, recording):
    dock.state.change_recording(replace(recording, behavior={}))
    assert "No behaviour yet" in dock.why_not.text()


def test_without_a_recording_it_says_what_to_do(make_napari_viewer):
    viewer = make_napari_viewer()
    dock = TrainDock(viewer)
    viewer.window.add_dock_widget(dock, name="Train")
    assert "No recording yet" in dock.recording_name.text()
    assert not dock.train_button.isEnabled()
    services_of(viewer).close()


def test_a_variable_that_means_nothing_is_called_at_chance(dock, qtbot, recording):
    train_on_noise(dock, qtbot, recording, np.random.default_rng(0).normal(size=3000))
    assert "noise is at chance" in dock.verdict.text
    assert dock.state.attribution.at_chance("noise")
    assert dock.verdict.rows["noise"].head.word.text() == "at chance"


def test_a_variable_too_slow_to_be_tested_is_not_called_at_chance(dock, qtbot, recording):
    drift = np.cumsum(np.random.default_rng(0).normal(size=3000))
    train_on_noise(dock, qtbot, recording, drift)
    assert "too few to test this against chance" in dock.verdict.text
    assert "noise is at chance" not in dock.verdict.text
    assert not dock.state.attribution.at_chance("noise")
    assert dock.state.runs[0].verdict.startswith("noise not tested")


def train_on_noise(dock, qtbot, recording, noise):
    behaviour = {"noise": noise}
    dock.state.show(Recording.from_arrays(recording.traces, recording.rate, behaviour))
    set_(dock, **QUICK)
    dock.train()
    wait_painted(dock.state, qtbot)


def test_a_run_is_renamed_saved_deleted_and_loaded_again(dock, qtbot, tmp_path):
    set_(dock, **QUICK)
    dock.train()
    wait_painted(dock.state, qtbot)
    dock.runs._table.item(0, 0).setText("my run")
    assert dock.state.runs[0].name == "my run"
    assert dock.state.shown.run == "my run"
    dock.runs.save(tmp_path / "saved")
    qtbot.waitUntil(lambda: "Saved my run" in dock.notice.text, timeout=10_000)
    factor, scores = dock.state.shown.factor, dock.state.scores
    dock.runs.delete()
    assert dock.state.runs == []
    dock.runs.load(tmp_path / "saved")
    qtbot.waitUntil(lambda: len(dock.state.runs) == 1, timeout=10_000)
    loaded = dock.state.runs[0].attributions["both-routes"]
    np.testing.assert_allclose(loaded.score(factor), scores)
