"""Trials end segments, and what is known about them is known in their frames only."""

import numpy as np
import pandas as pd
import pytest

from napari_xcebra.errors import InputError
from napari_xcebra.io import open_recording
from napari_xcebra.io.clocks.placing import check_names, on_frames
from napari_xcebra.io.extraction import Behavior, Intervals, Series
from napari_xcebra.io.settings import OpenSettings

FRAMES = 100
TIMES = np.arange(FRAMES) / 10


@pytest.fixture
def traces(tmp_path):
    np.save(tmp_path / "traces.npy", np.random.default_rng(0).random((FRAMES, 4)))
    return tmp_path / "traces.npy"


def opened(traces, table, stem="trials", **choices):
    path = traces.with_name(f"{stem}.csv")
    pd.DataFrame(table).to_csv(path, index=False)
    return open_recording(traces, path, rate=10.0, layout="frames-cells", **choices)


TABLE = {
    "start": [1.0, 4.0, 7.0],
    "stop": [3.0, 6.0, 9.0],
    "condition": ["go", "stop", "go"],
    "contrast": [0.25, 0.5, 1.0],
}


def test_segments_begin_where_trials_start_and_stop(traces):
    recording = opened(traces, TABLE)
    np.testing.assert_array_equal(recording.starts, [0, 10, 30, 40, 60, 70, 90])
    assert not recording.excluded.any()


def test_what_is_known_of_a_trial_is_known_in_its_frames_only(traces):
    recording = opened(traces, TABLE)
    assert list(recording.behavior) == ["condition", "contrast"]
    condition = recording.behavior["condition"]
    assert condition.kind == "discrete"
    inside = np.zeros(FRAMES, bool)
    for start in (10, 40, 70):
        inside[start : start + 20] = True
    np.testing.assert_array_equal(condition.known, inside)
    np.testing.assert_array_equal(condition.values[[10, 29, 40, 59, 70], 0], [0, 0, 1, 1, 0])
    assert condition.words == ("go", "stop")
    assert "condition holds words: go, stop." in recording.notes
    np.testing.assert_array_equal(
        recording.behavior["contrast"].values[[15, 45, 75], 0], [0.25, 0.5, 1]
    )


@pytest.mark.parametrize(
    ("names", "scale"),
    [
        (("start_time", "stop_time"), 1),
        (("onset", "offset"), 1),
        (("begin", "end"), 1),
        (("Start (s)", "End (s)"), 1),
        (("trial_start_ms", "trial_end_ms"), 1000),
        (("start_frame", "stop_frame"), 10),
        (("startFrame", "endFrame"), 10),
    ],
)
def test_starts_and_stops_go_by_many_names_and_units(traces, names, scale):
    table = {names[0]: np.array(TABLE["start"]) * scale, names[1]: np.array(TABLE["stop"]) * scale}
    np.testing.assert_array_equal(opened(traces, table).starts, [0, 10, 30, 40, 60, 70, 90])


def test_an_onset_with_a_duration_will_do(traces):
    table = {"onset": TABLE["start"], "duration": [2.0, 2.0, 2.0], "trial_type": ["a", "b", "a"]}
    recording = opened(traces, table, stem="events")
    np.testing.assert_array_equal(recording.starts, [0, 10, 30, 40, 60, 70, 90])
    assert list(recording.behavior) == ["trial_type"]


def test_edges_may_be_dates_which_count_from_the_first(traces):
    first = pd.Timestamp("2026-03-01 10:00")
    dates = {n: [str(first + pd.Timedelta(s, "s")) for s in TABLE[n]] for n in ("start", "stop")}
    recording = opened(traces, {**TABLE, **dates}, offset=1.0)
    np.testing.assert_array_equal(recording.starts, [0, 10, 30, 40, 60, 70, 90])
    assert any("counted from the first" in note for note in recording.notes)


def test_epochs_are_named_by_their_file(traces):
    table = {"start": [0.0, 5.0], "stop": [5.0, 10.0], "label": ["sleep", "maze"]}
    assert list(opened(traces, table, stem="epochs").behavior) == ["epochs_label"]


def test_the_offset_moves_trials_but_not_numbers_of_frames(traces):
    assert 15 in opened(traces, TABLE, offset=0.5).starts
    frames = {"start_frame": [10], "stop_frame": [30]}
    assert 10 in opened(traces, frames, offset=0.5).starts


def test_labels_choose_the_frames(traces):
    go = np.zeros(FRAMES, bool)
    go[10:30] = go[70:90] = True
    stop = np.zeros(FRAMES, bool)
    stop[40:60] = True
    np.testing.assert_array_equal(opened(traces, TABLE, exclude="Stop").excluded, stop)
    np.testing.assert_array_equal(opened(traces, TABLE, only="condition=go").excluded, ~go)
    np.testing.assert_array_equal(opened(traces, TABLE, only="trials").excluded, ~(go | stop))
    np.testing.assert_array_equal(opened(traces, TABLE, exclude="contrast=0.5").excluded, stop)
    np.testing.assert_array_equal(
        opened(traces, TABLE, only="trials", exclude="go").excluded, ~stop
    )
    with pytest.raises(InputError, match=r"exclude names 'rest'.*condition=go"):
        opened(traces, TABLE, exclude="rest")


def test_labels_of_rows_choose_frames_too(traces):
    state = np.where(np.arange(FRAMES) < 40, "rest", "run")
    recording = opened(traces, {"state": state, "x": TIMES}, stem="b", exclude="state=rest")
    np.testing.assert_array_equal(recording.excluded, np.arange(FRAMES) < 40)


def test_a_label_of_one_source_does_not_empty_the_others():
    series = Behavior((Series("x", TIMES, TIMES),))
    trials = Behavior(intervals=(Intervals("trials", np.array([1.0]), np.array([2.0])),))
    settings = OpenSettings(only="trials")
    check_names([series, trials], settings)
    assert not on_frames(series, TIMES, settings).excluded.any()
    assert on_frames(trials, TIMES, settings).excluded.sum() == FRAMES - 10


def test_trials_that_overlap_or_lie_outside_are_remarked_upon(traces):
    recording = opened(
        traces, {"start": [1.0, 2.0, 50.0], "stop": [3.0, 4.0, 60.0], "n": [1, 2, 3]}
    )
    assert "2 of 3 lie in the recording" in " ".join(recording.notes)
    assert "Row 2 of trials starts at 2, before row 1 stops (3)" in " ".join(recording.notes)
    assert "Row 3 of trials (50) holds no frame" in " ".join(recording.notes)
    np.testing.assert_array_equal(recording.behavior["n"].values[[15, 25, 35], 0], [1, 2, 2])


def test_wrong_trials_get_a_sentence(traces):
    with pytest.raises(
        InputError, match=r"Row 2 of .*trials\.csv stops \(2\) before it starts \(4\)"
    ):
        opened(traces, {"start": [1.0, 4.0], "stop": [3.0, 2.0]})
    with pytest.raises(InputError, match="from 100 s to 250 s and the frames from 0 s"):
        opened(traces, {"start": [100.0, 200.0], "stop": [150.0, 250.0]})
    with pytest.raises(InputError, match="from frame 500 to 600, but the recording has 100"):
        opened(traces, {"start_frame": [500], "stop_frame": [600]})
    with pytest.raises(InputError, match="no start and stop"):
        empty = Intervals("trials", np.zeros(0), np.zeros(0))
        on_frames(Behavior(intervals=(empty,)), TIMES, OpenSettings())


def test_trials_beside_samples_in_one_file_keep_both(traces):
    path = traces.with_name("all.npz")
    np.savez(path, time=TIMES, x=TIMES, trial_start=[1.0, 5.0], trial_stop=[2.0, 6.0], side=[0, 1])
    recording = open_recording(traces, path, rate=10.0, layout="frames-cells")
    assert list(recording.behavior) == ["x", "side"]
    np.testing.assert_array_equal(recording.starts, [0, 10, 20, 50, 60])
