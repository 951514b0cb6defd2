"""Folders of suite2p become recordings, whatever its version, or one sentence says why not."""

import shutil
import sys
import tracemalloc
import types
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.ndimage import binary_dilation

from napari_xcebra.errors import InputError
from napari_xcebra.io import open_recording
from napari_xcebra.io.formats.suite2p.reading import sniff
from napari_xcebra.io.formats.suite2p.writing import write_suite2p
from napari_xcebra.recording import Footprints, Recording
from napari_xcebra.recording.traces import LazyTraces

RNG = np.random.default_rng(0)
FRAMES, CELLS = 90, 6
FIELD = Footprints.on_a_grid(CELLS)
IMAGE = RNG.random(FIELD.shape).astype(np.float32)
RECORDING = Recording(
    RNG.random((FRAMES, CELLS)).astype(np.float32) + 1,
    rate=15.0,
    accepted=np.array([1, 1, 0, 1, 0, 1], bool),
    excluded=np.arange(FRAMES) == 7,
    starts=np.array([0, 40]),
    footprints=FIELD,
    images={"mean": IMAGE, "max": IMAGE[::-1].copy()},
    cells={"probability": np.linspace(0, 1, CELLS, dtype=np.float32)},
)


@pytest.fixture
def plane(tmp_path):
    return write_suite2p(RECORDING, tmp_path / "suite2p" / "plane0")


def raw(path, **choices):
    return open_recording(path, **{"traces": "raw", **choices})


def ops_of(plane):
    return np.load(plane / "ops.npy", allow_pickle=True).item()


def change_ops(plane, **entries):
    np.save(plane / "ops.npy", {**ops_of(plane), **entries}, allow_pickle=True)


def stat_of(plane):
    return np.load(plane / "stat.npy", allow_pickle=True)


def assert_same(found, given):
    np.testing.assert_array_equal(np.asarray(found.traces), np.asarray(given.traces))
    assert found.rate == given.rate
    for name in ("cell_ids", "accepted", "excluded", "starts", "times"):
        np.testing.assert_array_equal(getattr(found, name), getattr(given, name))
    assert found.footprints.shape == given.footprints.shape
    for name in ("cell", "row", "column", "weight"):
        np.testing.assert_array_equal(
            getattr(found.footprints, name), getattr(given.footprints, name)
        )
    assert list(found.images) == list(given.images)
    for name, image in given.images.items():
        np.testing.assert_array_equal(found.images[name], image)
    np.testing.assert_array_equal(found.cells["probability"], given.cells["probability"])


# -- folders and files ---------------------------------------------------------------------------


def test_what_is_written_is_read_back(plane):
    assert_same(raw(plane), RECORDING)


def test_footprints_in_one_plane_are_needed_to_write(tmp_path):
    with pytest.raises(InputError, match="needs footprints, in one plane"):
        write_suite2p(replace(RECORDING, footprints=None), tmp_path)


@pytest.mark.parametrize(
    "inside", ["", "suite2p", "suite2p/plane0", "suite2p/plane0/F.npy", "suite2p/plane0/ops.npy"]
)
def test_a_plane_is_found_from_the_folders_around_it_and_the_files_in_it(tmp_path, plane, inside):
    assert_same(raw(tmp_path / inside), RECORDING)


def test_a_lone_array_called_F_is_not_taken_for_suite2p(tmp_path):
    np.save(tmp_path / "F.npy", np.ones((30, 3)))
    assert not sniff(tmp_path / "F.npy")
    assert sniff(tmp_path)
    assert not sniff(tmp_path / "nothing")


def test_files_that_are_missing_are_said_to_be(plane):
    for name, note in {
        "Fneu.npy": "There is no Fneu.npy: neuropil cannot be subtracted.",
        "spks.npy": "There is no spks.npy: there are no deconvolved events.",
        "iscell.npy": "There is no iscell.npy: every ROI counts as a cell.",
        "stat.npy": "There is no stat.npy: the positions of the cells are unknown.",
    }.items():
        assert note not in raw(plane).notes
        (plane / name).unlink()
        assert note in raw(plane).notes
    recording = raw(plane)
    assert recording.accepted.all()
    assert recording.footprints is None
    (plane / "F.npy").unlink()
    with pytest.raises(InputError):
        raw(plane)


def test_without_options_the_rate_is_asked_for_and_the_field_is_as_far_as_the_rois_reach(plane):
    (plane / "ops.npy").unlink()
    with pytest.raises(InputError, match="does not give the frame rate: set `rate`"):
        raw(plane)
    recording = raw(plane, rate=15.0)
    assert recording.footprints.shape == (FIELD.row.max() + 1, FIELD.column.max() + 1)
    assert any("as far as the ROIs reach" in note for note in recording.notes)


def test_planes_without_traces_are_named(tmp_path, plane):
    (plane / "F.npy").unlink()
    with pytest.raises(InputError, match=r"no F[.]npy: suite2p extracted no traces"):
        raw(tmp_path / "suite2p")


# -- what the versions differ in -----------------------------------------------------------------


def test_the_files_of_version_1_say_the_same_as_one_ops(plane):
    before = raw(plane)
    ops = ops_of(plane)
    (plane / "ops.npy").unlink()
    db = {name: ops.pop(name) for name in ("Ly", "Lx", "nframes", "frames_per_folder")}
    detected = {"max_proj": ops.pop("max_proj")}
    setting = {
        "fs": ops.pop("fs"),
        "run": {"do_deconvolution": False},
        "extraction": {"neuropil_coefficient": ops.pop("neucoeff")},
        "version": "1.1.0",
    }
    for name, content in {
        "db": db | {"meanImg": np.zeros_like(IMAGE), "dx": None},
        "settings": setting,
        "reg_outputs": {n: ops[n] for n in ("meanImg", "badframes", "yrange", "xrange")},
        "detect_outputs": detected,
    }.items():
        np.save(plane / f"{name}.npy", content, allow_pickle=True)
    found = raw(plane)
    assert_same(found, before)
    assert "Written by suite2p 1.1.0." in found.notes


def test_the_neuropil_coefficient_is_that_of_the_options(plane):
    change_ops(plane, neucoeff=0.35)
    assert "minus 0.35 × neuropil" in open_recording(plane).notes[-1]
    ops = ops_of(plane)
    del ops["neucoeff"]
    np.save(plane / "ops.npy", ops | {"extraction": {"neuropil_coefficient": 0.25}})
    assert "minus 0.25 × neuropil" in open_recording(plane).notes[-1]


def test_pixels_of_2019_are_numbered_along_the_rows(plane):
    stat = stat_of(plane)
    for roi in stat:
        roi["ipix"] = roi.pop("ypix") * FIELD.shape[1] + roi.pop("xpix")
    np.save(plane / "stat.npy", stat, allow_pickle=True)
    assert_same(raw(plane), RECORDING)


def test_iscell_may_have_one_column_or_none(plane):
    for shape in ((CELLS,), (CELLS, 1)):
        np.save(plane / "iscell.npy", np.asarray(RECORDING.accepted, float).reshape(shape))
        recording = raw(plane)
        np.testing.assert_array_equal(recording.accepted, RECORDING.accepted)
        assert "probability" not in recording.cells


def test_cells_with_a_red_marker_are_marked(plane):
    np.save(plane / "redcell.npy", np.array([[1, 0.9], [0, 0.2]] * 3))
    np.testing.assert_array_equal(raw(plane).cells["red"], [True, False] * 3)


def test_events_are_there_if_suite2p_was_to_find_them(plane):
    with pytest.raises(InputError, match="no events traces"):
        raw(plane, traces="events")
    change_ops(plane, spikedetect=True)
    np.save(plane / "spks.npy", np.asarray(RECORDING.traces).T * 2)
    events = raw(plane, traces="events").traces
    np.testing.assert_array_equal(events, np.asarray(RECORDING.traces) * 2)


def test_cropped_images_are_put_where_they_were_cut_out(plane):
    crop = IMAGE[3:20, 5:30]
    change_ops(plane, max_proj=crop, Vcorr=crop[1:], yrange=[3, 20], xrange=np.array([5, 30]))
    recording = raw(plane)
    placed = recording.images["max"]
    assert placed.shape == FIELD.shape
    np.testing.assert_array_equal(placed[3:20, 5:30], crop)
    assert (placed[:3] == crop.min()).all()
    assert "correlation" not in recording.images
    assert any("and where they lie in the field of view" in note for note in recording.notes)


def test_an_image_with_gaps_has_its_least_value_there(plane):
    image = IMAGE.copy()
    image[2, 3], image[4, 5] = np.nan, np.inf
    change_ops(plane, meanImg=image)
    mean = raw(plane).images["mean"]
    assert mean[2, 3] == mean[4, 5] == np.nanmin(image)


# -- frames --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entries", "starts"),
    [
        ({"frames_per_file": [30, 60]}, [0, 30]),
        ({"frames_per_file": np.array([20, 30, 40])}, [0, 20, 50]),
        ({"frames_per_file": [30, 60], "frames_per_folder": [90]}, [0, 30]),
        ({"frames_per_file": [1] * 90, "frames_per_folder": [40, 50]}, [0, 40]),
        ({"frames_per_file": [1] * 90}, [0]),
        ({"frames_per_file": [30, 30]}, [0]),
        ({"frames_per_file": "many"}, [0]),
    ],
)
def test_files_that_were_concatenated_begin_segments(plane, entries, starts):
    change_ops(plane, **{"frames_per_folder": None, **entries})
    recording = raw(plane)
    np.testing.assert_array_equal(recording.starts, starts)
    assert any("concatenated" in note for note in recording.notes) == (len(starts) > 1)


def test_bad_frames_are_left_out_unless_they_are_of_another_run(plane):
    assert "1 frames that suite2p marks as bad are left out." in raw(plane).notes
    change_ops(plane, badframes=np.ones(50, bool))
    recording = raw(plane)
    assert not recording.excluded.any()
    assert any("no frame is left out" in note for note in recording.notes)


def test_cells_with_gaps_are_kept_but_not_used(plane):
    traces = np.asarray(RECORDING.traces).T.copy()
    traces[1, 5:9] = np.nan
    np.save(plane / "F.npy", traces)
    for kind in ("raw", "dff"):
        recording = raw(plane, traces=kind)
        assert not recording.accepted[1]
        assert recording.accepted[[0, 3, 5]].all()
        assert np.isfinite(recording.traces).all()


# -- several planes ------------------------------------------------------------------------------


@pytest.fixture
def volume(tmp_path):
    """Planes 0, 2 and 10, the last of them a frame shorter; plane 5 was not extracted."""
    folder = tmp_path / "suite2p"
    for number, frames in {0: FRAMES, 2: FRAMES, 10: FRAMES - 1}.items():
        part = replace(
            RECORDING,
            traces=np.asarray(RECORDING.traces)[:frames] + number,
            excluded=np.arange(frames) == number,
            times=None,
        )
        write_suite2p(part, folder / f"plane{number}")
    (folder / "plane5").mkdir()
    return folder


def test_planes_become_one_recording_with_stacked_footprints(volume):
    recording = raw(volume)
    assert recording.traces.shape == (FRAMES - 1, 3 * CELLS)
    for i, number in enumerate((0, 2, 10)):
        cells = slice(i * CELLS, (i + 1) * CELLS)
        expected = np.asarray(RECORDING.traces)[: FRAMES - 1] + number
        np.testing.assert_array_equal(recording.traces[:, cells], expected)
        assert (recording.cells["plane"][cells] == number).all()
        np.testing.assert_array_equal(recording.cells["roi"][cells], np.arange(CELLS))
        np.testing.assert_array_equal(recording.images["mean"][i], IMAGE)
    np.testing.assert_array_equal(recording.cell_ids, np.arange(3 * CELLS))
    np.testing.assert_array_equal(recording.accepted, np.tile(RECORDING.accepted, 3))
    np.testing.assert_array_equal(np.flatnonzero(recording.excluded), [0, 2, 10])
    labels = recording.footprints.label_image()
    assert labels.shape == (3, *FIELD.shape)
    np.testing.assert_array_equal(labels[1][labels[1] > 0], labels[0][labels[0] > 0] + CELLS)
    assert "Planes have 89 to 90 frames: cut to the shortest." in recording.notes
    assert "plane5 has no F.npy: left out." in recording.notes


def test_planes_of_different_recordings_are_not_joined(volume):
    write_suite2p(replace(RECORDING, traces=np.ones((40, CELLS)), excluded=None, times=None,
                          starts=None), volume / "plane2")  # fmt: skip
    with pytest.raises(InputError, match=r"planes of 40 to 90 frames: .* Open a single plane"):
        raw(volume)
    assert raw(volume / "plane2").n_frames == 40


def test_planes_of_different_sizes_and_contents_are_joined(volume):
    (volume / "plane2" / "stat.npy").unlink()
    (volume / "plane2" / "Fneu.npy").unlink()
    (volume / "plane10" / "iscell.npy").unlink()
    change_ops(volume / "plane10", Ly=FIELD.shape[0] + 8, meanImg=None, max_proj=None)
    recording = raw(volume)
    assert recording.footprints.shape == (3, FIELD.shape[0] + 8, FIELD.shape[1])
    assert (recording.images["mean"][2] == IMAGE.min()).all()
    assert recording.accepted[-CELLS:].all()
    assert np.isnan(recording.cells["probability"][-CELLS:]).all()
    assert "plane2: There is no Fneu.npy: neuropil cannot be subtracted." in recording.notes
    with pytest.raises(InputError, match="no corrected traces"):
        raw(volume, traces="corrected")


def combine(volume):
    """A `combined` folder of planes 0 and 2 side by side."""
    folder = volume / "combined"
    write_suite2p(replace(RECORDING, excluded=None), folder)
    stats = [stat_of(volume / "plane0"), stat_of(volume / "plane2")]
    for number, stat in enumerate(stats):
        for roi in stat:
            roi["iplane"] = number
            roi["xpix"] = roi["xpix"] + number * FIELD.shape[1]
    np.save(folder / "stat.npy", np.concatenate(stats), allow_pickle=True)
    for name in ("F.npy", "Fneu.npy", "spks.npy", "iscell.npy"):
        parts = [np.load(volume / plane / name) for plane in ("plane0", "plane2")]
        np.save(folder / name, np.concatenate(parts))
    change_ops(folder, Lx=2 * FIELD.shape[1], xrange=[0, 2 * FIELD.shape[1]], max_proj=None,
               meanImg=np.hstack([IMAGE, IMAGE]))  # fmt: skip
    return folder


def test_combined_keeps_its_tiling_and_knows_the_planes(volume):
    recording = raw(combine(volume))
    assert recording.footprints.shape == (FIELD.shape[0], 2 * FIELD.shape[1])
    assert recording.images["mean"].shape == recording.footprints.shape
    np.testing.assert_array_equal(recording.cells["plane"], np.repeat([0, 1], CELLS))
    np.testing.assert_array_equal(recording.cells["roi"], np.tile(np.arange(CELLS), 2))
    assert not recording.excluded.any()


def test_frames_that_combined_fills_with_zeros_are_left_out(volume):
    folder = combine(volume)
    traces = np.load(folder / "F.npy")
    traces[CELLS:, -1] = 0
    np.save(folder / "F.npy", traces)
    recording = raw(folder)
    np.testing.assert_array_equal(np.flatnonzero(recording.excluded), [FRAMES - 1])
    assert "The last 1 frames are left out: not all planes have them." in recording.notes


def test_planes_are_preferred_to_combined_unless_there_are_none(volume):
    combine(volume)
    recording = raw(volume)
    assert recording.n_cells == 3 * CELLS
    assert any("combined has 12 ROIs, the planes have 18" in note for note in recording.notes)
    for number in (0, 2, 5, 10):
        shutil.rmtree(volume / f"plane{number}")
    assert raw(volume).n_cells == 2 * CELLS


def test_decisions_made_in_combined_are_pointed_out(volume):
    shutil.rmtree(volume / "plane10")
    folder = combine(volume)
    assert not any("combined" in note for note in raw(volume).notes)
    iscell = np.load(folder / "iscell.npy")
    iscell[:2, 0] = 0
    np.save(folder / "iscell.npy", iscell)
    notes = raw(volume).notes
    assert any("combined has other decisions on 2 cells" in note for note in notes)


# -- folders that are not as they should be -------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("iscell.npy", np.ones((4, 2)), "F.npy has 6 cells but iscell.npy has 4: the folder mixes"),
        ("stat.npy", np.array([{}] * 3), "F.npy has 6 cells but stat.npy has 3: the folder mixes"),
        ("F.npy", np.ones((0, FRAMES)), "F.npy has an array of shape"),
        ("F.npy", np.array([["a"]]), "F.npy has an array of shape"),
        ("iscell.npy", np.ones((6, 2, 2)), "iscell.npy has shape"),
        ("iscell.npy", np.array(["yes"] * 6), "iscell.npy has shape"),
        ("stat.npy", np.array([1] * 6), "stat.npy holds plain numbers"),
        ("stat.npy", np.array([None] * 6), "stat.npy does not hold suite2p ROIs"),
        ("stat.npy", np.array([{}] * 6), "ROI 0 of .*stat.npy has no pixels"),
        ("stat.npy", np.array([{"ypix": [1, 2], "xpix": [1]}] * 6), "2 rows, 1 columns"),
        ("stat.npy", np.array([{"ypix": [0.5], "xpix": [1]}] * 6), "whole numbers are needed"),
        ("stat.npy", np.array([{"ypix": [-1], "xpix": [1]}] * 6), "implausible positions"),
        ("stat.npy", np.array([{"ypix": [2**40], "xpix": [2**40]}] * 6), "implausible positions"),
        ("stat.npy", np.array([{"ypix": [999], "xpix": [1]}] * 6), "outside the field of view"),
        ("stat.npy", np.array([{"ypix": [[1], [1, 2]], "xpix": 3}] * 6), "cannot be read"),
        ("ops.npy", np.array([1, "fs"], object), "ops.npy does not hold suite2p options"),
    ],
)  # fmt: skip
def test_files_that_do_not_fit_are_named(plane, name, content, sentence):
    np.save(plane / name, content, allow_pickle=True)
    with pytest.raises(InputError, match=sentence):
        raw(plane)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (np.ones((5, FRAMES), "f4"), "F.npy has 6 cells but {} has 5"),
        (np.ones((6, 50), "f4"), "F.npy has 90 frames but {} has 50"),
        (np.ones((0, 0), "f4"), "{} has an array of shape"),
        (np.array([["a"]]), "{} has an array of shape"),
        (np.array([{}] * 6), "{} holds Python objects"),
        (b"", "{} cannot be read"),
        (b"\x93NUMPY damaged", "{} cannot be read"),
    ],
)
@pytest.mark.parametrize(
    ("name", "needed", "not_needed", "without"),
    [
        ("spks.npy", {"traces": "events"}, {}, "there are no deconvolved events"),
        ("Fneu.npy", {"traces": "dff"}, {"traces": "dff", "neuropil": 0.0}, "neuropil cannot be"),
        ("Fneu.npy", {"traces": "corrected"}, {"traces": "raw"}, "neuropil cannot be subtracted"),
    ],
)
def test_odd_events_or_neuropil_are_left_out_only_where_they_are_not_needed(
    plane, content, why, name, needed, not_needed, without
):
    change_ops(plane, spikedetect=True)
    if isinstance(content, bytes):
        (plane / name).write_bytes(content)
    else:
        np.save(plane / name, content, allow_pickle=True)
    recording = open_recording(plane, **not_needed)
    [note] = [note for note in recording.notes if note.startswith(f"{name} is left out")]
    assert without in note
    assert why.format(name) in note
    assert recording.n_cells == 6
    with pytest.raises(InputError, match=why.format(name)) as refused:
        open_recording(plane, **needed)
    assert name == "spks.npy" or "set `neuropil` to 0" in str(refused.value)


def test_absurd_options_are_taken_as_not_said(plane):
    change_ops(
        plane, fs=float("nan"), Ly=10**9, Lx=-3, neucoeff=[1, [2, 3]], meanImg=np.array([{}]),
        max_proj=3j, yrange="all", frames_per_folder=[[1], [2, 3]], badframes={1: 2}, run=7,
        extraction=[1], suite2p_version=b"", Vcorr=np.ones(3), spikedetect=np.complex64(1),
    )  # fmt: skip
    recording = raw(plane, rate=2.0)
    assert recording.rate == 2.0
    assert recording.footprints.shape == (FIELD.row.max() + 1, FIELD.column.max() + 1)
    assert recording.images == {}


class Trap:
    def __reduce__(self):
        return print, ("sprung",)


@pytest.mark.parametrize("name", ["ops.npy", "stat.npy", "db.npy"])
def test_a_file_that_wants_to_run_something_is_refused(plane, capsys, name):
    np.save(plane / name, np.array([Trap()] * CELLS), allow_pickle=True)
    with pytest.raises(InputError, match=f"{name} wants to use builtins.print"):
        raw(plane)
    assert capsys.readouterr().out == ""


@pytest.fixture(scope="module")
def intact(tmp_path_factory):
    folder = write_suite2p(RECORDING, tmp_path_factory.mktemp("intact") / "plane0")
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_folder_gives_a_sentence_or_a_recording(intact, tmp_path, data):
    names = sorted(intact)
    name = data.draw(st.sampled_from(names))
    content = bytearray(intact[data.draw(st.sampled_from([name] * 4 + names), label="renamed")])
    content = content[: data.draw(st.just(len(content)) | st.integers(0, len(content)))]
    places = st.integers(0, max(len(content) - 1, 0)) | st.integers(0, 300)
    for place, byte in data.draw(st.lists(st.tuples(places, st.integers(0, 255)), max_size=8)):
        if place < len(content):
            content[place] = byte
    for other in names:
        (tmp_path / other).write_bytes(content if other == name else intact[other])
    try:
        recording = open_recording(tmp_path, rate=10.0)
    except InputError as error:
        assert str(tmp_path) in str(error)
    else:
        assert recording.traces.shape[1] == recording.n_cells
        assert np.isfinite(recording.traces).all()


def test_4_gb_of_traces_open_without_being_read(tmp_path, monkeypatch):
    for name in ("F.npy", "Fneu.npy"):
        with (tmp_path / name).open("wb") as file:
            header = {"descr": "<f4", "fortran_order": False, "shape": (10_000, 100_000)}
            np.lib.format.write_array_header_1_0(file, header)
            file.truncate(file.tell() + 4 * 10**9)
    tracemalloc.start()
    try:
        recording = open_recording(tmp_path, rate=30.0)
        assert isinstance(recording.traces, LazyTraces)
        assert recording.traces.shape == (100_000, 10_000)
        opened = tracemalloc.get_traced_memory()[1]
        corrected = raw(tmp_path, rate=30.0, traces="corrected")
        assert (corrected.traces[:, [0, 5000, 9999]] == 0).all()
        read = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert opened < 10 * 2**20
    assert read < 20 * 2**20


# -- what suite2p itself wrote -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("inside", "cells", "accepted", "field"),
    [
        ("suite2p-1.1-two-planes", 71, 60, (2, 128, 128)),
        ("suite2p-1.1-two-planes/plane0", 36, 30, (128, 128)),
        ("suite2p-1.1-two-planes/plane1", 35, 30, (128, 128)),
        ("suite2p-1.1-two-planes/combined", 71, 60, (128, 256)),
        ("suite2p-0.14", 36, 30, (128, 128)),
        ("suite2p-0.14/plane0", 36, 30, (128, 128)),
        ("suite2p-0.14/combined", 71, 60, (128, 256)),
    ],
)
def test_folders_of_both_versions_open(shared_data, inside, cells, accepted, field):
    recording = open_recording(shared_data / inside)
    assert recording.traces.shape == (2000, cells)
    assert recording.rate == 15.0
    assert recording.accepted.sum() == accepted
    assert recording.footprints.shape == field
    assert list(recording.images) == ["mean", "enhanced", "max", "correlation"]
    assert {image.shape for image in recording.images.values()} == {field}
    assert {"probability", "skew", "radius", "compactness"} <= set(recording.cells)
    assert not recording.excluded.any()
    assert len(np.unique(recording.footprints.label_image())) == cells + 1


def test_the_real_recording_without_options_opens_given_a_rate(shared_data):
    folder = shared_data / "suite2p-real-219-cells"
    with pytest.raises(InputError, match="set `rate`"):
        open_recording(folder)
    for kind in ("raw", "dff"):
        recording = open_recording(folder, rate=30.0, traces=kind)
        assert recording.traces.shape == (2000, 219)
        assert (np.ptp(recording.traces, axis=0) == 0).sum() == 47
    assert any("47 ROIs share every pixel with others" in note for note in recording.notes)
    assert len(np.unique(recording.footprints.label_image())) == 220


def ring_contrast(footprints, image, shift=0):
    """Share of cells that are brighter than a ring around them."""
    image = np.roll(image, (shift, shift), axis=(0, 1))
    taken = footprints.label_image() > 0
    brighter = []
    for cell in range(footprints.n_cells):
        own = footprints.cell == cell
        mask = np.zeros(image.shape, bool)
        mask[footprints.row[own], footprints.column[own]] = True
        ring = binary_dilation(mask, iterations=5) & ~binary_dilation(mask, iterations=1) & ~taken
        brighter.append(image[mask].mean() > image[ring].mean())
    return np.mean(brighter)


@pytest.mark.parametrize(
    "inside",
    [
        "suite2p-1.1-two-planes/plane0",
        "suite2p-1.1-two-planes/plane1",
        "suite2p-0.14/plane0",
        "suite2p-0.14/combined",
    ],
)
@pytest.mark.parametrize("image", ["mean", "max", "correlation"])
def test_cells_are_bright_where_the_images_say_so(shared_data, inside, image):
    recording = open_recording(shared_data / inside)
    right = ring_contrast(recording.footprints, recording.images[image])
    assert right > 0.8
    # the cropped ones begin 4 pixels further in
    for shift in (-4, 4, 8):
        assert ring_contrast(recording.footprints, recording.images[image], shift) <= right


@pytest.mark.parametrize("image", ["max", "correlation"])
def test_a_cropped_image_lies_on_the_mean_image(shared_data, image):
    images = open_recording(shared_data / "suite2p-0.14" / "plane0").images
    inside = slice(16, 112)
    middle = images["mean"][inside, inside]

    def likeness(shift):
        shifted = np.roll(images[image], shift, (0, 1))[inside, inside]
        return np.corrcoef(middle.ravel(), shifted.ravel())[0, 1]

    shifts = [(y, x) for y in (-4, 0, 4) for x in (-4, 0, 4)]
    assert max(shifts, key=likeness) == (0, 0)


@pytest.mark.parametrize("number", [0, 1])
def test_cells_lie_where_they_were_simulated(shared_data, number):
    folder = shared_data / "suite2p-1.1-two-planes"
    truth = np.load(folder / f"truth_plane{number}.npz")["masks"] > 0
    stack = open_recording(folder)
    footprints = stack.footprints
    overlaps = []
    for cell in np.flatnonzero((stack.cells["plane"] == number) & stack.accepted):
        own = footprints.cell == cell
        assert (footprints.plane[own] == number).all()
        mask = np.zeros(footprints.shape[1:], bool)
        mask[footprints.row[own], footprints.column[own]] = True
        both = (truth & mask).sum((1, 2))
        overlaps.append((both / (truth | mask).sum((1, 2))).max())
    assert np.mean(np.array(overlaps) > 0.4) > 0.9


def test_the_stack_has_the_cells_of_combined_in_its_order(shared_data):
    folder = shared_data / "suite2p-1.1-two-planes"
    stack, tiled = raw(folder), raw(folder / "combined")
    np.testing.assert_array_equal(stack.traces, tiled.traces)
    np.testing.assert_array_equal(stack.cell_ids, tiled.cell_ids)
    np.testing.assert_array_equal(stack.accepted, tiled.accepted)
    for name in ("plane", "roi", "probability", "skew"):
        np.testing.assert_array_equal(stack.cells[name], tiled.cells[name])
    np.testing.assert_array_equal(stack.footprints.row, tiled.footprints.row)
    shift = 128 * stack.footprints.plane
    np.testing.assert_array_equal(stack.footprints.column + shift, tiled.footprints.column)
    for name, image in stack.images.items():
        if name in ("mean", "enhanced"):
            np.testing.assert_allclose(np.hstack(list(image)), tiled.images[name], rtol=1e-6)


def test_both_versions_agree_on_the_same_movie(shared_data):
    old = raw(shared_data / "suite2p-0.14" / "plane0")
    new = raw(shared_data / "suite2p-1.1-two-planes" / "plane0")
    np.testing.assert_array_equal(old.accepted, new.accepted)
    np.testing.assert_array_equal(old.footprints.cell, new.footprints.cell)
    np.testing.assert_array_equal(old.footprints.row, new.footprints.row)
    np.testing.assert_array_equal(old.footprints.column, new.footprints.column)
    np.testing.assert_allclose(old.footprints.weight, new.footprints.weight, rtol=1e-3)
    # 0.14 leaves out more of the pixels that one of them shares with its neighbours
    alike = np.isclose(old.traces, new.traces, rtol=1e-4).all(axis=0)
    np.testing.assert_array_equal(np.flatnonzero(~alike), [34])
    for name in ("mean", "max", "correlation"):
        np.testing.assert_allclose(old.images[name], new.images[name], rtol=0.01)


@pytest.mark.parametrize(
    ("version", "name"),
    [("suite2p-1.1-two-planes", "plane0"), ("suite2p-1.1-two-planes", "plane1"),
     ("suite2p-0.14", "plane0")],
)  # fmt: skip
def test_roiextractors_reads_the_same(shared_data, monkeypatch, version, name):
    roiextractors = pytest.importorskip("roiextractors")
    if "natsort" not in sys.modules:  # it sorts plane folders by it
        monkeypatch.setitem(sys.modules, "natsort", types.SimpleNamespace(natsorted=sorted))
    other = roiextractors.Suite2pSegmentationExtractor(shared_data / version, plane_name=name)
    for kind, theirs in {"raw": "raw", "events": "deconvolved"}.items():
        recording = raw(shared_data / version / name, traces=kind)
        np.testing.assert_array_equal(recording.traces, other.get_traces(name=theirs))
    assert recording.rate == other.get_sampling_frequency()
    assert recording.footprints.shape == tuple(other.get_frame_shape())
    np.testing.assert_array_equal(
        recording.accepted, other.get_property("iscell", other.get_roi_ids()) > 0
    )
    footprints = recording.footprints
    for cell, pixels in enumerate(other.get_roi_pixel_masks()):
        own = footprints.cell == cell
        ours = np.stack([footprints.row, footprints.column, footprints.weight], axis=1)[own]
        np.testing.assert_allclose(ours, pixels, rtol=1e-6)
    images = other.get_images_dict()
    np.testing.assert_array_equal(recording.images["mean"], images["mean"])
    theirs = images["correlation"]
    known = theirs != 0
    np.testing.assert_allclose(recording.images["correlation"][known], theirs[known], rtol=1e-6)


@pytest.mark.parametrize("name", ["F.npy", "stat.npy", "ops.npy"])
def test_nothing_is_read_through_a_link_that_leads_out_of_the_folder(tmp_path, plane, name):
    elsewhere = tmp_path / "elsewhere.npy"
    (plane / name).rename(elsewhere)
    (plane / name).symlink_to(elsewhere)
    with pytest.raises(InputError, match="link that leads out"):
        raw(plane)
    # one within what was given is followed, and so is a link to all of it
    inside = plane.parent / "kept.npy"
    (plane / name).unlink()
    elsewhere.rename(inside)
    (plane / name).symlink_to(inside)
    assert_same(raw(plane.parent), RECORDING)
    (tmp_path / "link").symlink_to(plane.parent)
    assert_same(raw(tmp_path / "link"), RECORDING)


def test_a_plane_folder_that_is_a_link_to_elsewhere_is_not_read(tmp_path, plane):
    other = tmp_path / "other" / "plane0"
    other.parent.mkdir()
    other.symlink_to(plane)
    with pytest.raises(InputError, match="link that leads out"):
        raw(other.parent)
