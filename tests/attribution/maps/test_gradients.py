"""The Jacobian and its inverse."""

import numpy as np
import pytest
import torch
from captum.attr import Saliency

from napari_xcebra.attribution import attribute
from napari_xcebra.attribution.methods import method_named
from napari_xcebra.attribution.stream import make_stream
from napari_xcebra.learn.model.encoder import CUT_OFF, inverse


@pytest.fixture(params=["trained", "windowed"])
def stream(request, recording):
    return make_stream(request.getfixturevalue(request.param), recording, slice(0, 1200, 7))


def joined(method, stream):
    with torch.no_grad():
        return torch.cat(list(method_named(method).compute(stream)))


def test_the_neuron_gradient_is_the_derivative_that_autograd_finds(stream):
    x, encoder = stream.inputs(stream.frames).requires_grad_(), stream.encoder
    each = [torch.autograd.grad(f.sum(), x, retain_graph=True)[0] for f in encoder(x).t()]
    expected = torch.stack(each, dim=1)
    torch.testing.assert_close(joined("neuron-gradient", stream), expected, rtol=1e-4, atol=1e-6)


def test_the_neuron_gradient_is_captums_saliency(stream):
    x = stream.inputs(stream.frames).requires_grad_()
    local = joined("neuron-gradient", stream)
    for latent in range(stream.encoder.latents):
        expected = Saliency(stream.encoder).attribute(x, target=latent)
        torch.testing.assert_close(local[:, latent].abs(), expected, rtol=1e-4, atol=1e-6)


def pseudoinverse(jacobian, scale, cut_off):
    """J⁺ by numpy, with the cut-off taken in the units of the similarity."""
    scale = np.asarray(scale, np.float64)[:, None]
    jacobian = np.asarray(jacobian, np.float64)
    jacobian = jacobian.reshape(*jacobian.shape[:2], -1)
    return scale * np.linalg.pinv(scale * jacobian, rcond=cut_off).transpose(0, 2, 1)


def assert_equal_for_each_latent(found, expected, tolerance=1e-4):
    """Relative to the largest entry of a latent: latents may differ by orders of magnitude."""
    size = np.abs(expected).max(2, keepdims=True)
    found = np.asarray(found).reshape(expected.shape)
    np.testing.assert_allclose(found / size, expected / size, atol=tolerance)


def test_with_a_tiny_cut_off_the_inverse_is_the_pseudoinverse_at_every_frame(stream):
    jacobian = joined("neuron-gradient", stream)
    exact = jacobian.flatten(2).double().numpy()
    assert np.linalg.cond(exact).max() < 1e4  # beyond it single precision has lost J itself
    expected = np.linalg.pinv(exact).transpose(0, 2, 1)
    assert_equal_for_each_latent(inverse(jacobian, stream.scale, 1e-6), expected)


def test_the_inverted_neuron_gradient_is_the_pseudoinverse_up_to_its_cut_off(stream):
    expected = pseudoinverse(joined("neuron-gradient", stream), stream.scale, CUT_OFF)
    assert_equal_for_each_latent(joined("inverted-neuron-gradient", stream), expected)


def test_the_pseudoinverse_holds_for_parts_in_very_different_units():
    """Temperatures matched to the labels put factors orders of magnitude apart."""
    comparable = torch.randn(20, 4, 30, generator=torch.Generator().manual_seed(0))
    scale = torch.tensor([1e-4, 1.0, 1.0, 1e4])
    jacobian = comparable / scale[:, None]
    expected = np.linalg.pinv(jacobian.double().numpy()).transpose(0, 2, 1)
    assert_equal_for_each_latent(inverse(jacobian, scale, CUT_OFF), expected)


def with_singular_values(*values):
    """Jacobians of 5 frames and 30 cells that have these singular values."""
    rng = np.random.default_rng(0)
    left = np.linalg.qr(rng.normal(size=(5, len(values), len(values))))[0]
    right = np.linalg.qr(rng.normal(size=(5, 30, len(values))))[0].transpose(0, 2, 1)
    return torch.as_tensor(left @ (np.array(values)[:, None] * right), dtype=torch.float32)


def test_singular_values_below_the_cut_off_count_as_zero():
    jacobian = with_singular_values(2.0, 1.0, 0.11, 0.09)
    found = inverse(jacobian, torch.ones(4), 0.05).double().numpy()
    # a singular value s of J is 1/s in J⁺: what was kept is there, what was dropped is not
    inverted = np.linalg.svd(found, compute_uv=False)
    np.testing.assert_allclose(inverted, np.tile([1 / 0.11, 1.0, 0.5, 0.0], (5, 1)), atol=1e-4)
    whole = inverse(jacobian, torch.ones(4), 1e-6).double().numpy()
    np.testing.assert_allclose(np.linalg.svd(whole, compute_uv=False)[:, 0], 1 / 0.09, rtol=1e-4)


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
    result = attribute(windowed, recording, "inverted-neuron-gradient", frames=slice(100, 400))
    scores = result.latent_scores[:, windowed.inputs.columns(recording)]
    np.testing.assert_allclose(scores, expected, rtol=1e-5)
