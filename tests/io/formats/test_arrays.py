"""Traces as plain arrays and tables become recordings, or one sentence says why not."""

import io
import pickle
import struct
import zipfile
from importlib import import_module
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.io
import tifffile
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.signal import lfilter

from napari_xcebra.errors import InputError
from napari_xcebra.io import open_recording
from napari_xcebra.io.formats import arrays
from napari_xcebra.io.orientation import LayoutUnclear, layout_of
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.recording.traces import LazyTraces

RNG = np.random.default_rng(0)
TRACES = RNG.random((30, 3)).astype(np.float32)


def calcium(frames, cells):
    """Noisy calcium, cells of different brightness."""
    spikes = RNG.random((frames, cells)) < 0.05
    clean = lfilter([1.0], [1.0, -0.9], spikes, axis=0)
    noise = RNG.normal(0, 0.3, (frames, cells))
    return (clean + noise + RNG.uniform(0, 50, cells)).astype(np.float32)


CALCIUM = calcium(300, 200)


@pytest.fixture(params=["npy", "npz", "csv", "unnamed npz", "mat", "parquet", "tsv"])
def traces_file(request, tmp_path):
    if request.param == "npy":
        np.save(tmp_path / "traces.npy", TRACES)
    elif request.param == "csv":
        np.savetxt(tmp_path / "traces.csv", TRACES, delimiter=",", fmt="%.9g")
    elif request.param == "tsv":
        np.savetxt(tmp_path / "traces.tsv", TRACES, delimiter="\t", fmt="%.9g")
    elif request.param == "mat":
        scipy.io.savemat(tmp_path / "traces.mat", {"traces": TRACES})
    elif request.param == "parquet":
        names = [f"cell_{i}" for i in range(3)]
        pd.DataFrame(TRACES, columns=names).to_parquet(tmp_path / "traces.parquet")
    else:
        name = "traces" if request.param == "npz" else "arr_0"
        np.savez(tmp_path / "traces.npz", **{name: TRACES})
    return next(tmp_path.iterdir())


def test_every_ending_gives_the_same_traces(traces_file):
    recording = open_recording(traces_file, rate=10.0)
    np.testing.assert_array_equal(recording.traces, TRACES)
    assert recording.rate == 10.0
    assert recording.source == str(traces_file)


def test_a_missing_rate_is_asked_for(traces_file):
    with pytest.raises(InputError, match="does not give the frame rate: set `rate`"):
        open_recording(traces_file)


GENERIC = ["traces_cells_x_time.npy", "traces_time_x_cells.npy", "traces.npz", "traces.csv",
           "traces_v5.mat", "traces_v73.mat"]  # fmt: skip


@pytest.mark.parametrize("name", GENERIC)
def test_the_same_traces_of_other_programs_give_the_same_recording(shared_data, name):
    folder = shared_data / "generic"
    rate = {"rate": 15.0} if name.endswith(".npy") else {}
    recording = open_recording(folder / name, **rate)
    traces = np.load(folder / "traces_time_x_cells.npy")
    # the table has three digits
    np.testing.assert_allclose(recording.traces, traces, atol=6e-4 if "csv" in name else 0)
    assert recording.rate == 15.0
    np.testing.assert_array_equal(recording.cell_ids, np.arange(36))
    np.testing.assert_array_equal(
        recording.footprints.label_image(), tifffile.imread(folder / "labels.tif")
    )
    assert any("labels.tif" in note for note in recording.notes)


# which way round


@pytest.mark.parametrize("cells_first", [False, True])
def test_time_is_the_axis_along_which_traces_are_smooth(tmp_path, cells_first):
    np.save(tmp_path / "a.npy", CALCIUM.T if cells_first else CALCIUM)
    recording = open_recording(tmp_path / "a.npy", rate=1.0)
    np.testing.assert_array_equal(recording.traces, CALCIUM)
    (note,) = (note for note in recording.notes if "layout" in note)
    first, second = ("200 cells", "300 frames") if cells_first else ("300 frames", "200 cells")
    assert f"{first} × {second}" in note
    assert "a guess" in note


def test_smoothness_counts_more_than_length(tmp_path):
    few_frames = calcium(100, 400)
    np.save(tmp_path / "a.npy", few_frames.T)
    np.testing.assert_array_equal(open_recording(tmp_path / "a.npy", rate=1.0).traces, few_frames)


def test_cells_sorted_by_brightness_are_not_mistaken_for_time():
    traces = RNG.normal(size=(400, 300)) + np.sort(RNG.uniform(0, 100, 300))
    smooth = lfilter([1.0], [1.0, -0.5], traces, axis=0)
    assert not layout_of(smooth, OpenSettings()).cells_first
    assert layout_of(smooth.T, OpenSettings()).cells_first


def test_more_columns_than_rows_are_frames_if_nothing_else_tells(tmp_path):
    np.save(tmp_path / "F.npy", TRACES.T)
    recording = open_recording(tmp_path / "F.npy", rate=1.0)
    np.testing.assert_array_equal(recording.traces, TRACES)
    assert any("set `layout` to frames-cells if it is wrong" in note for note in recording.notes)


@pytest.mark.parametrize("layout", ["frames-cells", "cells-frames"])
def test_what_the_user_says_stands_above_every_sign(tmp_path, layout):
    np.save(tmp_path / "time_x_cells.npy", CALCIUM)
    np.savetxt(tmp_path / "time_x_cells.csv", CALCIUM[:, :20], delimiter=",", fmt="%.7g")
    np.savez(tmp_path / "time_x_cells.npz", traces=CALCIUM, speed=np.arange(300.0))
    for path in tmp_path.iterdir():
        recording = open_recording(path, rate=1.0, layout=layout)
        assert (recording.n_frames == 300) == (layout == "frames-cells")


@pytest.mark.parametrize(
    ("name", "cells_first"),
    [
        ("mouse3_cells_x_time", True), ("neurons-by-frames", True), ("roi_time", True),
        ("time_x_cells", False), ("frames x cells", False), ("T_x_neurons", False),
    ],
)  # fmt: skip
def test_a_name_may_say_which_way_round(name, cells_first):
    layout = layout_of(np.zeros((5, 5)), OpenSettings(), name=name)
    assert (layout.cells_first, layout.guessed) == (cells_first, False)


def test_names_that_only_sound_so_say_nothing():
    for name in ("lifetime_cells", "excellent_time", "sometimes x celloidin"):
        with pytest.raises(LayoutUnclear):
            layout_of(np.zeros((5, 5)), OpenSettings(), name=name)


@pytest.mark.parametrize("cells_first", [False, True])
def test_behaviour_in_the_same_file_tells_frames_from_cells(tmp_path, cells_first):
    noise = RNG.normal(size=(40, 60))
    traces = noise.T if cells_first else noise
    speed = np.arange(40.0)
    np.savez(tmp_path / "a.npz", traces=traces, speed=speed, iscell=np.ones(60))
    scipy.io.savemat(tmp_path / "a.mat", {"traces": traces, "speed": speed})
    for name in ("a.npz", "a.mat"):
        recording = open_recording(tmp_path / name, rate=1.0)
        np.testing.assert_allclose(recording.traces, noise, rtol=1e-6)
        np.testing.assert_array_equal(recording.behavior["speed"].values[:, 0], speed)


@pytest.mark.parametrize("cells_first", [False, True])
@pytest.mark.parametrize("name", ["labels.tif", "mouse_labels.npy", "masks.tif"])
def test_a_label_image_beside_tells_frames_from_cells_and_where_they_are(
    tmp_path, name, cells_first
):
    noise = RNG.normal(size=(12, 20))
    np.save(tmp_path / "mouse.npy", noise.T if cells_first else noise)
    labels = np.repeat(np.arange(21), 5).reshape(7, 15).astype(np.uint16)
    (tifffile.imwrite if name.endswith("tif") else np.save)(tmp_path / name, labels)
    recording = open_recording(tmp_path / "mouse.npy", rate=1.0)
    assert recording.n_cells == 20
    np.testing.assert_array_equal(recording.footprints.label_image(), labels)
    assert any(f"Footprints come from {name}" in note for note in recording.notes)


def test_labels_of_another_recording_are_passed_over(tmp_path):
    np.save(tmp_path / "mouse.npy", TRACES)
    np.save(tmp_path / "labels.npy", np.arange(100).reshape(10, 10))
    (tmp_path / "masks.tif").write_bytes(b"II*\0 not really")
    recording = open_recording(tmp_path / "mouse.npy", rate=1.0)
    assert recording.footprints is None
    assert any(note.startswith("labels.npy beside the traces") for note in recording.notes)


def test_of_several_label_images_that_of_the_same_name_is_used(tmp_path):
    for name, shape in (("a_labels.npy", (2, 2)), ("b_labels.npy", (4, 1)), ("labels.npy", (1, 4))):
        np.save(tmp_path / name, np.arange(4).reshape(shape))
    np.save(tmp_path / "b.npy", TRACES)
    assert open_recording(tmp_path / "b.npy", rate=1.0).footprints.shape == (4, 1)


def test_a_label_image_that_only_leads_out_of_the_folder_is_not_read(tmp_path):
    np.save(tmp_path / "elsewhere.npy", np.arange(4).reshape(2, 2))
    (tmp_path / "inside").mkdir()
    np.save(tmp_path / "inside" / "t.npy", TRACES)
    (tmp_path / "inside" / "labels.npy").symlink_to(tmp_path / "elsewhere.npy")
    assert open_recording(tmp_path / "inside" / "t.npy", rate=1.0).footprints is None


# arrays with names


def everything():
    """Arrays as a lab might put them into one file; 40 frames, 6 cells."""
    speed, xy = np.linspace(0, 1, 40), RNG.random((40, 2))
    labels = np.zeros((8, 9), int)
    labels.flat[:6] = range(1, 7)
    return {
        "F": RNG.random((6, 40)) + 5, "Fneu": RNG.random((6, 40)), "spks": RNG.random((40, 6)),
        "fs": 5.0, "time": 2 + np.arange(40) / 5, "speed_cm_s": speed, "xy": xy, "labels": labels,
        "meanImg": RNG.random((8, 9)), "iscell": np.c_[[1, 1, 0, 1, 1, 1], np.ones(6)],
        "cell_ids": np.array([4, 5, 6, 10, 11, 12]), "snr": np.arange(6.0), "stray": speed[:4],
    }  # fmt: skip


def write_npz(path, found):
    np.savez(path, **found)


def write_v73(path, found):
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, value in found.items():
            file[name] = np.atleast_2d(value).T
    with path.open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file".ljust(124) + struct.pack("<H2s", 0x0200, b"IM"))


@pytest.mark.parametrize(
    ("name", "write"),
    [("all.npz", write_npz), ("all.mat", scipy.io.savemat), ("v73.mat", write_v73)],
)
def test_one_file_may_hold_everything(tmp_path, name, write):
    found = everything()
    write(tmp_path / name, found)
    recording = open_recording(tmp_path / name, traces="raw")
    np.testing.assert_allclose(recording.traces, found["F"].T, rtol=1e-6)
    assert recording.rate == 5.0
    np.testing.assert_allclose(recording.times, found["time"])
    assert set(recording.behavior) == {"speed_cm_s", "xy"}
    assert recording.behavior["xy"].values.shape == (40, 2)
    np.testing.assert_array_equal(recording.footprints.label_image(), found["labels"])
    assert list(recording.images) == ["mean"]
    assert recording.accepted.tolist() == [True, True, False, True, True, True]
    assert recording.cell_ids.tolist() == [4, 5, 6, 10, 11, 12]
    np.testing.assert_array_equal(recording.cells["snr"], np.arange(6))
    (note,) = (note for note in recording.notes if "left out" in note)
    assert "stray" in note
    assert "speed" not in note
    events = open_recording(tmp_path / name, traces="events").traces
    np.testing.assert_allclose(events, found["spks"], rtol=1e-6)
    corrected = open_recording(tmp_path / name, traces="corrected", neuropil=0.5).traces
    np.testing.assert_allclose(corrected, (found["F"] - 0.5 * found["Fneu"]).T, rtol=1e-5)


def test_a_pixel_that_float32_cannot_hold_counts_as_missing(tmp_path):
    found = everything()
    found["meanImg"][0, 0] = 1e300
    write_npz(tmp_path / "all.npz", found)
    image = open_recording(tmp_path / "all.npz").images["mean"]
    assert image[0, 0] == image.min()


@pytest.mark.parametrize(
    ("name", "kind"),
    [("dff", "dff"), ("F_dff", "dff"), ("C", "denoised"), ("deconv", "events"), ("X", "raw"),
     ("Calcium", "raw"), ("whatever", "raw")],
)  # fmt: skip
def test_the_name_of_an_array_says_what_it_is(tmp_path, name, kind):
    np.savez(tmp_path / "a.npz", **{name: TRACES})
    recording = open_recording(tmp_path / "a.npz", rate=1.0, traces=kind)
    np.testing.assert_array_equal(recording.traces, TRACES)


def test_a_small_letter_is_a_variable_and_a_capital_one_traces(tmp_path):
    x = np.arange(30.0)
    np.savez(tmp_path / "a.npz", S=TRACES, c=x, x=np.c_[x, x])
    assert list(open_recording(tmp_path / "a.npz", rate=1.0).behavior) == ["c", "x"]


def test_a_position_beside_an_array_without_a_usual_name_is_behaviour(tmp_path):
    np.savez(
        tmp_path / "a.npz", mine=RNG.normal(size=(50, 20)), where=RNG.normal(size=(50, 2)).cumsum(0)
    )
    recording = open_recording(tmp_path / "a.npz", rate=1.0)
    assert recording.n_cells == 20
    assert list(recording.behavior) == ["where"]


def test_footprints_of_the_file_can_be_turned(tmp_path):
    labels = np.arange(4).reshape(1, 4)
    np.savez(tmp_path / "a.npz", traces=TRACES, labels=labels)
    recording = open_recording(tmp_path / "a.npz", rate=1.0, swap_axes=True)
    np.testing.assert_array_equal(recording.footprints.label_image(), labels.T)


def test_words_are_categories_or_names(tmp_path):
    words = np.array(["go", "stop", "go"] * 10)
    np.savez(tmp_path / "a.npz", traces=TRACES, cue=words, area=np.array(["V1", "V1", "LM"]))
    recording = open_recording(tmp_path / "a.npz", rate=1.0)
    assert recording.behavior["cue"].kind == "discrete"
    assert recording.cells["area"].tolist() == ["V1", "V1", "LM"]


def test_an_npz_without_traces_says_what_it_has(tmp_path):
    wide = RNG.random((30, 20))
    np.savez(tmp_path / "other.npz", a=wide, b=wide)
    with pytest.raises(InputError, match=r"set `array` .* It has: a 30 × 20, b 30 × 20"):
        open_recording(tmp_path / "other.npz", rate=1.0)
    chosen = open_recording(tmp_path / "other.npz", rate=1.0, array="b", layout="frames-cells")
    assert chosen.n_frames == 30
    np.savez(tmp_path / "none.npz", a=np.arange(5))
    with pytest.raises(InputError, match=r"it has: a 5"):
        open_recording(tmp_path / "none.npz", rate=1.0)


def test_footprints_of_the_file_that_do_not_fit_are_remarked_upon(tmp_path):
    np.savez(tmp_path / "a.npz", traces=TRACES, labels=np.arange(100).reshape(10, 10))
    recording = open_recording(tmp_path / "a.npz", rate=1.0)
    assert recording.footprints is None
    assert any("labels of a.npz has 99 cells but the traces have 3" in n for n in recording.notes)


def test_a_clock_that_goes_back_is_a_variable_like_others(tmp_path):
    np.savez(tmp_path / "a.npz", traces=TRACES, time=np.r_[np.arange(15), np.arange(15)])
    recording = open_recording(tmp_path / "a.npz", rate=2.0)
    assert recording.times[-1] == 29 / 2
    assert list(recording.behavior) == ["time"]


# large arrays


@pytest.mark.parametrize("write", [np.save, np.savez])
@pytest.mark.parametrize("cells_first", [False, True])
@pytest.mark.parametrize("columns_first", [False, True])
def test_large_arrays_stay_on_disk(tmp_path, monkeypatch, write, cells_first, columns_first):
    for module in ("formats.arrays", "containers.npy", "assemble"):
        # by its full name, since io.assemble is also a function
        monkeypatch.setattr(import_module(f"napari_xcebra.io.{module}"), "IN_MEMORY", 1000)
    array = CALCIUM.T if cells_first else CALCIUM
    write(tmp_path / "big", np.asfortranarray(array) if columns_first else array)
    recording = open_recording(next(tmp_path.iterdir()), rate=1.0)
    assert isinstance(recording.traces, LazyTraces)
    assert recording.traces.shape == CALCIUM.shape
    np.testing.assert_array_equal(recording.traces[10:20, [3, 1]], CALCIUM[10:20, [3, 1]])
    again = pickle.loads(pickle.dumps(recording.traces))
    np.testing.assert_array_equal(np.asarray(again), CALCIUM)


def test_large_arrays_that_are_compressed_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr("napari_xcebra.io.containers.npy.IN_MEMORY", 1000)
    np.savez_compressed(tmp_path / "a.npz", traces=CALCIUM)
    recording = open_recording(tmp_path / "a.npz", rate=1.0)
    np.testing.assert_array_equal(recording.traces, CALCIUM)


# tables


def test_cells_of_a_table_keep_the_numbers_in_its_header(tmp_path):
    (tmp_path / "t.csv").write_text("frame,cell_12,cell_7\n0,0.5,1\n1,0.25,2\n")
    recording = open_recording(tmp_path / "t.csv", rate=1.0)
    np.testing.assert_array_equal(recording.cell_ids, [12, 7])
    np.testing.assert_array_equal(recording.traces, [[0.5, 1], [0.25, 2]])


def test_names_that_say_more_than_a_number_are_kept(tmp_path):
    (tmp_path / "t.csv").write_text("pyr 3,pv 4\n0.5,1\n0.25,2\n")
    recording = open_recording(tmp_path / "t.csv", rate=1.0)
    assert recording.cells["name"].tolist() == ["pyr 3", "pv 4"]
    assert recording.cell_ids.tolist() == [3, 4]
    (tmp_path / "t.csv").write_text("left,right\n0.5,1\n0.25,2\n")
    recording = open_recording(tmp_path / "t.csv", rate=1.0)
    assert recording.cells["name"].tolist() == ["left", "right"]
    assert recording.cell_ids.tolist() == [0, 1]


def test_ids_that_head_a_table_are_no_frame(tmp_path):
    for name, ids in (("t", [3, 7, 9]), ("u", [14, 3, 22])):
        pd.DataFrame(TRACES, columns=ids).to_csv(tmp_path / f"{name}.csv", index=False)
        recording = open_recording(tmp_path / f"{name}.csv", rate=1.0)
        np.testing.assert_allclose(recording.traces, TRACES)
        assert recording.cell_ids.tolist() == ids
        assert any("ids of cells" in note for note in recording.notes)


def test_times_that_head_a_table_are_the_clock(tmp_path):
    table = pd.DataFrame(CALCIUM[:40, :60].T, columns=[f"{t:.2f}" for t in np.arange(40) / 5])
    table.to_csv(tmp_path / "t.csv", index=False)
    recording = open_recording(tmp_path / "t.csv")
    np.testing.assert_allclose(recording.traces, CALCIUM[:40, :60], rtol=1e-5)
    assert recording.rate == 5.0


def test_ids_beside_words_are_cells_and_the_words_behaviour(tmp_path):
    (tmp_path / "t.csv").write_text("time,3,7,9,speed\n0.0,1,2,3,7\n0.1,1,3,3,8\n0.2,2,3,4,9\n")
    recording = open_recording(tmp_path / "t.csv")
    assert (recording.cell_ids.tolist(), list(recording.behavior)) == ([3, 7, 9], ["speed"])


def test_a_column_of_ids_says_that_rows_are_cells_and_others_what_is_known_of_them(tmp_path):
    for counted in ("", "t"):
        table = pd.DataFrame(CALCIUM[:40, :5].T, columns=[f"{counted}{i}" for i in range(40)])
        table.insert(0, "depth", [10.0, 20, 30, 40, 50])
        table.insert(0, "cell_id", [4, 2, 9, 7, 8])
        table.to_csv(tmp_path / "t.csv", index=False)
        recording = open_recording(tmp_path / "t.csv", rate=1.0)
        np.testing.assert_allclose(recording.traces, CALCIUM[:40, :5], rtol=1e-5)
        assert recording.cell_ids.tolist() == [4, 2, 9, 7, 8]
        assert recording.cells["depth"].tolist() == [10, 20, 30, 40, 50]


@pytest.mark.parametrize(("clock", "rate"), [("frame", 4.0), ("Time (s)", None)])
def test_a_row_for_each_cell_and_frame_is_understood(tmp_path, clock, rate):
    frame, cell = np.meshgrid(np.arange(40), [4, 2, 9], indexing="ij")
    table = pd.DataFrame({"roi": cell.ravel(), clock: frame.ravel() / (1 if rate else 4)})
    table["dff"] = CALCIUM[:40, :3].ravel()
    table.sample(frac=1, random_state=0).to_csv(tmp_path / "t.csv", index=False)
    recording = open_recording(tmp_path / "t.csv", **({"rate": rate} if rate else {}))
    np.testing.assert_allclose(recording.traces, CALCIUM[:40, [1, 0, 2]], rtol=1e-5)
    assert (recording.cell_ids.tolist(), recording.rate) == ([2, 4, 9], 4.0)
    table["neuropil"] = 0.5
    table.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(InputError, match="several rows for each roi"):
        open_recording(tmp_path / "t.csv", rate=1.0)
    pd.concat([table, table]).drop(columns="neuropil").to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(InputError, match="two rows for the same roi"):
        open_recording(tmp_path / "t.csv", rate=1.0)


@pytest.mark.parametrize("cells_first", [True, False])
def test_names_of_axes_tell_cells_from_frames(tmp_path, cells_first):
    noise = RNG.random((60, 80)).astype(np.float32)
    with h5py.File(tmp_path / "t.nc", "w") as file:
        file["C"] = noise
        for axis, name in enumerate(("unit_id", "frame")[:: 1 if cells_first else -1]):
            file[name] = np.arange(noise.shape[axis])
            file[name].make_scale(name)
            file["C"].dims[axis].attach_scale(file[name])
    recording = open_recording(tmp_path / "t.nc", rate=1.0)
    np.testing.assert_array_equal(recording.traces, noise.T if cells_first else noise)
    assert any("axes are" in note for note in recording.notes)


def test_frames_that_number_rows_in_another_order_sort_them(tmp_path):
    table = pd.DataFrame({"Frame": range(1, 31), "pyr 1": TRACES[:, 0], "pv 2": TRACES[:, 1]})
    table.iloc[::-1].to_csv(tmp_path / "t.csv", index=False)
    recording = open_recording(tmp_path / "t.csv", rate=1.0)
    np.testing.assert_allclose(recording.traces, TRACES[:, :2])
    table.iloc[5:].to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(InputError, match=r"Frame of .* numbers the frames 6 to 30 in 25 rows"):
        open_recording(tmp_path / "t.csv", rate=1.0)


@pytest.mark.parametrize(("name", "scale"), [("time", 1), ("Time (ms)", 1000), ("t_s", 1)])
def test_a_column_of_times_is_the_clock(tmp_path, name, scale):
    times = 3 + np.arange(30) / 15
    table = pd.DataFrame({name: np.round(times * scale, 4), "a": TRACES[:, 0], "b": TRACES[:, 1]})
    table.to_csv(tmp_path / "t.csv", index=False)
    recording = open_recording(tmp_path / "t.csv")
    assert recording.n_cells == 2
    assert recording.rate == pytest.approx(15, rel=1e-4)
    np.testing.assert_allclose(recording.times, times, atol=1e-4)


def test_a_clock_without_a_header_is_known_by_its_even_steps(tmp_path):
    times = np.arange(30) * 0.05
    np.savetxt(tmp_path / "t.csv", np.c_[times, TRACES], delimiter=",")
    recording = open_recording(tmp_path / "t.csv")
    assert (recording.rate, recording.n_cells) == (20.0, 3)
    assert any("first column" in note for note in recording.notes)
    np.savetxt(tmp_path / "t.csv", np.c_[np.arange(1, 31), TRACES], delimiter=",")
    recording = open_recording(tmp_path / "t.csv", rate=4.0)
    np.testing.assert_allclose(recording.traces, TRACES, rtol=1e-6)


@pytest.mark.parametrize("clock", ["behavior_time", "speed_t"])
def test_behaviour_with_a_clock_of_its_own_is_placed_by_that_of_the_frames(tmp_path, clock):
    times = np.arange(0, 30, 0.02)
    arrays = {
        "dff": CALCIUM.T,
        "dff_t": 7 + np.arange(300) / 10,
        "speed": np.sin(times),
        clock: 7 + times,
    }
    np.savez(tmp_path / "a.npz", **arrays)
    recording = open_recording(tmp_path / "a.npz")
    assert recording.rate == 10
    speed = recording.behavior["speed"].values[:, 0]
    np.testing.assert_allclose(speed, np.sin(np.arange(300) / 10), atol=0.02)
    arrays.pop("dff_t")  # where the frames have no clock, nothing tells when the other one began
    np.savez(tmp_path / "a.npz", **arrays)
    recording = open_recording(tmp_path / "a.npz", rate=10)
    assert not recording.behavior
    assert any("speed" in note and "left out" in note for note in recording.notes)


def test_axes_of_one_entry_in_matlab_are_none(tmp_path):
    scipy.io.savemat(tmp_path / "a.mat", {"dff": CALCIUM.T[None], "fs": 10.0})
    recording = open_recording(tmp_path / "a.mat")
    np.testing.assert_array_equal(recording.traces[:], CALCIUM)


def test_numbers_of_rows_are_ids_where_rows_are_cells(tmp_path):
    rows = np.c_[np.arange(1, 201), CALCIUM.T]
    np.savetxt(tmp_path / "a.csv", rows, delimiter=",", fmt="%.7g")
    recording = open_recording(tmp_path / "a.csv", rate=10, layout="cells-frames")
    assert recording.traces.shape == (300, 200)
    assert list(recording.cell_ids) == list(range(1, 201))


def test_traces_may_lie_on_dates(tmp_path):
    stamps = pd.Timestamp("2026-03-01T10:00Z") + pd.to_timedelta(np.arange(300) / 10, unit="s")
    table = pd.DataFrame(CALCIUM[:, :5], columns=[*"abcde"])
    table.insert(0, "timestamp", [stamp.isoformat() for stamp in stamps])
    table.to_csv(tmp_path / "a.csv", index=False)
    recording = open_recording(tmp_path / "a.csv")
    assert (recording.traces.shape, recording.rate) == ((300, 5), 10)


def test_columns_beside_those_of_cells_are_behaviour(tmp_path):
    (tmp_path / "t.csv").write_text("roi1,roi2,speed\n0.5,1,7\n0.25,2,8\n0.1,3,9\n")
    recording = open_recording(tmp_path / "t.csv", rate=1.0)
    assert recording.n_cells == 2
    assert recording.behavior["speed"].values[:, 0].tolist() == [7, 8, 9]


@pytest.mark.parametrize("header", ["cell,0.0,0.5,1.0,1.5", "cell,f0,f1,f2,f3"])
def test_rows_with_names_are_cells(tmp_path, header):
    (tmp_path / "t.csv").write_text(f"{header}\nleft,1,2,3,4\nright,5,6,7,8\n")
    recording = open_recording(tmp_path / "t.csv", **({} if "0.5" in header else {"rate": 2.0}))
    np.testing.assert_array_equal(recording.traces, [[1, 5], [2, 6], [3, 7], [4, 8]])
    assert recording.cells["name"].tolist() == ["left", "right"]
    assert recording.rate == 2.0


def test_a_table_of_numbers_alone_may_lie_either_way(tmp_path):
    for array in (CALCIUM[:, :40], CALCIUM[:, :40].T):
        np.savetxt(tmp_path / "t.csv", array, delimiter=",", fmt="%.7g")
        traces = open_recording(tmp_path / "t.csv", rate=1.0).traces
        np.testing.assert_allclose(traces, CALCIUM[:, :40], rtol=1e-6)


@pytest.mark.parametrize("index", [True, False])
def test_a_table_as_pandas_writes_it_is_understood(tmp_path, index):
    pd.DataFrame(TRACES).to_csv(tmp_path / "t.csv", index=index)
    np.testing.assert_allclose(open_recording(tmp_path / "t.csv", rate=1.0).traces, TRACES)


def test_a_table_from_a_spreadsheet_with_decimal_commas_is_understood(tmp_path):
    (tmp_path / "t.csv").write_text("a;b\n0,5;1\n0,25;2\n", encoding="utf-8-sig")
    np.testing.assert_array_equal(
        open_recording(tmp_path / "t.csv", rate=1.0).traces, [[0.5, 1], [0.25, 2]]
    )


def test_a_cell_with_gaps_is_kept_but_not_accepted(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n1,\n")
    recording = open_recording(tmp_path / "t.csv", rate=1.0)
    assert recording.accepted.tolist() == [True, False]
    assert any("NaN or infinite" in note for note in recording.notes)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "t.csv"),
        (b"\x89PNG\r\n\x1a\n\x00\xff\xfe", "cannot be read as a table"),
        (b"a,b\n1,2\nx,3\n", "Column a of .* not numbers"),
        (b"a,b\n", "no rows"),
        (b"time,a\n0,1\n0,2\n", "Column time of .* does not increase"),
        (b"time\n0\n0.1\n", "no column of traces"),
        (b"x,y,speed\n0,1,2\n1,2,3\n", "x, y, speed, which are behaviour, and none of traces"),
    ],
)
def test_a_table_that_holds_no_traces_is_refused(tmp_path, content, sentence):
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(InputError, match=sentence):
        open_recording(tmp_path / "t.csv", rate=1.0)


# what is damaged, and what is meant to do damage


@pytest.mark.parametrize("length", [0, 5, 50, 150])
@pytest.mark.parametrize("write", [np.save, np.savez])
def test_a_truncated_array_is_refused(tmp_path, write, length):
    write(tmp_path / "traces", TRACES)
    path = next(tmp_path.iterdir())
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(InputError, match="cannot be read: it is damaged"):
        open_recording(path, rate=10.0)


def test_an_array_that_is_longer_than_it_says_is_refused(tmp_path):
    np.save(tmp_path / "traces.npy", TRACES)
    with (tmp_path / "traces.npy").open("ab") as file:
        file.write(b"more")
    with pytest.raises(InputError, match="longer than its header says"):
        open_recording(tmp_path / "traces.npy", rate=10.0)


class Trap:
    sprung = False

    def __setstate__(self, state):
        Trap.sprung = True

    def __getstate__(self):
        return {"set": True}


def test_a_pickle_is_never_opened(tmp_path):
    np.save(tmp_path / "stat.npy", np.array([Trap()], dtype=object), allow_pickle=True)
    (tmp_path / "raw.npy").write_bytes(pickle.dumps(Trap()))
    np.savez(tmp_path / "traces.npz", traces=np.array([Trap()], dtype=object))
    for path in tmp_path.iterdir():
        with pytest.raises(InputError):
            open_recording(path, rate=1.0)
    assert not Trap.sprung


def test_what_a_file_holds_matters_more_than_its_name(tmp_path):
    np.save(tmp_path / "t.npy", TRACES)
    (tmp_path / "t.npy").rename(tmp_path / "t.dat")
    np.testing.assert_array_equal(open_recording(tmp_path / "t.dat", rate=1.0).traces, TRACES)
    np.savez(tmp_path / "t.npz", traces=TRACES)
    (tmp_path / "t.npz").rename(tmp_path / "t.csv")
    np.testing.assert_array_equal(open_recording(tmp_path / "t.csv", rate=1.0).traces, TRACES)


def npy_claiming(shape):
    file = io.BytesIO()
    about = {"descr": "<f4", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, about)
    return file.getvalue() + bytes(64)


@pytest.mark.parametrize(
    "shape", [(10**6, 10**6), (2**62, 4), (-5, -5), (), (7,), (0, 4), (4, 4, 1)]
)
def test_an_array_that_cannot_be_traces_is_refused(tmp_path, shape):
    (tmp_path / "t.npy").write_bytes(npy_claiming(shape)[: None if len(shape) > 1 else -64])
    with pytest.raises(InputError, match=r"t\.npy"):
        open_recording(tmp_path / "t.npy", rate=1.0)


def test_a_zip_that_claims_a_terabyte_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "t.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("traces.npy", npy_claiming((10**6, 10**6)))
    content = bytearray((tmp_path / "t.npz").read_bytes())
    place = content.index(b"PK\1\2") + 24
    content[place : place + 4] = struct.pack("<I", 2**32 - 2)
    (tmp_path / "t.npz").write_bytes(content)
    with pytest.raises(InputError, match=r"damaged|absurd"):
        open_recording(tmp_path / "t.npz", rate=1.0)


def test_names_in_a_zip_lead_nowhere(tmp_path):
    (tmp_path / "in").mkdir()
    np.savez(tmp_path / "in" / "t.npz", traces=TRACES, **{"../../out": np.arange(30.0)})
    open_recording(tmp_path / "in" / "t.npz", rate=1.0)
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["in", "t.npz"]


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sound")
    np.save(folder / "t.npy", TRACES)
    write_npz(folder / "t.npz", everything())
    np.savez_compressed(folder / "u.npz", **everything())
    scipy.io.savemat(folder / "t.mat", everything())
    (folder / "t.csv").write_text("time,cell_1,cell_2\n0,0.5,1\n1,0.25,2\n2,1,1\n")
    (folder / "u.csv").write_text("cell,0.0,0.5,1.0\nleft,1,2,3\nright,5,6,7\n")
    return [(p.suffix, p.read_bytes()) for p in sorted(folder.iterdir())], folder / "damaged"


@settings(max_examples=200, suppress_health_check=list(HealthCheck))
@given(
    which=st.integers(0, 5),
    keep=st.floats(0, 1),
    flips=st.lists(st.tuples(st.floats(0, 0.999), st.integers(0, 255)), max_size=4),
    early=st.booleans(),
    renamed=st.sampled_from([None, None, None, ".npy", ".npz", ".csv", ".mat", ".parquet"]),
)
def test_damage_gives_one_sentence_or_a_recording(sound, which, keep, flips, early, renamed):
    files, folder = sound
    suffix, content = files[which][0], bytearray(files[which][1])
    reach = min(len(content), 200) if early else len(content)
    for place, value in flips:
        content[int(place * reach)] = value
    folder.mkdir(exist_ok=True)
    path = folder / f"t{renamed or suffix}"
    path.write_bytes(content if keep > 0.5 else content[: int(2 * keep * len(content))])
    try:
        # scipy may crash over what is damaged
        open_recording(path, rate=1.0, guarded=path.suffix == ".mat" or suffix == ".mat")
    except InputError as error:
        assert "\n" not in str(error)
    path.unlink()


def test_an_unknown_format_says_what_was_looked_for(tmp_path):
    (tmp_path / "movie.tif").write_bytes(b"II*\0")
    with pytest.raises(InputError, match=r"Looked for: .*a recording saved .*; an array or table"):
        open_recording(tmp_path / "movie.tif")
    with pytest.raises(InputError, match="There is no recording"):
        open_recording(tmp_path / "nothing")
    assert not arrays.sniff(Path("nothing"))


def test_more_frames_than_any_recording_has_are_refused_at_once(tmp_path):
    path = tmp_path / "traces.npy"
    with path.open("wb") as file:
        about = {"descr": "<f4", "fortran_order": False, "shape": (40_000_000, 3)}
        np.lib.format.write_array_header_1_0(file, about)
        file.truncate(file.tell() + 40_000_000 * 12)
    with pytest.raises(InputError, match=r"40,000,000 frames: up to 10,000,000 are read"):
        open_recording(path, rate=10.0)
