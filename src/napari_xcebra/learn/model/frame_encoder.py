"""Encodes one frame at a time, and its Jacobian penalty, with their gradients written out.

Autograd would take each layer's nonlinearity, slope and gradient for operations of their own, keep
what all of them made, and fill with zeros what the penalty, taken over some of the frames, has no
part in. Written out, little is left but the products of the layers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from napari_xcebra.learn.model.encoder import (
    FIRST_LAYER,
    Activations,
    Encoder,
    gelu_slope,
)


class _Perceptron(torch.autograd.Function):
    """Embedding of every frame, and Σ_k ‖v_kᵀ J_f‖² at the first of them.

    ``_Perceptron.apply(x, directions, bound, clips, *parameters)``:

    x : (frames, cells)
    directions : (some frames, k, latents) or None
        v_k, of as many frames as the second result is wanted for.
    bound : float
        Of the scaled tanh behind the last layer.
    clips : bool
        Whether it is a clip instead.
    parameters : weight (outputs, inputs), bias (outputs,) of each layer in turn

    Returns (frames, latents) and (some frames,).
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        directions: Tensor | None,
        bound: float,
        clips: bool,
        *parameters: Tensor,
    ) -> tuple[Tensor, Tensor]:
        weights, biases = parameters[::2], parameters[1::2]
        entering, bent = [x], []  # inputs of the layers, and of the nonlinearities
        for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
            bent.append(torch.addmm(bias, entering[-1], weight.t()))
            entering.append(functional.gelu(bent[-1]))
        bounded = torch.addmm(biases[-1], entering[-1], weights[-1].t()).div_(bound)
        if clips:
            slope, bend = (bounded.abs() < 1).to(x.dtype), None
            bounded.clamp_(-1, 1)
        else:
            bounded.tanh_()
            slope = 1 - bounded.square()
            bend = (-2 / bound) * bounded * slope
        ctx.entering, ctx.bent, ctx.slope, ctx.bend = entering, bent, slope, bend
        ctx.save_for_backward(*parameters)
        ctx.pullback = None
        squared = x.new_zeros(0)
        if directions is not None:
            ctx.pullback = _Pullback.of(directions, weights, bent, slope)
            squared = ctx.pullback.squared()
        return bound * bounded, squared

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        by_embedding, by_squared = gradients
        parameters = ctx.saved_tensors
        weights = parameters[::2]
        error = by_embedding * ctx.slope
        extra, by_weight, by_directions = None, [None] * len(weights), None
        if ctx.pullback is not None:
            extra, by_weight, by_slope = ctx.pullback.backward(by_squared, weights)
            if ctx.needs_input_grad[1]:
                by_directions = ctx.pullback.by_directions(by_slope)
            rows = len(by_squared)
            if ctx.bend is not None:
                error[:rows] += ctx.pullback.by_bound_slope(by_slope) * ctx.bend[:rows]
        found: list[Tensor | None] = []
        by_input = None
        for number in range(len(weights) - 1, -1, -1):
            gradient = _plus(by_weight[number], error.t(), ctx.entering[number])
            found[:0] = [gradient, error.sum(0)]
            if number > 0:
                error = torch.ops.aten.gelu_backward(error @ weights[number], ctx.bent[number - 1])
                if extra is not None:
                    error[: len(by_squared)] += extra[number - 1]
            elif ctx.needs_input_grad[0]:
                by_input = error @ weights[0]
        return by_input, by_directions, None, None, *found


@dataclass
class _Pullback:
    """Directions carried back through the layers, from the embedding to the cells.

    Parameters
    ----------
    directions : (k, frames, latents)
    bound_slope : (frames, latents)
    bent, slopes : list of (frames, units)
        Inputs of the nonlinearities, and their slopes there.
    arriving, leaving : list of (k, frames, units)
        Products before and behind each slope; `leaving` has the one of the bound last.
    reached : (k, frames, cells)
        v_kᵀ J_f, or with many cells its product with the transposed first layer.
    by_gram : bool
        Which of the two it is.
    """

    directions: Tensor
    bound_slope: Tensor
    bent: list[Tensor]
    slopes: list[Tensor]
    arriving: list[Tensor]
    leaving: list[Tensor]
    reached: Tensor
    by_gram: bool

    @classmethod
    def of(
        cls, directions: Tensor, weights: Sequence[Tensor], bent: list[Tensor], slope: Tensor
    ) -> _Pullback:
        directions = directions.transpose(0, 1)
        frames = directions.shape[1]
        bent = [each[:frames] for each in bent]
        slopes = [torch.ops.aten.gelu_backward(torch.ones_like(each), each) for each in bent]
        bound_slope = slope[:frames]
        arriving: list[Tensor] = []
        leaving = [directions * bound_slope]
        for weight, slope in zip(reversed(weights[1:]), reversed(slopes), strict=True):
            arriving.insert(0, _times(leaving[0], weight))
            leaving.insert(0, arriving[0] * slope)
        first = weights[0]
        # with many cells the Gram matrix is cheaper: ‖V W‖² = tr(V (W Wᵀ) Vᵀ)
        rows = directions.shape[0] * frames
        by_gram = first.shape[1] > first.shape[0] and rows > first.shape[0]
        reached = _times(leaving[0], first @ first.t() if by_gram else first)
        return cls(directions, bound_slope, bent, slopes, arriving, leaving, reached, by_gram)

    def squared(self) -> Tensor:
        """Σ_k ‖v_kᵀ J_f‖² of each frame: (frames,)."""
        other = self.leaving[0] if self.by_gram else self.reached
        return (self.reached * other).sum((0, 2))

    def backward(
        self, by_squared: Tensor, weights: Sequence[Tensor]
    ) -> tuple[list[Tensor], list[Tensor | None], Tensor]:
        """Gradients by the inputs of the nonlinearities, the weights, and the last product."""
        first, *others = weights
        twice = 2 * by_squared[:, None]
        error = self.reached * twice
        by_weight: list[Tensor | None]
        if self.by_gram:
            by_weight = [_across(self.leaving[0], self.leaving[0] * twice) @ first]
        else:
            by_weight = [_across(self.leaving[0], error)]
            error = _times(error, first.t())
        by_bent = []
        for number, weight in enumerate(others):
            by_slope = (error * self.arriving[number]).sum(0)
            by_bent.append(by_slope.mul_(_gelu_bend(self.bent[number])))
            error *= self.slopes[number]
            by_weight.append(_across(self.leaving[number + 1], error))
            error = _times(error, weight.t())
        return by_bent, by_weight, error

    def by_directions(self, error: Tensor) -> Tensor:
        """Gradient by the directions as they were given: (frames, k, latents)."""
        return (error * self.bound_slope).transpose(0, 1)

    def by_bound_slope(self, error: Tensor) -> Tensor:
        """Gradient by the slope of the bound: (frames, latents)."""
        return (error * self.directions).sum(0)


def _times(products: Tensor, weight: Tensor) -> Tensor:
    """(k, frames, outputs) times (outputs, inputs), as one large product."""
    return (products.flatten(0, 1) @ weight).view(*products.shape[:2], -1)


def _across(a: Tensor, b: Tensor) -> Tensor:
    """Σ over k and frames of what a direction is at two places: (units, units)."""
    return a.flatten(0, 1).t() @ b.flatten(0, 1)


def _plus(already: Tensor | None, a: Tensor, b: Tensor) -> Tensor:
    """A product, added to what is there already."""
    return a @ b if already is None else torch.addmm(already, a, b, out=already)


def _gelu_bend(x: Tensor) -> Tensor:
    """Second derivative of GELU."""
    square = x * x
    return torch.exp(-0.5 * square).mul_(2 - square).mul_(1 / math.sqrt(2 * math.pi))


class FrameEncoder(Encoder):
    """One frame at a time: three hidden layers with GELU, a linear layer, a bound."""

    window = 1

    def __init__(
        self,
        n_cells: int,
        latents: int,
        hidden: tuple[int, ...],
        bound: float,
        clips: bool = False,
    ) -> None:
        super().__init__(latents, bound, clips)
        self.n_cells, self.width = n_cells, max(hidden)
        sizes = [n_cells, *hidden, latents]
        self.layers = nn.ModuleList(
            nn.Linear(inputs, outputs) for inputs, outputs in pairwise(sizes)
        )

    @property
    def weights(self) -> list[Tensor]:
        """Weight matrices, from the cells on: (outputs, inputs) each."""
        return [cast(nn.Linear, layer).weight for layer in self.layers]

    @property
    def _first_two(self) -> tuple[Tensor, Tensor]:
        return self.weights[0], self.weights[1]

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
        whole = FrameEncoder(self.n_cells, self.latents, widths, self.bound, self.clips)
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
        return self._trace_from(self.layers[0](x))

    def _trace_from(self, x: Tensor) -> tuple[Tensor, Activations]:
        """See `trace`, from the input of the first nonlinearity on."""
        activations: Activations = [x]
        for layer in self.layers[1:]:
            x = layer(functional.gelu(x))
            activations.append(x)
        return self._bounded(x), activations

    def without(self, x: Tensor, groups: Sequence[np.ndarray]) -> Iterator[Tensor]:  # noqa: D102
        # what the first layer makes of all cells is computed once, and a group's part taken out
        whole, weight = self.layers[0](x), self.weights[0]
        for cells in groups:
            hidden = torch.as_tensor(cells, device=x.device)
            yield self._trace_from(whole - x[:, hidden] @ weight[:, hidden].t())[0]

    def embed(self, x: Tensor, directions: Tensor | None = None) -> tuple[Tensor, Tensor]:  # noqa: D102
        return _Perceptron.apply(x, directions, self.bound, self.clips, *self.parameters())

    def pullback(self, directions: Tensor, activations: Activations) -> Tensor:  # noqa: D102
        v = _times(directions * self._bound_slope(activations[-1])[:, None], self.weights[-1])
        *hidden, last = (gelu_slope(a) for a in activations[:-1])
        v = v * last[:, None]
        for weight, slope in zip(self.weights[-2:0:-1], reversed(hidden), strict=True):
            v = _times(v, weight) * slope[:, None]
        return _times(v, self.weights[0])

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


def _multiply(a: Tensor, b: Tensor, out: Tensor) -> Tensor:
    """Matrix product into given memory, without gradients.

    On the processor it is numpy's, whose library (OpenBLAS) takes four fifths of the time of
    torch's (MKL) for the shapes of an attribution, on an AMD EPYC.
    """
    if a.device.type == "cpu":
        np.matmul(a.numpy(), b.detach().numpy(), out=out.numpy())
        return out
    return torch.mm(a, b, out=out)
