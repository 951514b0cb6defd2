"""The indicator is as slow and as bounded as the real one."""

import numpy as np
import pytest

from napari_xcebra.simulate.fluorescence import (
    BRIGHTEST,
    DECAY,
    RISE,
    calcium,
    draw_spikes,
    indicator_response,
    saturated,
)


def test_the_kernel_is_a_double_exponential():
    spikes = np.zeros(400)
    spikes[0] = 1
    found = calcium(spikes, RISE, DECAY, frame_rate=100.0)
    time = np.arange(1, 401) / 100
    expected = np.exp(-time / DECAY) - np.exp(-time / RISE)
    np.testing.assert_allclose(found, expected / expected.max(), atol=1e-6)


def test_spikes_have_the_mean_rate_and_follow_the_rates():
    rng = np.random.default_rng(0)
    rates = np.repeat([[0.0], [1.0]], 5000, axis=0) * np.ones(100)
    spikes = draw_spikes(rng, rates, frame_rate=10.0, mean_rate=1.5)
    assert spikes.mean() * 10 == pytest.approx(1.5, rel=0.15)
    assert spikes[:5000].sum() == 0
    fano = spikes[5000:].var(axis=0) / spikes[5000:].mean(axis=0)
    assert np.median(fano) == pytest.approx(1, abs=0.05)


def test_negative_activity_is_shifted_and_silence_stays_silent():
    rng = np.random.default_rng(0)
    activity = np.stack([np.linspace(-1, 1, 4000), np.zeros(4000)], axis=1)
    spikes = draw_spikes(rng, activity, frame_rate=10.0, mean_rate=5.0)
    assert spikes[3000:, 0].mean() > 3 * spikes[:1000, 0].mean() > 0
    assert spikes[:, 1].sum() == 0


def test_the_indicator_saturates():
    response = saturated(np.array([0.0, 1.0, 10.0, 1e6]))
    assert response[0] == 0
    assert (np.diff(response) > 0).all()
    assert response[2] == pytest.approx(BRIGHTEST / 2)
    assert response[3] == pytest.approx(BRIGHTEST, rel=1e-3)


def test_the_response_comes_after_the_spikes():
    spikes = np.zeros((100, 2), np.float32)
    spikes[50] = 5
    response = indicator_response(np.random.default_rng(0), spikes, frame_rate=10.0)
    assert (response[:50] == 0).all()
    assert (response[50:60] > 0.1).all()
