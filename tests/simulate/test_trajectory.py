"""The animal moves like a rat in an open field, and the confounds are as strong as they say."""

import numpy as np
import pytest

from napari_xcebra.simulate.trajectory import SIDE, SPEED_SCALE, forage

DT = 0.1


@pytest.fixture(scope="module")
def walk():
    return forage(np.random.default_rng(0), 20_000, DT)


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
    walk = forage(np.random.default_rng(1), 20_000, DT, confound=confound)
    assert low < correlation(walk.speed, wall_distance(walk)) < high


@pytest.mark.parametrize(
    ("arousal", "low", "high"), [(0.0, -0.1, 0.1), (0.5, 0.2, 0.4), (1.0, 0.48, 0.65)]
)
def test_speed_follows_arousal_as_much_as_asked(arousal, low, high):
    walk = forage(np.random.default_rng(1), 20_000, DT, arousal=arousal)
    assert low < correlation(walk.speed, walk.arousal) < high


def test_both_confounds_at_full_strength_keep_theirs():
    walk = forage(np.random.default_rng(1), 20_000, DT, confound=1.0, arousal=1.0)
    assert 0.5 < correlation(walk.speed, wall_distance(walk)) < 0.75
    assert 0.45 < correlation(walk.speed, walk.arousal) < 0.65


@pytest.mark.parametrize("dt", [1 / 30, 0.2])
def test_movement_does_not_depend_on_the_frame_rate(dt):
    walk = forage(np.random.default_rng(2), int(1500 / dt), dt)
    lag = round(0.6 / dt)
    assert walk.speed.mean() == pytest.approx(0.1, rel=0.1)
    assert 0.3 < correlation(walk.speed[lag:], walk.speed[:-lag]) < 0.6
