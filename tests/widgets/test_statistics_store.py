"""Statistics are computed once for a run and its recording, and again when these change."""

from dataclasses import replace

import numpy as np
import pytest
from psygnal import Signal
from scored import CELLS, UNUSED, scored_recording, scored_run

from napari_xcebra.attribution.single_cell import STATISTICS
from napari_xcebra.recording import Variable
from napari_xcebra.sessions import Opened
from napari_xcebra.widgets import statistics_store
from napari_xcebra.widgets.shown import Shown
from napari_xcebra.widgets.statistics_store import StatisticsStore, applicable, statistic_columns


class Session:
    """As much of a session as is needed."""

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

    def ask(self, works):
        for work in works:
            self.names.append(work.task.statistics)
            if not self.stopped:
                work.keep(work.task.run(Report()))


class Report:
    def __call__(self, advanced):
        assert advanced.unit == "cell"

    def stop(self):
        return False


@pytest.fixture
def session():
    return Session()


@pytest.fixture
def computation(monkeypatch):
    made = Computation()
    monkeypatch.setattr(statistics_store, "computation_of", lambda session: made)
    return made


@pytest.fixture
def store(session, computation):
    return StatisticsStore(session)


def test_what_is_there_is_not_computed_again(store, session, computation):
    store.ask(session.current, session.run, ["correlation"])
    store.ask(session.current, session.run, ["correlation", "mutual_information"])
    store.ask(session.current, session.run, ["mutual_information"], again=True)
    assert computation.names == [("correlation",), ("mutual_information",)]
    found = store.of(session.current, session.run)
    assert set(found.of("place")) == {"correlation", "mutual_information"}
    assert found.factors == ("place", "speed")
    values = found.of("place")["correlation"]
    assert np.isnan(values[UNUSED]) and np.isfinite(np.delete(values, UNUSED)).all()


def test_what_was_stopped_comes_only_when_the_user_asks_again(store, session, computation):
    computation.stopped = True
    for _ in range(3):
        store.ask(session.current, session.run, ["correlation"])
    assert len(computation.names) == 1 and store.of(session.current, session.run) is None
    computation.stopped = False
    store.ask(session.current, session.run, ["correlation"], again=True)
    assert "correlation" in store.of(session.current, session.run).of("speed")


def test_a_variable_of_another_kind_needs_new_statistics(store, session, computation):
    opened = session.current
    store.ask(opened, session.run, ["correlation"])
    accepted = np.ones(CELLS, bool)
    opened.recording = replace(opened.recording, accepted=accepted)
    assert store.of(opened, session.run) is not None  # who is accepted changes nothing
    x = replace(opened.recording.variable("x"), kind="circular")
    opened.recording = opened.recording.with_behavior(x)
    assert store.of(opened, session.run) is None
    store.ask(opened, session.run, ["correlation"])
    assert len(computation.names) == 2


def test_columns_are_those_that_are_ticked_and_there(store, session):
    store.ask(session.current, session.run, list(STATISTICS))
    found = store.of(session.current, session.run)
    names = ["grid_score", "correlation"]
    assert [c.name for c in statistic_columns(found, "place", names)] == ["grid", "r"]
    assert [c.name for c in statistic_columns(found, "speed", names)] == ["r"]
    assert statistic_columns(found, "time", names) == []
    assert statistic_columns(None, "place", names) == []


def test_a_factor_without_variables_or_with_missing_ones_has_no_statistics(session):
    recording = session.current.recording
    assert applicable(recording, ()) == ()
    assert applicable(recording, ("x", "licks")) == ()
    assert "grid_score" in applicable(recording, ("x", "y"))
    assert "grid_score" not in applicable(recording, ("v",))


def test_what_is_ticked_is_the_same_after_a_session_was_read_from_its_file():
    assert Shown(statistics=["correlation"]) == Shown(statistics=("correlation",))
