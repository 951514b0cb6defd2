import numpy as np
import pytest

from napari_xcebra.recording.traces import largest_transients

RATE = 20.0


def transients(times, sizes, seconds=300, noise=0.05, drift=0.0, seed=0):
    """Sharp rises that decay within half a second, on a baseline that may drift."""
    t = np.arange(int(seconds * RATE)) / RATE
    trace = np.random.default_rng(seed).normal(0, noise, len(t)) + drift * np.sin(t / 40)
    for time, size in zip(times, sizes, strict=True):
        trace += size * np.exp(-(t - time) / 0.5) * (t >= time)
    return trace


def test_the_largest_come_first_within_a_fraction_of_a_second():
    times, sizes = [20, 60, 110, 170, 200, 250, 280], [1, 3, 0.8, 2, 2.5, 1.5, 0.5]
    found = largest_transients(transients(times, sizes), RATE)
    np.testing.assert_allclose(found / RATE, [60, 200, 170, 250, 20], atol=0.3)


def test_a_transient_beside_a_larger_one_does_not_count_twice():
    found = largest_transients(transients([50, 51, 120], [3, 2.9, 1]), RATE)
    np.testing.assert_allclose(sorted(found / RATE), [50.5, 120], atol=0.8)


def test_drifts_and_noise_are_no_transients():
    times, sizes = [60, 200], [1, 1.2]
    found = largest_transients(transients(times, sizes, drift=3.0), RATE, count=2)
    np.testing.assert_allclose(sorted(found / RATE), times, atol=0.3)
    assert len(largest_transients(np.full(500, 2.0), RATE)) == 0


def test_spikes_and_unknown_frames_are_taken_as_they_are():
    spikes = np.zeros(2000)
    spikes[[300, 900, 1999]] = [1, 3, 2]
    assert largest_transients(spikes, RATE).tolist() == pytest.approx([900, 1999, 300], abs=2)
    trace = transients([60, 200], [2, 1])
    trace[100:900] = np.nan
    assert largest_transients(trace, RATE)[0] / RATE == pytest.approx(60, abs=0.3)
    assert len(largest_transients(np.full(100, np.nan), RATE)) == 0
    assert len(largest_transients(np.zeros(0), RATE)) == 0
