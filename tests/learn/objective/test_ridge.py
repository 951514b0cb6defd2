"""Ridge regression finds what is linear, with the penalty that other frames prefer."""

from types import SimpleNamespace

import numpy as np
import pytest

from napari_xcebra.learn.data.labels import Labels
from napari_xcebra.learn.data.split import split_frames
from napari_xcebra.learn.objective import ridge
from napari_xcebra.learn.objective.ridge import chosen_on_aside, decoded, fitted, lagged, thinned
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.recording import Recording, Variable

FRAMES = 1600


def linear(noise, frames=FRAMES, columns=12, targets=2, seed=0):
    """Columns, targets that are linear in them plus noise, and the weights."""
    rng = np.random.default_rng(seed)
    x, weights = rng.normal(size=(frames, columns)), rng.normal(size=(columns, targets))
    return x, x @ weights + 3.0 + noise * rng.normal(size=(frames, targets)), weights


def a_split(frames=FRAMES):
    recording = Recording.from_arrays(np.ones((frames, 1)) * np.arange(frames)[:, None], 10.0)
    return split_frames(recording, FitSettings(window=1), 5)


def labels_of(values, kind="continuous"):
    variable = Variable("x", values, kind)
    recording = SimpleNamespace(variable=lambda _: variable)
    return Labels.of(recording, ["x"], "x")


def test_weights_and_intercept_of_a_linear_truth_are_recovered():
    x, y, weights = linear(noise=0.0)
    found = fitted(x[:800], y[:800], (x[800:], y[800:]))
    np.testing.assert_allclose(found.weights, weights, atol=1e-4)
    np.testing.assert_allclose(found(x[800:]), y[800:], atol=1e-3)
    assert found.r2 == pytest.approx(1, abs=1e-6)


def test_the_penalty_grows_with_the_noise_and_where_nothing_is_told_nothing_is_said():
    penalties = []
    for noise in (0.0, 3.0, 1e3):
        x, y, _ = linear(noise, frames=80)
        found = fitted(x[:40], y[:40], (x[40:], y[40:]))
        penalties.append(found.penalty)
    assert penalties == sorted(penalties)
    assert penalties[0] < penalties[-1]
    assert abs(found.r2) < 0.2
    assert np.abs(found.weights).max() < 0.5 * np.abs(y - y.mean(0)).max()


@pytest.mark.parametrize("penalty", [1e-4, 0.1, 10.0])
def test_products_of_frames_and_products_of_columns_give_the_same_weights(penalty):
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(30, 50)), rng.normal(size=(30, 3))
    dual = ridge._solutions(x, y)(penalty)
    size = np.square(x).mean() * len(x)
    primal = np.linalg.solve(x.T @ x + penalty * size * np.eye(50), x.T @ y)
    np.testing.assert_allclose(dual, primal, atol=1e-9)
    x, y = x.T, rng.normal(size=(50, 3))
    size = np.square(x).mean() * len(x)
    expected = np.linalg.solve(x.T @ x + penalty * size * np.eye(30), x.T @ y)
    np.testing.assert_allclose(ridge._solutions(x, y)(penalty), expected, atol=1e-9)


def test_lags_stay_within_a_trial():
    segment = np.repeat([0, 1, 2], [10, 3, 7])
    values = np.arange(20.0)[:, None]
    columns = lagged(lambda frames: values[frames], segment, spacing=2, reach=2)
    found = columns(np.arange(20))
    assert found.shape == (20, 5)
    np.testing.assert_array_equal(segment[found.astype(int)], np.repeat(segment[:, None], 5, 1))
    np.testing.assert_array_equal(found[4], [0, 2, 4, 6, 8])
    # at its ends a trial goes on as it begins and ends
    np.testing.assert_array_equal(found[10], [10, 10, 10, 12, 12])
    np.testing.assert_array_equal(found[19], [15, 17, 19, 19, 19])


def test_held_out_frames_neither_fit_nor_choose():
    x, y, _ = linear(noise=1.0)
    split, labels = a_split(), labels_of(y)
    _, before = chosen_on_aside(lambda frames: x[frames], labels, split, y)
    changed = np.where(split.block[:, None] >= 0, 1e3 * x, x)
    _, after = chosen_on_aside(lambda frames: changed[frames], labels, split, y)
    np.testing.assert_array_equal(before.weights, after.weights)


def test_frames_at_which_the_label_is_missing_take_no_part():
    x, y, _ = linear(noise=0.1)
    gaps = np.where(np.arange(FRAMES)[:, None] // 40 % 3 == 0, np.nan, y)
    labels = labels_of(gaps)
    read = decoded(lambda frames: x[frames], labels, a_split())
    assert read.r2 > 0.95
    assert labels.known[read.frames].all()
    assert (a_split().block[read.frames] >= 0).all()
    assert np.isfinite(read.predicted).all()


def test_values_are_read_with_an_accuracy_and_other_labels_without():
    x, y, _ = linear(noise=0.1)
    split = a_split()
    discrete = decoded(lambda frames: x[frames], labels_of(y[:, 0] > 3, "discrete"), split)
    assert discrete.accuracy > 0.9
    assert 0.4 < discrete.r2 < 1  # a straight line through two values
    assert np.isnan(decoded(lambda frames: x[frames], labels_of(y), split).accuracy)


def test_unrelated_columns_read_nothing():
    x, _, _ = linear(noise=0.0)
    _, y, _ = linear(noise=0.0, seed=5)
    assert decoded(lambda frames: x[frames], labels_of(y), a_split()).r2 < 0.05


def test_few_frames_are_taken_as_they_are_and_many_evenly():
    assert thinned(np.arange(7), 10).tolist() == list(range(7))
    some = thinned(np.arange(1001), 100)
    assert len(some) <= 100
    assert len(np.unique(np.diff(some))) == 1
