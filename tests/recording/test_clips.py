from dataclasses import replace

import numpy as np
import pytest

from napari_xcebra.errors import Stopped
from napari_xcebra.recording import Footprints, Movie, Recording
from napari_xcebra.recording.footprints import CellShapes
from napari_xcebra.recording.movies import Frames
from napari_xcebra.recording.overview import read_clips

RATE, FRAMES, FIELD = 10.0, 600, (30, 40)
PEAKS = [100, 250, 400, 595]
CELL = (slice(2, 7), slice(30, 36))


class InMemory(Frames):
    def __init__(self, pixels):
        self.pixels, self.shape, self.dtype = pixels, pixels.shape, pixels.dtype

    def read(self, number, rows, columns):
        return self.pixels[number, rows, columns]


@pytest.fixture
def recording(tmp_path):
    """A cell near the corner that lights up four times, in a movie of twice as many frames."""
    trace = np.random.default_rng(0).normal(0, 0.01, FRAMES)
    for peak, size in zip(PEAKS, (1, 4, 3, 2), strict=True):
        trace[peak : peak + 8] += size * np.exp(-np.arange(8) / 4)[: FRAMES - peak]
    pixels = np.full((2 * FRAMES, *FIELD), 50, np.float32)
    pixels[:, *CELL] += np.repeat(10 * trace, 2)[:, None, None].astype(np.float32)
    movie = Movie((InMemory(pixels),), tmp_path, numbers=2 * np.arange(FRAMES))
    row, column = (part.ravel() for part in np.mgrid[CELL])
    footprints = Footprints(
        FIELD, np.zeros(len(row), int), row, column, np.ones(len(row), np.float32)
    )
    traces = np.c_[trace, np.zeros(FRAMES)].astype(np.float32)
    return Recording(traces, RATE, footprints=footprints, starts=[0, 395], movie=movie)


def test_clips_show_the_cell_light_up_and_their_average_shows_where(recording):
    shapes = CellShapes(recording.footprints, 2)
    clips = read_clips(recording, shapes, 0, recording.traces[:, 0])
    np.testing.assert_allclose(clips.peaks, [250, 400, 595, 100], atol=3)
    # inside the field, and within its trial
    assert {clip.shape[1:] for clip in clips.clips} == {(30, 31)}
    np.testing.assert_allclose([len(clip) for clip in clips.clips], [31, 26, 15, 31], atol=2)
    row, column = clips.corner
    assert (row, column) == (0, 9)
    here = (slice(2, 7), slice(21, 27))
    first = clips.clips[0]
    assert first[10:13, *here].mean() > first[:8, *here].mean() + 10
    outside = np.ones((30, 31), bool)
    outside[here] = False
    assert clips.average[here].min() > 5 > abs(clips.average[outside]).max()
    assert clips.seconds == pytest.approx(0.1)


def test_a_slow_rise_is_compared_with_what_was_before_it(recording):
    """A cell that fires for five seconds is as bright one second before its peak as at it."""
    trace = np.zeros(FRAMES)
    trace[150:200] = 1 + 0.01 * np.arange(50)
    pixels = np.full((2 * FRAMES, *FIELD), 50, np.float32)
    pixels[:, *CELL] += np.repeat(10 * trace, 2)[:, None, None].astype(np.float32)
    movie = replace(recording.movie, planes=(InMemory(pixels),))
    recording = replace(recording, movie=movie)
    clips = read_clips(recording, CellShapes(recording.footprints, 2), 0, trace)
    assert clips.average[2:7, 21:27].min() > 9
    assert len(clips.clips[0]) <= 32 and clips.clips[0][0, 2:7, 21:27].max() < 52


def test_cells_without_pixels_or_transients_have_no_clips_and_reading_stops(recording):
    shapes = CellShapes(recording.footprints, 2)
    assert read_clips(recording, shapes, 1, recording.traces[:, 0]) is None
    assert read_clips(recording, shapes, 0, np.zeros(FRAMES)) is None
    with pytest.raises(Stopped):
        read_clips(recording, shapes, 0, recording.traces[:, 0], lambda: True)
