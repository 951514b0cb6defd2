"""The encoder averaged with the regression that it began as, where frames set aside ask for it.

What an encoder learns beyond a regression is worth much where cells are tuned to places, and
little where few cells rise with a variable: there it fits noise. The mean of the two is better than
either (benchmarks/RESULTS.md, "Averaging"). How much of each factor's latents is the regression is
found on frames that the encoder had not seen when λ was chosen. The mean is an encoder of the same
kind, with a pair of units more in every layer for each latent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from napari_xcebra.learn.encoder import FrameEncoder
from napari_xcebra.learn.parts import TIME, Part
from napari_xcebra.learn.ridge import Ridge, fitted, regressed, thinned

if TYPE_CHECKING:
    from napari_xcebra.learn.training import Training

FRAMES = 4000
"""Frames at most on which two predictions are compared."""

GRID = np.linspace(0, 1, 21)
"""Shares of the encoder that are tried."""

FAINT = 1e-4
"""Penalty of regressions on a few latents."""

IN_DOUBT = 0.005
"""R² that more of the encoder must add: it goes on learning, and with it what is noise."""

NEARLY_ALL, TWICE = 0.9, 2.0
"""R² of a regression beyond which there is no noise to be averaged out, unless the encoder, not yet
trained to its end, misses more than twice as much.

There the Jacobian of the encoder is what the map is made from: on the box model, with a quarter of
the regression, J⁺ falls from 0.99 to 0.84.
"""


@torch.no_grad()
def share_of(training: Training, part: Part) -> float:
    """Share of the encoder in the best mean of it and a regression, on frames set aside.

    To be asked while the frames set aside are not yet trained on.
    """
    labels = training.labels[part.name]
    rest, aside, _ = training.split.set_aside()
    made, tried = (thinned(f.anchors[labels.known[f.anchors]], FRAMES) for f in (rest, aside))
    if len(made) < 2 or len(tried) < 2:
        return 1.0
    wanted = labels.coordinates()
    x = training.rows(tried)
    regression = fitted(training.rows(made), wanted[made], (x, wanted[tried]))
    latents = training.encoder(training.data[tried])[:, part.latents].cpu().numpy()
    told = regressed(latents.astype(np.float64), wanted[tried], FAINT)(latents)
    missed = np.array(
        [
            np.square(wanted[tried] - share * told - (1 - share) * regression(x)).sum()
            for share in GRID
        ]
    )
    if regression.r2 > NEARLY_ALL and missed[-1] < TWICE * missed[0]:
        return 1.0
    total = np.square(wanted[tried] - wanted[tried].mean(0)).sum()
    return float(GRID[missed <= missed.min() + IN_DOUBT * total].min())


@torch.no_grad()
def averaged(
    training: Training, regressions: dict[str, Ridge], shares: dict[str, float]
) -> FrameEncoder:
    """The mean of an encoder and regressions, by the share of the encoder in each factor."""
    encoder = training.encoder
    assert isinstance(encoder, FrameEncoder)
    frames = thinned(training.split.training.anchors, FRAMES)
    x, latents = training.rows(frames), encoder(training.data[frames]).cpu().numpy()
    rows: list[int] = []
    weights, bias, kept = [], [], torch.ones(encoder.latents)
    for part in training.parts:
        if part.name == TIME or shares.get(part.name, 1.0) == 1:
            continue
        regression, share = regressions[part.name], shares[part.name]
        own = latents[:, part.latents].astype(np.float64)
        # the regression in the units and the orientation that the latents have now
        turned = regressed(regression(x), own, FAINT)
        slopes = regression.weights @ turned.weights
        at_zero = turned(regression(np.zeros((1, x.shape[1]))))[0]
        rows += range(part.start, part.stop)
        weights.append((1 - share) * slopes.T)
        bias.append((1 - share) * at_zero)
        kept[part.latents] = share
    if not rows:
        return encoder
    return encoder.plus_linear(
        kept,
        rows,
        torch.as_tensor(np.concatenate(weights), dtype=torch.float32),
        torch.as_tensor(np.concatenate(bias), dtype=torch.float32),
    )
