"""Cells of several kinds are put together without mixing up what they carry."""

import numpy as np
import pytest

from napari_xcebra.errors import InputError
from napari_xcebra.simulate.processes import correlation_time, ornstein_uhlenbeck
from napari_xcebra.simulate.simulation import (
    Population,
    check_cells,
    joined,
    population_of,
    template_counts,
)

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
    assert np.median(correlation_time(rates)) == pytest.approx(12, rel=0.4)
    assert np.abs(np.corrcoef(templates.T, rates.T)[:6, 6:]).max() < 0.3


def test_untuned_cells_have_templates_of_every_kind():
    assert template_counts(("a", "b", "c"), 7) == {"a": 3, "b": 3, "c": 3}
    assert template_counts(("a", "b", "c"), 1000) == {"a": 20, "b": 20, "c": 20}


def test_no_cells_at_all_is_said_in_a_sentence():
    with pytest.raises(InputError, match="place, speed are all 0: at least one cell is needed"):
        check_cells({"place": 0, "speed": 0})
