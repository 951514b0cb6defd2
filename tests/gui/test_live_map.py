"""A map is painted while its run is trained: provisional, and gone or replaced in the end."""

from dataclasses import replace

import numpy as np
import pytest
from scored import METHOD, scored_recording, scored_run

from napari_xcebra.attribution import live as live_maps
from napari_xcebra.jobs import Cancelled, Failed, Finished, Sketched
from napari_xcebra.learn.parts import Factor
from napari_xcebra.sessions import load_session
from napari_xcebra.simulate import field
from napari_xcebra.widgets.attribution_dock import AttributionDock
from napari_xcebra.widgets.layers import role_of
from napari_xcebra.widgets.live_run import Asked
from napari_xcebra.widgets.score_layers import TRAINING
from napari_xcebra.widgets.score_map import painted_map, shown_map
from napari_xcebra.widgets.score_painter import painter_of
from napari_xcebra.widgets.train_dock import TrainDock
from napari_xcebra.widgets.trainer import trainer_of

pytestmark = [pytest.mark.gui, pytest.mark.usefixtures("warm_child")]


def score_layers(session):
    return [layer for layer in session.viewer.layers if role_of(layer) == "scores"]


@pytest.fixture
def asked(session):
    """A run that is being trained on a recording of twelve cells."""
    session.show(scored_recording())
    factors = {"place": Factor(["x", "y"]), "speed": Factor(["v"])}
    return Asked(session.current, "run 1", factors, "2026-11-16T09:30:00")


@pytest.fixture
def dock(viewer, asked):
    dock = AttributionDock(viewer)
    viewer.window.add_dock_widget(dock, name="Attribution")
    return dock


def provisional(seed=0):
    (attribution,) = scored_run(seed=seed).attributions.values()
    return replace(attribution, above_chance=dict.fromkeys(attribution.factors, True), fit=None)


def sketch(session, asked, qtbot, done=60, seed=0):
    """What the background process tells, made up."""
    trainer_of(session)._trained(Sketched(provisional(seed), done, 600), asked)
    if session.shown_run is None:
        qtbot.waitUntil(lambda: session.painted_live is not None)


def test_the_map_so_far_is_painted_ranked_and_called_provisional(session, asked, dock, qtbot):
    sketch(session, asked, qtbot)
    (layer,) = score_layers(session)
    assert layer.visible
    assert layer.name == "place · run 1 (training)"
    assert dock.choice.run.currentText() == "run 1 · training, 10%"
    assert "Provisional" in dock.verdict.text
    assert "no verdict yet" in dock.verdict.text
    assert dock.scores.table.isVisibleTo(dock)
    np.testing.assert_array_equal(session.scores, provisional().score("place"))


def test_the_cells_are_back_when_a_run_comes_to_nothing(session, asked, dock, qtbot):
    (cells,) = (layer for layer in session.viewer.layers if role_of(layer) == "cells")
    sketch(session, asked, qtbot)
    assert not cells.visible
    trainer_of(session)._trained(Cancelled(None), asked)
    assert score_layers(session) == []
    assert cells.visible


def test_a_new_map_takes_the_place_of_the_one_before(session, asked, dock, qtbot):
    sketch(session, asked, qtbot)
    before = score_layers(session)
    session.shown = replace(session.shown, threshold=1.0, factor="speed")
    sketch(session, asked, qtbot, done=120, seed=1)
    np.testing.assert_array_equal(session.scores, provisional(1).score("speed"))
    assert session.shown.threshold == 1.0
    assert before[0] in score_layers(session)
    assert "after 120 of 600" in dock.verdict.text


def test_nothing_is_offered_that_needs_a_trained_run(session, asked, dock, qtbot, tmp_path):
    sketch(session, asked, qtbot)
    assert not dock.export.isEnabled()
    assert not dock.scores.over_time.follow.isEnabled()
    assert not dock.scores.significance.isVisibleTo(dock)
    assert shown_map(session) is None  # what is exported, walked through and decided by
    session.save(tmp_path / "session")
    assert load_session(tmp_path / "session").opened[0].runs == []


def test_a_map_of_another_run_stays_while_the_next_is_trained(session, asked, dock, qtbot):
    session.add_run(scored_run("run 0", created="2026-11-16T08:00:00"))
    session.shown = replace(session.shown, run="run 0", factor="place")
    sketch(session, asked, qtbot)
    assert session.shown.run == "run 0"
    assert dock.choice.run.count() == 2
    dock.choice.run_chosen.emit("run 1")
    assert painted_map(session).provisional
    dock.choice.run_chosen.emit("run 0")
    assert not painted_map(session).provisional
    assert dock.export.isEnabled()


def test_scores_stay_hidden_from_who_judges_blind(session, asked, dock, qtbot):
    session.shown = replace(session.shown, blind=True)
    sketch(session, asked, qtbot)
    assert painted_map(session) is None
    assert not any(layer.visible for layer in score_layers(session))


@pytest.mark.parametrize("ending", [Failed("It failed."), Cancelled(None)])
def test_nothing_is_left_of_a_run_that_came_to_nothing(session, asked, dock, qtbot, ending):
    sketch(session, asked, qtbot)
    trainer_of(session)._trained(ending, asked)
    assert score_layers(session) == []
    assert session.live is None
    assert session.shown.run == ""
    assert "No run yet" in dock.empty.sentence.text()


def test_a_layer_waits_for_the_first_map_hidden_and_goes_if_none_comes(session, asked):
    layers = painter_of(session).layers
    layers.prepare(asked, "place", METHOD, TRAINING)
    (layer,) = score_layers(session)
    assert (layer.name, layer.visible) == ("place · run 1 (training)", False)
    trainer_of(session)._trained(Failed("It failed."), asked)
    assert score_layers(session) == []


def test_a_layer_whose_map_never_came_is_that_of_the_next_map(session, asked):
    layers = painter_of(session).layers
    layers.prepare(asked, "place", METHOD, TRAINING)
    before = score_layers(session)
    session.add_run(scored_run("run 0", created="2026-11-16T08:00:00"))
    session.shown = replace(session.shown, run="run 0", factor="speed", method=METHOD)
    assert score_layers(session) == before
    assert before[0].name == "speed · run 0 (at chance)"
    assert before[0].visible
    layers.prepare(asked, "place", METHOD, TRAINING)
    assert before[0].name == "speed · run 0 (at chance)"
    assert len(score_layers(session)) == 2


def test_who_stops_early_keeps_the_run_and_no_map_of_half_the_way(session, asked, qtbot):
    sketch(session, asked, qtbot)
    trainer_of(session)._trained(Cancelled(scored_run().fit), asked)
    assert [run.name for run in session.runs] == ["run 1"]
    assert score_layers(session) == []


def test_the_trained_map_takes_over_layer_factor_and_threshold(session, asked, dock, qtbot):
    sketch(session, asked, qtbot)
    session.shown = replace(session.shown, factor="speed", threshold=0.5)
    layer = painter_of(session).layer
    trainer, run = trainer_of(session), scored_run()
    trainer._score = lambda *_: None  # what the background process would be asked for
    trainer._trained(Finished(run.fit), asked)
    assert painted_map(session).provisional  # until the map is there
    (attribution,) = run.attributions.values()
    trainer._scored(Finished(attribution), session.current, run.fit, [], show=True)
    assert painter_of(session).layer is layer
    assert layer.name == "speed · run 1 (at chance)"
    assert (session.shown.factor, session.shown.threshold) == ("speed", 0.5)
    assert session.live is None
    assert not painted_map(session).provisional


def test_a_real_run_is_painted_as_it_learns(viewer, session, qtbot):
    session.show(field(cells=30, frames=2000, seed=0).recording)
    dock = TrainDock(viewer)
    viewer.window.add_dock_widget(dock, name="Train")
    settings = {"steps": 60, "batch_size": 128, "penalty_batch": 32}
    dock.form.value = replace(dock.form.value, **settings)
    inserted = []
    viewer.layers.events.inserted.connect(
        lambda event: inserted.append((role_of(event.value), session.live))
    )
    dock.train()
    qtbot.waitUntil(lambda: session.painted_live is not None, timeout=60_000)
    assert inserted == [("scores", None)]  # it was there before the map: inserting takes long
    layer = painter_of(session).layer
    assert layer.visible
    qtbot.waitUntil(lambda: "Provisional" in dock.notice.text, timeout=60_000)
    qtbot.waitUntil(lambda: not dock.busy, timeout=60_000)
    assert "nats" in dock.notice.text
    assert score_layers(session) == [layer]
    assert "training" not in layer.name
    assert session.attribution.n_frames > live_maps.FRAMES


def test_who_does_not_want_it_sees_the_map_in_the_end_alone(viewer, session, qtbot):
    session.show(scored_recording())
    dock = TrainDock(viewer)
    viewer.window.add_dock_widget(dock, name="Train")
    dock.choice.live.setChecked(False)
    again = TrainDock(viewer)
    viewer.window.add_dock_widget(again, name="Train again")
    assert not again.choice.live.isChecked()
    job = dock.trainer.start(
        session.current, "run", {}, dock.form.value, live=dock.choice.live.isChecked()
    )
    assert job.task.live == ""
    job.cancel()
