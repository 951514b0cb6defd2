"""The mouse on the belt behaves as mice do, and its cells carry what the truth says."""

import numpy as np
import pytest

from napari_xcebra.errors import InputError
from napari_xcebra.simulate import belt, field
from napari_xcebra.simulate.belt_model import REWARD

REWARD_AT = REWARD * 180
NONE = dict.fromkeys(("place", "speed", "lick", "hidden", "mixed", "untuned"), 0)


@pytest.fixture(scope="module")
def simulation():
    return belt()


@pytest.fixture(scope="module")
def behavior(simulation):
    return {name: v.values[:, 0] for name, v in simulation.recording.behavior.items()}


def follows(rates, bin_of_frame):
    """Share of each cell's variance between bins."""
    count = np.maximum(np.bincount(bin_of_frame), 1)
    centred = (rates - rates.mean(0)).astype(float)
    between = [(np.bincount(bin_of_frame, cell) ** 2 / count).sum() for cell in centred.T]
    return np.array(between) / len(rates) / rates.var(0)


def bins(values, n=8):
    return np.digitize(values, np.quantile(values, np.linspace(0, 1, n + 1)[1:-1]))


def beyond(rates, values, others):
    """What a variable explains beyond another one."""
    return follows(rates, bins(others, 18) * 8 + bins(values)) - follows(rates, bins(others, 18))


def test_the_same_seed_gives_the_same_recording():
    one, same, other = (belt(frames=300, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.recording.traces, same.recording.traces)
    assert not np.allclose(one.recording.traces, other.recording.traces)


def test_the_mouse_runs_on_to_the_end_of_the_belt_and_starts_again(behavior):
    position, speed = behavior["position"], behavior["speed"]
    moved = np.diff(position)
    new_lap = moved < 0
    assert 80 < new_lap.sum() < 200
    np.testing.assert_allclose(moved[~new_lap], speed[:-1][~new_lap] / 10, atol=1e-9)
    np.testing.assert_allclose(moved[new_lap] + 180, speed[:-1][new_lap] / 10)
    assert position.min() >= 0
    assert position.max() < 180


def test_speed_varies_and_the_mouse_pauses(behavior):
    speed = behavior["speed"]
    assert speed.min() >= 0
    assert speed.max() < 80
    assert 0.01 < (speed < 1).mean() < 0.15
    assert 0.3 < speed.std() / speed.mean() < 0.9


def test_speed_falls_before_the_reward(behavior):
    ahead = (REWARD_AT - behavior["position"]) % 180
    near, far = behavior["speed"][ahead < 10], behavior["speed"][(ahead > 50) & (ahead < 100)]
    assert np.median(near) < 0.6 * np.median(far)


def test_the_mouse_licks_mostly_before_the_reward_but_not_in_every_lap(behavior):
    lick, past = behavior["lick"] == 1, behavior["position"] - REWARD_AT
    around = (-30 < past) & (past < 12)
    assert 0.6 < (lick & around).sum() / lick.sum() < 0.95
    assert (lick & around & (past < 0)).sum() > 2 * (lick & around & (past >= 0)).sum()
    lap = np.cumsum(np.diff(past, prepend=past[0]) < 0)
    licked = np.bincount(lap, lick & around)[1:-1] > 0
    assert 0.7 < licked.mean() < 0.97


def test_place_cells_follow_position_and_the_others_do_so_only_by_way_of_speed_and_licks(
    simulation, behavior
):
    place = follows(simulation.rates, bins(behavior["position"], 36))
    kinds = simulation.cell_kinds
    assert place[kinds == "place"].min() > 0.7
    assert place[np.isin(kinds, ["hidden", "untuned"])].max() < 0.2
    # away from the reward nothing but place depends on where the mouse is
    away = (behavior["position"] < 90) & (behavior["position"] > 10)
    elsewhere = follows(simulation.rates[away], bins(behavior["position"][away], 12))
    assert elsewhere[np.isin(kinds, ["speed", "lick"])].max() < 0.2


def test_speed_cells_follow_speed_beyond_position_and_place_cells_do_not(simulation, behavior):
    margin = beyond(simulation.rates, behavior["speed"], behavior["position"])
    kinds = simulation.cell_kinds
    assert margin[kinds == "speed"].min() > 0.3
    assert np.median(margin[kinds == "mixed"]) > 2 * np.median(margin[kinds == "place"])
    assert margin[np.isin(kinds, ["place", "untuned"])].max() < 0.1


def test_speed_cells_rise_or_fall(simulation, behavior):
    cells = simulation.rates[:, simulation.cell_kinds == "speed"]
    with_speed = np.array([np.corrcoef(cell, behavior["speed"])[0, 1] for cell in cells.T])
    assert (np.abs(with_speed) > 0.5).all()
    assert 0 < (with_speed < 0).mean() < 1


def test_lick_cells_follow_licks_away_from_the_reward_too(simulation, behavior):
    away = np.abs(behavior["position"] - REWARD_AT) > 50
    lick, rates = behavior["lick"][away] == 1, simulation.rates[away]
    change = (rates[lick].mean(0) - rates[~lick].mean(0)) / simulation.rates.std(0)
    carries = simulation.truth["lick"]
    assert change[carries].min() > 1.5
    assert np.abs(change[~carries]).max() < 1


def test_hidden_cells_follow_a_state_that_is_not_observed(simulation, behavior):
    state = simulation.hidden["engagement"]
    assert "engagement" not in behavior
    assert 0.1 < np.corrcoef(state, behavior["speed"])[0, 1] < 0.5
    margin = follows(simulation.rates, bins(state))
    carries = simulation.truth["engagement"]
    assert margin[carries].min() > 0.8
    assert margin[~carries & (simulation.cell_kinds != "untuned")].max() < 0.2
    assert not (carries & simulation.truth["speed"]).any()


def test_truth_says_what_each_kind_carries(simulation):
    kinds, truth = simulation.cell_kinds, simulation.truth
    assert len(kinds) == 120
    np.testing.assert_array_equal(truth["position"], np.isin(kinds, ["place", "mixed"]))
    np.testing.assert_array_equal(truth["speed"], np.isin(kinds, ["speed", "mixed"]))
    assert not np.any([cells[kinds == "untuned"] for cells in truth.values()])


def test_without_hidden_cells_truth_is_of_the_variables_only():
    assert set(belt(hidden=0, frames=100).truth) == {"position", "speed", "lick"}


def test_there_may_be_cells_of_one_kind_only():
    for kind in NONE:
        simulation = belt(**{**NONE, kind: 3}, frames=100)
        assert simulation.cell_kinds.tolist() == [kind] * 3
        assert np.isfinite(simulation.rates).all()


def test_rates_are_between_0_and_1(simulation):
    assert simulation.rates.min() > 0
    assert simulation.rates.max() <= 1


def test_behaviour_has_kinds_and_units(simulation):
    behavior = simulation.recording.behavior
    assert [(v.kind, v.unit) for v in behavior.values()] == [
        ("continuous", "cm"),
        ("continuous", "cm/s"),
        ("discrete", ""),
    ]
    assert set(np.unique(behavior["lick"].values)) == {0, 1}
    assert simulation.recording.n_frames == 12_000
    assert len(simulation.recording.starts) == 1


def test_speed_does_not_depend_on_the_frame_rate():
    slow, fast = (belt(frames=600 * rate, rate=rate) for rate in (5, 20))
    mean = [s.recording.behavior["speed"].values.mean() for s in (slow, fast)]
    assert mean[0] == pytest.approx(mean[1], rel=0.15)


def test_it_can_be_imaged():
    imaged = field(belt(frames=300), junk=3)
    assert imaged.recording.n_cells == 123
    assert imaged.truth["position"].sum() == 60


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (NONE, "at least one cell is needed"),
        ({"place": -1}, "place is -1: a whole number of at least 0"),
        ({"mixed": 2.5}, "mixed is 2.5"),
        ({"length": 0}, "length is 0: a number above 0"),
        ({"rate": -10}, "rate is -10: a number above 0"),
        ({"frames": 1}, "frames is 1: a whole number of at least 2"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_bad_arguments_are_named_in_a_sentence(arguments, sentence):
    with pytest.raises(InputError, match=sentence):
        belt(**{"frames": 100, **arguments})
