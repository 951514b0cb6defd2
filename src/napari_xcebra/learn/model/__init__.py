"""Encoders of a frame and of a window: makes them, and tells from weights which they are of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from napari_xcebra.learn.model.encoder import Encoder
from napari_xcebra.learn.model.frame_encoder import FrameEncoder
from napari_xcebra.learn.model.window_encoder import WindowEncoder
from napari_xcebra.learn.settings import FitSettings


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
    clips: bool = False,
) -> Encoder:
    """Encoder for a window of that many frames; with kernels other than the default, if given."""
    if window == 1:
        return FrameEncoder(n_cells, latents, widths, bound, clips)
    return WindowEncoder(n_cells, latents, widths[0], bound, window, kernels, clips)


def encoder_like(
    weights: Mapping[str, Any], settings: FitSettings, architecture: str = ""
) -> Encoder:
    """Encoder that these weights, by name, are of; of `cebra` if an architecture is named."""
    if architecture:
        from napari_xcebra.learn.model.cebra_encoder import CebraEncoder

        return CebraEncoder.like(architecture, weights)
    window = "first.weight" in weights
    names = sorted(name for name in weights if name.endswith(".weight"))
    first, last = ("first.weight", "last.weight") if window else (names[0], names[-1])
    return make_encoder(
        weights[first].shape[1],
        weights[last].shape[0],
        widths_of(weights),
        bound=settings.bound,
        window=settings.window,
        kernels=kernels_of(weights),
        clips=settings.network == "published",
    )


def kernels_of(weights: Mapping[str, Any]) -> tuple[int, ...]:
    """Kernels of the encoder with a window that these weights, by name, are of; else none."""
    return tuple(weights[name].shape[2] for name in sorted(weights) if weights[name].ndim == 3)
