"""The Jacobian written out is the derivative of the encoder."""

import pytest
import torch
from torch.func import jacrev, vmap
from torch.nn.functional import gelu

from napari_xcebra.learn.model import kernels_of, make_encoder, widths_of
from napari_xcebra.learn.model.encoder import Encoder
from napari_xcebra.learn.objective.loss import penalty_directions
from napari_xcebra.learn.training.start import _widths_for, hidden_units

CELLS, LATENTS, FRAMES = 12, 3, 9
WINDOWS = [1, 2, 5, 10]


def an_encoder(window=1, cells=CELLS, hidden=16, bound=5.0, seed=0):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        widths = _widths_for(hidden, LATENTS, 0, window)
        return make_encoder(cells, LATENTS, widths, bound=bound, window=window).double()


def inputs(encoder, size=1.0, frames=FRAMES):
    shape = (frames, encoder.n_cells, encoder.window)[: 2 if encoder.window == 1 else 3]
    generator = torch.Generator().manual_seed(1)
    return size * torch.randn(*shape, generator=generator, dtype=torch.float64)


def plain(encoder, x):
    """The encoder by the layers of torch."""
    if encoder.window == 1:
        return encoder(x)
    x = gelu(encoder.first(x))
    for layer in encoder.skips:
        before = layer.kernel_size[0] // 2
        bent = gelu(layer(x))
        x = x[..., before : before + bent.shape[2]] + bent
    return encoder.bound * torch.tanh(encoder.last(x[..., 0]) / encoder.bound)


def plain_of(encoder):
    return lambda x: plain(encoder, x)


def derivative(encoder, x):
    return vmap(jacrev(lambda frame: plain(encoder, frame[None])[0]))(x)


@pytest.mark.parametrize("window", WINDOWS)
# ten times as large: into the curved part of the bound
@pytest.mark.parametrize("size", [1.0, 10.0])
def test_the_explicit_jacobian_is_the_derivative_that_autograd_finds(window, size):
    encoder = an_encoder(window, bound=1.0)
    x = inputs(encoder, size)
    expected = derivative(encoder, x)
    assert expected.abs().amax((1, 2)).min() > 1e-5
    torch.testing.assert_close(encoder.jacobian(x), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("window", WINDOWS)
def test_a_jacobian_without_gradients_is_the_same_in_memory_that_is_used_again(window):
    encoder = an_encoder(window, bound=1.0)
    x = inputs(encoder)
    with torch.no_grad():
        parts = [encoder.jacobian(some) for some in x.split(4)]
    torch.testing.assert_close(torch.cat(parts), derivative(encoder, x), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("window", WINDOWS)
def test_a_pullback_is_the_product_of_directions_with_the_jacobian(window):
    encoder = an_encoder(window)
    x = inputs(encoder)
    directions = torch.randn(FRAMES, 2, LATENTS, dtype=torch.float64)
    _, activations = encoder.trace(x)
    expected = torch.einsum("fkl,fl...->fk...", directions, derivative(encoder, x))
    torch.testing.assert_close(encoder.pullback(directions, activations), expected)


@pytest.mark.parametrize("window", WINDOWS)
def test_every_frame_of_the_window_reaches_the_embedding(window):
    encoder = an_encoder(window)
    x = inputs(encoder)
    assert encoder(x).shape == (FRAMES, LATENTS)
    jacobian = encoder.jacobian(x).view(FRAMES, LATENTS, CELLS, window)
    assert jacobian.abs().amax((0, 1, 2)).min() > 1e-6


@pytest.mark.parametrize(
    ("window", "cells", "hidden"),
    [(1, 40, 8), (1, 8, 40), (5, 40, 2), (10, 40, 2), (5, 8, 40)],
    ids=str,
)
def test_the_squared_jacobian_is_its_frobenius_norm_whichever_way_it_is_taken(
    window, cells, hidden
):
    """With more cells than hidden units a Gram matrix replaces the product with the first layer."""
    encoder = an_encoder(window, cells, hidden)
    x = inputs(encoder)
    scale = torch.tensor([0.5, 1.0, 3.0], dtype=torch.float64)
    scaled = derivative(encoder, x).flatten(2) * scale[:, None]
    embedding, found = encoder.embed(x, penalty_directions(FRAMES - 2, scale))
    torch.testing.assert_close(found, scaled.square().sum((1, 2))[:-2])
    torch.testing.assert_close(embedding, encoder(x))


@pytest.mark.parametrize("window", WINDOWS)
def test_the_embedding_is_that_of_the_layers_of_torch_and_so_is_its_gradient(window):
    encoder = an_encoder(window)
    x = inputs(encoder).requires_grad_()
    torch.testing.assert_close(encoder(x), plain(encoder, x))
    wanted = [x, *encoder.parameters()]
    found, expected = (
        torch.autograd.grad(f(x).sin().sum(), wanted) for f in (encoder, plain_of(encoder))
    )
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, theirs)


# by the products of the first layer with itself where there are more cells than hidden units
@pytest.mark.parametrize("cells", [6, 40])
@pytest.mark.parametrize("window", WINDOWS)
def test_the_gradient_of_the_penalty_is_that_of_the_derivative_squared(window, cells):
    encoder = an_encoder(window, cells=cells, hidden=8)
    x, scale = inputs(encoder), torch.ones(LATENTS, dtype=torch.float64)
    weights = [p for p in encoder.parameters() if p.ndim > 1]
    penalty = encoder.embed(x, penalty_directions(FRAMES, scale))[1].mean()
    expected = derivative(encoder, x).square().sum() / FRAMES
    for found, wanted in zip(
        torch.autograd.grad(penalty, weights), torch.autograd.grad(expected, weights), strict=True
    ):
        torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("cells", [8, 40])
@pytest.mark.parametrize("rows", [0, 5])
def test_the_gradient_that_is_written_out_is_the_one_autograd_finds(cells, rows):
    """Of a loss on all frames and a penalty on some, by every parameter and the temperatures."""
    encoder = an_encoder(1, cells, hidden=12, bound=1.0)
    x = inputs(encoder, 3.0).requires_grad_()
    scale = torch.tensor([0.5, 1.0, 3.0], dtype=torch.float64, requires_grad=True)
    wanted_by = [x, *encoder.parameters()] + ([scale] if rows else [])
    pull = torch.randn(FRAMES, LATENTS, generator=torch.Generator().manual_seed(2)).double()
    gradients = []
    for embed in (encoder.embed, lambda *given: Encoder.embed(encoder, *given)):
        embedding, squared = embed(x, penalty_directions(rows, scale) if rows else None)
        loss = (embedding * pull).sum() + (squared * torch.arange(1, rows + 1)).sum()
        gradients.append(torch.autograd.grad(loss, wanted_by))
    for found, expected in zip(*gradients, strict=True):
        assert expected.abs().max() > 0
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("window", [1, 5])
def test_the_projected_penalty_is_right_on_average(window):
    encoder = an_encoder(window).float()
    x, scale = inputs(encoder).float(), torch.tensor([0.5, 1.0, 3.0])
    with torch.no_grad():
        exact = float(encoder.embed(x, penalty_directions(FRAMES, scale))[1].mean())
        directions = (penalty_directions(FRAMES, scale, 2, seed) for seed in range(400))
        draws = torch.stack([encoder.embed(x, each)[1].mean() for each in directions])
    error = float(draws.std()) / 400**0.5
    assert draws.std() > 0.01 * exact
    assert abs(float(draws.mean()) - exact) < 4 * error
    assert error < 0.03 * exact


@pytest.mark.parametrize("window", WINDOWS)
def test_the_embedding_stays_within_its_bound_and_is_free_inside(window):
    encoder = an_encoder(window, bound=0.5)
    with torch.no_grad():
        assert encoder(inputs(encoder, 1e4)).abs().max() <= 0.5
        wide = an_encoder(window, bound=1e4)
        loose = wide.trace(inputs(wide))
    torch.testing.assert_close(loose[0], loose[1][-1], rtol=1e-6, atol=1e-9)


def test_weights_tell_over_how_many_frames_each_layer_goes():
    """So that a fit is read whatever its encoder was like when it was trained."""
    encoder = make_encoder(CELLS, LATENTS, (16,), window=10, kernels=(4, 3, 3, 3)).double()
    assert kernels_of(encoder.state_dict()) == (4, 3, 3, 3)
    assert kernels_of(an_encoder(1).state_dict()) == ()
    x = inputs(encoder)
    torch.testing.assert_close(encoder.jacobian(x), derivative(encoder, x), rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(encoder(x), plain(encoder, x))


@pytest.mark.parametrize("widths", [(16, 16, 10), (20, 7, 9), (64, 64, 21)])
def test_weights_tell_how_wide_each_layer_is(widths):
    assert widths_of(make_encoder(CELLS, LATENTS, widths).state_dict()) == widths
    windowed = make_encoder(CELLS, LATENTS, widths[:1], window=5)
    assert widths_of(windowed.state_dict()) == widths[:1]


def test_hidden_units_grow_with_what_the_recording_holds_within_limits_set_by_the_latents():
    assert [hidden_units(0, 4, samples) for samples in (100, 1600, 100_000)] == [48, 80, 120]
    assert [hidden_units(0, latents, 100_000) for latents in (1, 4, 20)] == [64, 120, 256]
    assert hidden_units(0, 20, 100) == 80
    assert hidden_units(10, 4, 100_000) == 10


@pytest.mark.parametrize("latents", [1, 4, 20])
def test_the_last_hidden_layer_has_room_for_a_pair_of_units_a_latent(latents):
    assert min(_widths_for(0, latents, 100)) > 2 * latents
    assert len(_widths_for(0, latents, 100, window=5)) == 1


class TestStartingLinear:
    """GELU(x) − GELU(−x) = x: a pair of units in every layer carries a number through."""

    @pytest.fixture
    def linear(self):
        generator = torch.Generator().manual_seed(3)
        weights, bias = torch.randn(2, CELLS, generator=generator), torch.tensor([0.5, -1.0])
        return weights.double(), bias.double()

    def test_chosen_latents_are_exactly_linear_in_the_cells(self, linear):
        encoder = an_encoder(bound=1e4).float()
        weights, bias = (each.float() for each in linear)
        encoder.start_linear([0, 2], weights, bias)
        x = inputs(encoder, 3.0).float()
        before_the_bound = encoder.trace(x)[1][-1]
        torch.testing.assert_close(before_the_bound[:, [0, 2]], x @ weights.t() + bias)

    def test_their_jacobian_is_the_weights(self, linear):
        encoder = an_encoder(bound=1e4).float()
        weights, bias = (each.float() for each in linear)
        encoder.start_linear([1, 2], weights, bias)
        found = encoder.jacobian(inputs(encoder).float())[:, [1, 2]]
        torch.testing.assert_close(found, weights.expand_as(found), rtol=1e-4, atol=1e-5)

    def test_the_other_latents_still_see_every_cell(self, linear):
        encoder = an_encoder().float()
        encoder.start_linear([0, 2], *(each.float() for each in linear))
        assert encoder.jacobian(inputs(encoder).float())[:, 1].abs().amax(0).min() > 1e-6
