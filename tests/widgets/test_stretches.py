"""Scores over time, known a stretch at a time."""

import numpy as np
import pytest
from scored import CELLS, scored_recording

from napari_xcebra.widgets.stretches import ScoresOverTime

LENGTH = 40


@pytest.fixture
def truth():
    """200 frames, of which the first of the second trial has no score."""
    values = np.random.default_rng(0).random((200, CELLS)).astype(np.float32)
    values[100] = np.nan
    values[:, 5] = np.nan
    return values


def over_time(window=1, **how):
    return ScoresOverTime(scored_recording(starts=[0, 100]), LENGTH, window, **how)


def fill(scores, truth, *frames):
    for frame in frames:
        wanted = scores.wanted(frame)
        scores.put(wanted, truth[wanted])


def test_a_frame_that_is_not_computed_has_no_scores(truth):
    scores = over_time()
    assert np.isnan(scores[7]).all()
    fill(scores, truth, 7)
    np.testing.assert_array_equal(scores[7], truth[7])
    assert np.isnan(scores[LENGTH]).all()


def test_the_stretch_at_the_slider_is_wanted_first_then_the_one_ahead(truth):
    scores = over_time()
    assert scores.wanted(10) == slice(0, 40)
    fill(scores, truth, 10)
    assert scores.wanted(10) is None
    assert scores.wanted(25) == slice(40, 80)
    assert scores.wanted(199) == slice(160, 200)


def test_the_window_averages_within_the_trial_and_leaves_out_frames_without_scores(truth):
    scores = over_time(window=5)
    fill(scores, truth, 70, 90)
    used = np.delete(np.arange(CELLS), 5)
    np.testing.assert_allclose(scores[90][used], truth[88:93, used].mean(0), rtol=1e-6)
    np.testing.assert_allclose(scores[99][used], truth[97:100, used].mean(0), rtol=1e-6)
    np.testing.assert_allclose(
        scores[101][used], truth[[101, 102, 103]][:, used].mean(0), rtol=1e-6
    )
    assert np.isnan(scores[90][5])


def test_a_window_over_two_stretches_takes_what_is_there(truth):
    scores = over_time(window=11)
    fill(scores, truth, 38)
    np.testing.assert_allclose(scores[38][0], truth[33:40, 0].mean(), rtol=1e-6)
    assert scores.wanted(38) == slice(40, 80)
    fill(scores, truth, 38)
    np.testing.assert_allclose(scores[38][0], truth[33:44, 0].mean(), rtol=1e-6)


def test_stretches_looked_at_longest_ago_make_room(truth):
    room = 3 * LENGTH * CELLS * 4
    scores = over_time(budget=room)
    fill(scores, truth, 0, 40, 80)
    scores[0]
    fill(scores, truth, 120)
    assert scores.nbytes <= room
    assert np.isfinite(scores[0]).any()
    assert np.isnan(scores[40]).all()


def test_a_sample_tells_the_range_of_what_is_known(truth):
    scores = over_time()
    assert len(scores.sample()) == 0
    fill(scores, truth, 0)
    sample = scores.sample()
    assert np.isfinite(sample).all()
    assert 0.9 < sample.max() <= 1
