"""Time scales decide what a null by shifting labels means, so they must be what they say."""

import numpy as np
import pytest

from napari_xcebra.simulate.processes import (
    correlation_time,
    on_and_off,
    ornstein_uhlenbeck,
    smoothed,
)


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


def test_a_switch_stays_on_and_off_for_the_times_given():
    state = on_and_off(np.random.default_rng(0), 200_000, off=30.0, on=8.0)
    assert state.mean() == pytest.approx(8 / 38, rel=0.1)
    bouts = (np.diff(state.astype(int)) == 1).sum()
    assert state.sum() / bouts == pytest.approx(8, rel=0.1)
    assert (~state).sum() / bouts == pytest.approx(30, rel=0.1)


def test_a_switch_begins_on_as_often_as_it_is_on():
    starts = [on_and_off(np.random.default_rng(seed), 2, 30.0, 10.0)[0] for seed in range(2000)]
    assert np.mean(starts) == pytest.approx(0.25, abs=0.04)
