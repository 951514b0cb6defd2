"""What is said about two clocks that share much, little or no time."""

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from napari_xcebra.errors import InputError
from napari_xcebra.io.clocks.placing import on_frames
from napari_xcebra.io.extraction import Behavior, Series
from napari_xcebra.io.settings import OpenSettings

FRAMES = np.arange(1000) / 10
RNG = np.random.default_rng(0)


def placed(times, values=None, name="speed", frames=FRAMES, **choices):
    times = np.asarray(times, float)
    values = RNG.random(len(times)) if values is None else values
    behavior = Behavior((Series(name, values, times),), name="run.csv")
    return on_frames(behavior, frames, OpenSettings(**choices))


def said(*args, **choices):
    return " ".join(placed(*args, **choices).notes)


def test_the_share_of_the_frames_is_said():
    assert "run.csv covers 50 % of the frames (50 s to 99.9 s)." in said(np.arange(50, 200, 0.1))
    assert "covers 99.9 %" in said(np.arange(0.1, 200, 0.1))
    assert "covers 100 %" in said(np.arange(-1, 200, 0.1))


def test_frames_outside_the_behaviour_have_no_value():
    known = placed(np.arange(50, 60, 0.1)).variables[0].known
    np.testing.assert_array_equal(np.flatnonzero(known), np.arange(500, 600))


def test_the_offset_is_added_to_the_clock_of_the_behaviour():
    times = np.arange(0, 100, 0.1)
    values = placed(times, times, offset=7.0).variables[0].values[:, 0]
    assert np.isnan(values[:70]).all()
    np.testing.assert_allclose(values[70:], FRAMES[70:] - 7)


def test_no_common_time_is_refused_with_both_spans_and_the_offset_that_would_help():
    with pytest.raises(InputError) as refused:
        placed(np.arange(300, 400, 0.1))
    for part in ("run.csv", "300 s to 399.9 s", "0 s to 99.9 s", "offset", "-300", "time_ms"):
        assert part in str(refused.value)


def test_unix_time_is_recognised_in_the_refusal():
    with pytest.raises(InputError, match=r"1970.*-1700000000 if"):
        placed(1.7e9 + np.arange(0, 100, 0.1))


@pytest.mark.parametrize(("factor", "unit"), [(1e3, "ms"), (1e6, "us"), (1e9, "ns")])
def test_another_unit_is_suspected_although_the_clocks_overlap(factor, unit):
    with pytest.raises(InputError, match=f"look like {unit}. Name the unit.*time_{unit}"):
        placed(np.arange(0, 100, 0.1) * factor)


def test_times_of_no_unit_that_would_fit_are_asked_about():
    ticks = np.round(np.arange(0, 100, 0.01) * 30_000)
    series = Series("speed", np.sin(ticks), ticks, times_in="unnamed")
    behavior = Behavior((series,), name="run.csv")
    with pytest.raises(InputError, match=r"to samples and `behavior_rate` to 30000, which would"):
        on_frames(behavior, FRAMES, OpenSettings())
    assert on_frames(behavior, FRAMES, OpenSettings(behavior_clock="s")).warnings


def test_gaps_are_counted_and_stay_unknown():
    times = np.r_[np.arange(0, 40, 0.1), np.arange(45, 70, 0.1), np.arange(72, 100, 0.1)]
    result = placed(times)
    assert "2 gaps, the longest of 5.1 s" in " ".join(result.notes)
    assert result.variables[0].known.sum() == pytest.approx(len(times), abs=2)


def test_times_out_of_order_or_missing_or_twice_are_mended_with_a_note():
    times = np.arange(0, 100, 0.1)
    values = times.copy()
    order = np.arange(1000)
    order[[10, 11]] = order[[11, 10]]
    jumbled, jumbled_values = times[order], values[order]
    jumbled[500] = np.nan
    jumbled[600], jumbled_values[600] = jumbled[601], jumbled_values[601]
    result = placed(jumbled, jumbled_values)
    notes = " ".join(result.notes)
    assert "1 time out of order, the first 100 ms back in row 12" in notes
    assert "1 samples without a time" in notes
    assert "1 repeated times" in notes
    np.testing.assert_allclose(result.variables[0].values[:, 0], times, atol=1e-9)


def test_short_events_that_a_frame_would_swallow_are_reported():
    times = np.arange(0, 100, 0.001)
    cue = 2.0 * (np.arange(len(times)) % 400 < 20)
    assert "cue is 2 in 5 % of the samples but in 0 % of the frames" in said(times, cue, "cue")
    long = (np.arange(len(times)) % 4000 < 2000).astype(float)
    assert "samples but in" not in said(times, long, "lick")


def test_a_series_that_misses_the_frames_is_left_out_if_another_does_not():
    late = Series("late", np.ones(50), 500 + np.arange(50.0))
    good = Series("good", np.arange(100.0), np.arange(100.0))
    result = on_frames(Behavior((late, good)), FRAMES, OpenSettings())
    assert [v.name for v in result.variables] == ["good"]
    assert "Left out: late runs from" in " ".join(result.notes)


def test_infinite_samples_are_unknown():
    times = np.arange(0, 100, 0.1)
    values = np.where(np.arange(1000) // 100 == 3, np.inf, times)
    assert not placed(times, values).variables[0].known[310:390].any()


def test_samples_and_times_of_different_number_get_a_sentence():
    with pytest.raises(InputError, match="50 samples of speed but times of shape"):
        placed(np.arange(49), np.zeros(50))
    with pytest.raises(InputError, match="no sample with a time"):
        placed(np.full(5, np.nan), np.zeros(5))


@given(
    st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=1, max_size=30),
    st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=1, max_size=30),
    st.sampled_from(["speed", "heading_deg", "lick"]),
)
def test_any_numbers_are_placed_or_refused(times, values, name):
    length = min(len(times), len(values))
    with suppress(InputError):
        for variable in placed(times[:length], np.array(values[:length]), name).variables:
            assert np.isfinite(variable.values[variable.known]).all()
