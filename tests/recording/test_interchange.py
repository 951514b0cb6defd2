"""Recordings go to pynapple and back, and come from arrays with named axes."""

import subprocess
import sys

import numpy as np
import pynapple as nap
import pytest
import xarray as xr

from napari_xcebra import Recording, Variable
from napari_xcebra.errors import InputError

RNG = np.random.default_rng(0)
N, RATE = 300, 20.0
TIMES = np.r_[np.arange(200) / RATE, 60 + np.arange(100) / RATE]
LICKS = (np.arange(N) % 60 == 7).astype(float)


@pytest.fixture
def recording():
    x = np.sin(TIMES)
    known = np.where(np.arange(N) % 50 < 5, np.nan, x)
    xy = np.stack([x, np.cos(TIMES)], axis=1)
    variables = [Variable("x", known), Variable("xy", xy), Variable("licks", LICKS, kind="event")]
    return Recording(
        RNG.normal(size=(N, 4)).astype(np.float32),
        RATE,
        {variable.name: variable for variable in variables},
        cell_ids=[3, 5, 8, 13],
        starts=[0, 200],
        times=TIMES,
        cells={"snr": np.arange(4.0)},
    )


def test_there_and_back_again_nothing_is_lost(recording):
    given = recording.to_pynapple()
    traces = given.pop("traces")
    assert isinstance(traces, nap.TsdFrame)
    assert len(traces.time_support) == 2
    np.testing.assert_array_equal(traces["snr"], np.arange(4.0))
    back = Recording.from_pynapple(traces, given)
    np.testing.assert_array_equal(back.traces, recording.traces)
    np.testing.assert_array_equal(back.cell_ids, recording.cell_ids)
    np.testing.assert_array_equal(back.starts, recording.starts)
    np.testing.assert_allclose(back.times, TIMES)
    assert back.rate == pytest.approx(RATE)
    assert {n: v.kind for n, v in back.behavior.items()} == {
        n: v.kind for n, v in recording.behavior.items()
    }
    known = recording.behavior["x"].known
    for name in ("x", "xy"):
        np.testing.assert_allclose(
            back.behavior[name].values[known], recording.behavior[name].values[known]
        )
    np.testing.assert_array_equal(back.behavior["licks"].values[:, 0], LICKS)


def test_behaviour_on_another_clock_is_brought_to_the_frames_and_unknown_beyond(recording):
    traces = recording.to_pynapple()["traces"]
    at = np.arange(0, 5, 0.001)
    back = Recording.from_pynapple(traces, {"speed": nap.Tsd(t=at, d=at)})
    known = back.behavior["speed"].known
    np.testing.assert_array_equal(known, TIMES <= 5.02)
    np.testing.assert_allclose(back.behavior["speed"].values[known, 0], TIMES[known], atol=0.03)


@pytest.mark.parametrize("order", [("unit_id", "frame"), ("frame", "unit_id")])
def test_an_array_with_named_axes_is_a_recording(order):
    values = RNG.normal(size=(4, N))
    coords = {"unit_id": [2, 3, 7, 9], "time": ("frame", TIMES), "snr": ("unit_id", np.ones(4))}
    array = xr.DataArray(values, dims=("unit_id", "frame"), coords=coords, name="C")
    found = Recording.from_xarray(array.transpose(*order), {"x": np.sin(TIMES)})
    np.testing.assert_allclose(found.traces.T, values, rtol=1e-6)
    np.testing.assert_array_equal(found.cell_ids, [2, 3, 7, 9])
    assert found.rate == pytest.approx(RATE)
    assert list(found.cells) == ["snr"]
    assert found.behavior["x"].kind == "continuous"


def test_axes_and_times_that_are_missing_are_asked_for():
    with pytest.raises(InputError, match="has the axes a, b"):
        Recording.from_xarray(xr.DataArray(np.zeros((5, 3)), dims=("a", "b")))
    unnamed = xr.DataArray(np.zeros((5, 3)), dims=("frame", "cell"))
    with pytest.raises(InputError, match="give `rate`"):
        Recording.from_xarray(unnamed)
    assert Recording.from_xarray(unnamed, rate=30.0).rate == 30


def test_neither_is_imported_before_it_is_used():
    code = (
        "import sys; from napari_xcebra import Recording; "
        "print({'pynapple', 'xarray'} & {*sys.modules})"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "set()"
