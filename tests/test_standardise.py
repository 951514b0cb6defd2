"""z-scores: mean 0 and standard deviation 1, over the values that count."""

from __future__ import annotations

import numpy as np
import pytest

from napari_xcebra.standardise import mean_and_spread, standardised


@pytest.mark.parametrize("axis", [0, 1])
def test_the_mean_is_0_and_the_standard_deviation_1_along_the_axis(axis):
    found = standardised(np.random.default_rng(0).normal(3, 5, (40, 30)), axis=axis)
    np.testing.assert_allclose(found.mean(axis), 0, atol=1e-12)
    np.testing.assert_allclose(found.std(axis), 1)


@pytest.mark.parametrize("known", [np.arange(40) < 20, np.arange(20)], ids=["bool", "int"])
def test_only_known_rows_decide_on_mean_and_spread(known):
    values = np.random.default_rng(0).normal(size=(40, 3))
    values[30] = np.nan
    found = standardised(values, known)
    np.testing.assert_array_equal(found[:20], standardised(values[:20]))
    assert np.isnan(found[30]).all() and np.isfinite(found[31:]).all()


def test_constant_values_become_0():
    np.testing.assert_array_equal(standardised(np.full((5, 2), 7.0)), 0)
    assert mean_and_spread(np.full(5, 7.0))[1] == 1


def test_nan_is_left_out_and_stays():
    values = np.array([1.0, np.nan, 3.0])
    np.testing.assert_array_equal(standardised(values, skip_nan=True), [-1, np.nan, 1])


def test_single_precision_stays_single():
    assert standardised(np.arange(5, dtype=np.float32), skip_nan=True).dtype == np.float32
