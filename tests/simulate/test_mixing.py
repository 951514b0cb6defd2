"""The mixing must be injective and its Jacobian exact: the truth of the box model rests on both."""

import numpy as np
import pytest
from scipy.optimize import least_squares

from napari_xcebra.simulate.box_model import draw_mixing


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
