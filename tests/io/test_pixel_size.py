"""How large a pixel is comes from the file, unless the file only says what nobody chose."""

import pickle
from dataclasses import replace

import h5py
import numpy as np
import pytest
import tifffile

from napari_xcebra.errors import InputError
from napari_xcebra.io import open_recording, save_recording
from napari_xcebra.io.formats.nwb.writing import write_nwb
from napari_xcebra.io.formats.suite2p.writing import write_suite2p
from napari_xcebra.recording import Recording
from napari_xcebra.simulate import field


@pytest.fixture(scope="module")
def imaged() -> Recording:
    recording = field(cells=6, frames=120, shape=(64, 80), seed=0).recording
    return replace(recording, pixel_size=None)


def with_ops(folder, **entries):
    ops = np.load(folder / "ops.npy", allow_pickle=True).item()
    np.save(folder / "ops.npy", {**ops, **entries}, allow_pickle=True)
    return folder


def test_it_is_kept_by_a_recording_its_copies_and_its_file(imaged, tmp_path):
    assert imaged.pixel_size is None
    known = Recording.from_arrays(np.asarray(imaged.traces), rate=10.0, pixel_size=0.8)
    assert known.with_behavior().pixel_size == 0.8
    assert open_recording(save_recording(known, tmp_path / "a.npz")).pixel_size == 0.8
    assert open_recording(tmp_path / "a.npz", pixel_size=1.5).pixel_size == 1.5
    assert open_recording(save_recording(imaged, tmp_path / "b.npz")).pixel_size is None


def test_recordings_pickled_by_earlier_versions_still_work(imaged):
    state = imaged.__getstate__()
    for name in ("pixel_size", "movie"):
        del state[name]
    older = Recording.__new__(Recording)
    older.__setstate__(state)
    assert (older.pixel_size, older.movie) == (None, None)
    assert pickle.loads(pickle.dumps(older)).with_behavior().pixel_size is None


@pytest.mark.parametrize("size", [0, -1, np.nan, np.inf, "large"])
def test_a_size_that_cannot_be_is_refused(size):
    with pytest.raises(InputError, match="micrometres per pixel"):
        Recording.from_arrays(np.ones((3, 2)), rate=1.0, pixel_size=size)


@pytest.mark.parametrize(
    ("entries", "size"),
    [
        ({"um_per_pixel": 0.8}, 0.8),
        ({"umPerPixel": np.array([1.2, 1.2])}, 1.2),
        ({"um_per_pixel": "unknown"}, None),
        ({"um_per_pixel": 1e5}, None),
        ({"um_per_pixel": [0.8, 0.8, 30.0]}, 0.8),
    ],
)
def test_suite2p_may_say_it(imaged, tmp_path, entries, size):
    folder = with_ops(write_suite2p(imaged, tmp_path / "plane0"), **entries)
    assert open_recording(folder).pixel_size == size


def test_what_the_user_says_comes_before_what_the_file_says(imaged, tmp_path):
    folder = with_ops(write_suite2p(imaged, tmp_path / "plane0"), um_per_pixel=0.8)
    assert open_recording(folder, pixel_size=2.5).pixel_size == 2.5


def test_pixels_that_are_not_square_are_told(imaged, tmp_path):
    folder = with_ops(write_suite2p(imaged, tmp_path / "plane0"), um_per_pixel=[0.8, 1.6])
    recording = open_recording(folder)
    assert recording.pixel_size == 0.8
    assert any("0.8 µm wide and 1.6 µm high" in note for note in recording.notes)


def spaced(path, spacing, unit, **attributes):
    with h5py.File(path, "r+") as file:
        plane = file["general/optophysiology/ImagingPlane"]
        said = plane.create_dataset("grid_spacing", data=np.array(spacing, np.float64))
        said.attrs.update({"unit": unit, **attributes})
    return path


@pytest.mark.parametrize(
    ("spacing", "unit", "attributes", "size"),
    [
        ([0.8e-6, 0.8e-6], "meters", {}, 0.8),
        ([1.5, 1.5, 30.0], "microns", {}, 1.5),
        ([0.0008, 0.0008], "mm", {}, 0.8),
        ([2.0, 2.0], "um", {"conversion": 0.5}, 1.0),
        ([0.01, 0.01], "meters", {}, None),
        ([0.8, 0.8], "furlongs", {}, None),
    ],
)
def test_nwb_says_it_in_any_unit(imaged, tmp_path, spacing, unit, attributes, size):
    pytest.importorskip("pynwb")
    path = spaced(write_nwb(imaged, tmp_path / "a.nwb"), spacing, unit, **attributes)
    assert open_recording(path).pixel_size == pytest.approx(size) if size else size is None


def test_two_micrometres_of_suite2p_in_nwb_are_nobodys_choice(imaged, tmp_path):
    pytest.importorskip("pynwb")
    path = spaced(write_nwb(imaged, tmp_path / "a.nwb"), [2.0, 2.0], "microns")
    assert open_recording(path).pixel_size == 2.0
    with h5py.File(path, "r+") as file:
        del file["session_description"]
        file["session_description"] = "suite2p_proc"
    assert open_recording(path).pixel_size is None


def test_nwb_that_we_write_says_it(imaged, tmp_path):
    pytest.importorskip("pynwb")
    from dataclasses import replace

    path = write_nwb(replace(imaged, pixel_size=0.65), tmp_path / "a.nwb")
    assert open_recording(path).pixel_size == pytest.approx(0.65)


IMAGEJ = {"unit": "micron"}


@pytest.mark.parametrize(
    ("how", "size"),
    [
        ({"imagej": True, "resolution": (2.0, 2.0), "metadata": IMAGEJ}, 0.5),
        ({"imagej": True, "resolution": (2.0, 2.0), "metadata": {"unit": "pixel"}}, None),
        ({"resolution": (12500, 12500), "resolutionunit": "CENTIMETER"}, 0.8),
        ({"resolution": (72, 72), "resolutionunit": "INCH"}, None),
        ({"ome": True, "metadata": {"PhysicalSizeX": 0.9, "PhysicalSizeXUnit": "µm"}}, 0.9),
        ({"ome": True, "metadata": {"PhysicalSizeX": 900, "PhysicalSizeXUnit": "nm"}}, 0.9),
        ({}, None),
    ],
)
def test_a_label_image_says_it(imaged, tmp_path, how, size):
    np.save(tmp_path / "traces.npy", np.asarray(imaged.traces))
    labels = imaged.footprints.label_image()
    tifffile.imwrite(tmp_path / "traces_labels.tif", labels, **how)
    for given in (None, tmp_path / "traces_labels.tif"):
        recording = open_recording(tmp_path / "traces.npy", footprints=given, rate=10)
        assert recording.footprints is not None
        assert recording.pixel_size == (pytest.approx(size) if size else None)
