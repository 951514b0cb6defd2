"""A simulation is only worth something if its truth fits its recording."""

import numpy as np
import pytest
from scipy.optimize import least_squares

from napari_xcebra.errors import InputError
from napari_xcebra.recording import Recording, Variable
from napari_xcebra.simulate import Simulation, arena, drifted, field
from napari_xcebra.simulate.box_model import draw_mixing
from napari_xcebra.simulate.simulation import (
    Population,
    _correlation_time,
    check_cells,
    joined,
    on_and_off,
    ornstein_uhlenbeck,
    population_of,
    smoothed,
    template_counts,
)


@pytest.fixture
def recording():
    speed = Variable("speed", np.arange(20.0))
    return Recording(traces=np.ones((20, 3)), rate=10.0, behavior={"speed": speed})


def test_truth_has_one_answer_for_each_cell(recording):
    with pytest.raises(InputError, match=r"truth\['speed'\] has shape \(4,\).*\(3,\) is needed"):
        Simulation(recording, {"speed": np.ones(4, bool)}, {"speed": ("speed",)})


def test_hidden_states_are_on_the_clock_of_the_recording(recording):
    with pytest.raises(InputError, match="hidden"):
        Simulation(recording, {}, {}, hidden={"arousal": np.zeros(19)})


def test_suggested_factors_exist_in_the_recording(recording):
    with pytest.raises(InputError, match="position"):
        Simulation(recording, {}, {"place": ("position",)})


def test_the_truth_cannot_be_exchanged_by_accident(recording):
    simulation = Simulation(recording, {"speed": np.ones(3, bool)}, {"speed": ("speed",)})
    with pytest.raises(TypeError):
        simulation.truth["speed"] = np.zeros(3, bool)


CELLS = {"place": 6, "grid": 3, "direction": 6, "speed": 3, "mixed": 3, "untuned": 2}


def tuning(simulation):
    """Mean rate of every cell in bins of direction: (bins, cells)."""
    turn = simulation.recording.variable("direction").values[:, 0]
    bins = (turn / (2 * np.pi) * 12).astype(int) % 12
    return np.stack([simulation.rates[bins == b].mean(0) for b in range(12)])


def test_another_day_has_the_same_cells_on_another_path():
    first, second = (arena(**CELLS, frames=4000, day=day) for day in (0, 1))
    place = [s.recording.variable("position").values for s in (first, second)]
    assert np.abs(place[0] - place[1]).mean() > 0.1
    assert second.recording.source == "simulated arena, seed 0, day 1"
    np.testing.assert_array_equal(first.cell_kinds, second.cell_kinds)
    direction = first.cell_kinds == "direction"
    agree = np.corrcoef(tuning(first)[:, direction].ravel(), tuning(second)[:, direction].ravel())
    assert agree[0, 1] > 0.99


def test_cells_that_remap_have_another_tuning_and_the_rest_keep_theirs():
    cells = {"place": 0, "grid": 0, "direction": 20, "speed": 0, "frames": 4000}
    before, after = tuning(arena(**cells)), tuning(arena(**cells, day=1, remapped=0.5))
    agree = np.array([np.corrcoef(a, b)[0, 1] for a, b in zip(before.T, after.T, strict=True)])
    assert (agree > 0.97).sum() >= 10
    assert (agree < 0.97).sum() >= 5


def test_cells_get_brighter_or_darker_and_some_are_lost():
    simulation = arena(**CELLS, frames=500, noise=0.2)
    day = drifted(simulation, gain=0.5, baseline=1.0, lost=0.2, seed=3)
    kept = np.asarray(day.recording.cell_ids)
    assert len(kept) == round(0.8 * simulation.recording.n_cells)
    before = simulation.recording.traces[:, kept]
    scale = day.recording.traces.std(0) / before.std(0)
    assert 0.2 < np.log(scale).std() < 1
    standardised = [(t - t.mean(0)) / t.std(0) for t in (before, day.recording.traces)]
    np.testing.assert_allclose(*standardised, atol=1e-3)
    for factor, carries in simulation.truth.items():
        np.testing.assert_array_equal(day.truth[factor], carries[kept])


def test_footprints_stay_with_the_cells_that_are_found():
    simulation = field(cells=10, frames=200, shape=(96, 96))
    day = drifted(simulation, lost=0.3)
    before, after = simulation.recording.footprints, day.recording.footprints
    for position, cell in enumerate(np.asarray(day.recording.cell_ids)):
        np.testing.assert_array_equal(
            after.row[after.cell == position], before.row[before.cell == cell]
        )


def test_nonsense_is_refused():
    simulation = arena(place=3, grid=0, direction=0, speed=0, frames=50)
    with pytest.raises(InputError, match="lost is 2"):
        drifted(simulation, lost=2)
    with pytest.raises(InputError, match="day is -1"):
        arena(day=-1, frames=50)


@pytest.mark.parametrize("timescale", [0.5, 10.0])
def test_autocorrelation_falls_to_1_over_e_after_the_time_scale(timescale):
    process = ornstein_uhlenbeck(np.random.default_rng(0), 4000, timescale, columns=50)
    assert process.std() == pytest.approx(1, abs=0.05)
    for lag in (1, 10):
        correlation = (process[lag:] * process[:-lag]).mean() / process.var()
        assert correlation == pytest.approx(np.exp(-lag / timescale), abs=0.03)


def test_the_process_is_stationary_from_its_first_frame():
    starts = ornstein_uhlenbeck(np.random.default_rng(0), 3, 100.0, columns=5000)
    np.testing.assert_allclose(starts.std(axis=1), 1, atol=0.05)


def test_the_correlation_time_of_a_process_is_found_again():
    process = ornstein_uhlenbeck(np.random.default_rng(0), 20_000, 20.0, columns=20)
    assert np.median(_correlation_time(process)) == pytest.approx(20, rel=0.2)


def test_smoothing_keeps_a_constant():
    np.testing.assert_allclose(smoothed(np.full((50, 2), 3.0), 7.0), 3.0)


def test_a_switch_stays_on_and_off_for_the_times_given():
    state = on_and_off(np.random.default_rng(0), 200_000, off=30.0, on=8.0)
    assert state.mean() == pytest.approx(8 / 38, rel=0.1)
    bouts = (np.diff(state.astype(int)) == 1).sum()
    assert state.sum() / bouts == pytest.approx(8, rel=0.1)
    assert (~state).sum() / bouts == pytest.approx(30, rel=0.1)


def test_a_switch_begins_on_as_often_as_it_is_on():
    starts = [on_and_off(np.random.default_rng(seed), 2, 30.0, 10.0)[0] for seed in range(2000)]
    assert np.mean(starts) == pytest.approx(0.25, abs=0.04)


CARRIED = {"position": ("place", "mixed"), "speed": ("speed", "mixed")}


def of(**counts):
    return population_of({kind: np.zeros((4, n)) for kind, n in counts.items()}, CARRIED)


def test_a_kind_may_carry_two_factors():
    population = of(place=2, speed=1, mixed=1)
    np.testing.assert_array_equal(population.truth["position"], [True, True, False, True])
    np.testing.assert_array_equal(population.truth["speed"], [False, False, True, True])
    assert str(population) == "2 place, 1 speed, 1 mixed"


def test_a_kind_without_cells_is_left_out():
    assert of(place=0, speed=2).kinds.tolist() == ["speed", "speed"]


def test_joined_cells_stay_beside_their_truth():
    population = joined(of(speed=1), of(untuned=1), of(place=1))
    assert population.kinds.tolist() == ["speed", "untuned", "place"]
    np.testing.assert_array_equal(population.truth["position"], [False, False, True])
    assert population.rates.shape == (4, 3)


def test_lookalikes_have_the_rates_and_the_time_scale_of_templates_but_go_their_own_way():
    rng = np.random.default_rng(0)
    templates = np.exp(ornstein_uhlenbeck(rng, 5000, 12.0, columns=6)).astype(np.float32)
    rates = Population(templates, np.full(6, "a"), {}).lookalikes(rng, 6).rates
    matches = np.argsort(templates.max(0)), np.argsort(rates.max(0))
    np.testing.assert_array_equal(
        np.sort(templates[:, matches[0]], axis=0), np.sort(rates[:, matches[1]], axis=0)
    )
    assert np.median(_correlation_time(rates)) == pytest.approx(12, rel=0.4)
    assert np.abs(np.corrcoef(templates.T, rates.T)[:6, 6:]).max() < 0.3


def test_untuned_cells_have_templates_of_every_kind():
    assert template_counts(("a", "b", "c"), 7) == {"a": 3, "b": 3, "c": 3}
    assert template_counts(("a", "b", "c"), 1000) == {"a": 20, "b": 20, "c": 20}


def test_no_cells_at_all_is_said_in_a_sentence():
    with pytest.raises(InputError, match="place, speed are all 0: at least one cell is needed"):
        check_cells({"place": 0, "speed": 0})


@pytest.fixture
def mixing():
    return draw_mixing(np.random.default_rng(3), d=4, cells=25)


@pytest.fixture
def latents():
    return np.random.default_rng(4).uniform(-1, 1, (20, 4))


def test_the_jacobian_agrees_with_finite_differences(mixing, latents):
    step = 1e-5
    differences = np.stack(
        [(mixing(latents + step * e) - mixing(latents - step * e)) / (2 * step) for e in np.eye(4)],
        axis=-1,
    )
    np.testing.assert_allclose(mixing.jacobian(latents), differences, atol=1e-7)


def test_latents_can_be_recovered_from_the_cells(mixing, latents):
    """From a start that knows nothing, there is one answer and it is the right one."""
    activity = mixing(latents)
    for z, x in zip(latents, activity, strict=True):
        found = least_squares(lambda guess, x=x: mixing(guess[None])[0] - x, np.zeros(4))
        np.testing.assert_allclose(found.x, z, atol=1e-4)


def test_cells_are_not_a_linear_function_of_the_latents(mixing):
    z = np.random.default_rng(5).uniform(-1, 1, (1000, 4))
    design = np.c_[z, np.ones(len(z))]
    activity = mixing(z)
    residual = activity - design @ np.linalg.lstsq(design, activity, rcond=None)[0]
    assert np.median(residual.var(0) / activity.var(0)) > 0.02


def test_activity_is_of_order_one(mixing):
    activity = mixing(np.random.default_rng(5).uniform(-1, 1, (1000, 4)))
    assert 0.1 < np.median(activity.std(0)) < 2
