"""What is drawn of a long signal keeps what a scientist looks for in it."""

import numpy as np
import pytest

from napari_xcebra.attribution.single_cell.tuning import Column
from napari_xcebra.widgets.plots.trace_plot import (
    _every_nth,
    _Extremes,
    _joined,
    _steps,
    behavior_lane,
)

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("frames", [1, 2, 63, 1000, 99_999, 131_072])
@pytest.mark.parametrize("points", [50, 400])
def test_no_more_points_are_drawn_than_the_screen_can_show(frames, points):
    at, values = _Extremes(RNG.normal(size=frames)).between(0, frames, points)
    assert len(at) == len(values) <= 4 * points + 2
    assert at[0] >= 0 and at[-1] < frames


def test_a_single_spike_in_100_000_frames_is_seen():
    values = np.zeros(100_000, np.float32)
    values[54_321] = 7
    at, drawn = _Extremes(values).between(0, 100_000, 300)
    assert drawn.max() == 7
    assert abs(int(at[drawn.argmax()]) - 54_321) < 512


def test_every_zoom_has_the_extremes_of_its_stretch():
    values = RNG.normal(size=10_007)
    extremes = _Extremes(values)
    for first, last in [(0, 10_007), (3, 900), (5000, 10_007), (9990, 10_007)]:
        _, drawn = extremes.between(first, last, 100)
        assert drawn.max() >= values[first:last].max()
        assert drawn.min() <= values[first:last].min()


def test_frames_that_fit_are_drawn_as_they_are():
    values = RNG.normal(size=5000)
    at, drawn = _Extremes(values).between(1000, 1100, 100)
    np.testing.assert_array_equal(at, np.arange(1000, 1100))
    np.testing.assert_array_equal(drawn, values[1000:1100])


def test_scrolling_does_not_change_what_is_drawn_of_a_moment():
    extremes = _Extremes(RNG.normal(size=100_000))
    here, there = (extremes.between(first, first + 50_000, 300) for first in (1000, 1017))
    common = np.intersect1d(here[0], there[0])
    assert len(common) > 300
    first, second = (values[np.isin(at, common)] for at, values in (here, there))
    np.testing.assert_array_equal(first, second)


def test_unknown_values_hide_no_known_ones():
    values = np.full(10_000, np.nan)
    values[5001] = 3
    _, drawn = _Extremes(values).between(0, 10_000, 100)
    assert np.nanmax(drawn) == 3
    assert np.isnan(drawn).sum() == len(drawn) - 2


def test_no_line_is_drawn_across_the_wrap_of_an_angle_a_gap_or_an_unknown_value():
    values = np.array([6.0, 6.2, 0.1, 0.2, np.nan, 0.3, 0.4])
    part = np.array([0, 0, 0, 0, 0, 0, 1])
    expected = [True, False, True, False, False, False, False]
    assert _joined(values, part, 2 * np.pi).tolist() == expected


def test_angles_are_thinned_out_and_never_mixed():
    angles = RNG.uniform(0, 6, 10_000)
    at, drawn = _every_nth(angles, 17, 9000, 100)
    assert 100 <= len(at) <= 200 and at[0] >= 17
    np.testing.assert_array_equal(drawn, angles[at])


def test_a_discrete_value_stays_until_the_next_frame():
    times, values, lines = _steps(
        np.array([0.0, 1.0, 2.0]), np.array([5.0, 6.0, 6.0]), np.array([True, True, False])
    )
    assert times.tolist() == [0, 1, 1, 2, 2]
    assert values.tolist() == [5, 5, 6, 6, 6]
    assert lines.tolist() == [True, True, True, True, False]


def test_the_lane_of_a_category_is_labelled_with_its_words():
    side = Column("side", np.array([0, 1, 1, np.nan]), "discrete", words=("left", "right"))
    assert behavior_lane(side, None, "").ticks == {0.0: "left", 1.0: "right"}
    numbered = Column("context", np.array([0, 1, 3.0]), "discrete")
    assert behavior_lane(numbered, None, "").ticks == {0.0: "0", 3.0: "3"}
