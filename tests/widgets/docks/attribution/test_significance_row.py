"""Cells are tested against chance from the Attribution dock; q is shown, filtered by and kept."""

from dataclasses import replace

import numpy as np
import pytest
from scored import CELLS, scored_recording, scored_run, scored_test

from napari_xcebra.attribution import attribute
from napari_xcebra.attribution.shift_test.result import SHIFTS
from napari_xcebra.learn import Factor, FitSettings, fit
from napari_xcebra.recording import Recording, Variable
from napari_xcebra.runs import Run
from napari_xcebra.widgets.docks.attribution.dock import AttributionDock
from napari_xcebra.widgets.window import services_of

pytestmark = [pytest.mark.gui, pytest.mark.usefixtures("warm_child")]

FRAMES, TUNED, SLOW = 1200, 8, 20_000


@pytest.fixture
def dock(viewer, qtbot):
    dock = AttributionDock(viewer)
    viewer.window.add_dock_widget(dock, name="Attribution")
    return dock


@pytest.fixture
def scored(dock, state):
    """The dock with made-up scores, which nobody has tested."""
    rng = np.random.default_rng(0)
    behavior = {name: Variable(name, rng.random((200, 1))) for name in ("x", "y", "v")}
    state.show(scored_recording(behavior=behavior))
    state.add_run(scored_run())
    return dock


@pytest.fixture(scope="module")
def recording():
    """The first cells follow x, the others nothing; y rises all the time."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=FRAMES)
    traces = rng.normal(size=(FRAMES, 2 * TUNED))
    traces[:, :TUNED] += 2 * x[:, None]
    behavior = {"x": Variable("x", x), "y": Variable("y", np.linspace(0, 1, FRAMES))}
    return Recording(traces, 10.0, behavior=behavior)


@pytest.fixture(scope="module")
def run(recording):
    factors = {"x": ["x"], "y": ["y"]}
    settings = FitSettings(mode="behavior", steps=1, batch_size=64)
    trained = fit(recording, factors, settings)
    made = Run("run 1", "2026-11-16T09:30:00", {n: Factor(v) for n, v in factors.items()}, trained)
    return made.with_attribution(attribute(trained, recording))


def test_the_test_is_offered_with_the_time_it_takes(scored, state):
    row = scored.scores.significance
    assert row.sentence.text() == "Which cells beat chance?"
    assert row.test.text() == "Test (after start-up, about 5 s)"
    assert services_of(state.viewer).processes.worker.ready
    row.show_shown()
    assert row.test.text() == "Test (about 5 s)"
    assert not row.test.isHidden()
    assert row.limit.isHidden() and row.only.isHidden() and row.progress.isHidden()
    assert "q" not in scored.scores.table.model.ranking.titles


def test_cells_are_tested_in_the_background_for_all_methods(dock, state, recording, run, qtbot):
    state.show(recording)
    state.add_run(run)
    row = dock.scores.significance
    row.test.click()
    assert row.test.isHidden() and not row.progress.isHidden()
    assert dock.compute.isHidden()  # which would show the same progress
    qtbot.waitUntil(lambda: state.shown_run.significance is not None, timeout=SLOW)
    qtbot.waitUntil(lambda: not row.limit.isHidden(), timeout=SLOW)
    tested = state.shown_run.significance
    assert (tested.q("x")[:TUNED] <= 0.1).all()
    found = int((tested.q("x") <= 0.1).sum())
    assert row.sentence.text() == f"{found} of {2 * TUNED} cells with q ≤"
    assert f"{SHIFTS} other labels" in row.how.text()
    assert "Benjamini" in row.how.toolTip()
    # what is too slow says so, and keeps nothing else from being tested
    state.shown = replace(state.shown, factor="y")
    assert "Factor 'y' has about 3 independent samples" in row.how.text()
    assert row.limit.isHidden() and row.sentence.isHidden()
    # what is computed afterwards has it, too
    dock.services.run_jobs.score(state.current, state.shown_run, "neuron-gradient")
    qtbot.waitUntil(lambda: "neuron-gradient" in state.shown_run.attributions, timeout=SLOW)
    assert state.shown_run.attributions["neuron-gradient"].significance is tested


def test_a_test_that_is_stopped_keeps_nothing_and_can_be_asked_for_again(scored, state, qtbot):
    scored.scores.significance.test.click()
    scored.scores.significance.stop.click()
    qtbot.waitUntil(lambda: not scored.jobs.busy, timeout=SLOW)
    assert state.shown_run.significance is None
    assert not scored.scores.significance.test.isHidden()


def test_what_cannot_be_tested_is_said_in_a_sentence(scored, state, qtbot):
    state.change_recording(replace(state.recording, behavior={}))
    scored.scores.significance.test.click()
    qtbot.waitUntil(lambda: not scored.jobs.busy, timeout=SLOW)
    assert not scored.notice.isHidden() and scored.notice.text
    assert state.shown_run.significance is None


def test_the_limit_and_the_tick_filter_the_table_and_are_kept(scored, state, tmp_path):
    state.replace_run("run 1", state.shown_run.with_significance(scored_test()))
    row, model = scored.scores.significance, scored.scores.table.model
    assert row.sentence.text() == f"3 of {CELLS - 1} cells with q ≤"
    assert model.rowCount() == CELLS
    row.only.click()
    assert sorted(model.cells) == [0, 1, 2]
    row.limit.setValue(0.06)
    assert sorted(model.cells) == [0, 1]
    assert row.sentence.text() == f"2 of {CELLS - 1} cells with q ≤"
    row.only.click()
    assert model.rowCount() == CELLS
    assert (state.shown.q_limit, state.shown.q_only) == (0.06, False)
    opened = Run.load(state.shown_run.save(tmp_path / "run"), state.recording)
    np.testing.assert_array_equal(opened.significance.q("place"), scored_test().q("place"))
    assert opened.significance.how("time") == scored_test().how("time")


def test_q_orders_the_queue_and_is_hidden_from_the_blind(scored, state):
    walk = services_of(state.viewer).queue
    assert "q-value" not in walk.orders
    state.replace_run("run 1", state.shown_run.with_significance(scored_test()))
    walk.choice = replace(walk.choice, order="q-value")
    assert list(walk.queue.order[:3]) == [0, 1, 2]
    state.shown = replace(state.shown, blind=True)
    assert scored.scores.isHidden()
    assert "q-value" not in walk.orders
