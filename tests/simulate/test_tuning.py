"""Cells respond to their variable in the shape the field knows."""

import numpy as np
import pytest

from napari_xcebra.simulate.tuning import (
    GRID_ORIENTATIONS,
    GRID_SCALES,
    direction_rates,
    grid_rates,
    place_rates,
    running_rates,
    speed_rates,
    track_rates,
    with_baseline,
)

LATTICE = np.stack(np.meshgrid(*[np.linspace(0, 1, 101)] * 2, indexing="ij"), -1).reshape(-1, 2)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_every_place_cell_has_one_field(rng):
    rates = place_rates(rng, LATTICE, 30)
    peaks = LATTICE[rates.argmax(0)]
    for cell, peak in zip(rates.T, peaks, strict=True):
        distance = np.hypot(*(LATTICE - peak).T)
        assert cell[distance < 0.02].min() > 0.9
        assert cell[distance > 0.45].max() < 0.15


def test_place_fields_cover_the_arena(rng):
    assert place_rates(rng, LATTICE, 100).max(axis=1).min() > 0.7


@pytest.mark.parametrize("cell", [0, 1])
def test_six_grid_fields_surround_each_at_the_scale_of_the_module(cell):
    def rates(position):
        return grid_rates(np.random.default_rng(0), position, 2)[:, cell]

    centre = LATTICE[rates(LATTICE).argmax()]
    angles = np.arange(6) * np.pi / 3 + np.pi / 6 + GRID_ORIENTATIONS[cell]
    around = GRID_SCALES[cell] * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    assert rates(centre + around).min() > 0.9
    assert rates(centre + around / 2).max() < 0.1


def test_grid_cells_are_silent_between_fields(rng):
    rates = grid_rates(rng, LATTICE, 10)
    assert rates.max() <= 1 + 1e-5
    assert ((rates == 0).mean(0) > 0.2).all()


def test_head_direction_tuning_wraps_around(rng):
    angle = np.array([0.0, 2 * np.pi, 1.0, 1.0 - 2 * np.pi])
    rates = direction_rates(rng, angle, 40)
    np.testing.assert_allclose(rates[0], rates[1], atol=1e-5)
    np.testing.assert_allclose(rates[2], rates[3], atol=1e-5)


def test_preferred_directions_are_all_around(rng):
    angle = np.linspace(0, 2 * np.pi, 361)
    preferred = np.sort(angle[direction_rates(rng, angle, 36).argmax(0)])
    assert np.diff(preferred).max() < np.deg2rad(25)


def test_speed_tuning_is_monotonic_and_some_of_it_falls(rng):
    slopes = np.diff(speed_rates(rng, np.linspace(0, 0.3, 100), 100), axis=0)
    rising, falling = (slopes >= -1e-6).all(0), (slopes <= 1e-6).all(0)
    assert (rising | falling).all()
    assert 5 < falling.sum() < 50


@pytest.mark.parametrize("rates", [place_rates, grid_rates])
def test_no_rate_is_negative_and_no_cells_is_fine(rng, rates):
    assert rates(rng, LATTICE, 20).min() >= 0
    assert rates(rng, LATTICE, 0).shape == (len(LATTICE), 0)


def test_every_place_cell_of_a_track_has_one_field_and_they_cover_it(rng):
    position = np.linspace(0, 180, 361)
    rates = track_rates(rng, position, 40, 180.0)
    assert (np.diff(position[rates.argmax(0)]) > -5).all()
    far = np.abs(position[:, None] - position[rates.argmax(0)]) > 80
    assert rates[far].max() < 0.05
    assert rates.max(axis=1).min() > 0.7


def test_running_cells_saturate_and_some_fall(rng):
    rates = running_rates(rng, np.array([0.0, 20.0, 60.0, 80.0]), 60, 20.0)
    np.testing.assert_allclose(rates[2], rates[3], atol=0.02)
    falling = rates[3] < rates[0]
    assert 0.2 < falling.mean() < 0.5
    assert (np.abs(rates[3] - rates[0]) > 0.7).all()


def test_a_baseline_keeps_the_peak_and_lifts_the_rest(rng):
    rates = with_baseline(rng, np.array([[0.0] * 9, [1.0] * 9]))
    assert ((rates[0] > 0) & (rates[0] < 0.15)).all()
    np.testing.assert_allclose(rates[1], 1)
