"""Trials have the course of a choice task, and cells carry what the truth says."""

import numpy as np
import pytest

from napari_xcebra.errors import InputError
from napari_xcebra.simulate import field, task
from napari_xcebra.simulate.simulation import _correlation_time
from napari_xcebra.simulate.task_model import STIMULUS

SIDED = ("stimulus", "choice", "outcome")
NONE = dict.fromkeys((*SIDED, "running", "phase", "untuned"), 0)


@pytest.fixture(scope="module")
def simulation():
    return task(trials=False)


@pytest.fixture(scope="module")
def behavior(simulation):
    return {name: v.values[:, 0] for name, v in simulation.recording.behavior.items()}


@pytest.fixture(scope="module")
def trial(simulation):
    """(frames,) number of the trial."""
    return np.cumsum(np.diff(simulation.hidden["phase"], prepend=0) < 0)


def per_trial(values, trial):
    """Mean over the frames of each trial."""
    return np.bincount(trial, values) / np.bincount(trial)


def own_difference(simulation, behavior, trial, factor):
    """Effect of a factor on each cell's mean over a trial, the other two of the three given.

    In deviations of that mean; stimulus and choice go together, so each is looked at with the
    other as a regressor. The outcome is their product.
    """
    sides = np.stack([per_trial(behavior[name], trial) - 0.5 for name in SIDED], axis=1)
    design = np.c_[sides, np.ones(len(sides))]
    means = np.stack([per_trial(cell, trial) for cell in simulation.rates.T], axis=1)
    weights = np.linalg.lstsq(design, means)[0]
    return np.abs(weights[SIDED.index(factor)]) / means.std(0)


def test_the_same_seed_gives_the_same_recording():
    one, same, other = (task(frames=300, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.recording.traces, same.recording.traces)
    assert not np.allclose(one.recording.traces, other.recording.traces)


def test_trials_last_8_to_10_seconds_and_differ(trial):
    seconds = np.bincount(trial)[:-1] / 10
    assert 8 < seconds.mean() < 10
    assert seconds.std() > 0.5
    assert seconds.min() > 7


def test_stimulus_choice_and_outcome_change_only_where_a_trial_begins(behavior, trial):
    begins = np.diff(trial) > 0
    for name in SIDED:
        changes = np.diff(behavior[name]) != 0
        assert changes.any()
        assert not (changes & ~begins).any()


def test_the_recording_is_one_segment(simulation):
    assert len(simulation.recording.starts) == 1


def test_the_choice_follows_the_stimulus_in_4_of_5_trials_which_are_correct(behavior, trial):
    stimulus, choice, outcome = (per_trial(behavior[name], trial) for name in SIDED)
    assert (choice == stimulus).mean() == pytest.approx(0.8, abs=0.08)
    np.testing.assert_array_equal(outcome == 1, choice == stimulus)
    assert stimulus.mean() == pytest.approx(0.5, abs=0.12)


def test_running_comes_in_bouts_is_forgotten_in_a_second_and_slower_in_the_stimulus(
    simulation, behavior
):
    running, stimulus = behavior["running"], simulation.hidden["phase"] < STIMULUS
    assert running.min() >= 0
    assert 0.1 < (running < 0.5).mean() < 0.6
    assert 5 < _correlation_time(running[:, None])[0] < 20
    assert running[stimulus].mean() < 0.8 * running[~stimulus].mean()


@pytest.mark.parametrize("factor", SIDED)
def test_cells_differ_between_trials_by_what_they_carry_and_nothing_else(
    simulation, behavior, trial, factor
):
    difference = own_difference(simulation, behavior, trial, factor)
    carries = simulation.truth[factor]
    assert difference[carries].min() > 1.5
    assert difference[~carries].max() < 0.8


def test_cells_prefer_either_side(simulation, behavior):
    for name in SIDED:
        cells = simulation.rates[:, simulation.cell_kinds == name]
        right = cells[behavior[name] == 1].mean(0) > cells[behavior[name] == 0].mean(0)
        assert 0.3 < right.mean() < 0.7


@pytest.mark.parametrize(
    ("kind", "earliest", "latest"),
    [("stimulus", 0.0, 1.8), ("choice", 2.5, 4.6), ("outcome", 3.0, 6.0)],
)
def test_cells_are_most_active_in_their_part_of_the_trial(simulation, kind, earliest, latest):
    second = (10 * simulation.hidden["phase"]).astype(int)
    for cell in simulation.rates[:, simulation.cell_kinds == kind].T:
        course = np.bincount(second, cell)[:70] / np.bincount(second)[:70]
        assert earliest <= course.argmax() / 10 <= latest


def test_running_cells_follow_running_and_the_others_do_not(simulation, behavior):
    with_running = [abs(np.corrcoef(c, behavior["running"])[0, 1]) for c in simulation.rates.T]
    carries = simulation.truth["running"]
    assert np.array(with_running)[carries].min() > 0.6
    assert np.array(with_running)[~carries].max() < 0.25


def test_phase_cells_follow_the_time_of_the_trial_whatever_the_sides(simulation):
    phase = np.minimum((4 * simulation.hidden["phase"]).astype(int), 40)
    cells = simulation.rates[:, simulation.truth["phase"]].astype(float)
    count = np.maximum(np.bincount(phase), 1)
    usual = np.stack([(np.bincount(phase, cell) / count)[phase] for cell in cells.T], axis=1)
    assert ((cells - usual).var(0) / cells.var(0)).max() < 0.2
    assert "phase" not in simulation.recording.behavior


def test_truth_says_what_each_kind_carries(simulation):
    assert len(simulation.cell_kinds) == 110
    for factor, carries in simulation.truth.items():
        np.testing.assert_array_equal(carries, simulation.cell_kinds == factor)


def test_without_phase_cells_truth_is_of_the_variables_only():
    assert set(task(phase=0, frames=100).truth) == {*SIDED, "running"}


def test_there_may_be_cells_of_one_kind_only():
    for kind in NONE:
        simulation = task(**{**NONE, kind: 3}, frames=100)
        assert simulation.cell_kinds.tolist() == [kind] * 3
        assert np.isfinite(simulation.rates).all()


def test_rates_are_between_0_and_1(simulation):
    assert simulation.rates.min() > 0
    assert simulation.rates.max() <= 1


def test_behaviour_has_kinds_and_units(simulation):
    behavior = simulation.recording.behavior
    assert list(behavior) == [*SIDED, "running"]
    assert {behavior[name].kind for name in SIDED} == {"discrete"}
    assert (behavior["running"].kind, behavior["running"].unit) == ("continuous", "cm/s")
    assert simulation.recording.n_frames == 20_000


def test_it_can_be_imaged():
    imaged = field(task(frames=300), junk=3)
    assert imaged.recording.n_cells == 113
    assert imaged.truth["running"].sum() == 20


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (NONE, "at least one cell is needed"),
        ({"stimulus": -1}, "stimulus is -1: a whole number of at least 0"),
        ({"phase": True}, "phase is True"),
        ({"rate": 0}, "rate is 0: a number above 0"),
        ({"frames": 1}, "frames is 1: a whole number of at least 2"),
        ({"seed": 0.5}, "seed is 0.5"),
    ],
)
def test_bad_arguments_are_named_in_a_sentence(arguments, sentence):
    with pytest.raises(InputError, match=sentence):
        task(**{"frames": 100, **arguments})


@pytest.fixture(scope="module")
def with_trials():
    return task()


def test_trials_and_events_change_no_trace(simulation, with_trials):
    np.testing.assert_array_equal(simulation.recording.traces, with_trials.recording.traces)
    assert set(simulation.recording.behavior) == {*SIDED, "running"}


def test_trials_begin_where_the_phase_does_and_know_what_happened(with_trials, trial):
    recording = with_trials.recording
    np.testing.assert_array_equal(recording.trials.number(recording.n_frames), trial)
    assert recording.trials.label("stimulus", 0) == "left"
    assert recording.trials.label("outcome", 1) == "correct"
    stimulus, choice, outcome = (recording.trials.columns[name] for name in SIDED)
    known = ~np.isnan(outcome)
    assert known[:-1].all()
    np.testing.assert_array_equal((stimulus == choice)[known], outcome[known] == 1)


def test_choice_and_outcome_are_known_from_when_they_happen_to_the_end_of_the_trial(with_trials):
    recording = with_trials.recording
    assert recording.behavior["stimulus"].known.all()
    for name in ("choice", "outcome"):
        variable = recording.behavior[name]
        for first, stop in zip(recording.trials.first[:-1], recording.trials.stop, strict=False):
            known = variable.known[first:stop]
            assert not known[0]
            assert known[-1]
            assert (np.diff(known.astype(int)) >= 0).all()
            assert len(np.unique(variable.values[first:stop][known])) == 1


def test_events_are_events_and_decisions_begin_the_choice(with_trials):
    behavior = with_trials.recording.behavior
    for name in ("decision", "reward", "lick"):
        assert behavior[name].kind == "event"
    begins = np.flatnonzero(np.diff(behavior["choice"].known.astype(int)) > 0) + 1
    decided = np.flatnonzero(behavior["decision"].values[:, 0])
    assert np.abs(begins[: len(decided)] - decided[: len(begins)]).max() <= 1


@pytest.mark.parametrize("kind", ["reward", "lick"])
def test_cells_of_an_event_are_more_active_after_it(kind):
    simulation = task(**{**NONE, kind: 4}, frames=4000)
    began = np.flatnonzero(simulation.recording.behavior[kind].values[:, 0] > 0)
    after = simulation.rates[np.minimum(began + 2, 3999)].mean(0)
    assert (after > 2 * simulation.rates.mean(0)).all()
    assert simulation.factors[kind] == (kind,)
    assert simulation.truth[kind].all()
