"""Encodes several frames at once, by temporal convolutions as products of large matrices.

Values are kept lag by lag, (lags, frames, units): a run of lags is then one matrix, whatever the
lag it begins at, and nothing has to be copied. With many cells this takes a fraction of the time
of `torch.nn.functional.conv1d`, which lays out every window anew.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from napari_xcebra.learn.model.encoder import Activations, Encoder, gelu_slope


def _convolve(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """y[l] = Σ_k W_k x[l + k] + b.

    Parameters
    ----------
    x : (lags, frames, inputs)
    weight : (outputs, inputs, kernel)
        As of `torch.nn.Conv1d`.
    bias : (outputs,)

    Returns
    -------
    (lags − kernel + 1, frames, outputs)
    """
    y = _Convolve.apply(x, weight)
    return y if bias is None else y + bias


def spread(v: Tensor, weight: Tensor) -> Tensor:
    """u[l] = Σ_k v[l − k] W_k, the transpose of `_convolve`.

    Parameters
    ----------
    v : (lags, rows, outputs)

    Returns
    -------
    (lags + kernel − 1, rows, inputs)
    """
    return _Spread.apply(v, weight)


def _spread_squared(v: Tensor, weight: Tensor) -> Tensor:
    """Σ over lags and inputs of `spread` squared, without it: (rows,).

    With many inputs, by their products W_j W_kᵀ.
    """
    lags, (outputs, inputs, kernel) = len(v), weight.shape
    by_lag = weight.permute(2, 0, 1).reshape(kernel * outputs, inputs)
    products = (by_lag @ by_lag.t()).view(kernel, outputs, kernel, outputs)
    total = v.new_zeros(v.shape[1])
    for apart in range(min(kernel, lags)):
        gram = torch.stack([products[k + apart, :, k] for k in range(kernel - apart)]).sum(0)
        one, other = v[: lags - apart], v[apart:]
        pairs = ((one.flatten(0, 1) @ gram).view_as(one) * other).sum((0, 2))
        total = total + (pairs if apart == 0 else 2 * pairs)
    return total


class _Convolve(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        by_lag = _by_lag(weight)
        ctx.save_for_backward(x, by_lag)
        return _convolved(x, by_lag)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor]:
        x, by_lag = ctx.saved_tensors
        by_x = _spread(gradients[0], by_lag) if ctx.needs_input_grad[0] else None
        return by_x, _across(x, gradients[0], len(by_lag))


class _Spread(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, v: Tensor, weight: Tensor) -> Tensor:
        by_lag = _by_lag(weight)
        ctx.save_for_backward(v, by_lag)
        return _spread(v, by_lag)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        v, by_lag = ctx.saved_tensors
        return _convolved(gradients[0], by_lag), _across(gradients[0], v, len(by_lag))


def _by_lag(weight: Tensor) -> Tensor:
    """(kernel, inputs, outputs), each lag a matrix of its own."""
    return weight.permute(2, 1, 0).contiguous()


def _convolved(x: Tensor, by_lag: Tensor) -> Tensor:
    lags = len(x) - len(by_lag) + 1
    y = x.new_empty(lags, x.shape[1], by_lag.shape[2])
    for lag, weight in enumerate(by_lag):
        _add_product(y, x[lag : lag + lags], weight, onto_nothing=lag == 0)
    return y


def _spread(v: Tensor, by_lag: Tensor) -> Tensor:
    u = v.new_zeros(len(v) + len(by_lag) - 1, v.shape[1], by_lag.shape[1])
    for lag, weight in enumerate(by_lag):
        _add_product(u[lag : lag + len(v)], v, weight.t())
    return u


def _across(x: Tensor, y: Tensor, kernel: int) -> Tensor:
    """Gradient by the weights: (outputs, inputs, kernel)."""
    flat = y.flatten(0, 1)
    products = [x[lag : lag + len(y)].flatten(0, 1).t() @ flat for lag in range(kernel)]
    return torch.stack(products).permute(2, 1, 0)


def _add_product(total: Tensor, a: Tensor, b: Tensor, onto_nothing: bool = False) -> None:
    flat = total.view(-1, total.shape[2])
    torch.addmm(flat, a.flatten(0, 1), b, beta=0.0 if onto_nothing else 1.0, out=flat)


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
        clips: bool = False,
    ) -> None:
        super().__init__(latents, bound, clips)
        self.n_cells, self.window = n_cells, window
        first, second, *others = kernels or (1, window, 1, 1)
        self.first = nn.Conv1d(n_cells, hidden, first)
        self.skips = nn.ModuleList(nn.Conv1d(hidden, hidden, k) for k in (second, *others))
        self.last = nn.Linear(hidden, latents)
        self.width = hidden

    @property
    def _first_two(self) -> tuple[Tensor, Tensor]:
        return self.first.weight, self._skips[0].weight

    def trace(self, x: Tensor) -> tuple[Tensor, Activations]:  # noqa: D102
        h = _convolve(_lags_first(x), self.first.weight, self.first.bias)
        activations = [_lags_last(h)]
        h = functional.gelu(h)
        for layer in self._skips:
            bent = _convolve(h, layer.weight, layer.bias)
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
        squared = _spread_squared(self._pullback_to_first_layer(directions, some), weight)
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
