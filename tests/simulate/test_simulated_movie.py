"""The movie of a simulated field shows what its traces say."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from napari_xcebra.io import open_recording, save_recording
from napari_xcebra.simulate import field


@pytest.fixture(scope="module")
def recording():
    return field(cells=12, frames=400, shape=(96, 96), junk=2, overlap=0, seed=3).recording


def test_a_cell_brightens_in_the_movie_when_its_trace_rises(recording):
    movie, footprints = recording.movie, recording.footprints
    assert movie.shape == (400, 96, 96)
    for cell in np.flatnonzero(np.asarray(recording.accepted)):
        own = footprints.cell == cell
        rows, columns = footprints.row[own], footprints.column[own]
        seen = [movie.frame(n)[rows, columns].mean() for n in range(0, 400, 4)]
        assert np.corrcoef(seen, recording.traces[::4, cell])[0, 1] > 0.6


def test_the_mean_of_the_movie_is_the_mean_image(recording):
    mean = np.mean([recording.movie.frame(n) for n in range(400)], axis=0)
    np.testing.assert_allclose(mean, recording.images["mean"], rtol=0.12)


def test_a_frame_is_the_same_whenever_and_wherever_it_is_asked_for(recording):
    movie, sent = recording.movie, pickle.loads(pickle.dumps(recording)).movie
    frame = movie.frame(7)
    np.testing.assert_array_equal(sent.frame(7), frame)
    crop = movie.crop([7], 0, slice(10, 30), slice(5, 25))
    np.testing.assert_array_equal(crop[0], frame[10:30, 5:25])
    assert (movie.frame(8) != frame).any()


def test_the_movie_takes_no_second_copy_of_the_traces(recording):
    with_movie, without = (
        len(pickle.dumps(r)) for r in (recording, replace(recording, movie=None))
    )
    (frames,) = recording.movie.planes
    assert with_movie - without < frames.rest.nbytes + frames.gain.nbytes + 2000
    assert frames.traces is recording.traces


def test_a_saved_recording_keeps_its_movie_but_not_that_of_other_traces(recording, tmp_path):
    again = open_recording(save_recording(recording, tmp_path / "same.npz"))
    twice = open_recording(save_recording(again, tmp_path / "again.npz"))
    np.testing.assert_array_equal(twice.movie.frame(7), recording.movie.frame(7))
    doubled = replace(recording, traces=2 * np.asarray(recording.traces))
    assert open_recording(save_recording(doubled, tmp_path / "other.npz")).movie is None
