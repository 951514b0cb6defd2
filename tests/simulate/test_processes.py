"""Time scales decide what a null by shifting labels means, so they must be what they say."""

import numpy as np
import pytest

from napari_xcebra.simulate.processes import correlation_time, ornstein_uhlenbeck, smoothed


@pytest.mark.parametrize("timescale", [0.5, 10.0])
def test_autocorrelation_falls_to_1_over_e_after_the_time_scale(timescale):
    process = ornstein_uhlenbeck(np.random.default_rng(0), 4000, timescale, columns=50)
    assert process.std() == pytest.approx(1, abs=0.05)
    for lag in (1, 10):
        correlation = (process[lag:] * process[:-lag]).mean() / process.var()
        assert correlation == pytest.approx(np.exp(-lag / timescale), abs=0.03)


def test_the_process_is_stationary_from_its_first_frame():
    starts = ornstein_uhlenbeck(np.random.default_rng(0), 3, 100.0, columns=5000)
    np.testing.assert_allclose(starts.std(axis=1), 1, atol=0.05)


def test_the_correlation_time_of_a_process_is_found_again():
    process = ornstein_uhlenbeck(np.random.default_rng(0), 20_000, 20.0, columns=20)
    assert np.median(correlation_time(process)) == pytest.approx(20, rel=0.2)


def test_smoothing_keeps_a_constant():
    np.testing.assert_allclose(smoothed(np.full((50, 2), 3.0), 7.0), 3.0)
