"""The estimators do as scikit-learn expects, and read labels as `cebra` does."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from napari_xcebra import XCEBRA, attribute
from napari_xcebra.errors import InputError
from napari_xcebra.interop.estimators import KNNDecoder, LinearDecoder
from napari_xcebra.simulate import box


class Tiled(XCEBRA):
    """Trained on the data of a check many times over: an encoder needs more than its 30 frames."""

    def fit(self, X, y=None, *more):
        return super().fit(*map(tiled, (X, y, *more)))

    def partial_fit(self, X, y=None, *more):
        return super().partial_fit(*map(tiled, (X, y, *more)))


def tiled(rows):
    if rows is None or hasattr(rows, "toarray") or not 2 <= len(np.asarray(rows)) < 300:
        return rows
    values = np.asarray(rows)
    return np.tile(values, (-(-400 // len(values)), *[1] * (values.ndim - 1)))


FEW_CELLS = "three latents, and the check has two cells"
NOT_HERE = {
    "check_estimators_overwrite_params": FEW_CELLS,
    "check_estimators_fit_returns_self": FEW_CELLS,
    "check_readonly_memmap_input": FEW_CELLS,
    "check_methods_sample_order_invariance": "in single precision, sums depend on the order",
}
"""Checks of scikit-learn that an encoder cannot pass, with the reason."""
CHECKED = [
    KNNDecoder(),
    LinearDecoder(),
    Tiled(time_latents=1, steps=2, smoothing=0.0, batch_size=16, preset="paper"),
]


@pytest.fixture(scope="module")
def data():
    recording = box(frames=3000).recording
    return np.array(recording.traces), recording.variable("z2").values


@pytest.fixture(scope="module")
def model(data):
    traces, label = data
    state = (label[:, 0] > np.median(label[:, 0])).astype(int)
    return XCEBRA(steps=60, window=3).fit(traces, label, state)


@pytest.mark.filterwarnings("ignore:Estimator .* does not inherit from:UserWarning")
@pytest.mark.parametrize("made", CHECKED, ids=lambda made: type(made).__name__)
def test_the_checks_of_scikit_learn_pass(made):
    expected = NOT_HERE if isinstance(made, XCEBRA) else {}
    found = check_estimator(made, on_fail=None, on_skip=None, expected_failed_checks=expected)
    failed = {each["check_name"]: each["exception"] for each in found if each["status"] == "failed"}
    assert failed == {}
    assert sum(each["status"] == "passed" for each in found) > 35


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


def test_training_goes_on_with_more_frames(data):
    traces, label = data
    model = XCEBRA(steps=40).partial_fit(traces[:1500], label[:1500])
    first = {name: each.copy() for name, each in model.fit_.weights.items()}
    model.partial_fit(traces[1500:], label[1500:])
    assert any(not np.array_equal(each, first[name]) for name, each in model.fit_.weights.items())
    assert model.recording_.n_frames == 1500
    assert model.score(traces, label) > 0.5
    assert any("training went on, for 40 steps" in note for note in model.fit_.notes)
    with pytest.raises(InputError, match="0 labels were given: 1 are needed"):
        model.partial_fit(traces)


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
