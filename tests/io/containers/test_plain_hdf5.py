"""Arrays in an HDF5 file of no known program are opened by name."""

import h5py
import numpy as np
import pytest

from napari_xcebra.errors import InputError
from napari_xcebra.io import open_recording
from napari_xcebra.io.containers import hdf5 as arrays

RNG = np.random.default_rng(0)
TRACES = RNG.normal(size=(400, 12)).cumsum(axis=0)


@pytest.fixture
def worm(tmp_path):
    """As a lab that images worms saves its recordings."""
    path = tmp_path / "worm.h5"
    with h5py.File(path, "w") as file:
        file["gcamp/trace_array"] = TRACES
        file["gcamp/trace_array_original"] = TRACES + 1
        file["gcamp/idx_splits"] = np.tile(np.arange(400), (2, 1))
        file["behavior/velocity"] = RNG.normal(size=400)
        file["behavior/events"] = np.arange(12).reshape(2, 6)
        file["neuron_class"] = np.array([f"AV{i}" for i in range(12)], h5py.string_dtype())
    return path


def test_the_arrays_of_a_plain_hdf5_file_are_listed(worm):
    with pytest.raises(InputError, match=r"`array`.*gcamp/trace_array 400 × 12, gcamp/trace_arr"):
        open_recording(worm, rate=1.67)


@pytest.mark.parametrize("name", ["gcamp/trace_array", "/gcamp/trace_array", "trace_array"])
def test_the_array_that_was_named_is_opened_with_the_behaviour_beside_it(worm, name):
    recording = open_recording(worm, rate=1.67, array=name)
    np.testing.assert_array_equal(recording.traces, TRACES.astype(np.float32))
    assert set(recording.behavior) == {"velocity"}
    assert list(recording.cells["neuron_class"])[:2] == ["AV0", "AV1"]


def test_traces_too_large_for_memory_stay_in_the_file(worm, monkeypatch):
    monkeypatch.setattr(arrays, "IN_MEMORY", 4 * TRACES.size)
    found = arrays.read_arrays(worm)
    assert not isinstance(found["gcamp/trace_array"], np.ndarray)
    recording = open_recording(worm, rate=1.67, array="trace_array")
    np.testing.assert_array_equal(recording.traces, TRACES.astype(np.float32))


def test_cells_in_rows_are_turned(tmp_path):
    with h5py.File(tmp_path / "a.hdf5", "w") as file:
        file["calcium"] = TRACES.T
    recording = open_recording(tmp_path / "a.hdf5", rate=5.0)
    np.testing.assert_array_equal(recording.traces, TRACES.astype(np.float32))


def test_behaviour_is_read_from_a_plain_hdf5_file(worm, tmp_path):
    np.save(tmp_path / "traces.npy", TRACES)
    with h5py.File(tmp_path / "ball.h5", "w") as file:
        file["ball/time"] = np.arange(4000) / 100
        file["ball/speed"] = RNG.random(4000)
    recording = open_recording(tmp_path / "traces.npy", tmp_path / "ball.h5", rate=10.0)
    assert set(recording.behavior) == {"speed"}
    assert recording.behavior["speed"].known.all()
