"""Traces are read the right way round, or the program asks; never silently the wrong way."""

import pickle

import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.io
from scipy.ndimage import gaussian_filter1d
from scipy.signal import lfilter

from napari_xcebra import simulate
from napari_xcebra.errors import InputError
from napari_xcebra.io import open_recording
from napari_xcebra.io.orientation import LayoutUnclear, is_per_cell, layout_of
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.recording import Footprints, Recording


def calcium(frames, cells, hz=10.0, seed=0, tau=0.8, noise=0.3):
    rng = np.random.default_rng(seed)
    spikes = rng.poisson(np.exp(rng.normal(-1.5, 0.7, cells)) / hz, (frames, cells))
    clean = lfilter([1.0], [1.0, -np.exp(-1 / (tau * hz))], spikes, axis=0)
    return (clean + rng.normal(0, noise, clean.shape)).astype(np.float32)


def noise(frames, cells, seed=0):
    return np.random.default_rng(seed).normal(size=(frames, cells)).astype(np.float32)


def write(path, arrays):
    """One of the containers that hold several arrays, by the ending of the path."""
    if path.suffix == ".npz":
        np.savez(path, **arrays)
    elif path.suffix == ".mat":
        scipy.io.savemat(path, arrays)
    elif path.suffix == ".h5":
        with h5py.File(path, "w") as file:
            for name, array in arrays.items():
                file[name] = array
    else:
        import zarr

        group = zarr.open_group(str(path), mode="w", zarr_format=2)
        for name, array in arrays.items():
            group.create_array(name, data=np.asarray(array))
    return path


CONTAINERS = ["a.npz", "a.mat", "a.h5", "a.zarr"]
RNG = np.random.default_rng(1)


# ------------------------------------------------------------ in one file


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("name", ["depth", "snr", "skew", "npix", "ROI_area", "layer", "redcell"])
@pytest.mark.parametrize("smooth", [True, False])
def test_an_array_with_an_entry_a_cell_tells_cells_and_is_no_behaviour(
    tmp_path, container, name, smooth
):
    traces = (calcium if smooth else noise)(800, 60)
    depth = RNG.uniform(0, 300, (60, 1))
    path = write(tmp_path / container, {"dff": traces.T, name: depth})
    recording = open_recording(path, rate=10.0)
    assert (recording.n_cells, recording.n_frames) == (60, 800)
    assert not recording.behavior
    np.testing.assert_allclose(recording.cells[name], depth[:, 0])
    assert any("60 entries for each cell" in note for note in recording.notes)


def test_coordinates_of_cells_are_two_columns_of_their_properties(tmp_path):
    """As in a recording of zebrafish: 114 × 4,245 and cell_coordinates 114 × 2."""
    traces, where = calcium(1500, 114, hz=2.0), RNG.uniform(0, 500, (114, 2))
    path = write(tmp_path / "fish.mat", {"fluorescence": traces.T, "cell_coordinates": where})
    recording = open_recording(path, rate=2.0)
    assert (recording.n_cells, recording.n_frames) == (114, 1500)
    assert list(recording.cells) == ["cell_coordinates_1", "cell_coordinates_2"]
    np.testing.assert_allclose(recording.cells["cell_coordinates_2"], where[:, 1])
    assert not recording.behavior


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("cells_first", [True, False])
def test_evidence_that_disagrees_is_a_question_with_both_readings(tmp_path, container, cells_first):
    traces = calcium(800, 60)
    arrays = {"dff": traces.T if cells_first else traces, "speed": RNG.normal(size=60).cumsum()}
    path = write(tmp_path / container, arrays)
    with pytest.raises(LayoutUnclear) as asked:
        open_recording(path, rate=10.0)
    sentence = str(asked.value)
    for words in ("60 cells × 800 frames" if cells_first else "800 cells × 60 frames",
                  "speed has 60 entries", "similar", "cells-frames", "frames-cells"):  # fmt: skip
        assert words in sentence.replace("60 frames × 800", "800 frames × 60") or words in sentence
    assert isinstance(asked.value, InputError)
    layout = "cells-frames" if cells_first else "frames-cells"
    assert open_recording(path, rate=10.0, layout=layout).n_cells == 60


def test_the_question_crosses_processes_with_its_picture(tmp_path):
    np.save(tmp_path / "a.npy", noise(300, 50))
    with pytest.raises(LayoutUnclear) as asked:
        open_recording(tmp_path / "a.npy", rate=1.0)
    copy = pickle.loads(pickle.dumps(asked.value))
    assert str(copy) == str(asked.value)
    assert copy.shape == (300, 50)
    np.testing.assert_array_equal(copy.block, asked.value.block)


@pytest.mark.parametrize(("frames", "cells"), [(200, 200), (2000, 200), (300, 250)])
def test_without_smoothness_and_without_other_evidence_it_asks(tmp_path, frames, cells):
    for name, traces in (("a.npy", noise(frames, cells)), ("b.npy", noise(frames, cells).T)):
        np.save(tmp_path / name, traces)
        with pytest.raises(LayoutUnclear, match="cells-frames for"):
            open_recording(tmp_path / name, rate=1.0)


def test_as_many_cells_as_frames_are_asked_about_unless_the_name_tells(tmp_path):
    np.save(tmp_path / "a.npy", calcium(150, 150))
    with pytest.raises(LayoutUnclear):
        open_recording(tmp_path / "a.npy", rate=10.0)
    np.save(tmp_path / "cells_x_time.npy", calcium(150, 150).T)
    recording = open_recording(tmp_path / "cells_x_time.npy", rate=10.0)
    np.testing.assert_array_equal(recording.traces, calcium(150, 150))


# ------------------------------------------------------------ with files beside


@pytest.mark.parametrize("smooth", [True, False])
@pytest.mark.parametrize("cells_first", [True, False])
def test_behaviour_that_is_given_tells_frames(tmp_path, smooth, cells_first):
    """As 50,000 × 20,000 with a table of 20,000 rows: more cells than frames."""
    traces = (calcium if smooth else noise)(200, 500)
    np.save(tmp_path / "a.npy", traces.T if cells_first else traces)
    pd.DataFrame({"speed": np.arange(200.0)}).to_csv(tmp_path / "b.csv", index=False)
    recording = open_recording(tmp_path / "a.npy", tmp_path / "b.csv", rate=10.0)
    np.testing.assert_array_equal(recording.traces, traces)
    (note,) = (note for note in recording.notes if "was read as" in note and "a.npy" in note)
    assert "b.csv has 200 rows" in note
    assert "guess" not in note


def test_a_table_that_only_lies_beside_does_not_make_it_sure(tmp_path):
    np.save(tmp_path / "a.npy", noise(200, 500))
    pd.DataFrame({"speed": np.arange(200.0)}).to_csv(tmp_path / "b.csv", index=False)
    with pytest.raises(LayoutUnclear, match=r"b\.csv beside it has 200 rows"):
        open_recording(tmp_path / "a.npy", rate=10.0)


def test_the_table_of_another_recording_beside_says_nothing(tmp_path):
    np.save(tmp_path / "a.npy", noise(200, 500))
    pd.DataFrame(noise(500, 80)).to_csv(tmp_path / "other.csv", index=False)
    with pytest.raises(LayoutUnclear) as error:
        open_recording(tmp_path / "a.npy", rate=10.0)
    assert "other.csv" not in str(error.value)


def test_how_long_the_behaviour_lasts_tells_frames(tmp_path):
    traces = noise(400, 300)
    np.save(tmp_path / "a.npy", traces.T)
    times = np.arange(0, 40, 0.02)
    table = pd.DataFrame({"time": times, "speed": np.sin(times)})
    table.to_csv(tmp_path / "b.csv", index=False)
    recording = open_recording(tmp_path / "a.npy", tmp_path / "b.csv", rate=10.0)
    np.testing.assert_array_equal(recording.traces, traces)


# ------------------------------------------------------------ kinds of traces


def sorted_cells(frames, cells, hz, seed):
    """Place cells in the order of their fields: neighbours among cells are alike as well."""
    rng = np.random.default_rng(seed)
    place = np.cumsum(np.abs(rng.normal(0.1, 0.1, frames)) / hz) % 1
    away = np.abs(place[:, None] - np.linspace(0, 1, cells))
    rate = 2 * np.exp(-(np.minimum(away, 1 - away) ** 2) / 2 / 0.06**2) / hz
    return lfilter([1.0], [1.0, -np.exp(-1 / (0.7 * hz))], rng.poisson(rate), axis=0)


def smeared(frames, cells, hz, seed):
    rng = np.random.default_rng(seed)
    return gaussian_filter1d((rng.random((frames, cells)) < 0.02).astype(float), 1.5, axis=0)


def waves(frames, cells, hz, seed):
    """One slow wave that passes through all cells, and noise."""
    phase = 2 * np.pi * (np.arange(frames)[:, None] / hz / 7 + np.linspace(0, 1, cells))
    return np.sin(phase) + 0.5 * noise(frames, cells, seed)


def raw(frames, cells, hz, seed):
    bright = np.exp(np.random.default_rng(seed).normal(5, 0.6, cells))
    return (1 + calcium(frames, cells, hz, seed)) * np.sort(bright)


def shuffled(frames, cells, hz, seed):
    return np.random.default_rng(seed).permutation(calcium(frames, cells, hz, seed))


def arena(frames, cells, hz, seed):
    return simulate.field(cells=max(cells, 60), frames=max(frames, 400), seed=seed).recording.traces


KINDS = [sorted_cells, smeared, waves, raw, shuffled]


@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize("size", [(1500, 60), (400, 300), (250, 700), (900, 12)])
@pytest.mark.parametrize("hz", [3.0, 20.0])
def test_no_kind_of_traces_is_read_the_wrong_way_round(make, size, hz):
    traces = make(*size, hz, seed=7)
    for array, cells_first in ((traces, False), (traces.T, True)):
        try:
            layout = layout_of(array, OpenSettings())
        except LayoutUnclear:
            continue
        assert layout.cells_first is cells_first
        assert layout.guessed


@pytest.mark.parametrize("size", [(1500, 60), (800, 300), (250, 700), (900, 12)])
@pytest.mark.parametrize("hz", [3.0, 20.0])
@pytest.mark.parametrize("make", [calcium, raw])
def test_ordinary_calcium_opens_without_a_question(make, size, hz):
    traces = make(*size, hz, seed=11)
    assert not layout_of(traces, OpenSettings()).cells_first
    assert layout_of(traces.T, OpenSettings()).cells_first


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cell_position", True), ("neuron.type", True), ("brain_region", True), ("SNR_comp", True),
        ("position", False), ("trial_ids", False), ("x", False), ("redness", False),
        ("frame_depth", False),
    ],
)  # fmt: skip
def test_names_tell_what_belongs_to_cells(name, expected):
    assert is_per_cell(name) is expected


# ------------------------------------------------------------ suite2p's Fall.mat


def fall(n_cells=40, n_frames=500):
    rng = np.random.default_rng(3)
    stat = []
    for i in range(n_cells):
        row, column = divmod(i, 8)
        ypix, xpix = (
            axis.ravel() for axis in np.mgrid[row * 6 : row * 6 + 4, column * 6 : column * 6 + 4]
        )
        stat.append({"ypix": ypix, "xpix": xpix, "lam": rng.random(16).astype(np.float32),
                     "npix": 16, "skew": rng.normal(), "med": [float(row), float(column)],
                     "radius": 2.0, "compact": 1.1, "overlap": np.zeros(16, bool)})  # fmt: skip
    f = 100 + 20 * calcium(n_frames, n_cells, hz=7.5).T
    return {
        "stat": np.array(stat, dtype=object),
        "ops": {"fs": 7.5, "Ly": 40, "Lx": 60, "meanImg": rng.random((40, 60)), "neucoeff": 0.6,
                "yrange": [0, 40], "xrange": [0, 60], "spikedetect": True},
        "F": f, "Fneu": f * 0.5, "spks": np.maximum(0, f - 120),
        "iscell": np.c_[rng.random(n_cells) > 0.3, rng.random(n_cells)],
        "redcell": np.c_[np.arange(n_cells) < 5, np.zeros(n_cells)],
    }  # fmt: skip


@pytest.mark.parametrize("cells", [40, 1])
def test_fall_mat_is_read_as_the_recording_it_is(tmp_path, cells):
    arrays = fall(cells)
    scipy.io.savemat(tmp_path / "Fall.mat", arrays)
    recording = open_recording(tmp_path / "Fall.mat", traces="raw")
    np.testing.assert_allclose(recording.traces, arrays["F"].T, rtol=1e-6)
    assert recording.rate == 7.5
    assert not recording.behavior
    assert recording.accepted.tolist() == (arrays["iscell"][:, 0] > 0).tolist()
    np.testing.assert_allclose(
        recording.cells["skew"], [roi["skew"] for roi in arrays["stat"]], rtol=1e-6
    )
    assert recording.cells["npix"].tolist() == [16] * cells
    assert recording.cells["red"].sum() == min(cells, 5)
    assert recording.footprints.shape == (40, 60)
    assert (recording.footprints.cell == cells - 1).sum() == 16
    assert list(recording.images) == ["mean"]
    corrected = open_recording(tmp_path / "Fall.mat", traces="corrected").traces
    np.testing.assert_allclose(corrected, (arrays["F"] - 0.6 * arrays["Fneu"]).T, rtol=1e-4)


# ------------------------------------------------------------ recordings of other labs

REAL = {
    "ca1-contexts/raw/contextual_fear_data.mat": ("contextual_fear_udf.mat", (2112, 200)),
    "ca1-vr-reward/raw/spatial_reward_data.mat": ("spatial_reward_udf.mat", (2334, 343)),
    "ca1-running-events/raw/spike_train.mat": ("stimulus_trace.mat", (3091, 472)),
    "worm-whole-brain/raw/2022-05-02-01-data.h5": (None, (1137, 136)),
    "fly-heading/raw/Fly4_1x_1.mat": (None, (750, 16)),
}


@pytest.mark.parametrize("path", REAL)
@pytest.mark.parametrize("with_behavior", [True, False])
def test_recordings_of_other_labs_are_read_the_right_way_or_asked_about(
    shared_data, path, with_behavior
):
    beside, shape = REAL[path]
    path = shared_data / "real" / path
    if not path.is_file():
        pytest.skip("no real recordings at hand")
    behavior = path.parent / beside if beside and with_behavior else None
    choices = {"array": "GROIaveMax"} if "fly" in str(path) else {}
    choices |= {"array": "gcamp/trace_array"} if "worm" in str(path) else {}
    try:
        recording = open_recording(path, behavior, rate=5.0, **choices)
    except LayoutUnclear:
        assert behavior is None
        return
    assert recording.traces.shape == shape


# ------------------------------------------------------------ what else says it


def test_an_id_that_is_always_the_same_makes_no_table_of_cells(tmp_path):
    np.save(tmp_path / "a.npy", calcium(400, 20))
    course = np.sin(np.arange(400) / 30)
    pd.DataFrame({"id": 3, "x": course}).to_csv(tmp_path / "b.csv", index=False)
    recording = open_recording(tmp_path / "a.npy", tmp_path / "b.csv", rate=10.0)
    assert recording.traces.shape == (400, 20)


@pytest.mark.parametrize("attribute", ["axes", "dims", "dimensions"])
def test_an_attribute_may_name_the_axes(tmp_path, attribute):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["dff"] = noise(300, 400).T
        file["dff"].attrs[attribute] = ["cell", "time"] if attribute == "dims" else "cell, time"
    assert open_recording(tmp_path / "a.h5", rate=10.0).traces.shape == (300, 400)


@pytest.mark.parametrize("unknown", ["frames", "cells"])
def test_frames_and_cells_without_any_value_do_not_hide_which_axis_is_time(tmp_path, unknown):
    traces = calcium(500, 60)
    traces[(slice(None, None, 2), slice(None))[:: 1 if unknown == "frames" else -1]] = np.nan
    layout = layout_of(traces.T, OpenSettings())
    assert layout.cells_first


@pytest.mark.parametrize("head", [True, False])
def test_rows_named_by_words_are_cells_with_and_without_a_header(tmp_path, head):
    names = ["soma_7", "soma_9", "dendrite_3", "spine_1"]
    traces = calcium(300, 4)
    pd.DataFrame(traces.T, index=names).to_csv(tmp_path / "a.csv", header=head)
    recording = open_recording(tmp_path / "a.csv", rate=10.0)
    np.testing.assert_allclose(recording.traces, traces, rtol=1e-5)
    assert recording.cell_ids.tolist() == [7, 9, 3, 1]


def test_nwb_of_as_many_rois_as_frames_is_read_as_it_should_be_or_asked_about(tmp_path):
    from napari_xcebra.io.formats.nwb.writing import write_nwb

    traces = calcium(60, 60)
    recording = Recording.from_arrays(traces, rate=10.0, footprints=Footprints.on_a_grid(60))
    path = write_nwb(recording, tmp_path / "a.nwb")
    before = open_recording(path).traces
    with h5py.File(path, "r+") as file:
        series = []
        file.visit(lambda name: series.append(name) if name.endswith("/data") else None)
        (data,) = [file[name] for name in series if file[name].shape == (60, 60)]
        data[...] = data[()].T
    with pytest.raises(LayoutUnclear, match="NWB lists the frames first"):
        open_recording(path)
    np.testing.assert_allclose(open_recording(path, layout="cells-frames").traces, before)
