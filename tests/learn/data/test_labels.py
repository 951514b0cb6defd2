"""Labels become points between which distance means something."""

import numpy as np
import pytest

from napari_xcebra.errors import InputError
from napari_xcebra.learn.data.labels import Labels, correlation_time
from napari_xcebra.recording import Recording, Variable

FRAMES = 200


def labels_of(**variables):
    """Labels of one factor tied to all of these variables, each an array or a Variable."""
    frames = len(next(v.values if isinstance(v, Variable) else v for v in variables.values()))
    recording = Recording.from_arrays(np.zeros((frames, 1)), 10.0, variables)
    return Labels.of(recording, list(variables), "factor")


def distance(labels, a, b):
    points = labels.points(np.array([a, b]))
    return float(np.linalg.norm(points[1] - points[0]))


def test_a_full_turn_ends_where_it_began():
    angle = Variable("angle", [0.0, 2 * np.pi, 0.1, 2 * np.pi - 0.1, np.pi], "circular")
    labels = labels_of(angle=angle)
    assert distance(labels, 0, 1) == pytest.approx(0, abs=1e-12)
    assert distance(labels, 0, 2) == pytest.approx(distance(labels, 0, 3))
    assert distance(labels, 2, 3) < distance(labels, 2, 4) / 5


def test_degrees_and_radians_give_the_same_points():
    turn = np.linspace(0, 2 * np.pi, 50)
    radians = labels_of(angle=Variable("angle", turn, "circular"))
    degrees = labels_of(angle=Variable("angle", np.rad2deg(turn), "circular", period=360.0))
    every = np.arange(50)
    np.testing.assert_allclose(radians.points(every), degrees.points(every), atol=1e-12)


def test_a_step_across_zero_goes_on_around_the_circle():
    angle = Variable("angle", np.deg2rad([350.0, 20.0, 340.0, 10.0, 180.0]), "circular")
    labels = labels_of(angle=angle)
    # from 350° by the step 340° → 10° is 20°
    moved = labels.moved(np.array([0]), np.array([2]), np.array([3]))
    np.testing.assert_allclose(moved, labels.points(np.array([1])), atol=1e-12)


def test_the_unit_of_a_variable_does_not_matter():
    rng = np.random.default_rng(0)
    x, speed = rng.normal(size=FRAMES), rng.normal(size=FRAMES)
    metres, centimetres = labels_of(x=x, speed=speed), labels_of(x=100 * x + 7, speed=speed)
    every = np.arange(FRAMES)
    np.testing.assert_allclose(metres.points(every), centimetres.points(every), atol=1e-9)


def test_columns_of_one_variable_keep_their_proportion():
    rng = np.random.default_rng(0)
    track = rng.uniform(size=(FRAMES, 2)) * [10.0, 1.0]
    points = labels_of(position=track).points(np.arange(FRAMES))
    assert points[:, 0].std() / points[:, 1].std() == pytest.approx(
        track[:, 0].std() / track[:, 1].std()
    )


def test_a_column_that_never_changes_is_no_dimension():
    x = np.random.default_rng(0).normal(size=FRAMES)
    along, track = labels_of(x=x), labels_of(position=np.stack([x, np.full(FRAMES, 3.0)], axis=1))
    assert track.dimensions == 1
    np.testing.assert_allclose(track.linear, along.linear)


def test_a_step_is_added_to_the_label():
    labels = labels_of(x=np.array([0.0, 1.0, 5.0, 7.0]))
    # from x = 1 by the step 5 → 7 is 3
    moved = labels.moved(np.array([1]), np.array([2]), np.array([3]))
    a, b = labels.points(np.array([0, 1]))
    np.testing.assert_allclose(moved[0], a + 3 * (b - a))


def test_discrete_variables_are_taken_together():
    odour, side = np.array([0, 0, 1, 1, 0]), np.array([5, 6, 5, 6, 5])
    labels = labels_of(odour=odour, side=side)
    assert labels.is_discrete
    assert labels.n_codes == 4
    assert labels.code[0] == labels.code[4]
    assert len(set(labels.code[:4].tolist())) == 4


def test_a_frame_is_unknown_where_any_variable_is_missing():
    x, y = np.arange(6.0), np.arange(6.0)
    x[1], y[4] = np.nan, np.nan
    labels = labels_of(x=x, y=y)
    assert labels.known.tolist() == [True, False, True, True, False, True]
    assert np.isfinite(labels.points(np.flatnonzero(labels.known))).all()


def test_a_factor_asks_for_as_many_latents_as_its_variables_have_dimensions():
    rng = np.random.default_rng(0)
    position, speed = rng.normal(size=(FRAMES, 2)), rng.normal(size=FRAMES)
    heading = Variable("heading", rng.uniform(0, 6, FRAMES), "circular")
    odour = rng.integers(0, 3, FRAMES)
    assert labels_of(position=position).dimensions == 2
    assert labels_of(position=position, speed=speed).dimensions == 3
    assert labels_of(heading=heading).dimensions == 2
    assert labels_of(odour=odour).dimensions == 2


def test_a_regression_predicts_discrete_values_one_by_one():
    labels = labels_of(odour=np.array([2, 7, 2, 9]))
    np.testing.assert_array_equal(labels.targets(), [[1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1]])


@pytest.mark.parametrize(
    ("variables", "names", "words"),
    [
        ({"x": np.full(9, 3.5)}, ["x"], ["'x'", "'place'", "constant", "3.5", "needed"]),
        ({"lick": np.ones(9, int)}, ["lick"], ["'lick'", "constant", "needed"]),
        ({"x": np.full(9, np.nan)}, ["x"], ["'place'", "no frame", "x is known"]),
        ({"x": np.arange(9.0)}, ["y"], ["no variable 'y'", "it has: x"]),
        ({}, ["y"], ["no variable 'y'", "it has: none"]),
        ({"x": np.arange(9.0)}, [], ["'place'", "no variable", "needed"]),
    ],
    ids=["constant", "constant discrete", "never known", "unknown", "none at all", "no names"],
)
def test_labels_that_cannot_be_used_get_one_sentence(variables, names, words):
    recording = Recording.from_arrays(np.zeros((9, 1)), 10.0, variables)
    with pytest.raises(InputError) as caught:
        Labels.of(recording, names, "place")
    message = str(caught.value)
    assert all(word in message for word in words)
    assert message.endswith(".")
    assert ". " not in message


def test_a_slow_label_is_remembered_longer():
    frames = 8000
    time, segment = np.arange(frames), np.zeros(frames, int)
    noise = labels_of(x=np.random.default_rng(0).normal(size=frames))
    slow = labels_of(x=np.sin(2 * np.pi * time / 400))
    assert correlation_time(noise, segment, 1000) == 1
    # cos(2π lag / 400) falls below 0.1 at 93.6 frames; lags grow by a quarter
    assert 94 <= correlation_time(slow, segment, 1000) <= 118
    assert correlation_time(slow, segment, 50) == 50


def test_memory_does_not_reach_across_trials():
    # two trials of 50 frames, one value each: nothing can be said beyond lag 50
    labels = labels_of(x=np.repeat([0.0, 1.0], 50))
    joined, apart = np.zeros(100, int), np.repeat([0, 1], 50)
    assert correlation_time(labels, apart, 90) > correlation_time(labels, joined, 90)
