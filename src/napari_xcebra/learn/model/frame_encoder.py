"""Encodes one frame at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from napari_xcebra.learn.model.encoder import (
    FIRST_LAYER,
    Activations,
    Encoder,
    gelu_slope,
)
from napari_xcebra.learn.model.perceptron import Perceptron, times


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
        return Perceptron.apply(x, directions, self.bound, self.clips, *self.parameters())

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


def _multiply(a: Tensor, b: Tensor, out: Tensor) -> Tensor:
    """Matrix product into given memory, without gradients.

    On the processor it is numpy's, whose library (OpenBLAS) takes four fifths of the time of
    torch's (MKL) for the shapes of an attribution, on an AMD EPYC.
    """
    if a.device.type == "cpu":
        np.matmul(a.numpy(), b.detach().numpy(), out=out.numpy())
        return out
    return torch.mm(a, b, out=out)
