"""Cells of a task are reported by their responses, split by what the trials were."""

import warnings

import numpy as np
import pytest
from matplotlib.figure import Figure

from napari_xcebra.recording import Recording, Trials, Variable
from napari_xcebra.report.figures.around_events import responses_in_words, responses_of_cells

FRAMES, TRIALS = 800, 16


@pytest.fixture
def recording():
    """Cell 11 is up by 1 from the choice on, if it is one to the "$right$"."""
    rng = np.random.default_rng(0)
    first = np.arange(TRIALS) * 50
    choice = np.arange(TRIALS) % 2
    chosen, known = np.zeros(FRAMES), np.full(FRAMES, np.nan)
    chosen[first + 20] = 1
    traces = rng.normal(scale=0.05, size=(FRAMES, 3))
    for start, right in zip(first, choice, strict=True):
        known[start + 20 : start + 45] = right
        traces[start + 20 : start + 45, 1] += right
    words = {"choice": ("_left", "$right$")}
    columns = {"choice": choice, "reaction_s": rng.random(TRIALS) + np.arange(TRIALS)}
    behavior = {
        "choice_time": Variable("choice_time", chosen, "event"),
        "choice": Variable("choice", known, "discrete", words=words["choice"]),
        "speed": Variable("speed", rng.random(FRAMES)),
    }
    trials = Trials(first, first + 45, columns, words)
    return Recording(traces, 10.0, behavior, cell_ids=[10, 11, 12], trials=trials)


def test_the_response_is_drawn_by_group_around_the_moment_that_makes_it_known(recording):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shown = responses_in_words(recording, "choice", ["choice"], np.array([1, 0]))
    assert "around choice_time, by choice" in shown.caption
    assert "cells 11, 10" in shown.alt
    figure = responses_of_cells(recording, "choice_time", "choice", np.array([1, 0]))
    assert isinstance(figure, Figure)
    event, left, right = figure.axes[0].get_lines()
    assert event.get_xdata() == [0, 0]
    after = right.get_xdata() > 0.05
    np.testing.assert_allclose(right.get_ydata()[after], 1, atol=0.1)
    np.testing.assert_allclose(left.get_ydata()[after], 0, atol=0.1)
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == [" _left (8)", r" \$right\$ (8)"]


def test_what_is_no_event_and_no_condition_keeps_its_tuning_curve(recording):
    cells = np.array([0])
    assert responses_in_words(recording, "speed", ["speed"], cells) is None
    event = responses_in_words(recording, "choice", ["choice_time"], cells)
    assert "around choice_time: mean" in event.caption
