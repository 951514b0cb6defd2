"""The picture of trials shows what was understood, before anything is trained."""

import numpy as np
import pytest

from napari_xcebra.recording import Recording, Trials, Variable
from napari_xcebra.widgets.docks.recording.panels import FoundPanel
from napari_xcebra.widgets.plots.pictures import _course_of

FRAMES = 1000


def in_trials(trials=30, **columns):
    first = np.arange(trials) * 30
    lick = np.zeros(FRAMES)
    lick[first + 5] = 1
    lick[first[1] + 10] = 1
    known = {name: np.asarray(values, float) for name, values in columns.items()}
    return Recording(
        np.random.default_rng(0).normal(size=(FRAMES, 3)),
        10.0,
        {"lick": Variable("lick", lick, "event")},
        trials=Trials(first, first + 20, known, {"side": ("left", "<i>R</i>")}),
    )


def test_a_row_is_a_trial_with_the_events_in_it():
    rng = np.random.default_rng(0)
    course = _course_of(in_trials(20, reaction_s=rng.random(20), side=np.arange(20) % 2))
    assert len(course.rows) == 20
    assert course.column == "side", "a reaction time is no condition"
    assert course.values == ("left", "<i>R</i>")
    assert [row.value for row in course.rows[:3]] == [0, 1, 0]
    assert course.rows[1].length == course.seconds == 2.0
    np.testing.assert_allclose(course.rows[1].ticks[0][1], [0.5, 1.0])


def test_of_many_trials_some_are_drawn_and_it_is_said():
    assert "one of 24 of the 30 trials" in _course_of(in_trials()).told


def test_without_trials_a_minute_of_events_is_drawn():
    lick = np.zeros(FRAMES)
    lick[[100, 130, 990]] = 1
    behavior = {"lick": Variable("lick", lick, "event")}
    course = _course_of(Recording(np.ones((FRAMES, 1)), 10.0, behavior))
    np.testing.assert_allclose(course.rows[0].ticks[0][1], [0, 3])
    assert _course_of(Recording(np.ones((FRAMES, 1)), 10.0)) is None


@pytest.mark.gui
def test_the_picture_is_shown_with_what_was_found(qtbot):
    panel = FoundPanel()
    qtbot.addWidget(panel)
    panel.show_recording(in_trials(side=np.arange(30) % 2))
    panel.show()
    assert panel.trials.isVisible()
    assert "&lt;i&gt;R" in panel.trials.toolTip()
    panel.trials.grab()
    panel.show_recording(Recording(np.ones((FRAMES, 1)), 10.0))
    assert not panel.trials.isVisible()
