"""The encoder f: cells → latents, with its Jacobian J_f as explicit products.

Differentiating a product of layers once is cheaper than differentiating a gradient, and the
same code serves the penalty and the attribution.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from napari_xcebra.learn.model.convolution import convolve, spread, spread_squared
from napari_xcebra.learn.model.perceptron import Perceptron, times

Activations = list[Tensor]

CELLS = 512
"""Cells up to which their weights are learned at the full rate."""

FIRST_LAYER = 0.1
"""Factor on the initial weights of the first layer, and its inverse on those of the second.

What the first layer weighs at random in directions that the data never take is all the penalty
has to remove; starting small removes most of it beforehand. On the box model the map settles
in a third of the steps (4 + 2 latents, 200 steps: auROC 0.99 instead of 0.94).
"""


def gelu_slope(x: Tensor) -> Tensor:
    """Derivative of GELU."""
    density = torch.exp(-0.5 * x * x) * (1 / math.sqrt(2 * math.pi))
    return torch.addcmul(0.5 + 0.5 * torch.erf(x * math.sqrt(0.5)), x, density)


class Encoder(nn.Module):
    """Base of both encoders: a smooth bound on the embedding, and the Jacobian.

    Parameters
    ----------
    latents : int
        d, the dimensions of the embedding.
    bound : float
        The embedding stays within ±bound by a scaled tanh, which leaves no row of J at zero
        as a clip would.
    """

    window: int
    n_cells: int
    width: int

    def __init__(self, latents: int, bound: float) -> None:
        super().__init__()
        self.latents = latents
        self.bound = bound

    def forward(self, x: Tensor) -> Tensor:
        """Embedding.

        Parameters
        ----------
        x : (frames, cells) or (frames, cells, window)

        Returns
        -------
        (frames, latents)
        """
        return self.trace(x)[0]

    def trace(self, x: Tensor) -> tuple[Tensor, Activations]:
        """Embedding, and the inputs of every nonlinearity, which `pullback` needs."""
        raise NotImplementedError

    def pullback(self, directions: Tensor, activations: Activations) -> Tensor:
        """Products vᵀJ_f for directions v in the embedding.

        Parameters
        ----------
        directions : (frames, k, latents)
        activations : as `trace` returned them

        Returns
        -------
        (frames, k, cells) or (frames, k, cells, window)
        """
        raise NotImplementedError

    def embed(self, x: Tensor, directions: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Embedding of every frame, and Σ_k ‖v_kᵀ J_f‖² at the first of them, for training.

        Parameters
        ----------
        directions : (some frames, k, latents), optional
            v_k, of as many frames as the second is wanted for.

        Returns
        -------
        (frames, latents), (some frames,)
        """
        embedding, activations = self.trace(x)
        if directions is None:
            return embedding, x.new_zeros(0)
        some = [each[: len(directions)] for each in activations]
        return embedding, self.pullback(directions, some).square().flatten(1).sum(1)

    def jacobian(self, x: Tensor) -> Tensor:
        """J_f at every frame.

        Returns
        -------
        (frames, latents, cells) or (frames, latents, cells, window)
        """
        _, activations = self.trace(x)
        eye = torch.eye(self.latents, dtype=x.dtype, device=x.device)
        return self.pullback(eye.expand(len(x), -1, -1), activations)

    def _bounded(self, h: Tensor) -> Tensor:
        return self.bound * torch.tanh(h / self.bound)

    def _bound_slope(self, h: Tensor) -> Tensor:
        return 1 - torch.tanh(h / self.bound) ** 2


class FrameEncoder(Encoder):
    """One frame at a time: three hidden layers with GELU, a linear layer, a scaled tanh."""

    window = 1

    def __init__(self, n_cells: int, latents: int, hidden: tuple[int, ...], bound: float) -> None:
        super().__init__(latents, bound)
        self.n_cells, self.width = n_cells, max(hidden)
        sizes = [n_cells, *hidden, latents]
        self.layers = nn.ModuleList(
            nn.Linear(inputs, outputs) for inputs, outputs in pairwise(sizes)
        )
        _start_small(self.weights[0], self.weights[1])

    @property
    def weights(self) -> list[Tensor]:
        """Weight matrices, from the cells on: (outputs, inputs) each."""
        return [cast(nn.Linear, layer).weight for layer in self.layers]

    @torch.no_grad()
    def start_linear(self, latents: Sequence[int], weights: Tensor, bias: Tensor) -> None:
        """Let some latents begin as linear functions of the cells, exactly.

        GELU(x) − GELU(−x) = x: a pair of units in every layer carries a number through.

        Parameters
        ----------
        latents : (k,) int
        weights : (k, cells)
        bias : (k,)
        """
        count = len(latents)
        pairs = slice(0, 2 * count)
        first, *middle, last = [cast(nn.Linear, layer) for layer in self.layers]
        both = torch.cat([torch.eye(count), -torch.eye(count)])
        first.weight[pairs], first.bias[pairs] = both @ weights, both @ bias
        for layer in middle:
            layer.weight[:, pairs] *= FIRST_LAYER
            layer.weight[pairs], layer.bias[pairs] = 0, 0
            layer.weight[pairs, pairs] = both @ both.t()
        last.weight[list(latents)], last.bias[list(latents)] = 0, 0
        last.weight[list(latents), pairs] = both.t()

    @torch.no_grad()
    def plus_linear(
        self, kept: Tensor, latents: Sequence[int], weights: Tensor, bias: Tensor
    ) -> FrameEncoder:
        """Return an encoder that is this one times a factor a latent, plus linear functions.

        Parameters
        ----------
        kept : (latents,)
            Factors.
        latents, weights, bias
            As `start_linear` takes them.
        """
        mine = [cast(nn.Linear, layer) for layer in self.layers]
        pairs = 2 * len(latents)
        widths = tuple(layer.out_features + pairs for layer in mine[:-1])
        whole = FrameEncoder(self.n_cells, self.latents, widths, self.bound)
        for layer in whole.layers:
            for parameter in layer.parameters():
                parameter.zero_()
        whole.start_linear(latents, weights.cpu(), bias.cpu())
        theirs = [cast(nn.Linear, layer) for layer in whole.layers]
        for number, (own, layer) in enumerate(zip(mine, theirs, strict=True)):
            outputs = slice(pairs, None) if number < len(mine) - 1 else slice(None)
            inputs = slice(pairs, None) if number else slice(None)
            factor = kept if number == len(mine) - 1 else torch.ones(own.out_features)
            layer.weight[outputs, inputs] += factor[:, None] * own.weight.cpu()
            layer.bias[outputs] += factor * own.bias.cpu()
        return whole.to(mine[0].weight.device)

    def trace(self, x: Tensor) -> tuple[Tensor, Activations]:  # noqa: D102
        activations: Activations = []
        for layer in self.layers[:-1]:
            x = layer(x)
            activations.append(x)
            x = functional.gelu(x)
        x = self.layers[-1](x)
        activations.append(x)
        return self._bounded(x), activations

    def embed(self, x: Tensor, directions: Tensor | None = None) -> tuple[Tensor, Tensor]:  # noqa: D102
        return Perceptron.apply(x, directions, self.bound, *self.parameters())

    def pullback(self, directions: Tensor, activations: Activations) -> Tensor:  # noqa: D102
        v = times(directions * self._bound_slope(activations[-1])[:, None], self.weights[-1])
        *hidden, last = (gelu_slope(a) for a in activations[:-1])
        v = v * last[:, None]
        for weight, slope in zip(self.weights[-2:0:-1], reversed(hidden), strict=True):
            v = times(v, weight) * slope[:, None]
        return times(v, self.weights[0])

    def jacobian(self, x: Tensor) -> Tensor:  # noqa: D102
        if torch.is_grad_enabled():
            return super().jacobian(x)
        # attribution, with no gradients to keep: a latent at a time, in large products that write
        # into the same memory
        slopes = []
        for layer in self.layers[:-1]:
            x = layer(x)
            slopes.append(torch.ops.aten.gelu_backward(torch.ones_like(x), x))
            x = functional.gelu(x)
        bound_slope = self._bound_slope(self.layers[-1](x))
        first, *hidden, before_last, last = self.weights
        # between the last two layers only the slopes differ from frame to frame
        joined = last[:, :, None] * before_last
        products = [torch.empty_like(slope) for slope in slopes[:-1]]
        jacobian = x.new_empty(self.latents, len(x), self.n_cells)
        for latent in range(self.latents):
            v = slopes[-1]
            for number in range(len(products) - 1, -1, -1):
                weight = joined[latent] if v is slopes[-1] else hidden[number]
                v = _multiply(v, weight, out=products[number]).mul_(slopes[number])
            _multiply(v, first, out=jacobian[latent])
        return jacobian.mul_(bound_slope.t()[:, :, None]).transpose(0, 1)


class WindowEncoder(Encoder):
    """Several frames at once: temporal convolutions with skip connections.

    Parameters
    ----------
    kernels : tuple of int
        Frames that each layer takes together, from the cells on. By default the first, which sees
        the cells, takes each frame for itself, the second all of the window, and two more follow:
        that is cheapest where cells are many, and no worse than spreading the window over layers.
    """

    def __init__(
        self,
        n_cells: int,
        latents: int,
        hidden: int,
        bound: float,
        window: int,
        kernels: tuple[int, ...] = (),
    ) -> None:
        super().__init__(latents, bound)
        self.n_cells, self.window = n_cells, window
        first, second, *others = kernels or (1, window, 1, 1)
        self.first = nn.Conv1d(n_cells, hidden, first)
        self.skips = nn.ModuleList(nn.Conv1d(hidden, hidden, k) for k in (second, *others))
        self.last = nn.Linear(hidden, latents)
        self.width = hidden
        _start_small(self.first.weight, self._skips[0].weight)

    def trace(self, x: Tensor) -> tuple[Tensor, Activations]:  # noqa: D102
        h = convolve(_lags_first(x), self.first.weight, self.first.bias)
        activations = [_lags_last(h)]
        h = functional.gelu(h)
        for layer in self._skips:
            bent = convolve(h, layer.weight, layer.bias)
            activations.append(_lags_last(bent))
            before, _ = _skipped(layer)
            h = h[before : before + len(bent)] + functional.gelu(bent)
        out = self.last(h[0])
        return self._bounded(out), [*activations, out]

    def embed(self, x: Tensor, directions: Tensor | None = None) -> tuple[Tensor, Tensor]:  # noqa: D102
        weight = self.first.weight
        hidden, cells, kernel = weight.shape
        rows = 0 if directions is None else directions.shape[0] * directions.shape[1]
        if cells <= hidden or rows * (self.window - kernel + 1) <= kernel * hidden:
            return super().embed(x, directions)
        assert directions is not None
        embedding, activations = self.trace(x)
        some = [each[: len(directions)] for each in activations]
        squared = spread_squared(self._pullback_to_first_layer(directions, some), weight)
        return embedding, squared.view(directions.shape[:2]).sum(1)

    def pullback(self, directions: Tensor, activations: Activations) -> Tensor:  # noqa: D102
        v = spread(self._pullback_to_first_layer(directions, activations), self.first.weight)
        return _lags_last(v).unflatten(0, directions.shape[:2])

    def _pullback_to_first_layer(self, directions: Tensor, activations: Activations) -> Tensor:
        """With respect to the input of the first nonlinearity: (lags, frames × k, units)."""
        first, *bent, last = activations
        v = (directions * self._bound_slope(last)[:, None]).flatten(0, 1) @ self.last.weight
        v = v[None]
        for layer, h in zip(reversed(self._skips), reversed(bent), strict=True):
            beside = functional.pad(v, (0, 0, 0, 0, *_skipped(layer)))
            v = beside + spread(_bent(v, h), layer.weight)
        return _bent(v, first)

    @property
    def _skips(self) -> list[nn.Conv1d]:
        return [cast(nn.Conv1d, layer) for layer in self.skips]


def _skipped(layer: nn.Conv1d) -> tuple[int, int]:
    """Lags at either end that a skip connection leaves out."""
    kernel = layer.weight.shape[2]
    return kernel // 2, kernel - 1 - kernel // 2


def _lags_first(x: Tensor) -> Tensor:
    return x.permute(2, 0, 1).contiguous()


def _lags_last(h: Tensor) -> Tensor:
    return h.permute(1, 2, 0)


def _bent(v: Tensor, h: Tensor) -> Tensor:
    """Directions (lags, frames × k, units) times the slopes at (frames, units, lags)."""
    slope = gelu_slope(_lags_first(h))[:, :, None]
    return (v.unflatten(1, (len(h), -1)) * slope).flatten(1, 2)


def _multiply(a: Tensor, b: Tensor, out: Tensor) -> Tensor:
    """Matrix product into given memory, without gradients.

    On the processor it is numpy's, whose library (OpenBLAS) takes four fifths of the time of
    torch's (MKL) for the shapes of an attribution, on an AMD EPYC.
    """
    if a.device.type == "cpu":
        np.matmul(a.numpy(), b.detach().numpy(), out=out.numpy())
        return out
    return torch.mm(a, b, out=out)


def _start_small(first: Tensor, second: Tensor) -> None:
    with torch.no_grad():
        first.mul_(FIRST_LAYER)
        second.div_(FIRST_LAYER)


def widths_of(weights: Mapping[str, Any]) -> tuple[int, ...]:
    """Units of the hidden layers of the encoder that these weights, by name, are of."""
    if "first.weight" in weights:
        return (weights["first.weight"].shape[0],)
    names = sorted(name for name in weights if name.endswith(".weight"))
    return tuple(weights[name].shape[0] for name in names[:-1])


def make_encoder(
    n_cells: int,
    latents: int,
    widths: tuple[int, ...],
    *,
    bound: float = 5.0,
    window: int = 1,
    kernels: tuple[int, ...] = (),
) -> Encoder:
    """Encoder for a window of that many frames; with kernels other than the default, if given."""
    if window == 1:
        return FrameEncoder(n_cells, latents, widths, bound)
    return WindowEncoder(n_cells, latents, widths[0], bound, window, kernels)


def rates_of(encoder: nn.Module) -> dict[nn.Parameter, float]:
    """Share of the learning rate for the weights of many cells.

    Adam moves every weight by as much, so that what a unit sees changes with the number of its
    inputs: with thousands of cells the first step would throw the embedding to its bound, from
    where it hardly comes back.
    """
    layers = [each for each in encoder.modules() if isinstance(each, FrameEncoder | WindowEncoder)]
    firsts = [each.first if isinstance(each, WindowEncoder) else each.layers[0] for each in layers]
    weights = [cast(nn.Parameter, first.weight) for first in firsts]
    return {weight: min(1.0, CELLS / weight.shape[1]) for weight in weights}


def kernels_of(weights: Mapping[str, Any]) -> tuple[int, ...]:
    """Kernels of the encoder with a window that these weights, by name, are of; else none."""
    return tuple(weights[name].shape[2] for name in sorted(weights) if weights[name].ndim == 3)
