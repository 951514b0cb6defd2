"""The animal moves like a rat in an open field, and the confounds are as strong as they say."""

import numpy as np
import pytest

from napari_xcebra.simulate.arena_model import (
    GRID_ORIENTATIONS,
    GRID_SCALES,
    SIDE,
    SPEED_SCALE,
    _direction_rates,
    _forage,
    _grid_rates,
    _place_rates,
    _speed_rates,
    running_rates,
    track_rates,
    with_baseline,
)

DT = 0.1


@pytest.fixture(scope="module")
def walk():
    return _forage(np.random.default_rng(0), 20_000, DT)


def correlation(a, b):
    return np.corrcoef(a, b)[0, 1]


def wall_distance(walk):
    return np.minimum(walk.position, SIDE - walk.position).min(axis=1)


def test_the_animal_stays_inside(walk):
    assert walk.position.min() >= 0
    assert walk.position.max() <= SIDE


def test_the_animal_covers_the_arena(walk):
    visits = np.histogram2d(*walk.position.T, bins=10, range=[[0, SIDE]] * 2)[0]
    assert (visits > 0).mean() >= 0.9
    assert visits.max() / visits.mean() < 4


def test_speed_is_rayleigh_distributed(walk):
    assert walk.speed.mean() == pytest.approx(SPEED_SCALE * np.sqrt(np.pi / 2), rel=0.1)
    assert walk.speed.std() == pytest.approx(SPEED_SCALE * np.sqrt(2 - np.pi / 2), rel=0.1)


def test_position_changes_as_fast_as_speed_says(walk):
    moved = np.hypot(*np.diff(walk.position, axis=0).T) / DT
    assert correlation(moved, walk.speed[1:]) > 0.9
    assert moved.mean() == pytest.approx(walk.speed.mean(), rel=0.05)


def test_the_animal_heads_where_it_goes(walk):
    moved = np.diff(walk.position, axis=0)
    off = np.arctan2(moved[:, 1], moved[:, 0]) - walk.direction[1:]
    assert np.abs(np.exp(1j * off).mean()) > 0.9
    assert walk.direction.min() >= 0
    assert walk.direction.max() < 2 * np.pi


def test_all_directions_are_taken(walk):
    count = np.histogram(walk.direction, bins=12, range=(0, 2 * np.pi))[0]
    assert count.min() > 0.4 * count.mean()


@pytest.mark.parametrize(
    ("confound", "low", "high"), [(0.0, -0.15, 0.15), (0.5, 0.2, 0.45), (1.0, 0.55, 0.75)]
)
def test_speed_rises_away_from_the_walls_only_when_confounded(confound, low, high):
    walk = _forage(np.random.default_rng(1), 20_000, DT, confound=confound)
    assert low < correlation(walk.speed, wall_distance(walk)) < high


@pytest.mark.parametrize(
    ("arousal", "low", "high"), [(0.0, -0.1, 0.1), (0.5, 0.2, 0.4), (1.0, 0.48, 0.65)]
)
def test_speed_follows_arousal_as_much_as_asked(arousal, low, high):
    walk = _forage(np.random.default_rng(1), 20_000, DT, arousal=arousal)
    assert low < correlation(walk.speed, walk.arousal) < high


def test_both_confounds_at_full_strength_keep_theirs():
    walk = _forage(np.random.default_rng(1), 20_000, DT, confound=1.0, arousal=1.0)
    assert 0.5 < correlation(walk.speed, wall_distance(walk)) < 0.75
    assert 0.45 < correlation(walk.speed, walk.arousal) < 0.65


@pytest.mark.parametrize("dt", [1 / 30, 0.2])
def test_movement_does_not_depend_on_the_frame_rate(dt):
    walk = _forage(np.random.default_rng(2), int(1500 / dt), dt)
    lag = round(0.6 / dt)
    assert walk.speed.mean() == pytest.approx(0.1, rel=0.1)
    assert 0.3 < correlation(walk.speed[lag:], walk.speed[:-lag]) < 0.6


LATTICE = np.stack(np.meshgrid(*[np.linspace(0, 1, 101)] * 2, indexing="ij"), -1).reshape(-1, 2)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_every_place_cell_has_one_field(rng):
    rates = _place_rates(rng, LATTICE, 30)
    peaks = LATTICE[rates.argmax(0)]
    for cell, peak in zip(rates.T, peaks, strict=True):
        distance = np.hypot(*(LATTICE - peak).T)
        assert cell[distance < 0.02].min() > 0.9
        assert cell[distance > 0.45].max() < 0.15


def test_place_fields_cover_the_arena(rng):
    assert _place_rates(rng, LATTICE, 100).max(axis=1).min() > 0.7


@pytest.mark.parametrize("cell", [0, 1])
def test_six_grid_fields_surround_each_at_the_scale_of_the_module(cell):
    def rates(position):
        return _grid_rates(np.random.default_rng(0), position, 2)[:, cell]

    centre = LATTICE[rates(LATTICE).argmax()]
    angles = np.arange(6) * np.pi / 3 + np.pi / 6 + GRID_ORIENTATIONS[cell]
    around = GRID_SCALES[cell] * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    assert rates(centre + around).min() > 0.9
    assert rates(centre + around / 2).max() < 0.1


def test_grid_cells_are_silent_between_fields(rng):
    rates = _grid_rates(rng, LATTICE, 10)
    assert rates.max() <= 1 + 1e-5
    assert ((rates == 0).mean(0) > 0.2).all()


def test_head_direction_tuning_wraps_around(rng):
    angle = np.array([0.0, 2 * np.pi, 1.0, 1.0 - 2 * np.pi])
    rates = _direction_rates(rng, angle, 40)
    np.testing.assert_allclose(rates[0], rates[1], atol=1e-5)
    np.testing.assert_allclose(rates[2], rates[3], atol=1e-5)


def test_preferred_directions_are_all_around(rng):
    angle = np.linspace(0, 2 * np.pi, 361)
    preferred = np.sort(angle[_direction_rates(rng, angle, 36).argmax(0)])
    assert np.diff(preferred).max() < np.deg2rad(25)


def test_speed_tuning_is_monotonic_and_some_of_it_falls(rng):
    slopes = np.diff(_speed_rates(rng, np.linspace(0, 0.3, 100), 100), axis=0)
    rising, falling = (slopes >= -1e-6).all(0), (slopes <= 1e-6).all(0)
    assert (rising | falling).all()
    assert 5 < falling.sum() < 50


@pytest.mark.parametrize("rates", [_place_rates, _grid_rates])
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
