"""Chance is what the label, shifted so far that it is another one, reaches with the same cells."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter1d

from napari_xcebra.learn.data.labels import Course, Labels
from napari_xcebra.learn.objective.ridge import Regression, Rows
from napari_xcebra.learn.quality import chance
from napari_xcebra.learn.quality.chance import (
    LEAST_SAMPLES,
    UNLIKE,
    Shifts,
    _self_correlation,
    goes_with,
    trial_orders,
)
from napari_xcebra.learn.quality.chance import tested as against_shifts
from napari_xcebra.recording import Recording, Variable

FRAMES, CELLS = 3000, 30
ONE_TRIAL = np.zeros(FRAMES, int)
EVERY = np.arange(FRAMES)
HELD = EVERY[EVERY // 100 % 4 == 3]


def p_of_decoding(*given):
    return chance.p_of_decoding(*given).p


def _p_of_strongest_cell(*given):
    return chance._p_of_strongest_cell(*given).p


TRAINED = np.setdiff1d(EVERY, HELD)


def slow(rng, memory, columns=1):
    x = gaussian_filter1d(rng.normal(size=(FRAMES, columns)), memory, axis=0)
    return x / x.std(0)


def labels_of(values, kind="continuous"):
    variable = Variable("x", values, kind)
    return Labels.of(SimpleNamespace(variable=lambda _: variable), ["x"], "x")


def p_of(labels, traces):
    """As a fit is tested: by what a regression made on other frames says, and by all cells."""
    made = np.arange(len(TRAINED)) < len(TRAINED) // 2
    rows = Rows(lambda frames: traces[frames], TRAINED)
    model = Regression(rows, made).chosen(labels.targets()[TRAINED], ~made)
    some = EVERY[::2]
    return against_shifts(
        labels, Shifts.of(labels, ONE_TRIAL), [(HELD, model(traces[HELD]))], (some, traces[some])
    ).p


@pytest.mark.parametrize("memory", [5, 20])
def test_unrelated_labels_are_rarely_found_however_slow(memory):
    """Slow labels beside slow cells look related to any test that takes frames for samples."""
    found = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        found.append(p_of(labels_of(slow(rng, memory)), slow(rng, memory, CELLS)))
    assert np.mean(np.array(found) <= 0.01) <= 0.05
    assert np.mean(np.array(found) <= 0.1) <= 0.25
    assert np.median(found) > 0.3


def test_labels_that_the_cells_follow_are_found():
    rng = np.random.default_rng(0)
    x = slow(rng, 10)
    traces = 0.5 * x * rng.normal(size=CELLS) + slow(rng, 10, CELLS)
    assert p_of(labels_of(x), traces) < 1e-3
    assert p_of(labels_of(np.roll(x, FRAMES // 3, axis=0)), traces) > 0.01


def test_one_cell_in_a_hundred_is_found_by_the_strongest_cell():
    rng = np.random.default_rng(1)
    x = slow(rng, 5)
    traces = slow(rng, 5, 100)
    labels = labels_of(x)
    shifts = Shifts.of(labels, ONE_TRIAL)
    assert _p_of_strongest_cell(labels, shifts, EVERY, traces) > 0.01
    traces[:, 40] = 0.6 * traces[:, 40] + x[:, 0]
    assert _p_of_strongest_cell(labels, shifts, EVERY, traces) < 1e-3


def test_a_cell_tuned_to_the_middle_is_found_though_no_line_follows_it():
    rng = np.random.default_rng(2)
    x = slow(rng, 5)
    traces = slow(rng, 5, 20)
    traces[:, 3] += 4 * np.exp(-np.square(x[:, 0]) / 0.3)
    labels = labels_of(x)
    assert _p_of_strongest_cell(labels, Shifts.of(labels, ONE_TRIAL), EVERY, traces) < 1e-3


def test_what_is_decoded_well_has_a_small_p_and_what_is_not_a_large_one():
    rng = np.random.default_rng(3)
    x = slow(rng, 10)
    labels = labels_of(x)
    shifts = Shifts.of(labels, ONE_TRIAL)
    assert p_of_decoding(labels, shifts, HELD, x[HELD] + rng.normal(size=(len(HELD), 1))) < 1e-3
    assert p_of_decoding(labels, shifts, HELD, slow(rng, 10)[HELD]) > 0.01
    assert p_of_decoding(labels, shifts, HELD, np.zeros((len(HELD), 1))) > 0.3


class TestPeriodicLabels:
    """A corridor run at constant speed comes back: shifted by a lap it is what it was."""

    PERIOD = 100

    @pytest.fixture
    def place(self):
        return np.arange(FRAMES) % self.PERIOD / self.PERIOD * 2 * np.pi

    @pytest.fixture
    def labels(self, place):
        return labels_of(place, "circular")

    def test_shifts_by_the_period_are_left_out(self, labels):
        shifts = Shifts.of(labels, ONE_TRIAL)
        assert len(shifts.frames) > 0
        within = shifts.frames % self.PERIOD
        assert np.abs(np.cos(2 * np.pi * within / self.PERIOD)).max() <= UNLIKE + 0.01
        assert np.abs(_self_correlation(labels)[shifts.frames]).max() <= UNLIKE

    def test_one_that_the_cells_follow_perfectly_is_found(self, labels, place):
        rng = np.random.default_rng(0)
        traces = np.cos(place[:, None] - rng.uniform(0, 2 * np.pi, CELLS))
        traces += 0.3 * rng.normal(size=traces.shape)
        assert p_of(labels, traces) <= 0.01

    def test_one_that_they_do_not_follow_is_not(self, labels):
        found = [p_of(labels, slow(np.random.default_rng(s), 10, CELLS)) for s in range(10)]
        assert min(found) > 0.001
        assert np.mean(np.array(found) <= 0.01) <= 0.1


class TestWhatCannotBeTested:
    def test_a_drift_is_too_slow(self):
        shifts = Shifts.of(labels_of(np.linspace(-1, 1, FRAMES)[:, None]), ONE_TRIAL)
        assert shifts.samples < LEAST_SAMPLES
        assert not shifts.enough

    def test_one_that_comes_back_too_seldom_is_too_regular(self):
        """Every shift of it is like itself, and there are too few stretches to rearrange."""
        shifts = Shifts.of(labels_of(EVERY % 900 < 450, "discrete"), ONE_TRIAL)
        assert not shifts.enough

    def test_one_that_comes_back_often_is_rearranged_by_stretches(self):
        """Shifted it would be a function of itself."""
        labels = labels_of(EVERY // 30 % 4, "discrete")
        shifts = Shifts.of(labels, ONE_TRIAL)
        assert shifts.enough and shifts.stretch
        source = shifts.source(0)
        np.testing.assert_array_equal(np.sort(source), EVERY)
        again = labels.code[source]
        assert abs(np.mean(again == labels.code) - 0.25) < 0.15

    def test_it_gets_no_p_but_the_number_of_its_samples(self):
        labels = labels_of(np.linspace(-1, 1, FRAMES)[:, None])
        none = np.zeros((FRAMES, 1))
        found = against_shifts(labels, Shifts.of(labels, ONE_TRIAL), [(EVERY, none)], (EVERY, none))
        assert np.isnan(found.p)
        assert 0 < found.samples < LEAST_SAMPLES


def test_frames_at_which_the_label_is_missing_neither_help_nor_harm():
    rng = np.random.default_rng(4)
    x = slow(rng, 5)
    traces = 0.5 * x * rng.normal(size=CELLS) + slow(rng, 5, CELLS)
    gaps = np.where(EVERY[:, None] // 70 % 4 == 0, np.nan, x)
    labels = labels_of(gaps)
    shifts = Shifts.of(labels, ONE_TRIAL)
    held = HELD[labels.known[HELD]]
    assert p_of_decoding(labels, shifts, held, x[held]) < 1e-3
    assert _p_of_strongest_cell(labels, shifts, EVERY, traces) < 1e-3
    unrelated = slow(np.random.default_rng(9), 5, CELLS)
    assert _p_of_strongest_cell(labels, shifts, EVERY, unrelated) > 0.01


@pytest.mark.parametrize("values", [2, 8, 60])
def test_values_are_tested_however_many(values):
    rng = np.random.default_rng(5)
    code = rng.integers(0, values, FRAMES // 10).repeat(10)
    labels = labels_of(code, "discrete")
    shifts = Shifts.of(labels, ONE_TRIAL)
    traces = rng.normal(size=(values, CELLS))[code] + rng.normal(size=(FRAMES, CELLS))
    assert _p_of_strongest_cell(labels, shifts, EVERY, traces) < 1e-3
    unrelated = slow(rng, 5, CELLS)
    assert _p_of_strongest_cell(labels, shifts, EVERY, unrelated) > 0.01


def test_what_no_other_label_reaches_but_too_few_differ_is_not_tested_rather_than_at_chance():
    rng = np.random.default_rng(7)
    x = slow(rng, 60)
    labels = labels_of(x)
    shifts = Shifts.of(labels, ONE_TRIAL)
    assert shifts.enough and shifts.different < chance.CERTAIN
    few = replace(shifts, different=3.0)
    told = x[HELD] + 0.7 * slow(rng, 60)[HELD]
    found = against_shifts(labels, few, [(HELD, told)], (EVERY[::5], slow(rng, 60, CELLS)[::5]))
    assert found.p > 0.005
    assert "only 3 of these truly differ" in found.untested
    many = replace(shifts, different=30.0)
    beyond = against_shifts(labels, many, [(HELD, told)], (EVERY[::5], slow(rng, 60, CELLS)[::5]))
    assert not beyond.untested


def test_many_values_of_few_trials_each_are_not_tested_and_a_kind_is_suggested():
    trials = np.arange(FRAMES) // 150
    code = (trials % 10).astype(float)
    recording = Recording.from_arrays(
        np.random.default_rng(0).normal(size=(FRAMES, CELLS)), 10.0, {"odour": code},
        kinds={"odour": "discrete"}, trials=trials,
    )  # fmt: skip
    labels = Labels.of(recording, ["odour"], "odour")
    course = Course.of(recording, labels)
    orders = trial_orders("odour", {"odour": labels}, {"odour": course})
    assert orders.trials_a_value == 2
    shifts = Shifts.of(labels, recording.segment, orders)
    nothing = np.zeros((FRAMES, labels.n_codes))
    found = against_shifts(labels, shifts, [(EVERY, nothing)], (EVERY, recording.traces))
    assert "about 2 trials" in found.untested and "--kind" in found.untested


@pytest.mark.parametrize(
    ("other", "memory", "copies"),
    [
        (lambda x, y: x + 0.1 * y, 60, True),
        (lambda x, y: np.exp(x), 10, True),
        (lambda x, y: x + 0.5 * y, 60, False),
        (lambda x, y: y, 60, False),
    ],
)
def test_a_variable_that_another_tells_is_said_to_go_with_it(other, memory, copies):
    """And no other, also of slow variables, of which the recording has little."""
    for seed in range(5):
        x, y, z = slow(np.random.default_rng(seed), memory, 3).T
        labels = {n: labels_of(v) for n, v in {"x": x, "other": other(x, y), "z": z}.items()}
        assert goes_with("x", labels) == (("other",) if copies else ())
        assert goes_with("z", labels) == ()


def test_a_sum_of_two_others_goes_with_both():
    x, y = slow(np.random.default_rng(0), 10, 2).T
    labels = {name: labels_of(v) for name, v in {"x": x, "y": y, "sum": x + y}.items()}
    assert goes_with("sum", labels) == ("x", "y")
