"""The encoder of single frames and its Jacobian penalty, with their gradients written out.

Autograd would take each layer's nonlinearity, slope and gradient for operations of their own, keep
what all of them made, and fill with zeros what the penalty, taken over some of the frames, has no
part in. Written out, little is left but the products of the layers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional


class Perceptron(torch.autograd.Function):
    """Embedding of every frame, and Σ_k ‖v_kᵀ J_f‖² at the first of them.

    ``Perceptron.apply(x, directions, bound, clips, *parameters)``:

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
    def forward(  # noqa: D102
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
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:  # noqa: D102
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
            arriving.insert(0, times(leaving[0], weight))
            leaving.insert(0, arriving[0] * slope)
        first = weights[0]
        # with many cells the Gram matrix is cheaper: ‖V W‖² = tr(V (W Wᵀ) Vᵀ)
        rows = directions.shape[0] * frames
        by_gram = first.shape[1] > first.shape[0] and rows > first.shape[0]
        reached = times(leaving[0], first @ first.t() if by_gram else first)
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
            error = times(error, first.t())
        by_bent = []
        for number, weight in enumerate(others):
            by_slope = (error * self.arriving[number]).sum(0)
            by_bent.append(by_slope.mul_(_gelu_bend(self.bent[number])))
            error *= self.slopes[number]
            by_weight.append(_across(self.leaving[number + 1], error))
            error = times(error, weight.t())
        return by_bent, by_weight, error

    def by_directions(self, error: Tensor) -> Tensor:
        """Gradient by the directions as they were given: (frames, k, latents)."""
        return (error * self.bound_slope).transpose(0, 1)

    def by_bound_slope(self, error: Tensor) -> Tensor:
        """Gradient by the slope of the bound: (frames, latents)."""
        return (error * self.directions).sum(0)


def times(products: Tensor, weight: Tensor) -> Tensor:
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
