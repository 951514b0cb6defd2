"""Training is repeated with other seeds from the Attribution dock; its spread is shown and kept."""

from dataclasses import replace

import numpy as np
import pytest
from scored import CELLS, METHOD, UNUSED, scored_recording, scored_run, scored_seeds

from napari_xcebra.attribution import attribute
from napari_xcebra.learn import Factor, FitSettings, fit
from napari_xcebra.recording import Recording, Variable
from napari_xcebra.runs import Run
from napari_xcebra.widgets.docks.attribution.dock import AttributionDock
from napari_xcebra.widgets.docks.curate.dock import _facts_of
from napari_xcebra.widgets.state.state import role_of
from napari_xcebra.widgets.window import services_of

pytestmark = [pytest.mark.gui, pytest.mark.usefixtures("warm_child")]

SLOW = 20_000
CONSENSUS = f"consensus-of-{METHOD}"


@pytest.fixture
def dock(viewer, qtbot):
    dock = AttributionDock(viewer)
    viewer.window.add_dock_widget(dock, name="Attribution")
    return dock


@pytest.fixture
def scored(dock, state):
    """The dock with made-up scores by one seed."""
    state.show(scored_recording())
    state.add_run(scored_run())
    return dock


@pytest.fixture
def repeated(scored, state):
    """The dock with made-up scores by three seeds, of which the last two cells change places."""
    state.replace_run("run 1", state.shown_run.with_stability(scored_seeds(state.shown_run)))
    return scored


def test_a_run_of_several_sessions_is_not_repeated_on_one_of_them(scored, state):
    run = state.shown_run
    joint = replace(run, fit=replace(run.fit, together=("tuesday",)))
    state.replace_run("run 1", joint)
    assert scored.scores.stability.repeat.isHidden()
    assert "Trained together with tuesday" in scored.scores.stability.sentence.text()


@pytest.fixture(scope="module")
def recording():
    rng = np.random.default_rng(0)
    x = rng.normal(size=600)
    traces = rng.normal(size=(600, 8)) + np.arange(8) / 4 * x[:, None]
    return Recording(traces, 10.0, behavior={"x": Variable("x", x)})


@pytest.fixture(scope="module")
def run(recording):
    settings = FitSettings(mode="behavior", steps=20, batch_size=64, hidden_units=16)
    trained = fit(recording, {"x": ["x"]}, settings)
    made = Run("run 1", "2026-11-16T09:30:00", {"x": Factor(["x"])}, trained)
    return made.with_attribution(attribute(trained, recording, METHOD))


def test_repeating_is_offered_with_the_time_that_the_run_itself_took(scored, state):
    row = scored.scores.stability
    assert row.repeat.text() == "Repeat (about 5 s)"  # by its one step, as it was not timed
    run = state.shown_run
    state.replace_run(run.name, replace(run, fit=replace(run.fit, seconds=60.0)))
    row.more.setValue(3)
    assert row.repeat.text() == "Repeat (about 3 min)"
    assert "3 more times" in row.repeat.toolTip() and "about 3 min" in row.repeat.toolTip()
    assert row.only.isHidden() and row.progress.isHidden()


def test_other_seeds_are_trained_in_the_background(dock, state, recording, run, qtbot):
    state.show(recording)
    state.add_run(run)
    row = dock.scores.stability
    row.more.setValue(2)
    row.repeat.click()
    assert row.repeat.isHidden() and not row.progress.isHidden()
    assert dock.compute.isHidden()  # which would show the same progress
    qtbot.waitUntil(lambda: not dock.jobs.busy, timeout=SLOW)
    by_seed = state.shown_run.attributions[METHOD].stability
    assert by_seed.seeds == (0, 1, 2)
    scores = by_seed.score("x")
    np.testing.assert_array_equal(scores[0], run.attributions[METHOD].score("x"))
    assert not np.allclose(scores[0], scores[1]) and not np.allclose(scores[1], scores[2])
    assert row.sentence.text().endswith("of 8 stable over 3 seeds")
    assert CONSENSUS in [dock.choice.method.itemData(i) for i in range(dock.choice.method.count())]
    # more of them, beside those there are
    row.more.setValue(1)
    row.repeat.click()
    qtbot.waitUntil(lambda: not dock.jobs.busy, timeout=SLOW)
    assert state.shown_run.attributions[METHOD].stability.seeds == (0, 1, 2, 3)


def test_repeating_that_is_stopped_can_be_asked_for_again(dock, state, recording, run, qtbot):
    settings = replace(run.fit.settings, steps=1_000_000, stop_when_settled=False)
    endless = replace(run.fit, settings=settings)
    state.show(recording)
    state.add_run(replace(run, fit=endless))
    dock.scores.stability.repeat.click()
    qtbot.waitUntil(lambda: dock.jobs.progress is not None, timeout=SLOW)
    dock.scores.stability.stop.click()
    qtbot.waitUntil(lambda: not dock.jobs.busy, timeout=SLOW)
    assert state.shown_run.attributions[METHOD].stability is None
    assert not dock.scores.stability.repeat.isHidden()
    assert "nothing was kept" in dock.notice.text


def test_the_table_shows_how_far_scores_and_ranks_move(repeated):
    ranking = repeated.scores.table.model.ranking
    assert {"± sd", "ranks", "stable"} <= set(ranking.titles)
    ranks = ranking.columns["rank"].values
    first, second = sorted(ranks[[CELLS - 2, CELLS - 1]])
    assert ranking.text("ranks", CELLS - 1) == f"{first}–{second}"
    assert ranking.text("ranks", 0) == str(ranks[0])
    assert ranking.text("ranks", UNUSED) == ranking.text("± sd", UNUSED) == ""
    # the bar goes from the first rank at the left to the last at the right
    begin, mark, end = ranking.columns["ranks"].bars[:, CELLS - 1]
    assert (begin, end) == ((first - 1) / (CELLS - 2), (second - 1) / (CELLS - 2))
    assert mark in (begin, end)


def test_only_stable_cells_are_shown_if_so_ticked(repeated, state):
    row, model = repeated.scores.stability, repeated.scores.table.model
    assert model.rowCount() == CELLS
    row.only.click()
    stable = state.shown_run.attributions[METHOD].stability.stable("place")
    assert sorted(model.cells) == np.flatnonzero(stable).tolist()
    assert row.sentence.text() == f"{stable.sum()} of {CELLS - 1} stable over 3 seeds"
    opacity = repeated.painter.layer.colormap.colors[1:, 3]
    used = np.arange(CELLS) != UNUSED
    assert (opacity[stable] == 1).all() and (opacity[~stable & used] < 0.5).all()


def test_the_consensus_is_painted_in_a_layer_of_its_own(repeated, state, viewer):
    state.shown = replace(state.shown, method=CONSENSUS)
    shown = [x.name for x in viewer.layers if role_of(x) == "scores" and x.visible]
    assert shown == ["place · consensus of inverted neuron gradient · run 1"]
    chosen = repeated.choice.method.currentText()
    assert chosen == "consensus of inverted neuron gradient (3 seeds)"
    state.shown = replace(state.shown, method=METHOD)
    shown = [x.name for x in viewer.layers if role_of(x) == "scores" and x.visible]
    assert shown == ["place · inverted neuron gradient · run 1"]


def test_single_latents_have_no_spread_since_they_change_from_seed_to_seed(repeated, state):
    state.shown = replace(state.shown, latent=1)
    assert "ranks" not in repeated.scores.table.model.ranking.titles


def test_curation_knows_which_cells_move(repeated, state):
    walk = services_of(state.viewer).queue
    walk.choice = replace(walk.choice, order="instability")
    assert set(walk.queue.order[:2]) == {CELLS - 2, CELLS - 1}
    assert (
        "over 3 seeds: "
        in _facts_of(state, services_of(state.viewer).curations, np.array([0])).scores
    )
    state.shown = replace(state.shown, blind=True)
    assert "instability" not in walk.orders
    assert (
        "seeds" not in _facts_of(state, services_of(state.viewer).curations, np.array([0])).scores
    )
