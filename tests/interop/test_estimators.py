"""The estimators do as scikit-learn expects, and read labels as `cebra` does."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks as checks

from napari_xcebra import XCEBRA, attribute
from napari_xcebra.errors import InputError
from napari_xcebra.interop.estimators import KNNDecoder, LinearDecoder
from napari_xcebra.simulate import box

APPLY = [
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_get_params_invariance",
    "check_set_params",
    "check_mixin_order",
    "check_estimator_repr",
    "check_valid_tag_types",
]
"""Checks that fit nothing: those that do have too few frames for an encoder."""


@pytest.fixture(scope="module")
def data():
    recording = box(frames=3000).recording
    return np.array(recording.traces), recording.variable("z2").values


@pytest.fixture(scope="module")
def model(data):
    traces, label = data
    state = (label[:, 0] > np.median(label[:, 0])).astype(int)
    return XCEBRA(steps=60, window=3).fit(traces, label, state)


@pytest.mark.parametrize("made", [XCEBRA(), KNNDecoder(), LinearDecoder()], ids=repr)
@pytest.mark.parametrize("check", APPLY)
def test_the_checks_of_scikit_learn_pass(check, made):
    getattr(checks, check)(type(made).__name__, made)


def test_a_clone_has_the_parameters_and_nothing_that_was_learned(model):
    again = clone(model)
    assert again.get_params() == model.get_params()
    assert not hasattr(again, "fit_")
    with pytest.raises(InputError, match="not fitted"):
        again.transform(np.zeros((10, 3)))


def test_labels_are_read_by_their_type_and_decoded(model, data):
    traces, label = data
    kinds = [variable.kind for variable in model.recording_.behavior.values()]
    assert kinds == ["continuous", "discrete"]
    assert model.fit_.factors == ("label 0", "label 1", "time")
    assert model.transform(traces).shape == (3000, 5)
    assert np.isfinite(model.transform(traces)).all()
    state = (label[:, 0] > np.median(label[:, 0])).astype(int)
    assert model.score(traces, label, state) > 0.7
    assert len(attribute(model.fit_, model.recording_).table("label 0")) == traces.shape[1]


def test_without_labels_it_learns_over_time_in_a_pipeline(data):
    pipeline = make_pipeline(StandardScaler(), XCEBRA(steps=10, time_latents=3))
    assert pipeline.fit_transform(data[0]).shape == (3000, 3)


@pytest.mark.parametrize("decoder", [KNNDecoder(), KNNDecoder(5, "euclidean"), LinearDecoder()])
def test_decoders_tell_numbers_and_classes(decoder):
    x = np.random.default_rng(0).standard_normal((600, 3))
    position = x @ np.array([[1.0, 0.5], [0.2, -1.0], [0.0, 0.3]])
    position /= np.linalg.norm(x, axis=1, keepdims=True)
    side = np.where(x[:, 0] > 0, "right", "left")
    assert decoder.fit(x[:400], position[:400]).score(x[400:], position[400:]) > 0.5
    assert decoder.fit(x[:400], side[:400]).score(x[400:], side[400:]) > 0.9
    assert clone(decoder).get_params() == decoder.get_params()


def test_what_cannot_be_used_is_a_sentence(model, data):
    with pytest.raises(InputError, match="is expecting"):
        model.transform(data[0][:, :5])
    with pytest.raises(InputError, match="NaN"):
        XCEBRA().fit(np.full((100, 3), np.nan))
    with pytest.raises(InputError, match="no parameter 'speed'"):
        XCEBRA().set_params(speed=1)
