"""Trials and events from end to end: which cells carry them, and when."""

import json

import numpy as np
import pytest

from napari_xcebra.attribution import Significance, attribute, auroc, scores_around, significance
from napari_xcebra.errors import InputError
from napari_xcebra.learn import FitSettings, fit
from napari_xcebra.simulate import task

COUNTS = {"stimulus": 5, "choice": 5, "outcome": 4, "running": 3, "phase": 6, "untuned": 3}
UNTRAINED = FitSettings(mode="behavior", steps=1, batch_size=64)


@pytest.fixture(scope="module")
def simulation():
    return task(**COUNTS, lick=3, frames=4000, seed=5)


@pytest.fixture(scope="module")
def untrained(simulation):
    return fit(simulation.recording, simulation.factors, UNTRAINED)


@pytest.fixture(scope="module")
def tested(simulation, untrained):
    return significance(untrained, simulation.recording)


def test_the_first_map_has_the_cells_of_trial_variables_and_of_events(simulation, untrained):
    found = attribute(untrained, simulation.recording, "conditional-encoding")
    for factor in simulation.factors:
        assert auroc(found.score(factor), simulation.truth[factor]) > 0.95, factor


def test_cells_of_the_phase_of_a_trial_are_not_named_as_cells_of_its_stimulus(simulation, tested):
    phase = np.asarray(simulation.cell_kinds) == "phase"
    assert (tested.q("stimulus")[phase] <= 0.1).sum() <= 1
    assert (tested.q("stimulus")[simulation.truth["stimulus"]] <= 0.1).all()


def test_the_test_says_how_trials_were_exchanged(tested):
    assert tested.nulls["stimulus"] == tested.nulls["choice"] == "permuted"
    assert tested.within["choice"] == ("stimulus",)
    assert "permuted over trials within stimulus" in tested.how("choice")
    assert tested.nulls["running"] == "shifted"
    assert "permuted" not in tested.how("lick")


def test_how_trials_were_exchanged_is_kept_in_a_file(tested):
    about = json.loads(json.dumps(tested.as_dict()))
    again = Significance.from_dict(about, tested.p_values, tested.q_values)
    assert again.how("choice") == tested.how("choice")
    del about["nulls"], about["within"], about["confounded"]
    earlier = Significance.from_dict(about, tested.p_values, tested.q_values)
    assert "permuted" not in earlier.how("choice")


def test_stimulus_comes_before_the_decision_and_outcome_after_it(simulation, untrained):
    def mean(factor: str) -> tuple[np.ndarray, np.ndarray]:
        around = scores_around(
            untrained, simulation.recording, "decision", factor, window=(2.0, 2.0), bin=0.5
        )
        return around.seconds, np.nanmean(around.scores[:, simulation.truth[factor]], axis=1)

    seconds, stimulus = mean("stimulus")
    _, choice = mean("choice")
    _, outcome = mean("outcome")
    np.testing.assert_allclose(seconds, np.arange(-1.75, 2, 0.5))
    assert stimulus[0] > 2 * max(stimulus[-1], 0)
    assert choice[seconds > 0][0] > 0.3
    assert choice[0] < 0.5 * choice.max()
    assert abs(outcome[seconds < -0.5]).max() < 0.1
    assert outcome[-2] > 0.2


def test_scores_around_an_event_are_a_table_of_bins_and_cells(simulation, untrained):
    around = scores_around(untrained, simulation.recording, "choice", "choice", bin=0.5)
    table = around.table()

    assert list(table) == ["seconds", "cell", "score", "error"]
    assert len(table) == around.scores.size == len(around.seconds) * simulation.recording.n_cells
    assert (around.errors[around.seconds > 0] > 0).all()


def test_a_bin_with_few_events_has_no_score(simulation, untrained):
    around = scores_around(untrained, simulation.recording, "decision", "choice", window=(30, 0))
    few = around.events < 8
    assert few.any()
    assert np.isnan(around.scores[few]).all()
    assert np.isfinite(around.scores[~few]).all()


def test_a_variable_that_is_no_event_is_refused_in_words(simulation, untrained):
    with pytest.raises(InputError, match="one value in each trial"):
        scores_around(untrained, simulation.recording, "running", "choice")
    with pytest.raises(InputError, match="seconds before and after"):
        scores_around(untrained, simulation.recording, "decision", "choice", bin=0)
