"""What is dropped on napari's window: recordings open, everything else is left to others."""

import numpy as np
import pytest
from napari.layers import Layer

from napari_xcebra.errors import InputError
from napari_xcebra.io import save_recording
from napari_xcebra.io.opening import Opening
from napari_xcebra.readers import get_reader, read
from napari_xcebra.recording import Recording
from napari_xcebra.simulate import field
from napari_xcebra.widgets.state.state import KEY


@pytest.fixture(scope="module")
def recording() -> Recording:
    return field(cells=12, frames=300, shape=(96, 96), seed=0).recording


@pytest.fixture
def saved(recording, tmp_path):
    return save_recording(recording, tmp_path / "recording.npz")


def test_a_recording_becomes_layers_that_say_how_it_was_opened(saved, recording):
    reader = get_reader(str(saved))
    layers = [Layer.create(*layer) for layer in reader(str(saved))]

    assert [layer.name for layer in layers][-1] == "cells"
    entry = layers[-1].metadata[KEY]
    assert entry["opening"] == Opening(saved)
    np.testing.assert_array_equal(entry["value"].traces, recording.traces)


def test_one_path_may_come_as_a_list(saved):
    assert get_reader([str(saved)]) is not None
    assert len(read([str(saved)])) == 5


def test_plain_arrays_tables_stacks_and_other_folders_are_left_to_other_readers(saved, tmp_path):
    np.save(tmp_path / "image.npy", np.zeros((10, 10)))
    np.savez(tmp_path / "arrays.npz", traces=np.zeros((30, 4)), rate=10.0)
    (tmp_path / "points.csv").write_text("axis-0,axis-1\n1,2\n")
    (tmp_path / "images").mkdir()
    for name in ("image.npy", "arrays.npz", "points.csv", "images", "not there.nwb"):
        assert get_reader(str(tmp_path / name)) is None
    assert get_reader([str(saved), str(saved)]) is None


def test_a_damaged_recording_is_a_sentence(saved, tmp_path):
    whole = saved.read_bytes()
    damaged = tmp_path / "damaged.npz"
    damaged.write_bytes(whole[: len(whole) // 2] + bytes(100) + whole[len(whole) // 2 + 100 :])
    with pytest.raises(InputError, match="damaged"):
        read(str(damaged))
