"""A map is painted while its run is trained: provisional, and gone or replaced in the end."""

from dataclasses import replace

import numpy as np
import pytest
from scored import METHOD, scored_recording, scored_run

from napari_xcebra.attribution import scoring
from napari_xcebra.jobs import Cancelled, Failed, Finished, Sketched
from napari_xcebra.learn.data.factors import Factor
from napari_xcebra.simulate import field
from napari_xcebra.widgets.docks.attribution.dock import AttributionDock
from napari_xcebra.widgets.docks.train.dock import TrainDock
from napari_xcebra.widgets.state.shown import TRAINING, Asked, painted_map, shown_map
from napari_xcebra.widgets.state.state import role_of
from napari_xcebra.widgets.window import services_of
from napari_xcebra.workspace_file import load_workspace, save_workspace

pytestmark = [pytest.mark.gui, pytest.mark.usefixtures("warm_child")]


def score_layers(state):
    return [layer for layer in state.viewer.layers if role_of(layer) == "scores"]


@pytest.fixture
def asked(state):
    """A run that is being trained on a recording of twelve cells."""
    state.show(scored_recording())
    factors = {"place": Factor(["x", "y"]), "speed": Factor(["v"])}
    return Asked(state.current, "run 1", factors, "2026-11-16T09:30:00")


@pytest.fixture
def dock(viewer, asked):
    dock = AttributionDock(viewer)
    viewer.window.add_dock_widget(dock, name="Attribution")
    return dock


def provisional(seed=0):
    (attribution,) = scored_run(seed=seed).attributions.values()
    return replace(attribution, strengths=dict.fromkeys(attribution.factors, "weak"), fit=None)


def sketch(state, asked, qtbot, done=60, seed=0):
    """What the background process tells, made up."""
    services_of(state.viewer).training._trained(Sketched(provisional(seed), done, 600), asked)
    if state.shown_run is None:
        qtbot.waitUntil(lambda: state.painted_live is not None)


def test_the_map_so_far_is_painted_ranked_and_called_provisional(state, asked, dock, qtbot):
    sketch(state, asked, qtbot)
    (layer,) = score_layers(state)
    assert layer.visible
    assert layer.name == "place · inverted neuron gradient · run 1 (training)"
    assert dock.choice.run.currentText() == "run 1 · training, 10%"
    assert "Provisional" in dock.provisional.text
    assert "no verdict yet" in dock.provisional.text
    assert dock.scores.table.isVisibleTo(dock)
    np.testing.assert_array_equal(state.scores, provisional().score("place"))


def test_the_cells_are_back_when_a_run_comes_to_nothing(state, asked, dock, qtbot):
    (cells,) = (layer for layer in state.viewer.layers if role_of(layer) == "cells")
    sketch(state, asked, qtbot)
    assert not cells.visible
    services_of(state.viewer).training._trained(Cancelled(None), asked)
    assert score_layers(state) == []
    assert cells.visible


def test_a_run_that_is_stopped_too_late_is_called_finished(state, asked, dock):
    told = []
    training = services_of(state.viewer).training
    training.said.connect(lambda sentence, *_: told.append(sentence))
    training._trained(Cancelled(scored_run().fit), asked)
    assert told == [
        "run 1 was finished before it could be stopped. "
        "Press Compute in Attribution to see its map."
    ]


def test_a_new_map_takes_the_place_of_the_one_before(state, asked, dock, qtbot):
    sketch(state, asked, qtbot)
    before = score_layers(state)
    state.shown = replace(state.shown, threshold=1.0, factor="speed")
    sketch(state, asked, qtbot, done=120, seed=1)
    np.testing.assert_array_equal(state.scores, provisional(1).score("speed"))
    assert state.shown.threshold == 1.0
    assert before[0] in score_layers(state)
    assert "after 120 of 600" in dock.provisional.text


def test_nothing_is_offered_that_needs_a_trained_run(state, asked, dock, qtbot, tmp_path):
    sketch(state, asked, qtbot)
    assert not dock.export.isEnabled()
    assert not dock.scores.over_time.follow.isEnabled()
    assert not dock.scores.significance.isVisibleTo(dock)
    assert shown_map(state) is None  # what is exported, walked through and decided by
    save_workspace(state.as_file(), tmp_path / "session")
    assert load_workspace(tmp_path / "session").opened[0].runs == []


def test_a_map_of_another_run_stays_while_the_next_is_trained(state, asked, dock, qtbot):
    state.add_run(scored_run("run 0", created="2026-11-16T08:00:00"))
    state.shown = replace(state.shown, run="run 0", factor="place")
    sketch(state, asked, qtbot)
    assert state.shown.run == "run 0"
    assert dock.choice.run.count() == 2
    dock.choice.run_chosen.emit("run 1")
    assert painted_map(state).provisional
    dock.choice.run_chosen.emit("run 0")
    assert not painted_map(state).provisional
    assert dock.export.isEnabled()


def test_scores_stay_hidden_from_who_judges_blind(state, asked, dock, qtbot):
    state.shown = replace(state.shown, blind=True)
    sketch(state, asked, qtbot)
    assert painted_map(state) is None
    assert not any(layer.visible for layer in score_layers(state))


@pytest.mark.parametrize("ending", [Failed("It failed."), Cancelled(None)])
def test_nothing_is_left_of_a_run_that_came_to_nothing(state, asked, dock, qtbot, ending):
    sketch(state, asked, qtbot)
    services_of(state.viewer).training._trained(ending, asked)
    assert score_layers(state) == []
    assert state.live is None
    assert state.shown.run == ""
    assert "No run yet" in dock.empty.sentence.text()


def test_a_layer_waits_for_the_first_map_hidden_and_goes_if_none_comes(state, asked):
    layers = services_of(state.viewer).painter.layers
    layers.prepare(asked, "place", METHOD, TRAINING)
    (layer,) = score_layers(state)
    assert (layer.name, layer.visible) == (
        "place · inverted neuron gradient · run 1 (training)",
        False,
    )
    services_of(state.viewer).training._trained(Failed("It failed."), asked)
    assert score_layers(state) == []


def test_a_layer_whose_map_never_came_is_that_of_the_next_map(state, asked):
    layers = services_of(state.viewer).painter.layers
    layers.prepare(asked, "place", METHOD, TRAINING)
    before = score_layers(state)
    state.add_run(scored_run("run 0", created="2026-11-16T08:00:00"))
    state.shown = replace(state.shown, run="run 0", factor="speed", method=METHOD)
    assert score_layers(state) == before
    assert before[0].name == "speed · inverted neuron gradient · run 0 (at chance)"
    assert before[0].visible
    layers.prepare(asked, "place", METHOD, TRAINING)
    assert before[0].name == "speed · inverted neuron gradient · run 0 (at chance)"
    assert len(score_layers(state)) == 2


def test_who_stops_early_keeps_the_run_and_no_map_of_half_the_way(state, asked, qtbot):
    sketch(state, asked, qtbot)
    services_of(state.viewer).training._trained(Cancelled(scored_run().fit), asked)
    assert [run.name for run in state.runs] == ["run 1"]
    assert score_layers(state) == []


def test_the_trained_map_takes_over_layer_factor_and_threshold(state, asked, dock, qtbot):
    sketch(state, asked, qtbot)
    state.shown = replace(state.shown, factor="speed", threshold=0.5)
    layer = services_of(state.viewer).painter.layer
    training, run = services_of(state.viewer).training, scored_run()
    training._score = lambda *_: None  # what the background process would be asked for
    training._trained(Finished(run.fit), asked)
    assert painted_map(state).provisional  # until the map is there
    (attribution,) = run.attributions.values()
    training._scored(Finished(attribution), state.current, run.fit, [], show=True)
    assert services_of(state.viewer).painter.layer is layer
    assert layer.name == "speed · inverted neuron gradient · run 1 (at chance)"
    assert (state.shown.factor, state.shown.threshold) == ("speed", 0.5)
    assert state.live is None
    assert not painted_map(state).provisional


def test_a_real_run_is_painted_as_it_learns(viewer, state, qtbot, monkeypatch):
    state.show(field(cells=30, frames=4000, seed=0).recording)
    dock = TrainDock(viewer)
    viewer.window.add_dock_widget(dock, name="Train")
    settings = {"steps": 60, "batch_size": 128, "penalty_batch": 32}
    dock.form.value = replace(dock.form.value, **settings)
    training, told = services_of(viewer).training, []
    hear = training._trained
    # what the child tells waits, however quick it is
    monkeypatch.setattr(training, "_trained", lambda event, asked: told.append((event, asked)))
    dock.train()
    # the layer is there before the first map, as napari takes a turn of the window to insert it
    qtbot.waitUntil(lambda: len(score_layers(state)) == 1, timeout=60_000)
    (layer,) = score_layers(state)
    assert not layer.visible
    qtbot.waitUntil(lambda: any(isinstance(e, Finished) for e, _ in told), timeout=60_000)
    *course, (finished, asked) = told
    for event, _ in course:
        hear(event, asked=asked)
    qtbot.waitUntil(lambda: state.painted_live is not None)
    assert score_layers(state) == [layer] and layer.visible
    qtbot.waitUntil(lambda: "Provisional" in dock.notice.text)
    hear(finished, asked=asked)
    qtbot.waitUntil(lambda: not dock.busy, timeout=60_000)
    assert "These cells encode position" in dock.verdict.text
    assert score_layers(state) == [layer]
    assert "training" not in layer.name
    assert state.attribution.n_frames > scoring.FRAMES


def test_who_does_not_want_it_sees_the_map_in_the_end_alone(viewer, state, qtbot):
    state.show(scored_recording())
    dock = TrainDock(viewer)
    viewer.window.add_dock_widget(dock, name="Train")
    dock.choice.live.setChecked(False)
    again = TrainDock(viewer)
    viewer.window.add_dock_widget(again, name="Train again")
    assert not again.choice.live.isChecked()
    job = dock.training.start(
        state.current, "run", {}, dock.form.value, live=dock.choice.live.isChecked()
    )
    assert job.call.named["live"] == ""
    job.cancel()
