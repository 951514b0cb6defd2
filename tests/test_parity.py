"""The same numbers as the reference implementation, where both compute the same thing."""

import warnings

import numpy as np
import pytest
import torch

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what the reference imports is not ours to mend
    pytest.importorskip("cebra")
    pytest.importorskip("cvxpy", reason="cebra.attribution needs it")
    from cebra import attribution as reference_attribution
    from cebra import models as reference_models
    from cebra.models.criterions import FixedCosineInfoNCE, FixedEuclideanInfoNCE
    from cebra.models.jacobian_regularizer import JacobianReg

from napari_xcebra.learn.model.encoder import CUT_OFF, inverse
from napari_xcebra.learn.model.frame_encoder import FrameEncoder
from napari_xcebra.learn.objective.loss import (
    cross_similarity,
    euclidean_info_nce,
    info_nce,
    pair_similarity,
    penalty_directions,
)

pytestmark = pytest.mark.filterwarnings("ignore")

CELLS, LATENTS, FRAMES = 40, 4, 60


@pytest.fixture(scope="module")
def models():
    """The reference's model, and ours with its weights.

    Their clip and our smooth bound differ: the inputs keep every latent within the clip, and our
    bound is so far away that it is the identity.
    """
    torch.manual_seed(0)
    reference = reference_models.init(
        "offset1-model-mse-clip-5-5",
        num_neurons=CELLS,
        num_units=3 * LATENTS,
        num_output=LATENTS,
    ).eval()
    ours = FrameEncoder(CELLS, LATENTS, hidden=30 * LATENTS, bound=1e6)
    theirs = [p for p in reference.parameters() if p.requires_grad]
    with torch.no_grad():
        for layer, weight, bias in zip(ours.layers, theirs[::2], theirs[1::2], strict=True):
            weight.mul_(2)  # so that GELU is used where it bends
            layer.weight.copy_(weight.flatten(1))
            layer.bias.copy_(bias)
    return reference, ours


@pytest.fixture
def x():
    return torch.randn(FRAMES, CELLS, generator=torch.Generator().manual_seed(1))


@pytest.fixture
def reference_map(models, x):
    reference, _ = models
    assert reference(x[..., None]).abs().max() < 5
    method = reference_attribution.init(
        "jacobian-based",
        model=reference,
        input_data=x[..., None].clone().requires_grad_(),
        output_dimension=LATENTS,
    )
    return method.compute_attribution_map()


def test_the_embedding_is_that_of_the_reference(models, x):
    reference, ours = models
    torch.testing.assert_close(ours(x), reference(x[..., None]).squeeze(-1), rtol=1e-4, atol=1e-5)


def test_the_neuron_gradient_is_jf(models, x, reference_map):
    _, ours = models
    with torch.no_grad():  # as attribution does
        jacobian = ours.jacobian(x).numpy()
    assert_relatively_close(jacobian, reference_map["jf"].reshape(jacobian.shape))


def test_the_inverted_neuron_gradient_is_jf_inv_svd(models, x, reference_map):
    _, ours = models
    with torch.no_grad():
        inverted = inverse(ours.jacobian(x), torch.ones(LATENTS), CUT_OFF).numpy()
    assert_relatively_close(inverted, reference_map["jf-inv-svd"])


def assert_relatively_close(found, expected):
    """To 1e-4 of the largest entry of each frame."""
    size = np.abs(expected).max((1, 2), keepdims=True)
    np.testing.assert_allclose(found / size, expected / size, atol=1e-4)


@pytest.mark.parametrize(
    ("similarity", "criterion"), [("euclidean", FixedEuclideanInfoNCE), ("dot", FixedCosineInfoNCE)]
)
@pytest.mark.parametrize("temperature", [1.0, 0.3])
def test_infonce_is_that_of_the_reference(similarity, criterion, temperature):
    generator = torch.Generator().manual_seed(2)
    a, b, c = (torch.randn(50, LATENTS, generator=generator) for _ in range(3))
    b = a + 0.1 * b
    if similarity == "dot":  # theirs leaves it to the caller
        a, b, c = (torch.nn.functional.normalize(v, dim=1) for v in (a, b, c))
    expected, align, uniform = criterion(temperature=temperature)(a, b, c)
    positive = pair_similarity(a, b, similarity) / temperature
    negative = cross_similarity(a, c, similarity) / temperature
    loss = info_nce(positive, negative).mean()
    torch.testing.assert_close(loss, expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(-positive.mean(), align, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(loss + positive.mean(), uniform, rtol=1e-4, atol=1e-5)


def test_the_loss_of_a_step_is_infonce_of_the_reference_for_the_same_pairs():
    """Ours takes the other references for negatives: theirs is given each one's in turn."""
    generator = torch.Generator().manual_seed(3)
    a = torch.randn(30, LATENTS, generator=generator)
    b = a + 0.1 * torch.randn(30, LATENTS, generator=generator)
    criterion = FixedEuclideanInfoNCE(temperature=1.0)
    others = [torch.cat([a[:i], a[i + 1 :]]) for i in range(30)]
    each = [criterion(a[i : i + 1], b[i : i + 1], c)[0] for i, c in enumerate(others)]
    found = euclidean_info_nce(a, b, include_positive=False)
    torch.testing.assert_close(found, torch.stack(each).mean(), rtol=1e-4, atol=1e-5)


def test_the_penalty_is_twice_that_of_the_reference(models, x):
    """R = ½ mean ‖J‖²_F there, mean ‖J‖²_F here as in Eq. 10."""
    _, ours = models
    x.requires_grad_()
    expected = JacobianReg(n=-1)(x, ours(x))
    penalty = ours.embed(x, penalty_directions(FRAMES, torch.ones(LATENTS)))[1].mean()
    torch.testing.assert_close(penalty / 2, expected, rtol=1e-4, atol=1e-6)


def test_the_penalty_has_the_gradient_of_the_reference(models, x):
    """What training sees of it."""
    _, ours = models
    x.requires_grad_()
    weight = ours.layers[1].weight
    (expected,) = torch.autograd.grad(JacobianReg(n=-1)(x, ours(x)), weight)
    penalty = ours.embed(x, penalty_directions(FRAMES, torch.ones(LATENTS)))[1].mean()
    (found,) = torch.autograd.grad(penalty / 2, weight)
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-5)
