"""What was measured, in words that do not contradict each other."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from napari_xcebra.learn import Goodness
from napari_xcebra.learn.quality.verdict import BEHIND, CLEAR_R2, CLEAR_SHARE


def a_goodness(**changes):
    values = {
        "factor": "place",
        "infonce": 5.0,
        "chance": 6.2,
        "goodness": 1.2,
        "error": 0.1,
        "training": 1.3,
        "r2": 0.8,
        "above_chance": True,
        "p": 0.001,
        "samples": 100.0,
        "shifts": 90.0,
        "allowed": 2.0,
        "ridge_r2": 0.75,
    }
    return Goodness(**(values | changes))


TIME = {"factor": "time", "r2": math.nan, "ridge_r2": math.nan, "p": math.nan, "samples": math.nan,
        "shifts": math.nan, "allowed": math.nan}  # fmt: skip
WHY = "The recording holds about 4 independent samples of it: too few to test this."
UNTESTED = {"p": math.nan, "samples": 4.0, "shifts": 2.0, "above_chance": False, "untested": WHY}
FAINT = {"goodness": 0.1, "r2": 0.05, "ridge_r2": 0.06}


@pytest.mark.parametrize(
    ("goodness", "words"),
    [
        (
            a_goodness(),
            "These cells encode place: R² 0.80 held out (ridge 0.75).",
        ),
        (
            a_goodness(**FAINT, training=0.2),
            "These cells weakly encode place: R² 0.05 held out (ridge 0.06), p = 0.001.",
        ),
        (
            a_goodness(goodness=-0.1, above_chance=False, p=0.4, r2=-0.02, ridge_r2=0.01),
            "place is at chance in these cells (p = 0.4, and only p ≤ 0.005 counts as found): its "
            "map means nothing.",
        ),
        (
            a_goodness(**TIME),
            "Activity, shared or a cell's own, lasts beyond chance.",
        ),
        (
            a_goodness(**TIME | {"goodness": 0.0, "above_chance": False}),
            "No activity lasts beyond chance.",
        ),
    ],
    ids=["clear", "weak", "chance", "time", "no time"],
)
def test_the_verdict_in_words(goodness, words):
    assert goodness.verdict == words


def test_two_values_that_are_decoded_perfectly_are_clear():
    """They are worth no more than 0.69 nats, however well they are told."""
    found = a_goodness(goodness=0.66, allowed=0.69, r2=0.97, accuracy=1.0, ridge_accuracy=0.99)
    assert found.strength == "clear"
    assert "accuracy 1.00 held out (ridge 0.99)" in found.verdict
    assert "R²" not in found.verdict


@pytest.mark.parametrize(
    ("share", "r2", "strength"),
    [
        (CLEAR_SHARE + 0.01, 0.0, "clear"),
        (0.0, CLEAR_R2 + 0.01, "clear"),
        (CLEAR_SHARE - 0.01, CLEAR_R2 - 0.01, "weak"),
    ],
)
def test_clear_is_a_share_of_what_is_possible_or_of_the_variance(share, r2, strength):
    assert a_goodness(goodness=2.0 * share, r2=r2, ridge_r2=r2).strength == strength


def test_nats_are_among_what_was_measured_and_not_in_the_verdict():
    found = a_goodness(goodness=0.03, training=0.05, allowed=3.0, r2=0.7, ridge_r2=0.3)
    assert found.strength == "clear"
    assert "nats" not in found.verdict and "of what is possible" not in found.verdict
    assert "0.03 ± 0.10 nats on held-out data" in found.measured


def test_what_no_decoder_shows_is_told_by_its_p():
    found = a_goodness(goodness=0.1, training=0.1, r2=-0.1, ridge_r2=-0.2)
    assert found.verdict == "These cells weakly encode place: p = 0.001."


def test_a_model_from_elsewhere_may_have_seen_the_frames_it_is_measured_on():
    assert "R² 0.80 on frames it may have been trained on" in a_goodness(in_sample=True).verdict


def test_what_could_not_be_tested_is_not_tested_and_its_map_may_mean_something():
    found = a_goodness(**UNTESTED)
    assert found.strength == "not tested"
    assert found.not_tested and not found.above_chance
    assert "means nothing" not in found.verdict
    assert "encode" not in found.verdict
    assert "at chance" not in found.verdict
    assert "p =" not in found.verdict
    assert WHY in found.verdict


def test_what_the_encoder_did_not_learn_is_in_the_cells_and_its_map_is_from_the_variables():
    found = a_goodness(goodness=0.001, learned=False)
    assert found.strength == "clear"
    assert "The encoder did not learn it" in found.verdict
    assert "from the variables alone" in found.verdict
    assert found.in_short.endswith("not learned")


def test_an_encoder_that_adds_nothing_to_the_regression_is_said_to():
    assert "The encoder adds nothing to the ridge." in a_goodness(encoder_share=0.0).verdict
    assert "adds nothing" not in a_goodness(encoder_share=0.5).verdict


def test_a_regression_that_is_much_better_is_said():
    better = a_goodness(r2=0.5, ridge_r2=0.5 + BEHIND + 0.01).verdict
    assert "A ridge regression decodes it better (R² 0.56 against 0.50)" in better
    assert "decodes it better" not in a_goodness(r2=0.5, ridge_r2=0.5 + BEHIND - 0.01).verdict


def test_a_fit_far_better_on_its_training_frames_is_said_to_overfit():
    assert a_goodness(training=5.0).verdict.endswith("(5.00 nats): it overfits.")
    assert "overfits" not in a_goodness(training=4.5).verdict


@pytest.mark.parametrize(
    ("p", "said"),
    [(0.04, "p = 0.04, and only p ≤ 0.005"), (0.00504, "p = 0.00504, and only p ≤ 0.005")],
)
def test_a_p_that_many_would_call_significant_comes_with_the_limit_that_it_misses(p, said):
    found = a_goodness(goodness=0.3, r2=0.35, above_chance=False, p=p)
    assert said in found.verdict
    assert "above chance" not in found.verdict and "R²" not in found.verdict
    assert "R² 0.35" in found.measured and "0.30 ± 0.10 nats" in found.measured
    assert found.verdict.endswith("It came close: a longer recording may show it.")
    assert "came close" not in replace(found, p=0.06).verdict


def test_a_factor_that_is_there_is_not_said_to_be_below_chance():
    found = a_goodness(goodness=-0.1, r2=0.9, ridge_r2=0.9)
    assert found.verdict.startswith("These cells encode place: R² 0.90 held out (ridge 0.90).")


@pytest.mark.parametrize(
    ("changes", "short"),
    [
        ({}, "clear · R² 0.80 · p = 0.001"),
        ({"r2": -0.1, "ridge_r2": 0.1, "goodness": 0.1}, "weak · 0.10 ± 0.10 nats · p = 0.001"),
        ({"above_chance": False, "p": 0.04}, "at chance · p = 0.04, not ≤ 0.005"),
        (UNTESTED, "not tested · changes too slowly"),
        (TIME, "clear · 1.20 ± 0.10 nats"),
    ],
)
def test_the_verdict_in_a_few_words(changes, short):
    assert a_goodness(**changes).in_short == short


def test_time_latents_too_close_to_chance_are_not_above_it():
    found = a_goodness(**TIME | {"goodness": 0.2, "above_chance": False})
    assert "above chance" not in found.verdict
    assert found.verdict == "No activity lasts beyond chance."


EVERYTHING = [
    dict(factor=factor, goodness=goodness, training=training, r2=r2, ridge_r2=ridge, p=p,
         samples=50.0, shifts=50.0, above_chance=p <= 0.005, accuracy=accuracy, untested=untested,
         ridge_accuracy=accuracy, allowed=allowed, learned=goodness > 0.02)
    for factor, goodness, training, r2, ridge, (p, untested), accuracy, allowed
    in itertools.product(
        ["place"], [-0.1, 0.05, 1.2], [0.1, 6.0], [-0.1, 0.2, 0.9], [0.0, 0.95],
        [(0.001, ""), (0.04, ""), (0.4, ""), (math.nan, WHY), (0.04, WHY)], [math.nan, 0.8],
        [math.nan, 0.0, 2.0])
]  # fmt: skip


def test_no_sentence_contradicts_another():
    for values in EVERYTHING:
        found = a_goodness(**values)
        verdict, strength = found.verdict, found.strength
        assert "nan" not in verdict
        assert ("means nothing" in verdict) == (strength == "at chance")
        assert (WHY in verdict) == (strength == "not tested")
        assert ("These cells encode" in verdict) == (strength == "clear")
        assert ("weakly encode" in verdict) == (strength == "weak")
        assert found.learned or strength == "at chance" or "did not learn it" in verdict
        if "means nothing" in verdict:
            assert "overfits" not in verdict and "trust the map" not in verdict
        if strength in ("clear", "weak"):
            assert "p = 0.4" not in verdict and "p = 0.04" not in verdict
            assert "-0.10 ± 0.10 nats above" not in verdict
        elif strength == "at chance":
            assert "nats above chance" not in verdict and "p = 0.001" not in verdict
        assert "()" not in verdict
        assert verdict.endswith(".")


def test_what_was_measured_survives_its_file():
    found = a_goodness(null_low=-0.3, null_high=-0.1, accuracy=0.9, ridge_accuracy=0.8, scale=0.5)
    assert Goodness.from_dict(found.as_dict()) == found
    none = a_goodness(**TIME)
    assert none.as_dict()["r2"] is None
    np.testing.assert_equal(vars(Goodness.from_dict(none.as_dict())), vars(none))
