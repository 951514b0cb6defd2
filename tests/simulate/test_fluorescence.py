"""Traces have the faults that an extractor leaves, each as large as asked and no larger."""

import numpy as np
import pytest
from scipy import sparse

from napari_xcebra.errors import InputError
from napari_xcebra.simulate.fluorescence import (
    Optics,
    burst_response,
    delta_f,
    imaged,
    neuropil,
    running_baseline,
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
    raw, ring = imaged(rng, response, around, brightness, shared, RATE, optics)
    return raw, delta_f(raw, ring, RATE)


@pytest.mark.parametrize("snr", [4.0, 16.0])
def test_the_signal_to_noise_ratio_is_the_one_asked_for(silent, snr):
    raw, _ = seen(silent, Optics(snr=snr, drift=0.0))
    assert burst_response() / np.median(raw.std(axis=0)) == pytest.approx(snr, rel=0.1)


def test_shot_noise_grows_with_the_root_of_brightness(silent):
    brightness = np.repeat([1.0, 4.0], ROIS // 2).astype(np.float32)
    raw, _ = seen(silent, Optics(drift=0.0, neuropil_level=0.0), brightness)
    noise = raw.std(axis=0)
    assert noise[ROIS // 2 :].mean() / noise[: ROIS // 2].mean() == pytest.approx(2, rel=0.05)


def test_bleaching_takes_its_share_and_the_baseline_removes_it(silent):
    raw, traces = seen(silent, Optics(snr=50.0, drift=0.4))
    start, end = slice(0, 300), slice(-300, None)
    assert np.median(raw[end].mean(0) / raw[start].mean(0)) == pytest.approx(0.6, abs=0.1)
    assert abs(np.median(traces[end].mean(0) - traces[start].mean(0))) < 0.05


def test_light_leaks_only_between_rois_that_share_pixels(silent):
    response = silent.copy()
    response[1000:1100, 0] = 3
    shared = sparse.eye_array(ROIS).tolil()
    shared[1, 0] = shared[0, 1] = 0.4
    _, traces = seen(response, Optics(snr=200.0, drift=0.0), shared=shared.tocsr())
    bump = traces[1000:1100].mean(0) - traces[:1000].mean(0)
    assert bump[0] > 1.5
    assert bump[1] > 0.2
    assert np.abs(bump[2:]).max() < 0.05


def test_neuropil_is_common_but_mostly_subtracted():
    rng = np.random.default_rng(0)
    centres = rng.uniform(20, 230, (ROIS, 2))
    silent = np.zeros((FRAMES, ROIS), np.float32)
    around = neuropil(rng, silent, centres, (256, 256), RATE)
    together = np.corrcoef(around.T)[np.triu_indices(ROIS, 1)]
    assert np.median(together) > 0.3
    raw, ring = imaged(
        rng,
        silent,
        around,
        np.ones(ROIS, np.float32),
        sparse.eye_array(ROIS).tocsr(),
        RATE,
        Optics(snr=500.0, drift=0.0),
    )
    before = (raw / raw.mean(0)).std(0)
    assert np.median(delta_f(raw, ring, RATE).std(0) / before) < 0.5


def test_the_baseline_ignores_transients_and_follows_drift():
    drift = np.linspace(2, 1, FRAMES)[:, None]
    traces = drift * np.ones(3)
    traces[::50] += 10
    baseline = running_baseline(traces, 600)
    assert np.abs(baseline - drift).max() < 0.12
    assert running_baseline(traces[:100], 600).shape == (100, 3)


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
        Optics(**arguments)
