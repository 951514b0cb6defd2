"""Behaviour survives the trip to its own clock and back."""

import numpy as np
import pytest

from napari_xcebra.recording import Variable
from napari_xcebra.simulate.clock import measure_behavior, resampled

RATE, FRAMES = 10.0, 500
TIME = np.arange(FRAMES) / RATE


@pytest.fixture
def behavior():
    return {
        "speed": Variable("speed", 1 + np.sin(TIME / 3), unit="m/s"),
        "direction": Variable("direction", TIME % (2 * np.pi), "circular"),
        "licks": Variable("licks", (TIME // 5) % 2, "discrete"),
    }


@pytest.mark.parametrize("behavior_rate", [4.0, 25.0])
def test_behaviour_returns_to_the_frames_nearly_as_it_was(behavior, behavior_rate):
    rng = np.random.default_rng(0)
    times, measured, on_frames = measure_behavior(rng, behavior, RATE, behavior_rate)
    assert np.diff(times) == pytest.approx(1 / behavior_rate)
    assert times[-1] >= TIME[-1]
    assert all(len(values) == len(times) for values in measured.values())
    speed = on_frames["speed"]
    assert speed.unit == "m/s"
    assert np.abs(speed.values - behavior["speed"].values).max() < 0.1
    assert not np.array_equal(speed.values, behavior["speed"].values)
    assert set(np.unique(measured["licks"])) == {0, 1}


def test_angles_go_the_short_way_around(behavior):
    _, _, on_frames = measure_behavior(np.random.default_rng(0), behavior, RATE, 4.0)
    off = on_frames["direction"].values - behavior["direction"].values
    assert np.abs(np.angle(np.exp(1j * off))).max() < 0.2


def test_circular_interpolation_crosses_zero():
    angle = Variable("angle", [350.0, 10.0], "circular", period=360.0)
    found = resampled(angle, np.array([0.0, 1.0]), np.array([0.25, 0.5]))
    np.testing.assert_allclose(found[:, 0], [355.0, 0.0], atol=1e-9)


def test_measurement_error_makes_no_speed_negative():
    still = {"speed": Variable("speed", np.maximum(np.sin(TIME), 0))}
    _, measured, _ = measure_behavior(np.random.default_rng(0), still, RATE, 25.0)
    assert measured["speed"].min() >= 0
