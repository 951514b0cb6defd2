"""Events and trial tables as labs have them; what is wrong with one is said with row and value."""

import numpy as np
import pandas as pd
import pytest

from napari_xcebra.errors import InputError
from napari_xcebra.io import open_recording
from napari_xcebra.io.kinds import _begun

FRAMES = 100


@pytest.fixture
def traces(tmp_path):
    np.save(tmp_path / "traces.npy", np.random.default_rng(0).random((FRAMES, 4)))
    return tmp_path / "traces.npy"


def written(traces, table, name):
    path = traces.with_name(name)
    pd.DataFrame(table).to_csv(path, index=False)
    return path


def opened(traces, **files):
    return open_recording(traces, rate=10.0, layout="frames-cells", **files)


def began(recording, name):
    variable = recording.behavior[name]
    assert variable.kind == "event"
    return np.flatnonzero(variable.values).tolist()


def test_a_table_of_onsets_is_one_event(traces):
    path = written(traces, {"onset": [1.0, 2.04, 7.5]}, "reward.csv")
    assert began(opened(traces, behavior=path), "reward") == [10, 20, 75]


def test_a_log_of_times_and_names_is_an_event_for_each_name(traces):
    log = {"time": [1.0, 2.0, 2.5, 8.0], "event": ["lick", "reward", "lick", "lick"]}
    recording = opened(traces, behavior=written(traces, log, "log.csv"))
    assert began(recording, "lick") == [10, 25, 80]
    assert began(recording, "reward") == [20]


def test_events_in_one_frame_are_counted(traces):
    path = written(traces, {"onset_s": [1.0, 1.01, 1.02]}, "lick.csv")
    assert opened(traces, events=path).behavior["lick"].values[10, 0] == 3


@pytest.mark.parametrize(
    ("table", "frames"),
    [
        ({"t": [1.0, 3.0], "what": ["a", "a"]}, [10, 30]),
        ({"Event time (ms)": [1000, 3000], "kind": ["a", "a"]}, [10, 30]),
        ({"onset_frame": [10, 30], "code": ["a", "a"]}, [10, 30]),
        ({"seconds": [1.0, 3.0], "which": ["a", "a"]}, [10, 30]),
    ],
)
def test_any_table_is_read_as_events_if_the_user_says_so(traces, table, frames):
    recording = opened(traces, events=written(traces, table, "log.csv"))
    assert began(recording, "a") == frames


def test_events_after_the_recording_are_named_by_row_and_time(traces):
    recording = opened(traces, events=written(traces, {"onset": [1.0, 2.0, 55.0]}, "lick.csv"))
    notes = " ".join(recording.notes)
    assert "2 of 3 events lie in the recording. Row 3 of lick.csv has 55 s" in notes
    with pytest.raises(InputError, match=r"Row 1 of lick\.csv has 50 s; the frames were taken"):
        opened(traces, events=written(traces, {"onset": [50.0, 52.5]}, "lick.csv"))


def test_times_in_milliseconds_and_in_frames_are_recognised(traces):
    late = np.arange(500.0, 9500.0, 700.0)
    with pytest.raises(
        InputError, match=r"look like ms\. Name the unit in the header, such as time"
    ):
        opened(traces, events=written(traces, {"onset": late}, "lick.csv"))
    with pytest.raises(InputError, match=r"reach from 500 s.*look like ms"):
        opened(traces, trials=written(traces, {"start": late, "stop": late + 300}, "t.csv"))
    frames = np.arange(5, 95, 9)
    with pytest.raises(InputError, match=r"look like frames\. Name the column start_frame"):
        opened(traces, trials=written(traces, {"start": frames, "stop": frames + 5}, "t.csv"))


def test_a_trial_column_of_a_behaviour_table_tells_the_trials(traces):
    table = {
        "trial": np.repeat([1, 2, 3, 4], 25),
        "side": np.repeat(["left", "right", "right", "left"], 25),
        "speed": np.random.default_rng(0).random(100),
    }
    recording = opened(traces, behavior=written(traces, table, "b.csv"))
    trials = recording.trials
    assert trials.first.tolist() == [0, 25, 50, 75]
    assert list(trials.columns) == ["side"]
    assert [trials.label("side", v) for v in trials.columns["side"]] == [
        "left", "right", "right", "left",
    ]  # fmt: skip
    assert recording.behavior["side"].words == ("left", "right")


@pytest.mark.parametrize("between", [0, -1, np.nan])
def test_the_time_between_trials_is_no_trial(traces, between):
    number = np.repeat([between, 1, between, 2, between, 3, between], [5, 15, 5, 15, 5, 15, 40])
    table = {"trial": number, "side": np.where(number > 1, "left", "right")}
    recording = opened(traces, behavior=written(traces, table, "b.csv"))
    assert recording.trials.first.tolist() == [5, 25, 45]
    assert recording.trials.stop.tolist() == [20, 40, 60]
    assert "column trial tells 3 trials." in " ".join(recording.notes)


def test_a_trial_column_that_restarts_is_counted_on_and_said(traces):
    table = {"trial": np.repeat([1, 2, 1, 2], 25), "speed": np.arange(100.0)}
    recording = opened(traces, behavior=written(traces, table, "b.csv"))
    assert len(recording.trials) == 4
    assert "goes back from 2 to 1 at frame 50" in " ".join(recording.notes)


def test_a_trial_variable_holds_from_its_moment_to_the_end_of_the_trial(traces):
    table = {
        "start": [1.0, 4.0, 7.0],
        "stop": [3.0, 6.0, 9.0],
        "stimulus": ["go", "stop", "go"],
        "choice": [0, 1, 1],
        "choice_time": [2.0, 5.5, np.nan],
        "reward_time_ms": [2500, 5800, 8800],
    }
    recording = opened(traces, trials=written(traces, table, "session.csv"))
    assert list(recording.behavior) == ["stimulus", "choice", "choice_time", "reward"]
    choice = recording.behavior["choice"]
    assert np.flatnonzero(choice.known).tolist() == [*range(20, 30), *range(55, 60)]
    assert np.flatnonzero(recording.behavior["stimulus"].known)[:2].tolist() == [10, 11]
    assert began(recording, "choice_time") == [20, 55]
    assert began(recording, "reward") == [25, 58, 88]
    assert recording.trials.columns["choice"].tolist() == [0, 1, 1]
    assert len(recording.trials) == 3


def test_trials_without_a_stop_last_to_the_next(traces):
    table = {"onset": [1.0, 4.0, 7.0], "contrast": [1, 2, 3]}
    recording = opened(traces, trials=written(traces, table, "t.csv"))
    assert recording.trials.stop.tolist() == [40, 70, 100]


def test_a_table_that_tells_no_start_is_refused_with_its_columns(traces):
    with pytest.raises(InputError, match=r"when trials start.*its columns are: side, x"):
        opened(traces, trials=written(traces, {"side": [0, 1], "x": [1, 2]}, "t.csv"))


def test_marks_that_stay_up_are_one_event_and_counts_are_counts():
    marks = np.array([0, 1, 1, 0, 1, 0.0])[:, None]
    assert _begun(marks)[:, 0].tolist() == [0, 1, 0, 0, 1, 0]
    counts = np.array([0, 2, 1, np.nan, 1.0])[:, None]
    np.testing.assert_array_equal(_begun(counts)[:, 0], [0, 2, 1, np.nan, 1])


def test_a_column_of_rare_short_pulses_is_an_event_and_a_long_state_is_not(traces):
    lick, light = np.zeros(FRAMES), np.zeros(FRAMES)
    lick[[10, 11, 20, 40, 55, 70]] = 1
    light[30:80] = 1
    table = {"lick": lick, "light": light}
    recording = opened(traces, behavior=written(traces, table, "b.csv"))
    assert began(recording, "lick") == [10, 20, 40, 55, 70]
    assert recording.behavior["light"].kind == "discrete"


def test_a_column_faster_than_the_frames_is_counted_in_them(traces):
    times = np.arange(0, 10, 0.001)
    lick = np.zeros(len(times))
    for onset in (1.0, 1.05, 6.0):
        lick[round(onset * 1000) : round(onset * 1000) + 10] = 1
    path = written(traces, {"time": times, "lick": lick}, "b.csv")
    recording = opened(traces, behavior=path, kinds={"lick": "event"})
    assert recording.behavior["lick"].values.sum() == 3
