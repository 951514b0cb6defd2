"""Computes attribution by captum's methods, for comparison.

Inputs are standardised, so a baseline of zeros is every cell at its mean. Each method passes
through the encoder many times a frame: a tenth of the frames is usually enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from captum.attr import FeatureAblation, GradientShap, IntegratedGradients
from torch import Tensor

from napari_xcebra.attribution.stream import Stream

PATH_STEPS = 20
"""Points on the path from the baseline to the input; with 50 the scores differ by 1e-7."""
SHAPLEY_SAMPLES = 5
"""Random points on that path a frame, for Shapley values; frames average out the rest."""
SHUFFLED_FRAMES = 512
"""Frames of the recording that serve as shuffled baselines."""


def integrated_gradients(stream: Stream) -> Iterator[Tensor]:
    """Gradient along the straight path from the mean trace to the input, times the input."""
    method = IntegratedGradients(stream.encoder)
    for x, latent in _for_each_latent(stream, PATH_STEPS):
        yield _by_frame(method.attribute(x, target=latent, n_steps=PATH_STEPS), stream)


def feature_ablation(stream: Stream) -> Iterator[Tensor]:
    """Change of a latent when one cell, with all its lags, is set to its mean."""
    method = FeatureAblation(stream.encoder)
    cells = torch.arange(stream.encoder.n_cells, device=stream.device)
    mask = cells[None] if stream.encoder.window == 1 else cells[None, :, None]
    for x, latent in _for_each_latent(stream, 4):
        mask_of_x = mask.expand(1, *x.shape[1:])
        yield _by_frame(method.attribute(x, target=latent, feature_mask=mask_of_x), stream)


def shapley_zeros(stream: Stream) -> Iterator[Tensor]:
    """Shapley values (captum's GradientShap) against every cell at its mean."""
    first = next(stream.chunks())[:1]
    return _shapley(stream, torch.zeros_like(first))


def shapley_shuffled(stream: Stream) -> Iterator[Tensor]:
    """Shapley values (captum's GradientShap) against other frames, drawn at random."""
    return _shapley(stream, stream.drawn(SHUFFLED_FRAMES))


def _shapley(stream: Stream, baselines: Tensor) -> Iterator[Tensor]:
    method = GradientShap(stream.encoder)
    for number, (x, latent) in enumerate(_for_each_latent(stream, SHAPLEY_SAMPLES)):
        with _seeded(stream.seed + number, stream.device):
            local = method.attribute(x, baselines, target=latent, n_samples=SHAPLEY_SAMPLES)
        yield _by_frame(local, stream)


def _for_each_latent(stream: Stream, copies: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Inputs repeated for every latent, and the latent each copy is for.

    Yields
    ------
    (frames × latents, cells[, window]), (frames × latents,)
    """
    latents = stream.encoder.latents
    for x in stream.chunks(4 * copies):
        repeated = x.repeat_interleave(latents, 0).requires_grad_()
        yield repeated, torch.arange(latents, device=x.device).repeat(len(x))


def _by_frame(local: Tensor, stream: Stream) -> Tensor:
    return local.detach().unflatten(0, (-1, stream.encoder.latents))


@contextmanager
def _seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Seed the global generators that captum draws from, and restore them after."""
    state = np.random.get_state()  # noqa: NPY002
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        np.random.seed(seed % 2**32)  # noqa: NPY002
        try:
            yield
        finally:
            np.random.set_state(state)  # noqa: NPY002
