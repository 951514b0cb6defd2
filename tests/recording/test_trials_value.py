"""Trials of a task: checked when they are made, kept with the recording."""

import pickle

import numpy as np
import pytest

from napari_xcebra.errors import InputError
from napari_xcebra.io import open_recording
from napari_xcebra.recording import Recording, Trials, Variable


def a_recording(**others):
    traces = np.random.default_rng(0).normal(size=(30, 3))
    return Recording(traces, 10.0, **others)


def some_trials():
    return Trials([2, 12], [10, 20], {"side": [0, 1]}, {"side": ("left", "right")})


def test_frames_know_their_trial():
    number = some_trials().number(30)
    assert number[1] == -1 and number[2] == 0 and number[9] == 0 and number[10] == -1
    assert number[12] == 1 and number[20] == -1


def test_segments_begin_and_end_with_trials():
    recording = a_recording(trials=some_trials())
    assert recording.starts.tolist() == [0, 2, 10, 12, 20]


@pytest.mark.parametrize(
    ("first", "stop", "said"),
    [
        ([0, 5], [6, 9], "overlap"),
        ([4], [4], "empty"),
        ([8, 2], [9, 5], "not in order"),
        ([], [], "one of each"),
        ([0, 1], [4], "one of each"),
    ],
)
def test_trials_that_cannot_be_are_refused(first, stop, said):
    with pytest.raises(InputError, match=said):
        Trials(first, stop)


def test_a_column_needs_a_value_for_each_trial():
    with pytest.raises(InputError, match="'side' of the trials"):
        Trials([0, 5], [4, 9], {"side": [1]})


def test_a_trial_beyond_the_recording_is_refused():
    with pytest.raises(InputError, match="frame 40, but the traces have 30"):
        a_recording(trials=Trials([0], [40]))


def test_trials_words_and_windows_are_saved_with_a_recording(tmp_path):
    side = Variable("side", np.arange(30) % 2, "discrete", words=("left", "right"))
    reward = Variable("reward", np.arange(30) % 7 == 0, "event", window=(1, 3))
    recording = a_recording(trials=some_trials(), behavior={"side": side, "reward": reward})
    again = open_recording(recording.save(tmp_path / "recording.npz"))
    assert again.trials.columns["side"].tolist() == [0, 1]
    assert again.trials.label("side", 1) == "right"
    assert again.behavior["side"].words == ("left", "right")
    assert again.behavior["reward"].window == (1.0, 3.0)
    assert again.behavior["reward"].kind == "event"
    assert pickle.loads(pickle.dumps(recording)).trials.words == {"side": ("left", "right")}


@pytest.mark.parametrize("values", [np.full(30, -1.0), np.zeros((30, 2))])
def test_an_event_counts_how_often_it_began(values):
    with pytest.raises(InputError, match="counts how often it began"):
        Variable("lick", values, "event")
