"""Estimates the unobserved state of the animal from the time latents of the other cells.

A cell is among the inputs of the latents, so it is explained by latents computed without it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from napari_xcebra.attribution.stream import Stream
from napari_xcebra.learn.data.factors import TIME
from napari_xcebra.learn.device import limited_threads
from napari_xcebra.standardise import mean_and_spread

GROUPS = 8
"""Groups of cells, each explained by latents of the other cells."""
WIDEST = 4.0
"""Standard deviations beyond which a latent is clipped before it is squared."""


def time_latents(stream: Stream) -> slice:
    """Latents that no variable is tied to."""
    last = stream.fit.parts[-1]
    return last.latents if last.name == TIME else slice(0, 0)


def cell_groups(cells: int, latents: int, most: int = GROUPS) -> tuple[np.ndarray, ...]:
    """Interleaved groups of cells; one group if there are no latents."""
    count = min(most, cells) if latents else 1
    return tuple(np.arange(first, cells, count) for first in range(count))


def latents_without(
    stream: Stream,
    latents: slice,
    groups: Sequence[np.ndarray],
    moments: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Latents with each group of cells held at its mean, standardised.

    Parameters
    ----------
    latents : slice
        Dimensions of the embedding.
    moments : (2, groups, 1, latents) float32, optional
        Mean and spread to standardise by; those of these frames if not given.

    Returns
    -------
    (groups, frames, latents) float32
    (2, groups, 1, latents) float32
        Mean and spread.
    """
    found = np.empty((len(groups), len(stream.frames), latents.stop - latents.start), np.float32)
    if found.shape[2] == 0:
        return found, np.ones((2, len(groups), 1, 0), np.float32)
    done = 0
    with limited_threads(stream.fit.settings.threads), torch.no_grad():
        for x in stream.chunks(copies=1):
            embeddings = stream.encoder.without(x, groups)
            for rows, embedding in zip(found, embeddings, strict=True):
                rows[done : done + len(x)] = embedding[:, latents].cpu().numpy()
            done += len(x)
    if moments is None:
        moments = np.stack(mean_and_spread(found, axis=1))
    # in place: copies of all frames may be large
    found -= moments[0]
    found /= moments[1]
    return found, moments


def state_columns(latents: np.ndarray) -> np.ndarray:
    """Each latent, and its square for cells that prefer mid-range: (frames, 2 latents)."""
    cut = np.clip(latents, -WIDEST, WIDEST)
    return np.hstack([cut, (np.square(cut) - 1) / 2]).astype(np.float32)


def state_slopes(latents: np.ndarray) -> np.ndarray:
    """Change of these columns along each latent: (latents, frames, 2 latents)."""
    count = latents.shape[1]
    slopes = np.zeros((count, len(latents), 2 * count), np.float32)
    for i in range(count):
        slopes[i, :, i] = 1
        slopes[i, :, count + i] = np.clip(latents[:, i], -WIDEST, WIDEST)
    return slopes
