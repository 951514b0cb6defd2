"""Trials and events are placed on the frames, and learning respects them."""

from dataclasses import replace

import numpy as np
import pytest

from napari_xcebra.errors import InputError
from napari_xcebra.learn.data.labels import (
    Course,
    Labels,
    continuous_stretch,
    seconds_from_event,
    step_offset,
)
from napari_xcebra.learn.data.sampling import Sampler
from napari_xcebra.learn.data.split import UsableFrames, _split_frames
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.recording import Recording, Trials, Variable

FRAMES, LENGTH = 2000, 40


def recording(**behavior: Variable) -> Recording:
    """Trials of 4 s one after the other, at 10 frames per second."""
    first = np.arange(0, FRAMES, LENGTH)
    trials = Trials(first, first + LENGTH)
    return Recording(np.ones((FRAMES, 1)), 10.0, behavior, trials=trials)


def event(*frames: int, window: tuple[float, float] = (0.5, 1.0)) -> Variable:
    counts = np.zeros(FRAMES)
    np.add.at(counts, list(frames), 1)
    return Variable("event", counts, "event", window=window)


def by_trial(after: int = 0) -> Variable:
    """0 or 1 in each trial, known from some frame of it on."""
    values = np.repeat(np.arange(FRAMES // LENGTH) % 2, LENGTH).astype(float)
    values[np.arange(FRAMES) % LENGTH < after] = np.nan
    return Variable("side", values, "discrete")


def test_time_is_from_the_nearest_event_within_its_window():
    since = seconds_from_event(recording(), event(100, 108))

    assert np.isnan(since[94])
    assert since[95] == -0.5
    assert since[103] == 0.3
    assert since[105] == -0.3
    assert since[118] == 1.0
    assert np.isnan(since[119])


def test_time_from_an_event_goes_on_in_the_next_trial_but_not_after_a_gap():
    own = recording()
    times = np.arange(FRAMES) / 10.0
    times[120:] += 60.0
    with_gap = replace(own, times=times)

    assert seconds_from_event(own, event(118))[122] == pytest.approx(0.4)
    assert np.isnan(seconds_from_event(with_gap, event(118))[122])
    assert len(np.unique(continuous_stretch(own))) == 1
    assert len(np.unique(continuous_stretch(with_gap))) == 2


def test_an_event_is_a_label_known_everywhere_with_two_dimensions():
    labels = Labels.of(recording(event=event(*range(50, 2000, 100))), ["event"], "event")

    assert labels.known.all()
    assert labels.dimensions == 2
    assert labels.code.mean() == pytest.approx(0.16)
    np.testing.assert_array_equal(labels.near, labels.code == 1)
    assert (labels.linear[labels.code == 0] == 0).all()
    assert labels.linear[labels.near].std() == pytest.approx(1)


def test_far_from_an_event_a_positive_is_any_other_frame_far_from_it():
    labels = Labels.of(recording(event=event(*range(50, 2000, 100))), ["event"], "event")
    frames = UsableFrames.within(np.ones(FRAMES, bool), np.zeros(FRAMES, int), 1)
    batch = Sampler(frames, {"event": labels}, 5, {"event": 3}).draw(4000, np.random.default_rng(0))
    far = labels.code[batch.reference] == 0

    np.testing.assert_array_equal(labels.code[batch.label["event"]], labels.code[batch.reference])
    assert len(np.unique(batch.label["event"][far])) > 500
    near = ~far
    steps = labels.linear[batch.label["event"][near]] - labels.linear[batch.reference[near]]
    assert 0 < np.median(steps) < 1


def test_an_event_that_never_happens_is_refused_in_words():
    with pytest.raises(InputError, match="never happens"):
        Labels.of(recording(event=event()), ["event"], "event")


def test_rare_values_are_drawn_in_balance_and_even_ones_are_left_alone():
    frames = UsableFrames.within(np.ones(FRAMES, bool), np.zeros(FRAMES, int), 1)
    rare = Variable("rare", (np.arange(FRAMES) % 100 < 3).astype(float), "discrete")
    even = Variable("even", (np.arange(FRAMES) % 100 < 50).astype(float), "discrete")

    def share(variable: Variable) -> float:
        own = Recording(np.ones((FRAMES, 1)), 10.0, {variable.name: variable})
        labels = Labels.of(own, [variable.name], variable.name)
        batch = Sampler(frames, {variable.name: labels}, 1).draw(4000, np.random.default_rng(0))
        return float(labels.code[batch.reference].mean())

    assert share(rare) == pytest.approx(0.75 * 0.03 + 0.25 * 0.5, abs=0.02)
    assert share(even) == pytest.approx(0.5, abs=0.03)


def test_a_variable_with_one_value_a_trial_has_a_course_from_when_it_is_known():
    own = recording(side=by_trial(after=15))
    course = Course.of(own, Labels.of(own, ["side"], "side"))

    np.testing.assert_array_equal(course.onset, own.trials.first + 15)
    seconds = course.seconds(10.0, before=1.0)
    assert np.isnan(seconds[4])
    assert seconds[5] == -1.0
    assert seconds[39] == pytest.approx(2.4)


def test_a_variable_that_changes_within_trials_has_no_course():
    own = recording(speed=Variable("speed", np.sin(np.arange(FRAMES) / 7)))
    assert Course.of(own, Labels.of(own, ["speed"], "speed")) is None
    without = Recording(np.ones((FRAMES, 1)), 10.0, {"side": by_trial()})
    assert Course.of(without, Labels.of(without, ["side"], "side")) is None


def test_whole_trials_are_held_out():
    own = recording(side=by_trial())
    split = _split_frames(own, FitSettings(blocks=8), guard=10)
    number = own.trials.number(FRAMES)
    held = split.block >= 0

    for trial in np.unique(number[held]):
        assert held[number == trial].all()
    assert len(np.unique(split.block[held])) == 8
    apart = np.abs(split.training.anchors[:, None] - np.flatnonzero(held)).min()
    assert apart > 10


def test_a_trial_longer_than_a_block_is_held_out_all_the_same():
    first = np.arange(0, FRAMES, 125)
    own = Recording(np.ones((FRAMES, 1)), 10.0, trials=Trials(first, first + 125))
    split = _split_frames(own, FitSettings(blocks=8), guard=5)

    assert len(np.unique(split.block[split.block >= 0])) == 8


def test_labels_step_no_further_than_a_short_trial_is_long():
    first = np.arange(0, FRAMES, 10)
    slow = Variable("slow", np.sin(np.arange(FRAMES) / 300))
    own = Recording(np.ones((FRAMES, 1)), 10.0, {"slow": slow}, trials=Trials(first, first + 10))
    assert step_offset(Labels.of(own, ["slow"], "slow"), own.segment, 0.3, 50) == 9
