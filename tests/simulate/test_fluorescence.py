"""Traces have the faults that an extractor leaves, each as large as asked and no larger."""

import numpy as np
import pytest
from scipy import sparse

from napari_xcebra.errors import InputError
from napari_xcebra.simulate.field_model import (
    BRIGHTEST,
    DECAY,
    RISE,
    _burst_response,
    _calcium,
    _delta_f,
    _draw_spikes,
    _imaged,
    _indicator_response,
    _neuropil,
    _Optics,
    _running_baseline,
    _saturated,
)

FRAMES, ROIS, RATE = 6000, 40, 10.0


@pytest.fixture
def silent():
    return np.zeros((FRAMES, ROIS), np.float32)


def seen(response, optics, brightness=None, shared=None):
    """ΔF/F with constant neuropil, so that only what is asked for varies."""
    brightness = np.ones(ROIS, np.float32) if brightness is None else brightness
    shared = sparse.eye_array(ROIS).tocsr() if shared is None else shared
    around = np.ones(response.shape, np.float32)
    rng = np.random.default_rng(0)
    raw, ring = _imaged(rng, response, around, brightness, shared, RATE, optics)
    return raw, _delta_f(raw, ring, RATE)


@pytest.mark.parametrize("snr", [4.0, 16.0])
def test_the_signal_to_noise_ratio_is_the_one_asked_for(silent, snr):
    raw, _ = seen(silent, _Optics(snr=snr, drift=0.0))
    assert _burst_response() / np.median(raw.std(axis=0)) == pytest.approx(snr, rel=0.1)


def test_shot_noise_grows_with_the_root_of_brightness(silent):
    brightness = np.repeat([1.0, 4.0], ROIS // 2).astype(np.float32)
    raw, _ = seen(silent, _Optics(drift=0.0, neuropil_level=0.0), brightness)
    noise = raw.std(axis=0)
    assert noise[ROIS // 2 :].mean() / noise[: ROIS // 2].mean() == pytest.approx(2, rel=0.05)


def test_bleaching_takes_its_share_and_the_baseline_removes_it(silent):
    raw, traces = seen(silent, _Optics(snr=50.0, drift=0.4))
    start, end = slice(0, 300), slice(-300, None)
    assert np.median(raw[end].mean(0) / raw[start].mean(0)) == pytest.approx(0.6, abs=0.1)
    assert abs(np.median(traces[end].mean(0) - traces[start].mean(0))) < 0.05


def test_light_leaks_only_between_rois_that_share_pixels(silent):
    response = silent.copy()
    response[1000:1100, 0] = 3
    shared = sparse.eye_array(ROIS).tolil()
    shared[1, 0] = shared[0, 1] = 0.4
    _, traces = seen(response, _Optics(snr=200.0, drift=0.0), shared=shared.tocsr())
    bump = traces[1000:1100].mean(0) - traces[:1000].mean(0)
    assert bump[0] > 1.5
    assert bump[1] > 0.2
    assert np.abs(bump[2:]).max() < 0.05


def test_neuropil_is_common_but_mostly_subtracted():
    rng = np.random.default_rng(0)
    centres = rng.uniform(20, 230, (ROIS, 2))
    silent = np.zeros((FRAMES, ROIS), np.float32)
    around = _neuropil(rng, silent, centres, (256, 256), RATE)
    together = np.corrcoef(around.T)[np.triu_indices(ROIS, 1)]
    assert np.median(together) > 0.3
    raw, ring = _imaged(
        rng,
        silent,
        around,
        np.ones(ROIS, np.float32),
        sparse.eye_array(ROIS).tocsr(),
        RATE,
        _Optics(snr=500.0, drift=0.0),
    )
    before = (raw / raw.mean(0)).std(0)
    assert np.median(_delta_f(raw, ring, RATE).std(0) / before) < 0.5


def test_the_baseline_ignores_transients_and_follows_drift():
    drift = np.linspace(2, 1, FRAMES)[:, None]
    traces = drift * np.ones(3)
    traces[::50] += 10
    baseline = _running_baseline(traces, 600)
    assert np.abs(baseline - drift).max() < 0.12
    assert _running_baseline(traces[:100], 600).shape == (100, 3)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"snr": 0}, "snr is 0: a number above 0"),
        ({"mean_rate": -1}, "mean_rate is -1"),
        ({"neuropil_level": -1}, "neuropil_level is -1"),
        ({"drift": 1.0}, "drift is 1.0: a number from 0 to 0.9"),
    ],
)
def test_bad_optics_are_named_in_a_sentence(arguments, sentence):
    with pytest.raises(InputError, match=sentence):
        _Optics(**arguments)


def test_the_kernel_is_a_double_exponential():
    spikes = np.zeros(400)
    spikes[0] = 1
    found = _calcium(spikes, RISE, DECAY, frame_rate=100.0)
    time = np.arange(1, 401) / 100
    expected = np.exp(-time / DECAY) - np.exp(-time / RISE)
    np.testing.assert_allclose(found, expected / expected.max(), atol=1e-6)


def test_spikes_have_the_mean_rate_and_follow_the_rates():
    rng = np.random.default_rng(0)
    rates = np.repeat([[0.0], [1.0]], 5000, axis=0) * np.ones(100)
    spikes = _draw_spikes(rng, rates, frame_rate=10.0, mean_rate=1.5)
    assert spikes.mean() * 10 == pytest.approx(1.5, rel=0.15)
    assert spikes[:5000].sum() == 0
    fano = spikes[5000:].var(axis=0) / spikes[5000:].mean(axis=0)
    assert np.median(fano) == pytest.approx(1, abs=0.05)


def test_negative_activity_is_shifted_and_silence_stays_silent():
    rng = np.random.default_rng(0)
    activity = np.stack([np.linspace(-1, 1, 4000), np.zeros(4000)], axis=1)
    spikes = _draw_spikes(rng, activity, frame_rate=10.0, mean_rate=5.0)
    assert spikes[3000:, 0].mean() > 3 * spikes[:1000, 0].mean() > 0
    assert spikes[:, 1].sum() == 0


def test_the_indicator_saturates():
    response = _saturated(np.array([0.0, 1.0, 10.0, 1e6]))
    assert response[0] == 0
    assert (np.diff(response) > 0).all()
    assert response[2] == pytest.approx(BRIGHTEST / 2)
    assert response[3] == pytest.approx(BRIGHTEST, rel=1e-3)


def test_the_response_comes_after_the_spikes():
    spikes = np.zeros((100, 2), np.float32)
    spikes[50] = 5
    response = _indicator_response(np.random.default_rng(0), spikes, frame_rate=10.0)
    assert (response[:50] == 0).all()
    assert (response[50:60] > 0.1).all()
