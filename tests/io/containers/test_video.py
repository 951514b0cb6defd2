"""A video is brought to the clock of the recording, and gives the frame that was asked for."""

import pickle

import numpy as np
import pytest
from short_video import FRAMES, RATE, number_in, write_video

import napari_xcebra as xc
from napari_xcebra.errors import InputError
from napari_xcebra.io.containers.video import Decoder
from napari_xcebra.io.opening import Opening
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.recording import Recording
from napari_xcebra.recording.summary import facts


@pytest.fixture(scope="module")
def short(tmp_path_factory):
    return write_video(tmp_path_factory.mktemp("video") / "mouse.mp4")


@pytest.fixture
def saved(tmp_path):
    traces = np.random.default_rng(0).random((80, 3))
    return Recording.from_arrays(traces, rate=10.0).save(tmp_path / "recording.npz")


@pytest.mark.parametrize("suffix", [".mp4", ".avi", ".mkv"])
def test_frames_are_found_in_any_order(tmp_path, suffix):
    decoder = Decoder(write_video(tmp_path / f"mouse{suffix}"), np.arange(FRAMES) / RATE)
    for number in (0, 1, 2, 90, 91, 5, 119, 119, 60, 30, 31, 100):
        picture = decoder.frame(number)
        assert picture.shape == (48, 64, 3)
        assert number_in(picture[24, :, 0]) == number
    decoder.close()


def test_a_video_has_the_clock_of_its_rate_and_offset(saved, short):
    video = xc.open_recording(saved, video=str(short)).video
    assert (video.n_frames, video.field) == (FRAMES, (48, 64))
    assert [video.at(t) for t in (0.0, 0.049, 0.05, 3.0, 5.95)] == [0, 0, 1, 60, 119]
    assert video.at(-0.1) is None and video.at(7.0) is None
    recording = xc.open_recording(saved, video=str(short), video_rate=40, video_offset=2.0)
    assert [recording.video.at(t) for t in (1.9, 2.0, 3.0)] == [None, 0, 40]
    assert dict(facts(recording))["Video"] == "mouse.mp4, 64 × 48, 120 frames, 2.0 to 5.0 s"
    assert len(pickle.dumps(recording.video)) < 3000


@pytest.mark.parametrize("suffix", [".mp4", ".avi", ".mkv", ".mov"])
def test_a_video_of_varying_rate_shows_each_frame_when_it_was_taken(saved, tmp_path, suffix):
    milliseconds = np.cumsum(np.repeat([0, 50, 130, 20, 400], [1, 40, 20, 55, 4]))
    path = write_video(tmp_path / f"mouse{suffix}", times=milliseconds)
    video = xc.open_recording(saved, video=str(path), video_offset=0.5).video
    np.testing.assert_allclose(video.times, milliseconds / 1000 + 0.5, atol=1e-9)
    decoder = Decoder(path, video.stamps)
    for taken in (0, 40, 41, 100, 7, 119, 60):
        number = video.at(milliseconds[taken] / 1000 + 0.505)
        assert number == taken == number_in(decoder.frame(number)[24, :, 0])
    decoder.close()


def test_times_from_a_file_are_those_of_the_frames(saved, short, tmp_path):
    times = np.sort(np.random.default_rng(1).uniform(1, 7, FRAMES))
    np.save(tmp_path / "times.npy", times)
    given = {"video": str(short), "video_times": str(tmp_path / "times.npy")}
    video = xc.open_recording(saved, **given).video
    assert video.at(times[33]) == 33
    opening = Opening(saved, settings=OpenSettings(**given))
    opening.save(tmp_path / "run")
    assert Opening.load(tmp_path / "run") == opening
    np.save(tmp_path / "times.npy", times[:50])
    with pytest.raises(InputError, match=r"has 50 times .*, but mouse.mp4 has 120 frames"):
        xc.open_recording(saved, **given)


def test_what_is_no_video_or_was_taken_at_another_time_is_refused(saved, short, tmp_path):
    with pytest.raises(InputError, match="There is no video"):
        xc.open_recording(saved, video=str(tmp_path / "none.mp4"))
    with pytest.raises(InputError, match=r"from 100\.0 to 106\.0 s, but the imaging"):
        xc.open_recording(saved, video=str(short), video_offset=100)
    (tmp_path / "text.mp4").write_text("no video")
    with pytest.raises(InputError, match="cannot be read as a video"):
        xc.open_recording(saved, video=str(tmp_path / "text.mp4"))
    # a list of other files, under the name of a video
    (tmp_path / "list.mp4").write_text(f"ffconcat version 1.0\nfile '{short}'\n")
    with pytest.raises(InputError, match="cannot be read as a video"):
        xc.open_recording(saved, video=str(tmp_path / "list.mp4"))
