"""Columns of trials and events follow time, and a missing value costs only its own factor."""

from dataclasses import replace

import numpy as np
import pytest

from napari_xcebra.attribution.encoding.basis import TrialBasis, _Basis, _EventBasis, basis_for
from napari_xcebra.attribution.encoding.model import cut
from napari_xcebra.attribution.encoding.predictors import DRIFTS, Predictors
from napari_xcebra.learn.data.factors import Part
from napari_xcebra.recording import Recording, Variable
from napari_xcebra.simulate import task

EVERY = np.arange(3000)


@pytest.fixture(scope="module")
def recording() -> Recording:
    return task(frames=3000, rate=10.0).recording


def part(name: str) -> Part:
    return Part(name, (name,), 0, 1, "euclidean", 1.0)


def test_each_kind_of_variable_has_its_basis(recording: Recording):
    kinds = {"choice": TrialBasis, "lick": _EventBasis, "running": _Basis}
    for name, kind in kinds.items():
        basis = basis_for(recording, [name], name)
        assert isinstance(basis, kind)
        assert basis.rows(EVERY).shape == (3000, basis.width)
        assert np.isfinite(basis.rows(EVERY)).all()


def test_a_value_has_columns_only_from_a_while_before_it_is_known(recording: Recording):
    basis = basis_for(recording, ["choice"], "choice")
    onset = int(np.flatnonzero(recording.behavior["choice"].known)[0])
    rows = basis.rows(EVERY)

    assert (rows[: onset - 15] == 0).all()
    assert (rows[onset - 15] != 0).any()
    assert (rows[onset + 10] != 0).any()


def test_trials_of_the_other_value_have_the_same_columns_with_another_weight(recording: Recording):
    basis = basis_for(recording, ["choice"], "choice")
    trials = recording.trials
    right, left = (int(np.flatnonzero(trials.columns["choice"] == v)[0]) for v in (1, 0))
    at = basis.course.onset + 5
    one, other = basis.rows(at[[right]])[0], basis.rows(at[[left]])[0]

    assert np.abs(np.corrcoef(one, other)[0, 1]) == pytest.approx(1)
    swapped = np.arange(len(trials))
    swapped[[right, left]] = left, right
    np.testing.assert_allclose(basis.permuted(swapped).rows(at[[right]])[0], other)


def test_kernels_of_events_that_follow_closely_add_up():
    counts = np.zeros(3000)
    counts[[100, 500, 505]] = 1
    event = Variable("event", counts, "event", window=(0.5, 1.5))
    basis = basis_for(Recording(np.ones((3000, 1)), 10.0, {"event": event}), ["event"], "event")
    rows = basis.rows(EVERY)
    far = rows[300]

    np.testing.assert_allclose(rows[94], far)
    assert not np.allclose(rows[95], far)
    both = (rows[107] - far) + (rows[102] - far)
    np.testing.assert_allclose(rows[507] - far, both, atol=1e-9)


def test_an_event_between_sessions_does_not_reach_into_the_next():
    counts = np.zeros(3000)
    counts[[100, 998]] = 1
    event = Variable("event", counts, "event")
    one = Recording(np.ones((3000, 1)), 10.0, {"event": event}, starts=[0, 1000])
    rows = basis_for(one, ["event"], "event").rows(EVERY)

    assert not np.allclose(rows[999], rows[2000])
    np.testing.assert_allclose(rows[1000], rows[2000])


def test_a_missing_value_is_zero_and_leaves_the_other_factors_their_frames():
    rng = np.random.default_rng(0)
    speed, place = rng.normal(size=(2, 3000)).cumsum(1)
    place[1000:1500] = np.nan
    behavior = {"speed": Variable("speed", speed), "place": Variable("place", place)}
    recording = Recording(np.ones((3000, 1)), 10.0, behavior)
    predictors = Predictors.of(recording, [part("speed"), part("place")], 0.0)
    (rows,) = predictors.rows(EVERY)

    assert predictors.known.all()
    # it holds for half a second, as when a tracker loses the animal for a moment
    assert (rows[1004, predictors.columns["place"]] != 0).any()
    assert (rows[1005:1500, predictors.columns["place"]] == 0).all()
    assert (rows[1000:1500, predictors.columns["speed"]] != 0).any()
    # drift, and whether place is known
    assert len(predictors.columns["drift"]) == DRIFTS + 1


def test_what_all_trials_share_stands_beside_drift(recording: Recording):
    names = ("stimulus", "choice", "outcome", "running")
    predictors = Predictors.of(recording, [part(name) for name in names], 0.0)
    without = Predictors.of(replace(recording, trials=None), [part(name) for name in names], 0.0)

    # from the start of the trial, and from the choice; the outcome comes at a fixed time after it
    assert len(predictors.shared) == 2 + 2
    assert len(without.columns["drift"]) == DRIFTS + 2
    assert predictors.rows(EVERY)[0].shape == (3000, predictors.width)


def test_blocks_of_an_encoding_end_where_trials_do(recording: Recording):
    whole = cut(EVERY, 0.0, 10, recording.trials)

    assert len(whole) == 10
    starts = [int(own[0]) for own in whole[1:]]
    assert all(np.abs(recording.trials.first - start).min() <= 1 for start in starts)
