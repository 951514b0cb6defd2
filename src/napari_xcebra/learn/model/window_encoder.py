"""Encodes several frames at once, by temporal convolutions."""

from __future__ import annotations

from typing import cast

from torch import Tensor, nn
from torch.nn import functional

from napari_xcebra.learn.model.convolution import convolve, spread, spread_squared
from napari_xcebra.learn.model.encoder import Activations, Encoder, gelu_slope


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
