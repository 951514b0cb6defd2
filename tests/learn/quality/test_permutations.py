"""Trials are exchanged where they may be, and chance is what is left."""

import numpy as np
import pytest

from napari_xcebra.learn.data.labels import Course, Labels
from napari_xcebra.learn.quality.chance import Shifts, _TrialOrders, null_of, trial_orders
from napari_xcebra.learn.quality.verdict import Goodness
from napari_xcebra.recording import Recording, Trials, Variable

TRIALS, LENGTH = 120, 20
RNG = np.random.default_rng(0)
STIMULUS = RNG.integers(0, 2, TRIALS)
CHOICE = np.where(RNG.random(TRIALS) < 0.8, STIMULUS, 1 - STIMULUS)


def orders(factor: str, **values: np.ndarray) -> _TrialOrders:
    """Of a recording whose trials have these values, known from the fifth frame on."""
    first = LENGTH * np.arange(TRIALS)
    late = np.tile(np.arange(LENGTH) >= 5, TRIALS)
    behavior = {
        name: Variable(name, np.where(late, np.repeat(each, LENGTH), np.nan), "discrete")
        for name, each in values.items()
    }
    traces = np.ones((TRIALS * LENGTH, 1))
    recording = Recording(traces, 10.0, behavior, trials=Trials(first, first + LENGTH))
    labels = {name: Labels.of(recording, [name], name) for name in behavior}
    courses = {name: Course.of(recording, each) for name, each in labels.items()}
    found = trial_orders(factor, labels, courses)
    assert found is not None
    return found


def test_choice_is_permuted_within_the_stimulus_it_goes_with():
    found = orders("choice", stimulus=STIMULUS, choice=CHOICE)
    order = found.order(3)

    assert found.within == ("stimulus",)
    np.testing.assert_array_equal(STIMULUS[order], STIMULUS)
    assert (CHOICE[order] != CHOICE).any()
    np.testing.assert_array_equal(np.sort(order), np.arange(TRIALS))


def test_a_variable_that_goes_with_nothing_is_permuted_over_all_trials():
    block = RNG.integers(0, 3, TRIALS)
    found = orders("choice", choice=CHOICE, block=block)

    assert found.within == found.confounded == ()
    assert (block[found.order(0)] != block).any()
    assert found.different == 200


def test_labels_that_cannot_be_told_apart_are_said_to_be():
    found = orders("choice", stimulus=STIMULUS, choice=STIMULUS)

    assert found.within == ()
    assert found.confounded == ("stimulus",)


def test_values_in_blocks_of_trials_are_turned_as_a_whole():
    blocks = np.repeat([0, 1, 0, 1, 1, 0, 1, 0, 0, 1], 12)
    found = orders("side", side=blocks)

    assert found.turns is not None
    assert 3 <= found.turns.min() <= 12
    np.testing.assert_array_equal(blocks[found.order(2)], np.roll(blocks, found.turns[2]))
    assert found.different < 20


def test_blocks_that_alternate_regularly_are_not_turned_into_themselves():
    blocks = (np.arange(TRIALS) // 15) % 2
    found = orders("side", side=blocks)

    assert found.turns is not None
    for number in range(len(found)):
        assert abs((blocks[found.order(number)] == blocks).mean() - 0.5) <= 0.1 + 1e-9


def test_frames_get_the_value_of_the_other_trial_where_they_have_one():
    found = orders("choice", stimulus=STIMULUS, choice=CHOICE)
    source, order = found.source(5), found.order(5)
    trial = np.repeat(np.arange(TRIALS), LENGTH)

    np.testing.assert_array_equal(trial[source[found.known]], order[trial[found.known]])
    assert found.known[source[found.known]].all()
    unknown = np.flatnonzero(~found.known)
    np.testing.assert_array_equal(source[unknown], unknown)


def test_trials_are_the_samples_of_the_test():
    found = orders("choice", stimulus=STIMULUS, choice=CHOICE)
    labels = Labels(
        np.zeros((len(found.known), 0)),
        np.zeros((len(found.known), 0)),
        np.repeat(CHOICE, LENGTH),
        found.known,
    )
    shifts = Shifts.of(labels, np.repeat(np.arange(TRIALS), LENGTH), found)

    assert shifts.samples == TRIALS
    assert shifts.enough
    assert null_of(shifts) == "permuted"


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ({"null": "permuted"}, "trials permuted"),
        ({"null": "permuted", "within": ("stimulus",)}, "trials permuted within stimulus"),
        ({"null": "turned"}, "trials shifted"),
        ({"null": "permuted", "confounded": ("stimulus",)}, "goes with stimulus in nearly every"),
        ({"confounded": ("wheel",)}, "goes with wheel so closely that no test can tell them apart"),
    ],
)
def test_the_verdict_says_what_it_was_compared_with(about, said):
    goodness = Goodness("choice", 5.0, 6.0, 0.4, 0.1, 0.5, 0.6, above_chance=True, p=1e-4, **about)

    assert said in goodness.verdict
    assert Goodness.from_dict(goodness.as_dict()).verdict == goodness.verdict
