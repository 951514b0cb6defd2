"""A recording finds its movie by itself, or is given one, on its own clock."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tifffile
import zarr

import napari_xcebra as xc
from napari_xcebra.errors import InputError
from napari_xcebra.io.movie.finding import fitted
from napari_xcebra.io.opening import Opening
from napari_xcebra.recording import Footprints, Movie, Recording
from napari_xcebra.recording.movies import PlainFrames
from napari_xcebra.recording.summary import facts

T, H, W = 60, 12, 16
PIXELS = np.random.default_rng(0).integers(0, 500, (T, H, W)).astype(np.int16)
TRACES = np.random.default_rng(1).random((T, 3)).astype(np.float32)


@pytest.fixture
def plane(tmp_path):
    """A suite2p folder, without its movie."""
    folder = tmp_path / "suite2p" / "plane0"
    folder.mkdir(parents=True)
    mean = np.random.default_rng(2).random((H, W))
    np.save(folder / "F.npy", TRACES.T)
    np.save(folder / "ops.npy", {"Ly": H, "Lx": W, "fs": 10.0, "meanImg": mean,
                                 "reg_file": "/nowhere/suite2p/plane0/data.bin"})  # fmt: skip
    return folder


@pytest.fixture
def arrays(tmp_path):
    """Traces with a mean image, in a file of ours."""
    image = {"mean": np.random.default_rng(3).random((H, W)).astype(np.float32)}
    recording = Recording.from_arrays(TRACES, rate=10.0, images=image)
    folder = tmp_path / "ours"
    folder.mkdir()
    return recording.save(folder / "recording.npz")


def test_suite2p_finds_the_registered_movie_beside_its_traces(plane):
    (plane / "data.bin").write_bytes(PIXELS.tobytes())
    (plane / "data_raw.bin").write_bytes(PIXELS[::-1].tobytes())
    for path in (plane, plane.parent, plane / "F.npy"):
        recording = xc.open_recording(path)
        np.testing.assert_array_equal(recording.movie.frame(7), PIXELS[7])
        assert recording.movie.numbers is None
        assert dict(facts(recording))["Movie"] == f"data.bin, {H} × {W}, {T} frames"


def test_the_place_that_suite2p_noted_is_used_only_if_nothing_lies_beside(plane, tmp_path):
    fast = tmp_path / "fast" / "data.bin"
    fast.parent.mkdir()
    fast.write_bytes(PIXELS.tobytes())
    ops = np.load(plane / "ops.npy", allow_pickle=True).item()
    np.save(plane / "ops.npy", ops | {"reg_file": str(fast)})
    assert xc.open_recording(plane).movie.source == fast
    (plane / "data.bin").write_bytes(PIXELS.tobytes())
    assert xc.open_recording(plane).movie.source == plane / "data.bin"


def test_without_a_movie_the_recording_opens_and_says_why(plane):
    recording = xc.open_recording(plane)
    assert recording.movie is None
    assert "has no data.bin" in dict(facts(recording))["Movie"]
    (plane / "data.bin").write_bytes(PIXELS.tobytes()[:-3])
    recording = xc.open_recording(plane)
    assert recording.movie is None
    assert "not a whole number of frames" in dict(facts(recording))["Movie"]


def test_a_movie_beside_is_taken_if_it_fits_and_passed_over_if_not(arrays):
    tifffile.imwrite(arrays.with_name("a.tif"), PIXELS[:-1])
    tifffile.imwrite(arrays.with_name("labels.tif"), PIXELS[0])
    recording = xc.open_recording(arrays)
    assert recording.movie is None and recording.origin.without_movie == ""
    assert "Movie" not in dict(facts(recording))
    tifffile.imwrite(arrays.with_name("b.tif"), PIXELS)
    assert xc.open_recording(arrays).movie.source.name == "b.tif"


def test_of_two_memmaps_of_caiman_the_one_stored_frame_by_frame_is_taken(arrays):
    values = PIXELS.astype(np.float32).transpose(0, 2, 1).reshape(T, -1).T
    for order in "CF":
        name = f"Yr_d1_{H}_d2_{W}_d3_1_order_{order}_frames_{T}_.mmap"
        arrays.with_name(name).write_bytes(values.tobytes(order))
    movie = xc.open_recording(arrays).movie
    assert "_order_F_" in movie.source.name
    np.testing.assert_array_equal(movie.frame(9), PIXELS[9])


def test_minian_finds_its_movie_where_it_was_cropped(tmp_path):
    for name, axes, values in (
        ("A", ("unit_id", "height", "width"), np.ones((3, H, W), np.float32)),
        ("C", ("unit_id", "frame"), TRACES.T),
        ("varr", ("frame", "height", "width"), PIXELS[::-1].copy()),
        ("Y_fm_chk", ("frame", "height", "width"), PIXELS),
    ):
        group = zarr.create_group(tmp_path / f"{name}.zarr", zarr_format=2)
        array = group.create_array(name, data=values)
        array.attrs["_ARRAY_DIMENSIONS"] = axes
        for axis, first in (("height", 4), ("width", 2)):
            if axis in axes:
                length = values.shape[axes.index(axis)]
                group.create_array(axis, data=np.arange(first, first + length))
    recording = xc.open_recording(tmp_path, rate=10.0)
    movie = recording.movie
    assert movie.field == recording.footprints.shape == (H + 4, W + 2)
    np.testing.assert_array_equal(movie.frame(5)[4:, 2:], PIXELS[5])
    assert movie.source.name == "Y_fm_chk"


def test_a_movie_given_by_hand_is_kept_with_how_the_recording_was_opened(arrays, tmp_path):
    elsewhere = tmp_path / "elsewhere.npy"
    np.save(elsewhere, PIXELS)
    opening = Opening(arrays, movie=elsewhere)
    np.testing.assert_array_equal(opening.open().movie.frame(2), PIXELS[2])
    opening.save(tmp_path / "run")
    assert Opening.load(tmp_path / "run") == opening
    with pytest.raises(InputError, match="There is no movie"):
        xc.open_recording(arrays, movie=tmp_path / "none.tif")


# ------------------------------------------------------------ clocks and fields


def movie_of(pixels, folder, **how):
    path = folder / "movie.bin"
    path.write_bytes(pixels.tobytes())
    size = pixels[0].nbytes
    places = range(0, len(pixels) * size, size)
    return Movie((PlainFrames(path, pixels.shape, pixels.dtype, places),), path, **how)


@pytest.fixture
def recording():
    pixel = np.array([0])
    where = Footprints((H, W), pixel, pixel, pixel, np.ones(1, np.float32))
    long = np.tile(TRACES, (10, 1))
    return Recording.from_arrays(long, rate=10.0, footprints=where)


@pytest.mark.parametrize(
    ("frames", "numbers", "said"),
    [
        (600, {0: 0, 599: 599}, ""),
        (597, {0: 0, 596: 596, 599: 596}, "its last one stands for those it lacks"),
        (605, {0: 0, 599: 599}, "the last 5 of the movie are not shown"),
        (300, {0: 0, 1: 0, 2: 1, 599: 299}, "each frame of the movie stands for 2"),
        (150, {3: 0, 4: 1, 599: 149}, "each frame of the movie stands for 4"),
        (1200, {0: 0, 1: 2, 599: 1198}, "one in 2 frames of the movie is shown"),
    ],
)
def test_a_movie_is_brought_to_the_frames_of_the_recording(
    tmp_path, recording, frames, numbers, said
):
    movie, notes = fitted(movie_of(np.zeros((frames, H, W), np.int16), tmp_path), recording)
    assert {frame: movie.of_frame(frame) for frame in numbers} == numbers
    assert bool(notes) == bool(said) and said in "".join(notes)
    assert all(f"{frames:,} frames" in note for note in notes)


def test_a_movie_at_another_rate_is_matched_by_time(tmp_path, recording):
    pixels = np.zeros((840, H, W), np.int16)
    movie, (note,) = fitted(movie_of(pixels, tmp_path, rate=14.0), recording)
    assert [movie.of_frame(n) for n in (0, 10, 100, 599)] == [0, 14, 140, 839]
    assert "matched by their time" in note


def test_a_movie_of_another_recording_is_refused(tmp_path, recording):
    with pytest.raises(InputError, match="has 470 frames, but the recording has 600"):
        fitted(movie_of(np.zeros((470, H, W), np.int16), tmp_path), recording)
    with pytest.raises(InputError, match="frames of 8 × 8 pixels, but the field of view of the"):
        fitted(movie_of(np.zeros((600, 8, 8), np.int16), tmp_path), recording)
    stacked = replace(movie_of(np.zeros((600, H, W), np.int16), tmp_path), stacked=True)
    with pytest.raises(InputError, match="has 1 plane, but the recording has no planes"):
        fitted(stacked, recording)


def test_swapped_rows_and_columns_are_put_right(tmp_path, recording):
    pixels = np.tile(PIXELS.transpose(0, 2, 1), (10, 1, 1)).copy()
    movie, (note,) = fitted(movie_of(pixels, tmp_path), recording)
    np.testing.assert_array_equal(movie.frame(3), PIXELS[3])
    assert note.startswith("Rows and columns of the movie movie.bin are swapped")
    assert Path(movie.source).name == "movie.bin"
