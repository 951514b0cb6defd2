"""Where `cebra` is installed, it computes the same from its own files and from ours."""

import warnings

import numpy as np
import pytest
import torch
from cebra_recordings import session

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what the reference imports is not ours to mend
    cebra = pytest.importorskip("cebra")
    from cebra import models as reference_models

from napari_xcebra import FitSettings, Recording, fit, open_cebra, save_cebra
from napari_xcebra.learn.model.cebra_encoder import ARCHITECTURES, CebraEncoder
from napari_xcebra.simulate import box

pytestmark = pytest.mark.filterwarnings("ignore")

CLOSE = 1e-5
FACTORS = {"speed": ["speed"]}


def test_the_architectures_are_those_of_the_reference():
    assert set(ARCHITECTURES) == set(reference_models.get_options(expand_parametrized=True))


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_architecture_computes_what_the_reference_does(name):
    torch.manual_seed(0)
    theirs = reference_models.init(name, num_neurons=7, num_units=8, num_output=3).eval()
    ours = CebraEncoder(name, 7, 8, 3)
    found = ours.load_state_dict(theirs.state_dict(), strict=False)
    assert not found.unexpected_keys
    assert set(found.missing_keys) == {"mean", "spread", "order"}
    offset = theirs.get_offset()
    assert (offset.left, len(offset)) == (ours.window // 2, ours.window)
    x = torch.randn(5, 7, ours.window)
    if name.startswith("supervised"):
        theirs.set_output_num(2)
        expected = theirs(x)[0]
    else:
        expected = theirs(x)
    torch.testing.assert_close(ours(x.squeeze(2)), expected, rtol=CLOSE, atol=CLOSE)


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("offset10-model", {}),
        ("offset1-model", {"temperature_mode": "auto"}),
        ("offset10-model-mse", {"distance": "euclidean"}),
        ("offset36-model-more-dropout", {}),
        ("offset1-model-mse-clip-5-5", {"distance": "euclidean"}),
        ("offset1-model-mse-resnet-2layers-tanh", {"distance": "euclidean"}),
    ],
)
def test_what_it_saves_goes_there_and_back(name, how, tmp_path):
    traces, label = session(8, 0)
    common = {"batch_size": 64, "output_dimension": 3, "num_hidden_units": 8, "device": "cpu"}
    trained = cebra.CEBRA(name, max_iterations=20, **common, **how).fit(traces, label[:, None])
    trained.save(tmp_path / "theirs.pt")
    recording = Recording.from_arrays(traces, 10.0, {"speed": label})
    ours = open_cebra(tmp_path / "theirs.pt", recording, FACTORS, standardised=False)
    expected, found = trained.transform(traces), ours.embed(recording)
    inside = np.isfinite(found).all(1)
    np.testing.assert_allclose(found[inside], expected[inside], rtol=CLOSE, atol=CLOSE)
    save_cebra(ours, tmp_path / "ours.pt")
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*weights_only.*")  # it would run anything
        again = cebra.CEBRA.load(tmp_path / "ours.pt")
    np.testing.assert_allclose(again.transform(traces), expected, rtol=CLOSE, atol=CLOSE)


def test_a_fit_as_published_goes_there(tmp_path):
    simulation = box(frames=3000)
    recording = simulation.recording
    ours = fit(recording, simulation.factors, FitSettings.paper(steps=50, batch_size=128))
    theirs = cebra.CEBRA.load(save_cebra(ours, tmp_path / "ours.pt"))
    found = theirs.transform(np.array(recording.traces))
    np.testing.assert_allclose(found, ours.embed(recording), rtol=CLOSE, atol=CLOSE)
