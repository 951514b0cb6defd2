"""The movie follows the slider, and the window does not wait for slow files."""

import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from napari_xcebra.errors import InputError
from napari_xcebra.recording import Movie, Recording
from napari_xcebra.recording.movies import Frames
from napari_xcebra.simulate import field
from napari_xcebra.widgets.layers.legend import _overlay_of
from napari_xcebra.widgets.layers.movie import _MovieOnSlider
from napari_xcebra.widgets.state.state import role_of
from napari_xcebra.widgets.window import services_of


class Numbered(Frames):
    """Frames that have their number everywhere, and may take long to come."""

    shape, dtype = (50, 6, 8), np.dtype(np.int16)

    def __init__(self):
        self.gate = threading.Event()
        self.gate.set()
        self.read_numbers = []
        self.broken = False

    def read(self, number, rows, columns):
        assert self.gate.wait(120)
        if self.broken:
            raise InputError("The file is gone.")
        self.read_numbers.append(number)
        size = rows.stop - rows.start, columns.stop - columns.start
        return np.full(size, number, np.int16)


@pytest.fixture
def frames():
    return Numbered()


def on_slider(frames, n_frames=50, **how):
    return _MovieOnSlider(Movie((frames,), Path("a.bin"), **how), n_frames)


def test_a_frame_of_the_slider_is_that_of_the_recordings_clock(frames):
    shown = on_slider(frames, 100, numbers=np.arange(100) // 2)
    assert shown.shape == (100, 6, 8) and shown.ndim == 3 and len(shown) == 100
    assert (shown[(31, slice(None), slice(None))] == 15).all()
    assert shown[40, 2, 3] == 20
    assert shown[..., 2, 3].shape == (64,)  # evenly spaced, not all 100


def test_of_planes_only_the_one_in_view_is_read(frames):
    other = Numbered()
    shown = _MovieOnSlider(Movie((frames, other), Path("a"), stacked=True), 50)
    assert shown.shape == (50, 2, 6, 8)
    assert (shown[7, 1] == 7).all()
    assert frames.read_numbers == [] and other.read_numbers == [7]
    assert shown[7].shape == (2, 6, 8)


def test_a_slow_frame_is_not_waited_for_and_only_the_last_that_was_asked_for_is_read(frames):
    shown, came = on_slider(frames), threading.Event()
    shown.late = came.set
    assert (shown[3] == 3).all()
    came.clear()
    frames.gate.clear()
    for number in (10, 11, 12, 13):
        assert (shown[number] == 3).all()  # the one before stays
    frames.gate.set()
    assert came.wait(120)
    until(lambda: (shown[13] == 13).all())
    assert 11 not in frames.read_numbers and 12 not in frames.read_numbers


def test_a_movie_that_cannot_be_read_is_dark_and_says_why(frames):
    shown = on_slider(frames)
    frames.broken = True
    with pytest.raises(InputError):
        shown[0]
    shown.late = lambda: None
    assert not shown[1].any()
    assert shown.problem == "The file is gone."


def until(true):
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.gui
def test_the_movie_and_the_time_follow_the_slider_of_the_recording_in_front(viewer, qtbot):
    first = field(cells=8, frames=120, shape=(64, 64), seed=0).recording
    other = field(cells=8, frames=60, shape=(64, 64), seed=1).recording
    state = services_of(viewer).state
    opened = state.show(first)
    roles = [role_of(layer) for layer in viewer.layers]
    assert roles == ["image", "image", "movie", "activity", "cells"]
    layer = viewer.layers["movie"]
    assert layer.visible and viewer.layers["mean image"].visible
    state.frame = 100

    def shows(recording, frame, layer):
        qtbot.waitUntil(
            lambda: np.array_equal(layer._slice.image.raw, recording.movie.frame(frame))
        )

    shows(first, 100, layer)
    assert _overlay_of(viewer).visible
    qtbot.waitUntil(lambda: _overlay_of(viewer).text == "10.0 s · frame 100")
    state.show(other)
    shows(other, 0, viewer.layers["movie"])
    assert _overlay_of(viewer).text == "0.0 s · frame 0"
    state.current = opened
    shows(first, 100, viewer.layers["movie"])
    assert _overlay_of(viewer).text == "10.0 s · frame 100"
    for each in list(state.opened):
        state.forget(each)
    assert not _overlay_of(viewer).visible


@pytest.mark.gui
def test_a_late_frame_is_drawn_when_it_has_come(viewer, qtbot, frames):
    recording = Recording.from_arrays(
        np.random.default_rng(0).random((50, 3)), rate=30.0, movie=Movie((frames,), Path("a.bin"))
    )
    state = services_of(viewer).state
    state.show(recording)
    layer = viewer.layers["movie"]
    frames.gate.clear()
    state.frame = 20
    state.frame = 40
    frames.gate.set()
    qtbot.waitUntil(lambda: (layer._slice.image.raw == 40).all())
    qtbot.waitUntil(lambda: _overlay_of(viewer).text == "1.33 s · frame 40")


@pytest.mark.gui
def test_a_movie_that_is_added_changed_or_taken_away_lies_below_the_cells(viewer, frames):
    small = field(cells=8, frames=50, shape=(64, 64), seed=0).recording
    state = services_of(viewer).state
    opened = state.show(replace(small, movie=None))
    order = [layer.name for layer in viewer.layers]
    assert not state.layers.lacks_some(opened)
    active = viewer.layers.selection.active
    state.change_recording(small)
    names = [layer.name for layer in viewer.layers]
    assert names == [*order[:2], "movie", *order[2:]]
    assert viewer.layers.selection.active is active
    assert viewer.layers["movie"].data.late is not None
    other = replace(small, movie=field(cells=8, frames=50, shape=(64, 64), seed=1).recording.movie)
    state.change_recording(other)
    assert viewer.layers["movie"].data.movie is other.movie
    assert [layer.name for layer in viewer.layers] == names
    viewer.layers.remove("movie")
    assert state.layers.lacks_some(opened)
    state.layers.add(opened)
    assert [layer.name for layer in viewer.layers] == names
    state.change_recording(replace(small, movie=None))
    assert [layer.name for layer in viewer.layers] == order
