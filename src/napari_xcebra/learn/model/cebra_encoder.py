"""Encoders of the `cebra` package (0.6.1): its architectures, with layers under its own names.

Weights that it saved fit as they are. Dropout is left out, as these encoders are not trained here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from napari_xcebra.errors import InputError
from napari_xcebra.learn.model.encoder import Activations, Encoder

CLIPS = (1000, 100, 50, 25, 20, 15, 10, 5, 1)
"""Bounds that `cebra` has models with a clip for."""
_LAYERS = tuple(range(1, 11))
_CLIPPED = re.compile(r"offset1-model-mse-clip-(\d+)-(\d+)")
_DEEP = re.compile(r"offset1-model-mse-(v2|resnet)-(\d+)layers(-tanh)?")
_WINDOWED = {
    "offset5-model": (1, 2),
    "offset10-model": (3, 3),
    "offset10-model-mse": (3, 3),
    "offset10-model-mse-tanh": (3, 3),
    "offset15-model": (6, 2),
    "offset20-model": (8, 3),
    "offset36-model": (16, 3),
    "offset36-model-dropout": (16, 3),
    "offset36-model-more-dropout": (16, 3),
    "offset40-model": (18, 3),
    "offset50-model": (23, 3),
    "supervised10-model": (3, 3),
}
"""Skip connections of models with a window, and the kernel of their last layer."""
_SUBSAMPLED = {
    "offset4-model-2x-subsample": 4,
    "offset20-model-4x-subsample": 20,
    "offset40-model-4x-subsample": 40,
    "resample1-model": 4,
    "resample5-model": 20,
    "resample-model": 40,
}
"""Windows of models that sample more coarsely in time; the last three under their old names."""
ARCHITECTURES = (
    "offset1-model",
    *(f"offset1-model-v{version}" for version in range(2, 6)),
    "offset1-model-mse",
    "offset1-model-mse-tanh",
    *(f"offset1-model-mse-clip-{low}-{high}" for low in CLIPS for high in CLIPS),
    *(
        f"offset1-model-mse-{kind}-{layers}layers{tanh}"
        for kind in ("v2", "resnet")
        for layers in _LAYERS
        for tanh in ("", "-tanh")
    ),
    "supervised1-model",
    *_WINDOWED,
    *_SUBSAMPLED,
)
"""Names of the models that take cells × frames, as `cebra.models.get_options` lists them."""


class CebraEncoder(Encoder):
    """A model of `cebra`, behind what undoes the standardisation of the inputs.

    Parameters
    ----------
    architecture : str
        One of `ARCHITECTURES`.
    n_cells, units, latents : int
        `units` are `num_hidden_units` there.
    """

    mean: Tensor
    spread: Tensor
    order: Tensor

    def __init__(self, architecture: str, n_cells: int, units: int, latents: int) -> None:
        super().__init__(latents, _bound_of(architecture))
        self.architecture, self.n_cells = architecture, n_cells
        self.window = window_of(architecture)
        self.net: nn.Module = nn.Sequential(*_layers_of(architecture, n_cells, units, latents))
        self.register_buffer("mean", torch.zeros(n_cells))
        self.register_buffer("spread", torch.ones(n_cells))
        self.register_buffer("order", torch.arange(latents))
        self.width = max((len(p) for p in self.net.parameters()), default=1)

    @classmethod
    def like(cls, architecture: str, weights: Mapping[str, np.ndarray]) -> CebraEncoder:
        """Encoder that these weights, by name, are of."""
        units = len(in_order(weights)[0])
        return cls(architecture, len(weights["mean"]), units, len(weights["order"]))

    def trace(self, x: Tensor) -> tuple[Tensor, Activations]:  # noqa: D102
        shape = (-1,) if x.ndim == 2 else (-1, 1)
        raw = x * self.spread.view(shape) + self.mean.view(shape)
        return self.net(raw)[:, self.order], [x]

    def pullback(self, directions: Tensor, activations: Activations) -> Tensor:  # noqa: D102
        with torch.enable_grad():
            x = activations[0].detach().requires_grad_()
            embedding = self(x)
        products = [
            torch.autograd.grad(embedding, x, v, retain_graph=True)[0] for v in directions.unbind(1)
        ]
        return torch.stack(products, 1)


def in_order(weights: Mapping[str, np.ndarray], kind: str = "weight") -> list[np.ndarray]:
    """Weights, or biases, of the layers, from the cells on; files have them in any order."""
    named = [name for name in weights if name.startswith("net.") and name.endswith(kind)]
    return [weights[name] for name in sorted(named, key=lambda name: int(name.split(".")[1]))]


def window_of(architecture: str) -> int:
    """Frames that a model sees at once; the error lists the models there are."""
    if architecture in _WINDOWED:
        skips, last = _WINDOWED[architecture]
        return 1 + 2 * skips + last
    if architecture not in ARCHITECTURES:
        some = ", ".join(name for name in ARCHITECTURES if not re.search(r"\d-\d|layers", name))
        raise InputError(
            f"There is no architecture {architecture!r} in cebra 0.6.1 that takes cells and frames "
            f"alone; there are: {some}, and those with a clip or several layers."
        )
    return _SUBSAMPLED.get(architecture, 1)


def _bound_of(architecture: str) -> float:
    """Largest size of a latent; infinite if there is none."""
    if clipped := _CLIPPED.fullmatch(architecture):
        return float(max(map(int, clipped.groups())))
    return 1.0 if architecture.endswith("-tanh") else float("inf")


def _layers_of(architecture: str, cells: int, units: int, latents: int) -> list[nn.Module]:
    """Layers under the numbers that they have in `cebra`."""
    if architecture in _WINDOWED:
        layers = _with_window(architecture, cells, units, latents)
    elif architecture in _SUBSAMPLED:
        layers = _subsampled(_SUBSAMPLED[architecture], cells, units, latents)
    else:
        layers = [nn.Flatten(), *_of_frames(architecture, cells, units, latents)]
    if architecture.endswith("-tanh"):
        layers.append(nn.Tanh())
    if clipped := _CLIPPED.fullmatch(architecture):
        low, high = map(float, clipped.groups())
        return [*layers, nn.Hardtanh(-low, high)]
    supervised = architecture.startswith("supervised")
    if "-mse" not in architecture and not supervised:
        layers.append(_Norm())
    return [*layers, nn.Flatten(), *([nn.ReLU()] if supervised else [])]


def _with_window(architecture: str, cells: int, units: int, latents: int) -> list[nn.Module]:
    skips, last = _WINDOWED[architecture]
    # a layer without weights takes the number of the one that drops units in training
    dropped = [nn.Identity()] if architecture.endswith("dropout") else []
    inside = [nn.Identity()] if architecture.endswith("more-dropout") else []
    return [
        nn.Conv1d(cells, units, 2),
        *dropped,
        nn.GELU(),
        *(_Skip(*inside, nn.Conv1d(units, units, 3), nn.GELU(), crop=1) for _ in range(skips)),
        nn.Conv1d(units, latents, last),
    ]


def _subsampled(window: int, cells: int, units: int, latents: int) -> list[nn.Module]:
    first = _MeanAndConv(cells, units)
    if window == 4:
        return [first, nn.Flatten(), *_tapering(cells + units, units, latents)]
    skips, last = (3, 3) if window == 40 else (1, 2)
    return [
        first,
        nn.Conv1d(cells + units, units, 3, stride=2),
        nn.GELU(),
        *(_Skip(nn.Conv1d(units, units, 3), nn.GELU(), crop=1) for _ in range(skips)),
        nn.Conv1d(units, latents, last),
    ]


def _of_frames(architecture: str, cells: int, units: int, latents: int) -> list[nn.Module]:
    if deep := _DEEP.fullmatch(architecture):
        layer = _SkipLinear if deep[1] == "resnet" else nn.Linear
        # one layer several times: that is how it is made there
        same = [layer(units, units), nn.GELU()] * int(deep[2])
        first, last = layer(cells, units), layer(units, units // 2)
        return [first, nn.GELU(), *same, last, nn.GELU(), nn.Linear(units // 2, latents)]
    if "-mse" in architecture:
        return _dense(cells, 30 * latents, 30 * latents, 10 * latents, latents)
    inner: list[nn.Module] = []
    if architecture.endswith("-v2"):
        return _dense(cells, units, units, units, latents)
    if architecture.endswith(("-v3", "-v5")):
        for _ in range(2 if architecture.endswith("-v3") else 4):
            inner += [_Skip(nn.Linear(units, units)), nn.GELU()]
    elif architecture.endswith("-v4"):
        inner = [_Skip(nn.Linear(units, units), nn.GELU()) for _ in range(4)]
    else:
        return _tapering(cells, units, latents)
    return [nn.Linear(cells, units), nn.GELU(), *inner, nn.Linear(units, latents)]


def _tapering(inputs: int, units: int, latents: int) -> list[nn.Module]:
    return _dense(inputs, units, units, units // 2, latents)


def _dense(*widths: int) -> list[nn.Module]:
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.GELU()]
    return layers[:-1]


class _Skip(nn.Module):
    """Layers beside a connection past them, which leaves out frames at both ends."""

    def __init__(self, *layers: nn.Module, crop: int = 0) -> None:
        super().__init__()
        self.module, self.crop = nn.Sequential(*layers), crop

    def forward(self, x: Tensor) -> Tensor:
        past = x[..., self.crop : -self.crop] if self.crop else x
        return past + self.module(x)


class _SkipLinear(nn.Module):
    """A linear layer beside its inputs, cut or filled up with zeros."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.module = nn.Linear(inputs, outputs)
        self.more = outputs - inputs

    def forward(self, x: Tensor) -> Tensor:
        return functional.pad(x, (0, self.more)) + self.module(x)


class _MeanAndConv(nn.Module):
    """A convolution at every other frame, with these frames behind it."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.layer = nn.Conv1d(inputs, outputs, 4, stride=2)

    def forward(self, x: Tensor) -> Tensor:
        made = self.layer(x)
        return torch.cat([made, x[..., ::2][..., : made.shape[-1]]], dim=1)


class _Norm(nn.Module):
    """Brings an embedding to length 1."""

    def forward(self, x: Tensor) -> Tensor:
        return x / x.norm(dim=1, keepdim=True)
