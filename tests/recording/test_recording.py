"""A recording is checked once, at the border; what is wrong is said in one sentence."""

import numpy as np
import pytest

from napari_xcebra.errors import InputError
from napari_xcebra.learn import FitSettings, Training
from napari_xcebra.recording import Footprints, Recording, Variable

FRAMES, CELLS = 1200, 6


def traces(frames=FRAMES, cells=CELLS):
    return np.random.default_rng(0).normal(size=(frames, cells))


def spoiled(value, *, count=1):
    spoilt = traces()
    spoilt[:count, 2] = value
    return spoilt


def of_two_cells(rows):
    return Footprints(
        shape=(10, 20),
        cell=np.array([0, 1]),
        row=np.array(rows),
        column=np.array([0, 0]),
        weight=np.ones(2, np.float32),
    )


BAD_ARGUMENTS = {
    "NaN traces": (
        {"traces": spoiled(np.nan, count=3)},
        ["traces has 3 values", "NaN or infinite", "column 2", "finite numbers are needed"],
    ),
    "infinite traces": (
        {"traces": spoiled(-np.inf)},
        ["traces has 1 values", "NaN or infinite", "column 2", "finite numbers are needed"],
    ),
    "traces of one dimension": (
        {"traces": np.zeros(5)},
        ["traces has shape (5,)", "(frames, cells) is needed"],
    ),
    "no cells": ({"traces": np.zeros((5, 0))}, ["traces has shape (5, 0)", "is needed"]),
    "traces of words": (
        {"traces": np.array([["a", "b"]])},
        ["traces has type <U1", "numbers are needed"],
    ),
    "rate of zero": ({"rate": 0.0}, ["rate is 0.0", "> 0, are needed"]),
    "rate not a number": ({"rate": float("nan")}, ["rate is nan", "are needed"]),
    "labels of the wrong length": (
        {"behavior": {"speed": np.arange(1100.0)}},
        ["'speed' has 1100 values", "1200 frames", "one value per frame is needed"],
    ),
    "infinite labels": (
        {"behavior": {"speed": np.r_[np.inf, np.inf, np.arange(1198.0)]}},
        ["'speed' is infinite at 2 frames", "finite numbers are needed", "NaN"],
    ),
    "labels in bytes": (
        {"behavior": {"odour": np.repeat([b"lemon", b"mint"], 600)}},
        ["'odour' has values of type |S5", "numbers are needed"],
    ),
    "labels of three dimensions": (
        {"behavior": {"pose": np.zeros((FRAMES, 2, 2))}},
        ["'pose' has shape (1200, 2, 2)", "(frames,) or (frames, columns) is needed"],
    ),
    "a kind there is not": (
        {"behavior": {"speed": np.arange(FRAMES)}, "kinds": {"speed": "spherical"}},
        ["'speed' has kind 'spherical'", "continuous, circular, discrete", "is needed"],
    ),
    "a kind of nothing": (
        {"kinds": {"speed": "circular"}},
        ["kinds names ['speed']", "behavior does not have"],
    ),
    "trials of the wrong length": (
        {"trials": np.zeros(7)},
        ["trials has shape (7,)", "1200 frames", "one number per frame is needed"],
    ),
    "a trial after the end": ({"starts": [0, 1200]}, ["starts", "0 to 1200", "1200 frames"]),
    "accepted of the wrong length": (
        {"accepted": np.ones(5, bool)},
        ["accepted has shape (5,)", "(6,) is needed"],
    ),
    "excluded of the wrong length": (
        {"excluded": np.zeros(6, bool)},
        ["excluded has shape (6,)", "(1200,) is needed"],
    ),
    "ids of the wrong length": ({"cell_ids": [1, 2]}, ["cell_ids has shape (2,)", "is needed"]),
    "an id used twice": (
        {"cell_ids": [0, 1, 2, 3, 4, 4]},
        ["cell_ids has duplicates", "an id of its own"],
    ),
    "too many footprints": (
        {"footprints": Footprints.on_a_grid(7)},
        ["footprints has 7 cells", "traces have 6"],
    ),
}


def sentence(caught):
    """The message, after checking that it is one sentence."""
    message = str(caught.value)
    assert message.endswith(".")
    assert ". " not in message
    return message


@pytest.mark.parametrize("case", BAD_ARGUMENTS)
def test_what_is_wrong_with_an_argument_is_said_in_one_sentence(case):
    arguments, words = BAD_ARGUMENTS[case]
    with pytest.raises(InputError) as caught:
        Recording.from_arrays(**{"traces": traces(), "rate": 10.0, **arguments})
    message = sentence(caught)
    for word in words:
        assert word in message


BAD_FITS = {
    "unknown variable": ({}, {"place": ["position"]}, {}, ["'position'", "it has: speed"]),
    "constant labels": (
        {"behavior": {"speed": np.full(FRAMES, 2.0)}},
        {"pace": ["speed"]},
        {},
        ["'speed' of factor 'pace' is constant", "2 at every frame", "needed"],
    ),
    "too few frames": (
        {"traces": traces(70), "behavior": {"speed": np.arange(70.0)}},
        {"pace": ["speed"]},
        {"blocks": 2},
        ["of 70 in the recording", "at least 64 are needed", "record longer"],
    ),
    "fewer frames than the window": (
        {"traces": traces(100), "behavior": {"speed": np.arange(100.0)}},
        {"pace": ["speed"]},
        {"window": 150},
        ["100 usable frames", "`window` (150)", "needed"],
    ),
    "trials shorter than the window": (
        {"trials": np.arange(FRAMES) // 8},
        {"pace": ["speed"]},
        {"window": 10},
        ["longest trial has 8 usable frames", "`window` (10)", "needed"],
    ),
    "more latents than cells": (
        {},
        {"pace": ["speed"]},
        {"time_latents": 6},
        ["7 latents", "6 cells are in use", "lower `time_latents`"],
    ),
    "no accepted cells": (
        {"accepted": np.zeros(CELLS, bool)},
        {"pace": ["speed"]},
        {},
        ["No cell is accepted", "accepted_only"],
    ),
    "constant cells only": (
        {"traces": np.ones((FRAMES, CELLS))},
        {"pace": ["speed"]},
        {},
        ["All 6 cells in use are constant", "needed"],
    ),
    "no factors": ({}, {}, {}, ["'hybrid'", "needs at least one of `factors`"]),
}


@pytest.mark.parametrize("case", BAD_FITS)
def test_a_recording_that_cannot_be_fitted_says_why_before_training(case):
    arguments, factors, settings, words = BAD_FITS[case]
    speed = np.cumsum(np.random.default_rng(1).normal(size=FRAMES))
    recording = Recording.from_arrays(
        **{"traces": traces(), "rate": 10.0, "behavior": {"speed": speed}, **arguments}
    )
    with pytest.raises(InputError) as caught:
        Training(recording, factors, FitSettings(**{"batch_size": 64, "device": "cpu"} | settings))
    message = sentence(caught)
    for word in words:
        assert word in message


def test_integers_are_taken_as_categories_unless_told_otherwise():
    behavior = {"odour": np.arange(FRAMES) % 3, "lick": np.arange(FRAMES) % 2 == 0}
    behavior |= {"speed": np.arange(float(FRAMES)), "heading": np.arange(FRAMES)}
    recording = Recording.from_arrays(traces(), 10.0, behavior, kinds={"heading": "circular"})
    kinds = {name: variable.kind for name, variable in recording.behavior.items()}
    assert kinds == {
        "odour": "discrete",
        "lick": "discrete",
        "speed": "continuous",
        "heading": "circular",
    }


def test_a_change_of_trial_number_begins_a_segment():
    trials = np.repeat([3, 1, 3], [5, 2, 4])  # a number that returns is another trial
    recording = Recording.from_arrays(traces(11), 10.0, trials=trials)
    assert recording.starts.tolist() == [0, 5, 7]
    assert recording.segment.tolist() == [0] * 5 + [1] * 2 + [2] * 4


def test_a_recording_keeps_every_cell_under_its_own_id():
    ids, accepted = [40, 7, 9, 2, 100, 1], [True, False, True, True, False, True]
    recording = Recording.from_arrays(traces(), 10.0, cell_ids=ids, accepted=accepted)
    assert recording.cell_ids.tolist() == ids
    assert recording.accepted.tolist() == accepted
    assert recording.n_cells == 6
    assert Recording.from_arrays(traces(), 10.0).cell_ids.tolist() == list(range(6))


def test_variables_can_be_added_without_changing_the_recording():
    recording = Recording.from_arrays(traces(), 10.0, {"a": np.arange(FRAMES)})
    more = recording.with_behavior(Variable("b", np.zeros(FRAMES)))
    assert list(more.behavior) == ["a", "b"]
    assert list(recording.behavior) == ["a"]
    with pytest.raises(TypeError):
        recording.behavior["c"] = Variable("c", np.zeros(FRAMES))


def masks(*boxes):
    """One mask a box (row span, column span, weight) in a field of 8 × 8."""
    images = np.zeros((len(boxes), 8, 8), np.float32)
    for image, (rows, columns, weight) in zip(images, boxes, strict=True):
        image[rows, columns] = weight
    return images


def test_a_shared_pixel_goes_to_the_larger_weight():
    left, right = slice(0, 5), slice(3, 8)
    for weights, owner in (((0.2, 0.7), 2), ((0.7, 0.2), 1)):
        images = masks((slice(2, 4), left, weights[0]), (slice(2, 4), right, weights[1]))
        labels = Footprints.from_masks(images).label_image()
        assert (labels[2:4, 3:5] == owner).all()
        assert (labels[2:4, :3] == 1).all()
        assert (labels[2:4, 5:] == 2).all()
        assert (labels[:2] == 0).all()


def test_no_cell_disappears_under_another():
    everywhere, corner, pixel = slice(0, 8), slice(0, 3), slice(4, 5)
    footprints = Footprints.from_masks(
        masks(
            (corner, corner, 0.1),
            (everywhere, everywhere, 0.9),
            (pixel, pixel, 0.2),
        )
    )
    labels = footprints.label_image()
    assert set(np.unique(labels)) == {1, 2, 3}
    assert labels[4, 4] == 3
    # a hidden cell gets one pixel of its own, the other keeps the rest
    assert (labels == 1).sum() == 1
    assert (labels[:3, :3] == 1).any()


def test_a_hidden_cell_keeps_its_heaviest_pixel():
    images = masks((slice(0, 4), slice(0, 4), 0.1), (slice(0, 8), slice(0, 8), 0.9))
    images[0, 1, 2] = 0.4
    labels = Footprints.from_masks(images).label_image()
    assert np.argwhere(labels == 1).tolist() == [[1, 2]]


@pytest.mark.parametrize("n_cells", [1, 2, 5, 9, 40])
def test_cells_without_footprints_lie_apart_on_a_grid(n_cells):
    footprints = Footprints.on_a_grid(n_cells)
    labels = footprints.label_image()
    assert footprints.n_cells == n_cells
    assert labels.shape == footprints.shape
    area = np.bincount(labels.ravel())[1:]
    assert len(area) == n_cells
    assert len(set(area.tolist())) == 1  # all whole: none covers another
    # row by row, as one reads
    centres = np.array([np.argwhere(labels == i + 1).mean(0) for i in range(n_cells)])
    across = labels.shape[1] // 12
    np.testing.assert_allclose(centres[:, 0], np.arange(n_cells) // across * 12 + 5.5)
    np.testing.assert_allclose(centres[:, 1], np.arange(n_cells) % across * 12 + 5.5)


def test_labels_of_cells_match_their_position_also_where_cells_have_no_pixels():
    footprints = Footprints(
        shape=(4, 4),
        cell=np.array([0, 3]),
        row=np.array([0, 2]),
        column=np.array([1, 2]),
        weight=np.ones(2, np.float32),
    )
    labels = footprints.label_image()
    assert labels.dtype == np.uint16
    assert (labels[0, 1], labels[2, 2]) == (1, 4)


def test_a_footprint_outside_the_field_of_view_is_refused():
    with pytest.raises(InputError, match=r"row of 0 to 10, outside the field of view of 10 × 20"):
        of_two_cells([0, 10])
    with pytest.raises(InputError, match=r"row of -1 to 0"):
        of_two_cells([-1, 0])


def test_footprints_of_different_lengths_are_refused():
    with pytest.raises(InputError) as caught:
        Footprints((4, 4), np.zeros(2, int), np.zeros(3, int), np.zeros(2, int), np.ones(2))
    assert "[2, 3]" in sentence(caught)


def test_words_are_categories_and_what_is_missing_is_not_known() -> None:
    words = np.array(["left", "right", None, "left", ""], dtype=object)
    recording = Recording.from_arrays(np.zeros((5, 2)), rate=10.0, behavior={"choice": words})
    choice = recording.behavior["choice"]
    assert (choice.kind, choice.words) == ("discrete", ("left", "right"))
    np.testing.assert_array_equal(choice.values[:, 0], [0, 1, np.nan, 0, np.nan])


def test_words_have_no_size() -> None:
    with pytest.raises(InputError, match="only be discrete"):
        Recording.from_arrays(
            np.zeros((2, 1)), 10.0, {"choice": ["left", "right"]}, kinds={"choice": "continuous"}
        )
