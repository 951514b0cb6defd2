"""Ridge regression finds what is linear, with the penalty that other frames prefer."""

from types import SimpleNamespace

import numpy as np
import pytest

from napari_xcebra.learn.data.labels import Labels
from napari_xcebra.learn.data.split import _split_frames
from napari_xcebra.learn.objective import ridge
from napari_xcebra.learn.objective.ridge import (
    PENALTIES,
    Regression,
    Rows,
    Yardstick,
    lagged,
    regressed,
    thinned,
)
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.recording import Recording, Variable

FRAMES = 1600


def linear(noise, frames=FRAMES, columns=12, targets=2, seed=0):
    """Columns, targets that are linear in them plus noise, and the weights."""
    rng = np.random.default_rng(seed)
    x, weights = rng.normal(size=(frames, columns)), rng.normal(size=(columns, targets))
    return x, x @ weights + 3.0 + noise * rng.normal(size=(frames, targets)), weights


def rows_of(x):
    return Rows(lambda frames: x[frames], np.arange(len(x)))


def fitted(x, y, made):
    """A regression on the first rows, whose penalty the others choose."""
    first = np.arange(len(x)) < made
    return Regression(rows_of(x), first).chosen(y, ~first)


def decoded(x, labels, split):
    return Yardstick(lambda frames: x[frames], split).decoded(labels)


def a_split(frames=FRAMES):
    recording = Recording.from_arrays(np.ones((frames, 1)) * np.arange(frames)[:, None], 10.0)
    return _split_frames(recording, FitSettings(window=1), 5)


def labels_of(values, kind="continuous"):
    variable = Variable("x", values, kind)
    recording = SimpleNamespace(variable=lambda _: variable)
    return Labels.of(recording, ["x"], "x")


def test_weights_and_intercept_of_a_linear_truth_are_recovered():
    x, y, weights = linear(noise=0.0)
    found = fitted(x, y, 800)
    np.testing.assert_allclose(found.weights, weights, atol=1e-4)
    np.testing.assert_allclose(found(x[800:]), y[800:], atol=1e-3)
    assert found.r2 == pytest.approx(1, abs=1e-6)


def test_the_penalty_grows_with_the_noise_and_where_nothing_is_told_nothing_is_said():
    penalties = []
    for noise in (0.0, 3.0, 1e3):
        x, y, _ = linear(noise, frames=80)
        found = fitted(x, y, 40)
        penalties.append(found.penalty)
    assert penalties == sorted(penalties)
    assert penalties[0] < penalties[-1]
    assert abs(found.r2) < 0.2
    assert np.abs(found.weights).max() < 0.5 * np.abs(y - y.mean(0)).max()


@pytest.mark.parametrize("penalty", [1e-4, 0.1, 10.0])
@pytest.mark.parametrize("shape", [(30, 50), (200, 20)], ids=["many cells", "few cells"])
def test_products_of_frames_and_of_columns_give_the_normal_equations(penalty, shape):
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=shape) + 2, rng.normal(size=(shape[0], 3))
    assert (rows_of(x).by_frame is not None) == (shape == (30, 50))
    centred = x - x.mean(0)
    size = np.square(centred).mean() * len(x)
    expected = np.linalg.solve(
        centred.T @ centred + penalty * size * np.eye(shape[1]), centred.T @ (y - y.mean(0))
    )
    found = regressed(x, y, penalty)
    np.testing.assert_allclose(found.weights, expected, atol=1e-8)
    np.testing.assert_allclose(found.origin, x.mean(0), atol=1e-9)


def by_svd(x, y, tried, made, penalty):
    """Predictions for some rows of a regression on others, the plain way."""
    centred = x[made] - x[made].mean(0)
    u, s, v = np.linalg.svd(centred, full_matrices=False)
    size = np.square(centred).mean() * len(centred)
    weights = v.T @ ((s / (s**2 + penalty * size))[:, None] * (u.T @ (y[made] - y[made].mean(0))))
    return (x[tried] - x[made].mean(0)) @ weights


@pytest.mark.parametrize("columns", [40, 700], ids=["few cells", "many cells"])
def test_one_decomposition_gives_what_one_for_every_penalty_and_target_gives(columns):
    """To 1e-4, of columns in single precision and far from zero, as of cells."""
    rng = np.random.default_rng(2)
    x = (rng.normal(size=(500, columns)) * rng.uniform(0.3, 3, columns) + 5).astype(np.float32)
    targets = x[:, :3] @ rng.normal(size=(3, 2)) + rng.normal(size=(500, 2))
    made = np.arange(500) < 300
    regression, wide = Regression(rows_of(x), made), x.astype(float)
    for y in (targets, rng.normal(size=(500, 1))):
        missed = [
            np.square(by_svd(wide, y, ~made, made, p) - y[~made] + y[made].mean(0)).sum()
            for p in PENALTIES
        ]
        found = regression.chosen(y, ~made)
        assert found.penalty == pytest.approx(PENALTIES[int(np.argmin(missed))])
        total = np.square(y[~made] - y[made].mean(0)).sum()
        assert found.r2 == pytest.approx(1 - min(missed) / total, abs=1e-4)
        expected = by_svd(wide, y, ~made, made, found.penalty)
        np.testing.assert_allclose(found(x[~made]) - found.mean, expected, atol=1e-4)


def test_no_matrix_of_cells_times_cells_is_made_where_cells_are_many(monkeypatch):
    sizes = []
    eigh, cholesky = ridge.torch.linalg.eigh, ridge.torch.linalg.cholesky_ex

    def watched(solve):
        return lambda matrix: (sizes.append(len(matrix)), solve(matrix))[1]

    monkeypatch.setattr(ridge.torch.linalg, "eigh", watched(eigh))
    monkeypatch.setattr(ridge.torch.linalg, "cholesky_ex", watched(cholesky))
    x = np.random.default_rng(0).normal(size=(FRAMES, 3000)).astype(np.float32)
    stick = Yardstick(lambda frames: x[frames], a_split())
    for column in (0, 1):
        labels = labels_of(x[:, column : column + 1].astype(float))
        read = stick.decoded(labels)
        stick.decoded_everywhere(labels, 5, read.penalty)
    assert max(sizes) <= FRAMES
    assert sum(size < FRAMES for size in sizes) > 0


def test_factors_known_at_the_same_frames_share_one_decomposition(monkeypatch):
    count, eigh = [], ridge.torch.linalg.eigh
    monkeypatch.setattr(ridge.torch.linalg, "eigh", lambda m: (count.append(1), eigh(m))[1])
    x, y, _ = linear(noise=1.0)
    stick = Yardstick(lambda frames: x[frames], a_split())
    for column in (0, 1):
        stick.decoded(labels_of(y[:, column : column + 1]))
        stick.aside(labels_of(y[:, column : column + 1])).best(y, 0.01)
    assert len(count) == 1


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
    before = Yardstick(lambda frames: x[frames], split).aside(labels).whole(y)
    changed = np.where(split.block[:, None] >= 0, 1e3 * x, x)
    after = Yardstick(lambda frames: changed[frames], split).aside(labels).whole(y)
    np.testing.assert_array_equal(before.weights, after.weights)


def test_frames_at_which_the_label_is_missing_take_no_part():
    x, y, _ = linear(noise=0.1)
    gaps = np.where(np.arange(FRAMES)[:, None] // 40 % 3 == 0, np.nan, y)
    labels = labels_of(gaps)
    read = decoded(x, labels, a_split())
    assert read.r2 > 0.95
    assert labels.known[read.frames].all()
    assert (a_split().block[read.frames] >= 0).all()
    assert np.isfinite(read.predicted).all()


def test_values_are_read_with_an_accuracy_and_other_labels_without():
    x, y, _ = linear(noise=0.1)
    split = a_split()
    discrete = decoded(x, labels_of(y[:, 0] > 3, "discrete"), split)
    assert discrete.accuracy > 0.9
    assert 0.4 < discrete.r2 < 1  # a straight line through two values
    assert np.isnan(decoded(x, labels_of(y), split).accuracy)


def test_unrelated_columns_read_nothing():
    x, _, _ = linear(noise=0.0)
    _, y, _ = linear(noise=0.0, seed=5)
    assert decoded(x, labels_of(y), a_split()).r2 < 0.05


def test_few_frames_are_taken_as_they_are_and_many_evenly():
    assert thinned(np.arange(7), 10).tolist() == list(range(7))
    some = thinned(np.arange(1001), 100)
    assert len(some) <= 100
    assert len(np.unique(np.diff(some))) == 1
