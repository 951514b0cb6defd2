"""The box model has to be what App. B.1 says, or a benchmark on it means nothing."""

import numpy as np
import pytest
from scipy.spatial import cKDTree
from scipy.stats import kstest, truncnorm

from napari_xcebra.errors import InputError
from napari_xcebra.simulate import box
from napari_xcebra.simulate.box_model import MAX_CONDITION, _draw_box_mixing, box_walk


@pytest.fixture(scope="module")
def simulation():
    return box(frames=8000, seed=1)


def explained(states, cells):
    """R² of each cell predicted from the 8 frames with the most similar states."""
    _, neighbours = cKDTree(states).query(states, k=9)
    predicted = cells[neighbours[:, 1:]].mean(1)
    return 1 - ((cells - predicted) ** 2).mean(0) / cells.var(0)


def test_the_same_seed_gives_the_same_recording(simulation):
    again, other = box(frames=8000, seed=1), box(frames=8000, seed=2)
    np.testing.assert_array_equal(simulation.recording.traces, again.recording.traces)
    assert not np.allclose(simulation.recording.traces, other.recording.traces)


@pytest.mark.parametrize("sigma", [0.02, 0.1, 1.0])
def test_latents_stay_in_the_box(sigma):
    walk = box_walk(np.random.default_rng(0), 5000, 3, sigma)
    assert np.abs(walk).max() <= 1
    assert np.abs(walk).max() > 0.95


def test_steps_are_truncated_normal():
    """Given where it was, the next step is normal, cut off at the walls."""
    sigma, walk = 0.3, box_walk(np.random.default_rng(0), 20_000, 1, 0.3)[:, 0]
    before, after = walk[:-1], walk[1:]
    quantile = truncnorm.cdf(after, (-1 - before) / sigma, (1 - before) / sigma, before, sigma)
    assert kstest(quantile, "uniform").pvalue > 0.01
    clipped = np.clip(before + sigma * np.random.default_rng(1).standard_normal(len(before)), -1, 1)
    quantile = truncnorm.cdf(clipped, (-1 - before) / sigma, (1 - before) / sigma, before, sigma)
    assert kstest(quantile, "uniform").pvalue < 1e-6


@pytest.mark.parametrize(("d1", "d2"), [(1, 1), (2, 2), (3, 3), (7, 2)])
def test_the_mixing_is_injective_and_well_conditioned(d1, d2):
    mixing = _draw_box_mixing(np.random.default_rng(0), d1, d2, (25, 25))
    z = np.random.default_rng(9).uniform(-1, 1, (300, d1 + d2))
    singular = np.linalg.svd(mixing.jacobian(z[:, :d1], z[:, d1:]), compute_uv=False)
    condition = singular[:, 0] / singular[:, -1]
    assert np.median(condition) < MAX_CONDITION / 1.5
    # Points that the draw did not look at may be a little worse.
    assert condition.max() < 1.5 * MAX_CONDITION


def test_x1_does_not_depend_on_z2():
    mixing = _draw_box_mixing(np.random.default_rng(0), 2, 2, (25, 25))
    rng = np.random.default_rng(1)
    z1, z2, other = (rng.uniform(-1, 1, (50, 2)) for _ in range(3))
    moved = np.abs(mixing(z1, z2) - mixing(z1, other)).max(0)
    assert (moved[:25] == 0).all()
    assert (moved[25:] > 0.01).all()
    assert (mixing.jacobian(z1, z2)[:, :25, 2:] == 0).all()


def test_the_truth_is_what_the_traces_show(simulation):
    """z1 alone explains x1 but not x2; both together explain every cell."""
    traces, z1, z2 = simulation.recording.traces, *simulation.hidden.values()
    from_z1, from_both = explained(z1, traces), explained(np.hstack([z1, z2]), traces)
    x2 = simulation.truth["z2"]
    assert from_z1[~x2].min() > 0.97
    assert np.median(from_z1[x2]) < 0.85
    assert np.median(from_z1[x2]) + 0.1 < np.median(from_both[x2])
    assert from_both.min() > 0.8
    assert simulation.truth["z1"].all()


@pytest.mark.parametrize(("observed", "d"), [("z1", 3), ("z2", 2)])
def test_only_the_observed_latents_are_behaviour(observed, d):
    simulation = box(observed=observed, d1=3, d2=2, frames=500)
    assert list(simulation.recording.behavior) == [observed]
    assert simulation.recording.behavior[observed].values.shape == (500, d)
    assert simulation.factors == {observed: (observed,)}
    assert set(simulation.hidden) == {"z1", "z2"}


def test_noise_is_added_to_the_traces_only():
    clean, noisy = box(frames=3000), box(frames=3000, noise=0.2)
    np.testing.assert_array_equal(clean.rates, noisy.rates)
    assert (noisy.recording.traces - noisy.rates).std() == pytest.approx(0.2, rel=0.05)


def test_the_description_states_the_condition_number(simulation):
    assert "Condition number" in simulation.description


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"observed": "z3"}, "observed is 'z3': 'z1' or 'z2' is needed"),
        ({"cells": (25, 3)}, r"cells is \(25, 3\): at least 2 in x1 and 4 in x2"),
        ({"cells": (25,)}, "two numbers"),
        ({"frames": 1}, "frames is 1: a whole number of at least 2"),
        ({"d1": 0}, "d1 is 0"),
        ({"sigma": 0}, "sigma is 0: a number above 0"),
        ({"noise": -1}, "noise is -1"),
        ({"rate": 0}, "rate is 0"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_bad_arguments_are_named_in_a_sentence(arguments, sentence):
    with pytest.raises(InputError, match=sentence):
        box(**{"frames": 100, **arguments})
