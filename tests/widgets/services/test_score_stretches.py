"""Scores over time, known a stretch at a time."""

import numpy as np
import pytest
from scored import CELLS, scored_recording

from napari_xcebra.widgets.services.scores_over_time import ScoresOverTime

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


def test_a_plot_draws_the_means_that_are_painted(truth):
    scores = over_time(window=7)
    fill(scores, truth, 0, 60, 95, 130, 170)
    drawn = scores.drawn(0, 200, 1, [3, 0, 5])
    np.testing.assert_array_equal(drawn.frames, np.arange(200))
    painted = np.stack([scores[frame] for frame in drawn.frames])[:, [3, 0, 5]]
    np.testing.assert_allclose(drawn.scores, painted, rtol=1e-5)
    assert np.isfinite(painted[:, 0]).all() and np.isnan(painted[:, 2]).all()


def test_a_long_view_is_scored_at_some_of_its_frames(truth):
    scores = over_time(window=5)
    assert scores.wanted_between(0, 200, 2) == slice(0, 80, 2)
    while (wanted := scores.wanted_between(0, 200, 2)) is not None:
        scores.put(wanted, truth[wanted])
    drawn = scores.drawn(0, 200, 2, [0])
    np.testing.assert_array_equal(drawn.frames, np.arange(0, 200, 2))
    # the mean of those that are scored, within the trial
    np.testing.assert_allclose(drawn.scores[10, 0], truth[[18, 20, 22], 0].mean(), rtol=1e-6)
    np.testing.assert_allclose(drawn.scores[49, 0], truth[[96, 98], 0].mean(), rtol=1e-6)
    # a finer one that covers the view is preferred; where none does, there still is this one
    assert np.isnan(scores[20]).all()
    fill(scores, truth, 20)
    assert scores.drawn(0, 40, 2, [0]).step == 1
    assert scores.drawn(0, 80, 2, [0]).step == 2
    assert scores.drawn(0, 80, 1, [0]).step == 2


def test_what_is_in_view_is_wanted_before_what_is_around_it(truth):
    scores = over_time()
    assert scores.wanted_between(85, 115, 1) == slice(80, 120)
    fill(scores, truth, 90)
    assert scores.wanted_between(85, 115, 1) == slice(40, 80)
