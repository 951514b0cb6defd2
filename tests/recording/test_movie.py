"""A movie on disk gives its frames to whoever asks, and takes no memory for it."""

import pickle
import subprocess
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from napari_xcebra.errors import InputError
from napari_xcebra.recording import Movie
from napari_xcebra.recording import movies as frames_module
from napari_xcebra.recording.movies import (
    JoinedFrames,
    PixelFrames,
    PlainFrames,
    TiledFrames,
    TurnedFrames,
)

T, H, W = 23, 9, 14
PIXELS = np.random.default_rng(0).integers(-500, 500, (T, H, W)).astype(np.int16)


def plain(path, pixels, before=0):
    path.write_bytes(bytes(before) + pixels.tobytes())
    size = pixels[0].nbytes
    return PlainFrames(
        path, pixels.shape, pixels.dtype, range(before, before + len(pixels) * size, size)
    )


LAYOUTS = {
    "plain": lambda folder: plain(folder / "a.bin", PIXELS, before=12),
    "big endian": lambda folder: plain(folder / "a.bin", PIXELS.astype(">i2")),
    "by a table": lambda folder: PlainFrames(
        (one := plain(folder / "a.bin", PIXELS)).path, one.shape, one.stored, np.array(one.places)
    ),
    "turned": lambda folder: TurnedFrames(
        plain(folder / "a.bin", np.ascontiguousarray(PIXELS.transpose(0, 2, 1)))
    ),
    "by the pixel": lambda folder: (
        (folder / "a.bin").write_bytes(b"12345678" + PIXELS.transpose(2, 1, 0).tobytes()),
        PixelFrames(folder / "a.bin", PIXELS.shape, PIXELS.dtype, 8),
    )[1],
    "in files": lambda folder: JoinedFrames(
        tuple(plain(folder / f"{i}.bin", PIXELS[i : i + 2]) for i in range(0, T, 2))
    ),
    "in tiles": lambda folder: TiledFrames(
        (plain(folder / "l.bin", PIXELS[:, :, :5]), plain(folder / "r.bin", PIXELS[:, :, 5:])),
        ((0, 0), (0, 5)),
        PIXELS.shape,
    ),
}


@pytest.fixture(params=LAYOUTS)
def movie(request, tmp_path):
    return Movie((LAYOUTS[request.param](tmp_path),), tmp_path / "a.bin")


def test_frames_and_crops_are_those_of_the_array(movie):
    assert movie.shape == PIXELS.shape
    assert movie.dtype.isnative
    for number in (0, T - 1, 7, 8):
        np.testing.assert_array_equal(movie.frame(number), PIXELS[number])
    some = [3, 3, 20, 4]
    clip = movie.crop(some, 0, slice(2, 7), slice(4, 11))
    assert clip.dtype == np.float32
    np.testing.assert_array_equal(clip, PIXELS[some, 2:7, 4:11])


def test_a_crop_is_cut_to_the_field(movie):
    np.testing.assert_array_equal(
        movie.crop(range(2), 0, slice(6, 99), slice(0, None)), PIXELS[:2, 6:]
    )
    assert movie.crop([], 0, slice(0, 3), slice(0, 4)).shape == (0, 3, 4)
    assert movie.crop([0], 0, slice(50, 60), slice(0, 4)).size == 0


def test_a_copy_in_another_process_reads_the_same(movie):
    movie.frame(3)
    sent = pickle.dumps(movie)
    assert len(sent) < 4000
    np.testing.assert_array_equal(pickle.loads(sent).frame(3), PIXELS[3])


def test_threads_read_at_once_and_others_may_close_it_meanwhile(movie):
    def look(number):
        if number % 7 == 0:
            movie.close()
        return movie.frame(number % T)

    with ThreadPoolExecutor(4) as pool:
        for number, frame in enumerate(pool.map(look, range(300))):
            np.testing.assert_array_equal(frame, PIXELS[number % T])


def test_a_frame_that_is_not_there_is_told(movie):
    with pytest.raises(InputError, match=f"has {T} frames: there is no frame {T}"):
        movie.frame(T)
    with pytest.raises(InputError, match="there is no frame -1"):
        movie.crop([0, -1, 2], 0, slice(0, 2), slice(0, 2))


def test_planes_of_different_size_are_stacked_and_cut_to_the_shortest(tmp_path):
    planes = plain(tmp_path / "0.bin", PIXELS), plain(tmp_path / "1.bin", PIXELS[:-1, :5, :6])
    movie = Movie(planes, tmp_path / "0.bin", stacked=True)
    assert movie.shape == (T - 1, 2, H, W)
    frame = movie.frame(4)
    np.testing.assert_array_equal(frame[0], PIXELS[4])
    np.testing.assert_array_equal(frame[1, :5, :6], PIXELS[4, :5, :6])
    assert not frame[1, 5:].any()
    np.testing.assert_array_equal(
        movie.crop([1], 1, slice(0, 3), slice(2, 4)), PIXELS[[1], 0:3, 2:4]
    )
    assert movie.words == f"0.bin, 2 planes of {H} × {W}, {T - 1} frames"


def test_frames_of_the_recording_are_those_of_the_movie_unless_clocks_differ(tmp_path):
    movie = Movie((plain(tmp_path / "a.bin", PIXELS),), tmp_path / "a.bin")
    assert [movie.of_frame(n) for n in (0, 5, T + 3)] == [0, 5, T - 1]
    slower = Movie(movie.planes, movie.source, numbers=np.array([0, 2, 4]))
    assert [slower.of_frame(n) for n in (0, 1, 2, 9)] == [0, 2, 4, 4]


def test_no_more_files_are_open_than_a_few(tmp_path, monkeypatch):
    monkeypatch.setattr(frames_module, "FILES_OPEN", 2)
    parts = tuple(plain(tmp_path / f"{i}.bin", PIXELS[i : i + 1]) for i in range(T))
    movie = Movie((JoinedFrames(parts),), tmp_path)
    for number in range(T):
        movie.frame(number)
    assert sum("_stored" in vars(part) for part in parts) == 2


CHANGED = """
import os, pickle, sys
from napari_xcebra.errors import InputError
from napari_xcebra.recording import movies, stored

movies.AHEAD = 1  # what was read ahead would still be right
movie = pickle.load(open(sys.argv[1], "rb"))
movie.frame(2)
if sys.argv[2] == "unseen":
    stored.StoredFile.check_same = lambda self: None
os.truncate(movie.source, 100)
movie.close() if sys.argv[2] == "closed" else None
try:
    movie.frame(20)
except InputError as error:
    print(error)
"""


@pytest.mark.parametrize("when", ["seen", "unseen", "closed"])
@pytest.mark.parametrize("layout", ["plain", "by the pixel"])
def test_a_movie_that_is_shortened_gives_a_sentence_and_ends_nothing(tmp_path, layout, when):
    movie = Movie((LAYOUTS[layout](tmp_path),), tmp_path / "a.bin")
    (tmp_path / "movie.pickle").write_bytes(pickle.dumps(movie))
    command = [sys.executable, "-c", CHANGED, str(tmp_path / "movie.pickle"), when]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "cannot be read any more" in done.stdout


def test_a_frame_of_fifty_gigabytes_takes_the_memory_of_a_frame(tmp_path):
    size = 512 * 512 * 2
    with (tmp_path / "data.bin").open("wb") as file:
        file.truncate(100_000 * size)
    frames = PlainFrames(
        tmp_path / "data.bin", (100_000, 512, 512), np.dtype("<i2"), range(0, 100_000 * size, size)
    )
    movie = Movie((frames,), tmp_path / "data.bin")
    tracemalloc.start()
    try:
        for number in range(0, 100_000, 997):
            assert movie.frame(number).shape == (512, 512)
        assert movie.crop(range(0, 90_000, 9000), 0, slice(0, 40), slice(0, 40)).nbytes == 64_000
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3 * size
