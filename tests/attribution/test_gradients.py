"""The Jacobian and its inverse."""

import numpy as np
import pytest
import torch
from captum.attr import Saliency
from torch.func import jacrev, vmap

from napari_xcebra.attribution import attribute
from napari_xcebra.attribution.gradients import CUT_OFF, inverse
from napari_xcebra.attribution.methods import METHODS
from napari_xcebra.attribution.stream import make_stream


@pytest.fixture(params=["trained", "windowed"])
def stream(request, recording):
    return make_stream(request.getfixturevalue(request.param), recording, slice(0, 1200, 7))


def joined(method, stream):
    with torch.no_grad():
        return torch.cat(list(METHODS[method](stream)))


def test_the_neuron_gradient_is_the_derivative_that_autograd_finds(stream):
    x, encoder = stream.inputs(stream.frames), stream.encoder
    expected = vmap(jacrev(lambda frame: encoder(frame[None])[0]))(x)
    torch.testing.assert_close(joined("neuron-gradient", stream), expected, rtol=1e-4, atol=1e-6)


def test_the_neuron_gradient_is_captums_saliency(stream):
    x = stream.inputs(stream.frames).requires_grad_()
    local = joined("neuron-gradient", stream)
    for latent in range(stream.encoder.latents):
        expected = Saliency(stream.encoder).attribute(x, target=latent)
        torch.testing.assert_close(local[:, latent].abs(), expected, rtol=1e-4, atol=1e-6)


def test_the_inverted_neuron_gradient_is_the_pseudoinverse_at_every_frame(stream):
    jacobian = joined("neuron-gradient", stream).flatten(2).double().numpy()
    assert np.linalg.cond(jacobian).max() < 1e4  # beyond it single precision has lost J itself
    expected = np.linalg.pinv(jacobian).transpose(0, 2, 1)
    inverted = joined("inverted-neuron-gradient", stream).flatten(2).numpy()
    size = np.abs(expected).max((1, 2), keepdims=True)
    np.testing.assert_allclose(inverted / size, expected / size, atol=1e-5)


def test_the_pseudoinverse_holds_for_parts_in_very_different_units():
    """Temperatures matched to the labels put factors orders of magnitude apart."""
    comparable = torch.randn(20, 4, 30, generator=torch.Generator().manual_seed(0))
    scale = torch.tensor([1e-4, 1.0, 1.0, 1e4])
    jacobian = comparable / scale[:, None]
    expected = np.linalg.pinv(jacobian.double().numpy()).transpose(0, 2, 1)
    relative = inverse(jacobian, scale, CUT_OFF).numpy() / scale[:, None].numpy()
    np.testing.assert_allclose(relative, expected / scale[:, None].numpy(), rtol=1e-4, atol=1e-6)


def test_singular_values_below_the_cut_off_count_as_zero():
    jacobian = torch.randn(5, 4, 30, generator=torch.Generator().manual_seed(0))
    jacobian[:, 3] = jacobian[:, 2] + 0.01 * jacobian[:, 3]
    exact = jacobian.double().numpy()
    for cut_off in (1e-6, 0.1):
        expected = np.linalg.pinv(exact, rcond=cut_off).transpose(0, 2, 1)
        found = inverse(jacobian, torch.ones(4), cut_off).numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert np.abs(expected).max() < 0.1 * np.abs(np.linalg.pinv(exact)).max()


def test_a_latent_that_does_nothing_does_not_blow_up_the_others():
    jacobian = torch.randn(5, 3, 30, generator=torch.Generator().manual_seed(0))
    jacobian[:, 1] = 0
    inverted = inverse(jacobian, torch.ones(3), CUT_OFF)
    expected = np.linalg.pinv(jacobian.double().numpy()).transpose(0, 2, 1)
    np.testing.assert_allclose(inverted.numpy(), expected, atol=1e-6)
    assert inverted[:, 1].abs().max() < 1e-12


def test_the_score_of_a_windowed_cell_is_the_mean_over_frames_and_lags(windowed, recording):
    stream = make_stream(windowed, recording, slice(100, 400))
    expected = joined("inverted-neuron-gradient", stream).abs().mean((0, 3))
    result = attribute(windowed, recording, frames=slice(100, 400))
    scores = result.latent_scores[:, windowed.inputs.columns(recording)]
    np.testing.assert_allclose(scores, expected, rtol=1e-5)
