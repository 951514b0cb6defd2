"""What both routes agree on, and what is said where they do not."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter1d

from napari_xcebra.attribution import attribute, auroc
from napari_xcebra.attribution.maps.both_routes import agreement
from napari_xcebra.learn import FitSettings, fit
from napari_xcebra.recording import Recording, Variable

FRAMES, CELLS = 4000, 30
QUICK = FitSettings(steps=150, batch_size=256)


def slow(rng, columns, over=10):
    wave = gaussian_filter1d(rng.normal(size=(FRAMES, columns)), over, axis=0)
    return wave / wave.std(0)


def recorded(drive, speed, seed=0, noise=0.5):
    rng = np.random.default_rng(seed)
    traces = drive + noise * rng.normal(size=drive.shape)
    return Recording(traces, 10.0, behavior={"speed": Variable("speed", speed)})


@pytest.fixture(scope="module")
def shared():
    """A third of the cells carry the speed; the rest live on their own."""
    rng = np.random.default_rng(0)
    speed, carries = slow(rng, 1)[:, 0], np.arange(CELLS) < 10
    recording = recorded(np.where(carries, speed[:, None], slow(rng, CELLS)), speed)
    return recording, fit(recording, {"speed": ["speed"]}, QUICK), carries


def test_the_score_is_what_both_agree_on_and_the_table_has_each(shared):
    recording, trained, carries = shared
    result = attribute(trained, recording)
    table = result.table("speed")
    assert auroc(result.score("speed"), carries) == 1.0
    ones, others = table["from_variables"], table["from_encoder"]
    np.testing.assert_allclose(table["score"][:10], np.sqrt(ones[:10] * others[:10]), rtol=1e-4)
    assert (table["low"] <= table["score"] + 1e-6).all()
    assert (table["score"] <= table["high"] + 1e-6).all()


def test_a_map_that_both_share_says_nothing_of_disagreement(shared):
    recording, trained, _ = shared
    assert not [n for n in attribute(trained, recording).notes if "not by the" in n]


def test_a_sole_carrier_is_kept_and_only_the_variables_tell_of_it():
    rng = np.random.default_rng(5)
    speed, drive = slow(rng, 1)[:, 0], slow(rng, CELLS)
    drive[:, 4] = speed
    recording = recorded(drive, speed)
    trained = fit(recording, {"speed": ["speed"]}, QUICK)
    result = attribute(trained, recording)
    assert np.argmax(result.score("speed")) == 4
    (note,) = [n for n in result.notes if n.startswith("1 cell (4) follows speed")]
    assert "only the variables can tell" in note


def test_what_the_encoder_did_not_learn_is_shown_by_the_variables_alone(shared):
    recording, trained, _ = shared
    goodness = {**trained.goodness, "speed": replace(trained.goodness["speed"], learned=False)}
    result = attribute(replace(trained, goodness=goodness), recording)
    table = result.table("speed")
    np.testing.assert_array_equal(table["score"], table["from_variables"])
    assert "The encoder did not learn speed: its map is from the variables alone." in result.notes


def test_a_variable_in_how_much_cells_vary_is_shown_by_the_jacobian_with_that_explanation(shared):
    recording, trained, _ = shared
    rng = np.random.default_rng(0)
    speed = recording.variable("speed").values[:, 0]
    varying = replace(recording, traces=rng.normal(size=recording.traces.shape))
    decoded = replace(trained.goodness["speed"], r2=0.8, ridge_r2=0.0)
    told = replace(trained, goodness={**trained.goodness, "speed": decoded})
    result = attribute(told, varying)
    (note,) = [n for n in result.notes if "read from how much cells vary" in n]
    assert "|J|" in note
    assert result.score("speed").max() == pytest.approx(1)
    assert np.isnan(result.detail("speed", "low")).all()
    assert len(speed) == FRAMES


def test_a_cell_that_follows_it_a_little_by_chance_does_not_hide_what_cells_vary_by():
    rng = np.random.default_rng(3)
    speed, carries = slow(rng, 1)[:, 0], np.arange(CELLS) < 12
    spread = np.where(carries, np.exp(0.8 * speed)[:, None], 1)
    recording = recorded(rng.normal(size=(FRAMES, CELLS)) * spread, speed, noise=0)
    trained = fit(recording, {"speed": ["speed"]}, FitSettings(seed=1))
    result = attribute(trained, recording)
    assert [n for n in result.notes if "read from how much cells vary" in n]
    assert auroc(result.score("speed"), carries) > 0.95


def test_what_a_cell_follows_by_chance_does_not_hide_what_the_others_vary_by(shared):
    recording, trained, _ = shared
    rng = np.random.default_rng(0)
    speed = recording.variable("speed").values[:, 0]
    traces = rng.normal(size=recording.traces.shape)
    traces[:, -1] += 0.35 * speed  # of no use to the encoder, which reads the first ten
    decoded = replace(trained.goodness["speed"], r2=0.7, ridge_r2=0.0)
    told = replace(trained, goodness={**trained.goodness, "speed": decoded})
    result = attribute(told, replace(recording, traces=traces))
    assert result.detail("speed", "from_variables")[-1] > 0.08
    assert [n for n in result.notes if "read from how much cells vary" in n]
    assert not [n for n in result.notes if "cells that follow speed" in n]


def test_an_artefact_that_moves_all_cells_together_is_warned_of():
    rng = np.random.default_rng(2)
    speed = slow(rng, 1)[:, 0]
    recording = recorded(speed[:, None] + slow(rng, CELLS), speed)
    trained = fit(recording, {"speed": ["speed"]}, QUICK)
    (note,) = [n for n in attribute(trained, recording).notes if "same direction" in n]
    assert "30 of 30 cells" in note and "motion" in note


def test_the_encoder_lowers_a_score_only_so_far():
    variables = np.array([0.4, 0.4, 0.0, -0.1])
    np.testing.assert_allclose(
        agreement(variables, np.array([0.4, -1.0, 0.5, 0.5])), [0.4, 0.4 * np.sqrt(0.1), 0, -0.1]
    )
