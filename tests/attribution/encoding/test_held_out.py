"""Many cells are regressed and measured a part at a time, with the same result."""

import numpy as np
import pytest

from napari_xcebra.attribution.encoding import ridge
from napari_xcebra.attribution.encoding.model import _TraceMoments
from napari_xcebra.attribution.encoding.ridge import BlockSums, fit_held_out, held_out_errors


def test_errors_of_some_cells_at_a_time_are_those_of_all(monkeypatch):
    rng = np.random.default_rng(0)
    sums = BlockSums.empty(4, 3, 10)
    for block in range(4):
        x = rng.normal(size=(50, 3)).astype(np.float32)
        y = x @ rng.normal(size=(3, 10)) + rng.normal(size=(50, 10))
        sums.add(block, x, y.astype(np.float32))
    monkeypatch.setattr(ridge, "CELLS", 4)

    np.testing.assert_allclose(held_out_errors(sums), fit_held_out(sums).errors, rtol=1e-9)


@pytest.mark.parametrize("lengths", [(256, 256, 100), (300, 1), (7,)])
def test_moments_by_stretches_are_those_of_all_frames(lengths):
    rng = np.random.default_rng(1)
    stretches = [(1000 + rng.normal(size=(n, 3)).cumsum(0)).astype(np.float32) for n in lengths]
    for each in stretches:
        each[:, 2] = 7.1
    moments = _TraceMoments()
    for each in stretches:
        moments.add(each, lags=3)

    mean = np.concatenate(stretches).astype(float).mean(0)
    np.testing.assert_allclose(moments.mean, mean, rtol=1e-6)
    for lag, found in enumerate(moments.products):
        centred = [each - mean for each in stretches]
        pairs = [(each[lag:] * each[: len(each) - lag]) for each in centred if len(each) > lag]
        expected = sum(each.sum(0) for each in pairs) / sum(map(len, pairs))
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    assert moments.products[0][2] == 0
