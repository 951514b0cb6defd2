"""A training step stays on its device, to which the host sends one batch of frame numbers.

Where there is no GPU, torch's `meta` device takes its place: it computes shapes alone, and a
dispatch mode refuses whatever mixes it with the processor.
"""

import numpy as np
import pytest
import torch
from quick_settings import quick
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from napari_xcebra.attribution import METHODS, attribute
from napari_xcebra.learn import FitSettings, Training, fit
from napari_xcebra.learn.adaptation import _CarriedTraining
from napari_xcebra.learn.device import FrameData, in_double
from napari_xcebra.learn.joint.fitting import _JointTraining
from napari_xcebra.learn.model.encoder import CUT_OFF, inverse
from napari_xcebra.learn.training.training import _Adam, _rates_of
from napari_xcebra.simulate import box

META = torch.device("meta")
read = FrameData.__getitem__


class OneDevice(TorchDispatchMode):
    """Refuses operations on tensors of two devices, and counts what is copied between them."""

    def __init__(self):
        super().__init__()
        self.copies = 0

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        tensors = [each for each in tree_leaves((args, kwargs)) if isinstance(each, torch.Tensor)]
        devices = {each.device.type for each in tensors if each.ndim > 0}
        name = operation.overloadpacket.__name__
        if name in ("_to_copy", "copy_"):
            wanted = (kwargs or {}).get("device")
            self.copies += len(devices | ({torch.device(wanted).type} if wanted else set())) > 1
        else:
            assert len(devices) < 2, f"{operation} mixes {' and '.join(sorted(devices))}"
        return operation(*args, **(kwargs or {}))


def to_device(training, device):
    """The same run, its encoder, inputs and what is learned on another device."""
    training.device = device
    for data in getattr(training.data, "sessions", [training.data]):
        data._rows, data.device = data._rows.to(device), device
    training.data.device = device
    training.encoder.to(device)
    training.objective = training._make_objective()
    training.psi = training.objective.psi
    learned = [*training.encoder.parameters(), *training.psi.parameters()]
    training.optimizer = _Adam(learned, _rates_of(training.encoder))
    return training


def prepared(training):
    """A run on `meta`; what it computes once, before the first step, is there."""
    to_device(training, META)
    if training.labels:
        training.objective.regression.targets, training.objective.regression.known  # noqa: B018
    return training


def copies_of_step(training):
    """Copies between devices in a step, which must not mix them."""
    training.step = training.settings.steps // 2  # λ is raised by then
    with OneDevice() as watched:
        training._train_step()
    return watched.copies


@pytest.fixture(scope="module")
def recorded():
    return box(frames=1500, seed=1)


def in_words(knobs):
    return " ".join(f"{name} {value}" for name, value in knobs.items())


VARIANTS = [
    dict(mode="hybrid"),
    dict(mode="behavior"),
    dict(mode="time"),
    dict(mode="supervised"),
    dict(similarity="dot"),
    dict(similarity="power", power=1.5),
    dict(window=5),
    dict(window=5, mode="supervised"),
    dict(penalty="projected"),
    dict(temperature="learned"),
    dict(include_positive=False),
    dict(hide=0.0),
    dict(readout=0.0),
    dict(network="published"),
]


@pytest.mark.parametrize("knobs", VARIANTS, ids=in_words)
def test_a_step_mixes_no_devices_and_sends_one_batch_of_frame_numbers(recorded, knobs):
    settings = quick(lambda_=0.1, stop_when_settled=False, **knobs)
    factors = None if knobs.get("mode") == "time" else recorded.factors
    training = prepared(Training(recorded.recording, factors, settings))
    assert copies_of_step(training) == 1
    assert all(p.device == META for p in training.encoder.parameters())


def test_a_label_that_is_missing_now_and_then_costs_no_copy(recorded):
    recording = recorded.recording
    values = np.array(next(iter(recording.behavior.values())).values)
    values[200:300] = np.nan
    gaps = type(recording).from_arrays(recording.traces[:], recording.rate, {"z": values})
    training = Training(gaps, {"z": ["z"]}, quick(lambda_=0.1, stop_when_settled=False))
    assert copies_of_step(prepared(training)) == 1


@pytest.mark.parametrize("own", ["input layer", "encoder"])
def test_a_step_of_several_sessions_mixes_no_devices(own):
    sessions = [box(frames=1200, seed=seed) for seed in (1, 2)]
    settings = quick(lambda_=0.1, stop_when_settled=False)
    recordings = [each.recording for each in sessions]
    training = _JointTraining(recordings, sessions[0].factors, settings, own)
    assert copies_of_step(prepared(training)) > 0


def test_a_step_of_an_adaptation_mixes_no_devices(recorded):
    trained = fit(recorded.recording, recorded.factors, quick(steps=3, lambda_=0.1))
    other = box(frames=1200, seed=2).recording
    training = _CarriedTraining(trained, other, trained.settings)
    assert copies_of_step(prepared(training)) == 1


def planted_targets(training):
    regression = training.objective.regression
    regression.targets = {
        name: torch.zeros(each.shape) for name, each in regression.targets.items()
    }


def planted_weight(training):
    training.psi.log_time_weight = torch.nn.Parameter(torch.zeros(len(training.parts)))


def planted_mask(training):
    training.data._masks = lambda frames, cells, hide, seed: (
        torch.ones(3, cells),
        torch.zeros(frames, dtype=torch.int64),
    )


@pytest.mark.parametrize("plant", [planted_targets, planted_weight, planted_mask])
def test_a_tensor_left_on_the_processor_is_caught(recorded, plant):
    settings = quick(lambda_=0.1, stop_when_settled=False)
    training = prepared(Training(recorded.recording, recorded.factors, settings))
    plant(training)
    with pytest.raises((AssertionError, RuntimeError), match=r"mixes|device"):
        copies_of_step(training)


def test_nothing_is_computed_in_double_precision_but_on_the_processor(recorded, monkeypatch):
    double = torch.Tensor.double

    def refused(values):
        assert values.device.type == "cpu", "this device has no double precision"
        return double(values)

    monkeypatch.setattr(torch.Tensor, "double", refused)
    training = prepared(Training(recorded.recording, recorded.factors, quick(lambda_=0.1)))
    copies_of_step(training)
    with pytest.raises(AssertionError, match="no double"):
        torch.zeros(3, device=META).double()
    assert in_double(torch.ones(2)).dtype == torch.float64


def test_the_inverse_comes_back_in_the_precision_and_to_the_device_it_came_from():
    jacobian = torch.randn(4, 3, 10)
    for cut_off in (CUT_OFF, 1e-6):
        found = inverse(jacobian, torch.ones(3), cut_off)
        assert (found.dtype, found.device) == (jacobian.dtype, jacobian.device)
        torch.testing.assert_close(
            found, torch.linalg.pinv(jacobian).transpose(1, 2), atol=1e-3, rtol=1e-3
        )


def test_hidden_cells_are_drawn_on_the_device():
    data = FrameData(np.ones((50, 8), np.float32), 1, torch.device("cpu"))
    data._rows, data.device = data._rows.to(META), META
    with OneDevice() as watched:
        seen = data.seen(torch.zeros(20, dtype=torch.int64, device=META), 0.5, 3)
    assert seen.device == META
    assert watched.copies == 0


class Card(OneDevice):
    """Also gives what `meta` cannot: values that come back to the host, and places that are true.

    They are random numbers, and the first place.
    """

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        name = operation.overloadpacket.__name__
        if name == "nonzero" and args[0].device == META:
            return torch.empty((1, args[0].ndim), dtype=torch.int64, device=META)
        wanted = (kwargs or {}).get("device")
        if name == "_to_copy" and args[0].device == META and wanted == torch.device("cpu"):
            self.copies += 1
            return torch.rand(args[0].shape).to(kwargs.get("dtype") or args[0].dtype)
        return super().__torch_dispatch__(operation, types, args, kwargs)


@pytest.fixture(scope="module", params=[1, 5], ids=["frames", "windows"])
def trained(request, recorded):
    settings = quick(steps=3, lambda_=0.1, window=request.param)
    return fit(recorded.recording, recorded.factors, settings)


@pytest.mark.parametrize("method", [name for name in METHODS if name != "feature-ablation"])
def test_a_map_mixes_no_devices(recorded, trained, method):
    # Captum reads the numbers of the features back, one by one, to ablate them
    frames = slice(list(METHODS).index(method), None, 5)  # others than those kept from before
    with Card() as watched:
        attribute(trained, recorded.recording, method, frames=frames, device="meta", workers=1)
    assert watched.copies > 0


def test_inputs_of_a_map_left_on_the_processor_are_caught(recorded, trained, monkeypatch):
    data = trained.frame_data(recorded.recording)
    monkeypatch.setattr(FrameData, "__getitem__", lambda _, frames: read(data, frames % 1000 + 9))
    with pytest.raises((AssertionError, RuntimeError), match=r"mixes|device"), Card():
        attribute(trained, recorded.recording, "neuron-gradient", device="meta", workers=1)


CARDS = {"cuda": torch.cuda.is_available, "mps": torch.backends.mps.is_available}


@pytest.mark.parametrize("card", CARDS)
@pytest.mark.parametrize(
    "knobs", VARIANTS[:7], ids=lambda knobs: " ".join(map(str, knobs.values()))
)
def test_a_fit_on_a_graphics_card_says_what_one_on_the_processor_says(recorded, card, knobs):
    if not CARDS[card]():
        pytest.skip(f"this computer has no {card}: fits on it were never run here")
    factors = None if knobs.get("mode") == "time" else recorded.factors
    there, here = (
        fit(recorded.recording, factors, FitSettings(steps=60, device=device, **knobs))
        for device in (card, "cpu")
    )
    for name, goodness in here.goodness.items():
        assert there.goodness[name].above_chance == goodness.above_chance
        assert there.goodness[name].goodness == pytest.approx(goodness.goodness, abs=0.3)
