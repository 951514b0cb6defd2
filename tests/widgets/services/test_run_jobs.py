"""Statistics are computed once for a run and its recording, and again when these change."""

from dataclasses import replace

import numpy as np
import pytest
from psygnal import Signal
from scored import CELLS, UNUSED, scored_recording, scored_run

from napari_xcebra.attribution.ranking import statistic_columns
from napari_xcebra.attribution.single_cell import STATISTICS, applicable
from napari_xcebra.recording import Variable
from napari_xcebra.widgets.services.run_jobs import StatisticsStore
from napari_xcebra.widgets.state.shown import Shown
from napari_xcebra.workspace_file import Opened


class State:
    """As much of a state as is needed."""

    def __init__(self):
        rng = np.random.default_rng(1)
        behavior = {n: Variable(n, rng.normal(size=200), unit="m") for n in ("x", "y", "v")}
        self.run = scored_run()
        self.current = Opened("recording", scored_recording(behavior=behavior), runs=[self.run])
        self.opened = [self.current]


class Computation:
    """Does at once what it is asked for, and counts it."""

    said = Signal(str, str, str)

    def __init__(self):
        self.names, self.stopped = [], False

    def ask(self, *works):
        for work in works:
            self.names.append(work.call.arguments[2])
            if not self.stopped:
                work.keep(work.call.run(Report()))


class Report:
    def __call__(self, advanced):
        assert advanced.unit == "cell"

    def stop(self):
        return False


@pytest.fixture
def state():
    return State()


@pytest.fixture
def jobs():
    return Computation()


@pytest.fixture
def store(state, jobs):
    return StatisticsStore(state, jobs)


def test_what_is_there_is_not_computed_again(store, state, jobs):
    store.ask(state.current, state.run, ["correlation"])
    store.ask(state.current, state.run, ["correlation", "mutual_information"])
    store.ask(state.current, state.run, ["mutual_information"], again=True)
    assert jobs.names == [("correlation",), ("mutual_information",)]
    found = store.of(state.current, state.run)
    assert set(found.of("place")) == {"correlation", "mutual_information"}
    assert found.factors == ("place", "speed")
    values = found.of("place")["correlation"]
    assert np.isnan(values[UNUSED]) and np.isfinite(np.delete(values, UNUSED)).all()


def test_what_was_stopped_comes_only_when_the_user_asks_again(store, state, jobs):
    jobs.stopped = True
    for _ in range(3):
        store.ask(state.current, state.run, ["correlation"])
    assert len(jobs.names) == 1 and store.of(state.current, state.run) is None
    jobs.stopped = False
    store.ask(state.current, state.run, ["correlation"], again=True)
    assert "correlation" in store.of(state.current, state.run).of("speed")


def test_a_variable_of_another_kind_needs_new_statistics(store, state, jobs):
    opened = state.current
    store.ask(opened, state.run, ["correlation"])
    accepted = np.ones(CELLS, bool)
    opened.recording = replace(opened.recording, accepted=accepted)
    assert store.of(opened, state.run) is not None  # who is accepted changes nothing
    x = replace(opened.recording.variable("x"), kind="circular")
    opened.recording = opened.recording.with_behavior(x)
    assert store.of(opened, state.run) is None
    store.ask(opened, state.run, ["correlation"])
    assert len(jobs.names) == 2


def test_columns_are_those_that_are_ticked_and_there(store, state):
    store.ask(state.current, state.run, list(STATISTICS))
    found = store.of(state.current, state.run)
    names = ["grid_score", "correlation"]
    assert [c.name for c in statistic_columns(found, "place", names)] == ["grid", "r"]
    assert [c.name for c in statistic_columns(found, "speed", names)] == ["r"]
    assert statistic_columns(found, "time", names) == []
    assert statistic_columns(None, "place", names) == []


def test_a_factor_without_variables_or_with_missing_ones_has_no_statistics(state):
    recording = state.current.recording
    assert applicable(recording, ()) == ()
    assert applicable(recording, ("x", "licks")) == ()
    assert "grid_score" in applicable(recording, ("x", "y"))
    assert "grid_score" not in applicable(recording, ("v",))


def test_what_is_ticked_is_the_same_after_a_session_was_read_from_its_file():
    assert Shown(statistics=["correlation"]) == Shown(statistics=("correlation",))
