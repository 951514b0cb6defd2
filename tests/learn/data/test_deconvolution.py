"""One filter for all cells undoes the decay of the indicator, where that tells more."""

from dataclasses import replace

import numpy as np
import pytest
from quick_settings import quick
from scipy.ndimage import correlate1d, gaussian_filter1d
from scipy.signal import lfilter

from napari_xcebra.learn.data.deconvolution import REACH, _find_filter, spacing_of
from napari_xcebra.learn.data.inputs import Filter, inputs_for
from napari_xcebra.learn.data.labels import Labels
from napari_xcebra.learn.data.smoothing import gaussian_kernel
from napari_xcebra.learn.data.split import split_by_memory
from napari_xcebra.learn.objective.ridge import Yardstick
from napari_xcebra.learn.training.training import Training
from napari_xcebra.recording import Recording

FRAMES, CELLS, RATE = 4000, 15, 10.0
SETTINGS = quick(smoothing=0.1)


def walk(rng):
    """A variable with a memory of half a second."""
    x = gaussian_filter1d(rng.normal(size=FRAMES), 3)
    return x / x.std()


def imaged(seconds=1.0, noise=0.3, seed=0):
    """Cells that follow a variable at once, seen through an indicator that decays."""
    rng = np.random.default_rng(seed)
    x = walk(rng)
    activity = x[:, None] * rng.choice([-1, 1], CELLS) + noise * rng.normal(size=(FRAMES, CELLS))
    decay = np.exp(-1 / (seconds * RATE))
    traces = lfilter([1.0], [1.0, -decay], activity, axis=0)
    return Recording.from_arrays(traces, RATE, {"x": x})


def parts_of(recording):
    labels = {"x": Labels.of(recording, ["x"], "x")}
    return labels, split_by_memory(recording, labels, SETTINGS, 1)


def found_in(recording):
    return _find_filter(recording, *parts_of(recording), SETTINGS)


def r2_of(recording, filter_):
    labels, split = parts_of(recording)
    _, inputs = inputs_for(recording, split.training.anchors, SETTINGS, filter_)
    return Yardstick(lambda frames: inputs[frames], split).decoded(labels["x"]).r2


@pytest.fixture(scope="module")
def slow():
    return imaged()


def test_a_decaying_response_gets_a_filter_that_helps_a_regression(slow):
    found = found_in(slow)
    assert not found.does_nothing
    assert len(found.weights) == 2 * REACH + 1
    assert found.spacing == spacing_of(RATE)
    assert r2_of(slow, found) > r2_of(slow, Filter()) + 0.1


def test_what_came_before_is_taken_away(slow):
    weights = np.array(found_in(slow).weights)
    assert weights[REACH] * weights[REACH - 1] < 0


def test_unrelated_traces_get_none():
    for seed in range(5):
        recording = imaged(seed=seed)
        other = {"x": walk(np.random.default_rng(seed + 100))}
        assert found_in(Recording.from_arrays(recording.traces, RATE, other)).does_nothing


def test_from_cells_that_answer_at_once_nothing_is_taken_away():
    """At most they are smoothed some more."""
    weights = np.array(found_in(imaged(seconds=1e-3)).weights)
    assert weights[len(weights) // 2] == weights.max()
    assert weights.min() > -0.3 * weights.max()
    np.testing.assert_allclose(weights, weights[::-1], atol=0.1)


def test_cells_that_never_move_get_none(slow):
    still = replace(slow, traces=np.ones_like(slow.traces))
    assert found_in(still).does_nothing


def test_held_out_frames_do_not_decide(slow):
    _, split = parts_of(slow)
    traces = np.array(slow.traces)
    inside = np.flatnonzero(split.block >= 0)
    traces[inside] = np.random.default_rng(0).permutation(traces[inside])
    changed = found_in(replace(slow, traces=traces)).weights
    np.testing.assert_allclose(changed, found_in(slow).weights, atol=0.05)


def test_without_labels_there_is_nothing_to_find_it_by(slow):
    _, split = parts_of(slow)
    assert _find_filter(slow, {}, split, SETTINGS).does_nothing
    assert Training(slow, None, quick(mode="time")).inputs.filter.does_nothing


def test_training_uses_it_unless_told_not_to_or_with_a_window(slow):
    factors = {"x": ["x"]}
    assert not Training(slow, factors, SETTINGS).inputs.filter.does_nothing
    for without in ({"deconvolve": False}, {"window": 3}):
        assert Training(slow, factors, replace(SETTINGS, **without)).inputs.filter.does_nothing


def test_filter_and_smoothing_in_one_kernel_are_both_in_turn():
    """Away from the edges."""
    trace = np.random.default_rng(0).normal(size=300)
    filter_ = Filter((0.1, -0.7, 1.0, 0.3, -0.2), 3)
    spread = np.zeros(13)
    spread[::3] = filter_.weights
    smooth = correlate1d(trace, gaussian_kernel(2.0))
    both = correlate1d(smooth, spread)
    kernel = filter_.after(gaussian_kernel(2.0))
    assert len(kernel) == len(gaussian_kernel(2.0)) + 12
    np.testing.assert_allclose(correlate1d(trace, kernel)[30:-30], both[30:-30], atol=1e-5)


def test_a_filter_of_one_weight_leaves_the_kernel_as_it_is():
    np.testing.assert_array_equal(Filter().after(gaussian_kernel(2.0)), gaussian_kernel(2.0))
    assert Filter().does_nothing
