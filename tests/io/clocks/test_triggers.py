"""Frames are where the trigger marks them on the clock of the behaviour."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from napari_xcebra.errors import InputError
from napari_xcebra.io import open_recording
from napari_xcebra.io.clocks.placing import check_names, on_frames
from napari_xcebra.io.clocks.time_files import marked_frames
from napari_xcebra.io.extraction import Behavior, Series
from napari_xcebra.io.settings import OpenSettings

N = 120
RNG = np.random.default_rng(0)
TAKEN = 3 + np.cumsum(RNG.uniform(0.05, 0.08, N))
"""When the frames were really taken, on the clock of the behaviour."""
TIMES = np.arange(0, TAKEN[-1] + 2, 0.001)


def pulses(taken, width=0.01):
    """Voltage that rises to 5 at each of the times."""
    since = TIMES - taken[np.clip(np.searchsorted(taken, TIMES, side="right") - 1, 0, None)]
    return 5.0 * ((since >= 0) & (since < width))


def behavior(trigger, times=TIMES):
    position = Series("x", TIMES.copy(), times)
    return Behavior((position, Series("sync", trigger, times)), name="daq.csv")


def placed(trigger, n_frames=N, times=TIMES, **choices):
    settings = OpenSettings(trigger="sync", **choices)
    return on_frames(behavior(trigger, times), np.arange(n_frames) / 15, settings)


def test_rising_edges_are_the_times_of_the_frames():
    result = placed(pulses(TAKEN), offset=1000.0)
    assert [v.name for v in result.variables] == ["x"]  # the trigger itself is no variable
    np.testing.assert_allclose(result.variables[0].values[:, 0], TAKEN, atol=0.002)
    assert "sync has 120 pulses for 120 frames" in " ".join(result.notes)


def test_noise_on_the_line_makes_no_further_pulses():
    noisy = pulses(TAKEN) + 0.3 * RNG.standard_normal(len(TIMES))
    np.testing.assert_allclose(placed(noisy).variables[0].values[:, 0], TAKEN, atol=0.003)


def test_a_line_that_is_switched_over_with_each_frame_counts_both_edges():
    switched = 5.0 * (np.searchsorted(TAKEN, TIMES, side="right") % 2)
    result = placed(switched)
    np.testing.assert_allclose(result.variables[0].values[:, 0], TAKEN, atol=0.002)


@pytest.mark.parametrize("first", [0, 1])
def test_numbers_of_frames_place_the_rows(first):
    numbers = np.searchsorted(TAKEN, TIMES, side="right") - 1.0
    numbers = np.where(TIMES > TAKEN[-1] + 0.06, np.nan, numbers) + first
    numbers[TIMES < TAKEN[0]] = -1 if first == 0 else 0
    result = placed(numbers)
    middle = np.r_[TAKEN[:-1] + np.diff(TAKEN) / 2, TAKEN[-1] + 0.03]
    np.testing.assert_allclose(result.variables[0].values[:, 0], middle, atol=0.002)


def test_rows_without_times_are_placed_by_the_trigger_alone():
    result = placed(pulses(TAKEN), times=None)
    np.testing.assert_allclose(result.variables[0].values[:, 0], TAKEN, atol=0.002)


def test_a_few_pulses_more_or_fewer_are_used_with_a_note():
    more = placed(pulses(TAKEN), n_frames=N - 2)
    np.testing.assert_allclose(more.variables[0].values[:, 0], TAKEN[:-2], atol=0.002)
    assert "the last 2 are not used" in " ".join(more.notes)
    fewer = placed(pulses(TAKEN), n_frames=N + 2)
    assert not fewer.variables[0].known[-2:].any()
    assert "unknown at the last 2" in " ".join(fewer.notes)


def test_a_pulse_that_was_missed_is_put_where_it_belongs():
    steady = 3 + np.arange(N) / 15
    result = placed(pulses(np.delete(steady, [40, 77])))
    np.testing.assert_allclose(result.variables[0].values[:, 0], steady, atol=0.002)


def test_several_pulses_a_frame_are_planes():
    steady = 3 + np.arange(3 * 40) / 20
    result = placed(pulses(steady), n_frames=40)
    np.testing.assert_allclose(result.variables[0].values[:, 0], steady[::3], atol=0.002)
    assert "first of every 3" in " ".join(result.notes)


def test_numbers_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match="120 pulses for 90 frames"):
        placed(pulses(TAKEN), n_frames=90)
    with pytest.raises(InputError, match="has no pulse"):
        placed(np.zeros(len(TIMES)))
    with pytest.raises(InputError, match="starts again"):
        placed(np.where(np.arange(len(TIMES)) < 6000, np.arange(len(TIMES)) // 50, 0))
    with pytest.raises(InputError, match="several columns"):
        placed(np.zeros((len(TIMES), 2)))


def test_a_file_of_times_marks_the_frames_of_every_source(tmp_path):
    np.save(tmp_path / "traces.npy", RNG.random((N, 4)))
    np.save(tmp_path / "taken.npy", TAKEN)
    pd.DataFrame({"time": TIMES, "x": TIMES}).to_csv(tmp_path / "b.csv", index=False)
    opened = open_recording(
        tmp_path / "traces.npy",
        tmp_path / "b.csv",
        rate=15.0,
        layout="frames-cells",
        trigger=str(tmp_path / "taken.npy"),
    )
    np.testing.assert_allclose(opened.behavior["x"].values[:, 0], TAKEN, atol=0.002)
    np.save(tmp_path / "taken.npy", TAKEN[::-1])
    with pytest.raises(
        InputError, match=r"row 2 is 52 ms earlier .*does not hold the times of frames"
    ):
        on_frames(behavior(TIMES), TAKEN, OpenSettings(trigger=str(tmp_path / "taken.npy")))


def test_a_trigger_that_nothing_has_is_refused_and_one_that_another_source_has_is_not():
    settings = OpenSettings(trigger="pulse")
    with pytest.raises(InputError, match=r"no column 'pulse'.*x, sync"):
        check_names([behavior(TIMES)], settings)
    check_names([behavior(TIMES), Behavior((Series("pulse", TIMES),))], settings)
    result = on_frames(behavior(TIMES), np.arange(N) / 15, settings)
    assert "daq.csv has no column pulse: its own times are used." in result.notes


@given(st.lists(st.integers(0, 5), min_size=0, max_size=300), st.integers(1, 60))
def test_any_column_as_trigger_gives_ascending_times_or_a_sentence(values, n_frames):
    series = Behavior((Series("sync", np.array(values, float)),))
    try:
        marked = marked_frames(series, n_frames, OpenSettings(trigger="sync"))
    except InputError:
        return
    assert marked is not None and marked.times.shape == (n_frames,)
    assert (np.diff(marked.times[np.isfinite(marked.times)]) > 0).all()
    # marks are missing only before the first and after the last
    assert np.diff(np.isfinite(marked.times).astype(int)).clip(0).sum() <= 1
