"""Clouds of points are fitted, turned, painted and found again."""

import numpy as np
import pytest

from napari_xcebra.widgets.plots.embedding_plot import (
    _nearest,
    _projected,
    _rotation,
    fit_to_view,
    painted,
    principal,
)

RNG = np.random.default_rng(0)
SIZE = (200, 100)


def test_latents_of_one_factor_keep_their_proportion_and_others_fill_the_view():
    angle = np.linspace(0, 2 * np.pi, 500)
    points = np.stack([3 * np.cos(angle), np.sin(angle), 100 * np.sin(2 * angle)], axis=1)
    fit = fit_to_view(points, ["place", "place", "time"])
    np.testing.assert_allclose(np.ptp(fit, axis=0), [2, 2 / 3, 2], rtol=0.05)


def test_unknown_points_are_neither_painted_nor_found():
    points = np.array([[0.0, 0.0], [np.nan, np.nan], [1.0, 1.0]])
    places, _ = _projected(fit_to_view(points, [0, 0]), np.eye(3), SIZE, 1.0, np.zeros(2))
    picture = painted(places, None, np.full((3, 3), 255, np.uint8), SIZE)
    assert 2 <= (picture != 0).sum() <= 10
    assert _nearest(places, *places[2], 5) == 2
    assert _nearest(np.full((2, 2), np.nan), 0, 0, 5) is None


def test_a_click_finds_the_next_point_and_nothing_far_away():
    places = np.array([[10.0, 10.0], [50.0, 50.0]])
    assert _nearest(places, 45, 52, 25) == 1
    assert _nearest(places, 150, 90, 25) is None
    assert _nearest(np.zeros((0, 2)), 0, 0, 25) is None


def test_up_is_up_and_right_is_right():
    points = np.array([[1.0, 0, 0], [0, 1.0, 0], [-1.0, -1.0, 0]], np.float32)
    places, _ = _projected(points, np.eye(3), SIZE, 1.0, np.zeros(2))
    assert places[0, 0] > places[2, 0]
    assert places[1, 1] < places[2, 1]


def test_turning_keeps_distances_and_a_full_turn_changes_nothing():
    turn = _rotation(0.7, -0.4)
    np.testing.assert_allclose(turn @ turn.T, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(_rotation(2 * np.pi, 0), np.eye(3), atol=1e-12)


def test_the_nearer_of_two_points_covers_the_other():
    places = np.array([[20.0, 20.0], [20.0, 20.0]])
    colors = np.array([[255, 0, 0], [0, 0, 255]], np.uint8)
    assert painted(places, np.array([1.0, 0.0]), colors, SIZE)[20, 20] == 0xFFFF0000
    assert painted(places, np.array([0.0, 1.0]), colors, SIZE)[20, 20] == 0xFF0000FF


def test_points_outside_the_view_are_left_out():
    places = np.array([[-5.0, 20.0], [500.0, 20.0], [20.0, 99.0]])
    picture = painted(places, None, np.full((3, 3), 9, np.uint8), SIZE)
    assert set(zip(*np.nonzero(picture), strict=True)) == {(99, 19), (99, 20), (99, 21), (98, 20)}


def test_principal_components_are_in_the_order_of_their_variance():
    latents = RNG.normal(size=(1000, 4)) * [1, 5, 0.1, 3]
    latents[7] = np.nan
    components = principal(latents)
    assert np.isnan(components[7]).all()
    spread = np.nanstd(components, axis=0)
    assert spread == pytest.approx([5, 3, 1], rel=0.1)


def test_fewer_latents_than_components_give_zeros():
    components = principal(RNG.normal(size=(100, 1)))
    assert components.shape == (100, 3)
    assert (components[:, 1:] == 0).all()
