"""The truth of the arena must be visible in its traces, and the hard cases must be hard."""

import numpy as np
import pytest
from scipy.stats import kstest

from napari_xcebra.errors import InputError
from napari_xcebra.simulate import arena
from napari_xcebra.simulate.simulation import _correlation_time

EACH = {"place": 15, "grid": 15, "direction": 15, "speed": 15}


@pytest.fixture(scope="module")
def simulation():
    return arena(**EACH, mixed=30, untuned=30, frames=12_000)


def explained(variable, rates, bins=8):
    """Share of each cell's variance between bins of a variable."""
    columns = [
        np.digitize(c, np.quantile(c, np.linspace(0, 1, bins + 1)[1:-1])) for c in variable.T
    ]
    bin_of_frame = np.ravel_multi_index(columns, [bins] * len(columns))
    count = np.bincount(bin_of_frame, minlength=bins ** len(columns))
    share = [
        np.nansum(np.bincount(bin_of_frame, cell, len(count)) ** 2 / np.maximum(count, 1))
        for cell in (rates - rates.mean(0)).T.astype(float)
    ]
    return np.array(share) / len(rates) / rates.var(0)


def beyond_shifts(simulation, variable, n=19):
    """Which cells follow a variable more than they follow any circular shift of it."""
    values = simulation.recording.behavior[variable].values
    shifts = np.linspace(0.1, 0.9, n) * len(values)
    null = [explained(np.roll(values, int(s), axis=0), simulation.rates) for s in shifts]
    return explained(values, simulation.rates) - np.max(null, axis=0)


def test_the_same_seed_gives_the_same_recording():
    one, same, other = (arena(frames=300, untuned=5, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.recording.traces, same.recording.traces)
    assert not np.allclose(one.recording.traces, other.recording.traces)


@pytest.mark.parametrize(
    ("factor", "variable"), [("place", "position"), ("direction", "direction"), ("speed", "speed")]
)
def test_cells_follow_what_they_carry_more_than_what_they_do_not(simulation, factor, variable):
    carries = simulation.truth[factor]
    follows = explained(simulation.recording.behavior[variable].values, simulation.rates)
    single = np.isin(simulation.cell_kinds, list(EACH))
    assert follows[carries & single].min() > 0.3
    assert follows[~carries].max() < 0.25


def test_place_cells_carry_position_and_speed_cells_do_not(simulation):
    margin = beyond_shifts(simulation, "position")
    kinds = simulation.cell_kinds
    assert margin[kinds == "place"].min() > 0.3
    assert margin[kinds == "grid"].min() > 0.2
    assert margin[kinds == "speed"].max() < 0.1
    assert margin[kinds == "untuned"].max() < 0.1


def test_a_mixed_cell_carries_two_variables(simulation):
    number = np.sum([simulation.truth[f] for f in ("place", "direction", "speed")], axis=0)
    assert (number[simulation.cell_kinds == "mixed"] == 2).all()
    for factor, variable in (("place", "position"), ("direction", "direction"), ("speed", "speed")):
        mixed = simulation.truth[factor] & (simulation.cell_kinds == "mixed")
        assert np.median(beyond_shifts(simulation, variable)[mixed]) > 0.02


def test_a_mixed_cell_of_strength_0_carries_only_its_first_variable():
    simulation = arena(**EACH, mixed=30, mixed_strength=0.0, frames=3000)
    number = np.sum(list(simulation.truth.values()), axis=0)
    assert (number == 1).all()


def test_untuned_cells_are_as_active_and_as_slow_as_tuned_ones(simulation):
    tuned = simulation.rates[:, np.isin(simulation.cell_kinds, list(EACH))]
    untuned = simulation.rates[:, simulation.cell_kinds == "untuned"]
    for statistic in (lambda r: r.mean(0), lambda r: r.std(0), _correlation_time):
        assert kstest(statistic(tuned), statistic(untuned)).pvalue > 0.001
    assert np.median(untuned.std(0)) == pytest.approx(np.median(tuned.std(0)), rel=0.35)


def test_untuned_strength_scales_how_much_they_vary():
    full, half, none = (
        arena(**EACH, untuned=10, untuned_strength=s, frames=500).rates[:, -10:]
        for s in (1, 0.5, 0)
    )
    np.testing.assert_allclose(half.std(0), full.std(0) / 2, rtol=1e-3)
    np.testing.assert_allclose(none.std(0), 0, atol=1e-5)


def test_arousal_drives_speed_and_cells_but_is_not_observed():
    simulation = arena(**EACH, untuned=20, arousal=1.0, frames=12_000)
    state, follows = simulation.hidden["arousal"], simulation.truth["arousal"]
    speed = simulation.recording.behavior["speed"].values[:, 0]
    assert "arousal" not in simulation.recording.behavior
    assert np.corrcoef(state, speed)[0, 1] > 0.4
    with_state = np.array([np.corrcoef(state, rate)[0, 1] for rate in simulation.rates.T])
    assert with_state[follows & (simulation.cell_kinds != "speed")].min() > 0.15
    for kind in np.unique(simulation.cell_kinds):
        assert 0 < follows[simulation.cell_kinds == kind].mean() < 1


def test_cells_that_follow_arousal_look_like_speed_cells_but_are_not():
    """The trap: an untuned cell goes with speed although it does not carry it."""
    simulation = arena(**EACH, untuned=30, arousal=1.0, frames=12_000)
    untuned, follows = simulation.cell_kinds == "untuned", simulation.truth["arousal"]
    speed = explained(simulation.recording.behavior["speed"].values, simulation.rates)
    assert np.median(speed[untuned & follows]) > 3 * np.median(speed[untuned & ~follows])
    assert not simulation.truth["speed"][untuned].any()


def test_without_arousal_no_cell_follows_the_state(simulation):
    assert "arousal" not in simulation.truth
    state = simulation.hidden["arousal"]
    with_state = [np.corrcoef(state, rate)[0, 1] for rate in simulation.rates.T]
    assert np.median(np.abs(with_state)) < 0.1


def test_noise_is_relative_to_each_cell_and_leaves_the_rates():
    clean, noisy = arena(**EACH, frames=4000), arena(**EACH, frames=4000, noise=0.5)
    np.testing.assert_array_equal(clean.rates, noisy.rates)
    added = (noisy.recording.traces - noisy.rates).std(0) / noisy.rates.std(0)
    np.testing.assert_allclose(added, 0.5, rtol=0.1)
    np.testing.assert_array_equal(clean.recording.traces, clean.rates)


def test_behaviour_has_kinds_and_units(simulation):
    behavior = simulation.recording.behavior
    assert behavior["position"].values.shape == (12_000, 2)
    assert (behavior["position"].unit, behavior["speed"].unit) == ("m", "m/s")
    assert (behavior["direction"].kind, behavior["direction"].unit) == ("circular", "rad")
    assert simulation.factors["place"] == ("position",)
    assert simulation.recording.rate == pytest.approx(10)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (dict.fromkeys(EACH, 0), "at least one cell is needed"),
        ({"place": -1}, "place is -1: a whole number of at least 0"),
        ({"grid": 2.5}, "grid is 2.5"),
        ({"confound": 1.2}, "confound is 1.2: a number from 0 to 1"),
        ({"arousal": -0.1}, "arousal is -0.1"),
        ({"mixed_strength": 2}, "mixed_strength is 2"),
        ({"untuned_strength": np.nan}, "untuned_strength is nan"),
        ({"noise": -1}, "noise is -1: a number of at least 0"),
        ({"dt": 0}, "dt is 0: a number above 0"),
        ({"frames": 0}, "frames is 0"),
    ],
)
def test_bad_arguments_are_named_in_a_sentence(arguments, sentence):
    with pytest.raises(InputError, match=sentence):
        arena(**{"frames": 100, **arguments})
