"""All cells around an event: comparable, and no order where there is only noise."""

import numpy as np
import pytest

from napari_xcebra.recording import Recording, Variable
from napari_xcebra.recording.events import Moments, responses

EVENTS, EVERY, CELLS = 60, 50, 80


@pytest.fixture
def noise():
    rng = np.random.default_rng(0)
    event = np.arange(EVENTS * EVERY) % EVERY == 20
    behavior = {
        "cue": Variable("cue", event, "event"),
        "side": Variable("side", np.arange(len(event)) // EVERY % 3, "discrete"),
    }
    return Recording(rng.normal(3, 5, size=(len(event), CELLS)), 10.0, behavior)


def test_noise_sorted_by_its_peak_does_not_look_like_a_sequence(noise):
    found = responses(noise, Moments.of(noise, "cue"), (1, 2))
    at_peak = found.seconds.searchsorted(found.peak())
    sorting, drawn = (half[0][at_peak, np.arange(CELLS)].mean() for half in found.halves)
    assert sorting > 0.3
    assert abs(drawn) < 0.1


def test_a_response_is_in_standard_deviations_of_the_cells_own_trace(noise):
    traces = np.array(noise.traces)
    traces[:, 1] = 7  # never changes
    found = responses(Recording(traces, 10.0, noise.behavior), Moments.of(noise, "cue"), (1, 2))
    assert np.abs(found.mean()).max() < 1
    assert (found.mean()[..., 1] == 0).all()


def test_the_mean_of_both_halves_is_that_of_all_moments(noise):
    moments = Moments.of(noise, "cue", "side")
    found = responses(noise, moments, (1, 2))
    z = (noise.traces - noise.traces.mean(0)) / noise.traces.std(0)
    for group in range(3):
        at = moments.frames[moments.group == group]
        np.testing.assert_allclose(found.mean()[group, 10], z[at].mean(0), atol=1e-4)


def test_nothing_is_read_once_nobody_waits(noise):
    found = responses(noise, Moments.of(noise, "cue"), (1, 2), stop=lambda: True)
    assert np.isnan(found.halves).all()
