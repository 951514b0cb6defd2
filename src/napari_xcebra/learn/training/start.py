"""Sets up a run whose encoder begins as a regression, and is averaged with it in the end.

What an encoder learns beyond a regression is worth much where cells are tuned to places, and
little where few cells rise with a variable: there it fits noise. The mean of the two is better than
either (results/ordinary.md, "Averaging"). How much of each factor's latents is the regression is
found on frames that the encoder had not seen when λ was chosen. The mean is an encoder of the same
kind, with a pair of units more in every layer for each latent.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from napari_xcebra.errors import InputError
from napari_xcebra.learn.data.factors import TIME, Part
from napari_xcebra.learn.device import embedded, limited_threads
from napari_xcebra.learn.model import make_encoder
from napari_xcebra.learn.model.encoder import Encoder
from napari_xcebra.learn.model.frame_encoder import FrameEncoder
from napari_xcebra.learn.objective.ridge import Ridge, predict, regressed, thinned
from napari_xcebra.learn.settings import FitSettings

if TYPE_CHECKING:
    from napari_xcebra.learn.training.training import Training

TIMES, LEAST_STEPS = 20, 150
"""Passes over the training frames at most, and steps at least."""

SAMPLES_A_UNIT = 20
"""Independent samples for each hidden unit.

Imaged fields of 600 to 1,600 of them decode best with 32 to 80 units, the box model without noise
of 13,000 with 128 or more.
"""

ENOUGH = 800
"""Independent samples that suffice; with half as many, maps of simulated fields were half wrong."""


def independent_samples(frames: int, smoothing: float) -> int:
    """Number of independent frames that smoothed ones are worth.

    White noise smoothed by a Gaussian of σ frames (`smoothing`) stays correlated for 2√π σ frames.

    Examples
    --------
    >>> independent_samples(2000, 2.5), independent_samples(2000, 0.0)
    (225, 2000)
    """
    return int(frames / max(1.0, 2 * np.sqrt(np.pi) * smoothing))


def _steps_for(asked: int, frames: int, batch: int) -> int:
    """Steps to do: those requested, or fewer where they would only repeat the same frames.

    Measured (results/ordinary.md, "Length of training"): held-out decoding is best after about
    twenty passes; after a hundred, a fly's heading loses 0.03 of R².

    Examples
    --------
    >>> _steps_for(400, 2000, 512), _steps_for(400, 100_000, 512), _steps_for(50, 2000, 512)
    (150, 400, 50)
    """
    return min(asked, max(LEAST_STEPS, round(TIMES * frames / batch)))


def hidden_units(requested: int, latents: int, samples: int) -> int:
    """Units of the first hidden layers: as requested, else as many as the recording can fill.

    One unit for twenty independent samples of the training frames, from 48 up to 30 per latent.
    """
    if requested:
        return requested
    most = min(max(30 * latents, 64), 256)
    return min(max(samples // SAMPLES_A_UNIT, 48, 4 * latents), most)


def _widths_for(requested: int, latents: int, samples: int, window: int = 1) -> tuple[int, ...]:
    """Units of the hidden layers; the last of three has room for a pair a latent and some more."""
    hidden = hidden_units(requested, latents, samples)
    return (hidden, hidden, max(hidden // 3, 2 * latents + 4)) if window == 1 else (hidden,)


def note_on_length(frames: int, smoothing: float) -> str | None:
    """Warning for a short recording, in a sentence; None if it is long enough."""
    samples = independent_samples(frames, smoothing)
    if samples >= ENOUGH:
        return None
    return (
        f"This recording is short (its training frames amount to about {samples} independent "
        f"samples): with fewer than {ENOUGH:,}, |J| and J⁺ picked the wrong cells in simulated "
        "recordings, even where the verdict was right; keep to what both routes agree on, and to "
        "the interval of each score."
    )


LEAST_BATCH = 16
"""Frames a step, at least, however short a recording is."""

LEAST_PENALTY = 0.01
"""Least penalty of the regression that an encoder begins as.

Without noise the best regression weighs cells against each other finely; as soon as one of them is
hidden, or λ pulls at the weights, it is worse than nothing (box model of 3,000 frames: R² 0.30
instead of 0.88).
"""

HIDDEN_FROM = 4.0
"""Cells are hidden in full where a regression misses a quarter of a variable or more.

Without noise every cell counts: on the box model, where a regression has R² 0.97, hiding half of
the cells costs 0.03 of it, and J⁺ falls from 1.00 to 0.90.
"""

FRAMES = 4000
"""Frames at most on which a regression is turned to the latents."""

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


PUBLISHED_UNITS = 30
"""Units for each latent in the first two layers of the published network, a third in the third."""


def scaled(settings: FitSettings, references: int) -> FitSettings:
    """Settings with no larger batch, and no more steps, than these training frames support."""
    batch = min(settings.batch_size, max(references // 2, LEAST_BATCH))
    steps = settings.steps
    if settings.stop_when_settled:
        steps = _steps_for(steps, references, batch)
    return replace(settings, batch_size=batch, steps=steps)


def check_latents(latents: int, cells: int) -> None:
    """Raise if an embedding has more latents than there are cells."""
    if latents > cells:
        raise InputError(
            f"The embedding has {latents} latents but only {cells} cells are in use: at most "
            "as many latents as cells are possible; lower `time_latents` or name fewer factors."
        )


def new_encoder(training: Training) -> Encoder:
    """Encoder to train; its initial weights depend on the seed alone."""
    settings, latents = training.settings, training.parts[-1].stop
    cells = len(training.inputs.cell_ids)
    check_latents(latents, cells)
    samples = independent_samples(len(training.split.training.anchors), training.inputs.smoothing)
    published = settings.network == "published"
    requested = settings.hidden_units or (PUBLISHED_UNITS * latents if published else 0)
    widths = training.widths or _widths_for(requested, latents, samples, settings.window)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        encoder = make_encoder(
            cells,
            latents,
            widths,
            bound=settings.bound,
            window=settings.window,
            kernels=training.kernels,
            clips=published,
        )
    if not published:
        encoder.start_small()
    return encoder


def start_as_regression(training: Training, encoder: Encoder) -> tuple[dict[str, Ridge], float]:
    """Let every factor begin as the ridge regression of its labels, where there is room.

    InfoNCE has optima in which a label is folded over, and the penalty, once it comes, may hold a
    latent at nothing; an encoder that begins at the labels starts out of their reach.

    Returns
    -------
    regressions : dict of str to Ridge
        By factor; empty where an encoder begins at random.
    hide : float
        Largest share of the cells to hide: less where a regression tells the variables nearly
        perfectly.
    """
    settings = training.settings
    contrastive = settings.mode in ("hybrid", "behavior")
    if not (settings.readout and contrastive and isinstance(encoder, FrameEncoder)):
        return {}, settings.hide
    latents: list[int] = []
    regressions, starts = {}, []
    with limited_threads(settings.threads):
        for part in training.parts:
            if part.name == TIME:
                continue
            labels = training.labels[part.name]
            wanted = labels.coordinates()[:, : part.stop - part.start]
            latents += range(part.start, part.start + wanted.shape[1])
            aside = training.yardstick.aside(labels)
            rest = aside.best(wanted, LEAST_PENALTY)
            whole = regressions[part.name] = aside.whole(wanted, rest)
            # the encoder must not know the frames set aside to choose λ from the start
            starts.append(rest if settings.lambda_ == "auto" else whole)
    worst = np.nan_to_num(min(each.r2 for each in starts))
    weights = np.hstack([each.weights for each in starts]).T
    bias = np.concatenate([each.mean - each.origin @ each.weights for each in starts])
    if 2 * len(latents) <= min(w.shape[0] for w in encoder.weights[:-1]):
        encoder.start_linear(
            latents,
            torch.as_tensor(weights, dtype=torch.float32),
            torch.as_tensor(bias, dtype=torch.float32),
        )
    return regressions, settings.hide * min(1.0, HIDDEN_FROM * (1 - worst))


@torch.no_grad()
def share_of(training: Training, part: Part) -> float:
    """Share of the encoder in the best mean of it and a regression, on frames set aside.

    Call it while the frames set aside are not yet trained on.
    """
    labels = training.labels[part.name]
    aside = training.yardstick.aside(labels)
    if not aside.enough:
        return 1.0
    regression, tried = aside.best(labels.coordinates()), aside.tried
    wanted, read = labels.coordinates()[tried], predict(regression, training.rows, tried)
    latents = embedded(training.encoder, training.data, tried)[tried][:, part.latents]
    told = regressed(latents.astype(np.float64), wanted, FAINT)(latents)
    missed = np.array(
        [np.square(wanted - share * told - (1 - share) * read).sum() for share in GRID]
    )
    if regression.r2 > NEARLY_ALL and missed[-1] < TWICE * missed[0]:
        return 1.0
    total = np.square(wanted - wanted.mean(0)).sum()
    return float(GRID[missed <= missed.min() + IN_DOUBT * total].min())


def average(training: Training) -> None:
    """Replace the encoder by its mean with the regressions, if frames set aside prefer that."""
    search = training.search
    if search is not None and search.over and search.shares:
        training.encoder = _averaged(training, training.regressions, search.shares)


@torch.no_grad()
def _averaged(
    training: Training, regressions: dict[str, Ridge], shares: dict[str, float]
) -> FrameEncoder:
    """The mean of an encoder and regressions, by the share of the encoder in each factor."""
    encoder = training.encoder
    assert isinstance(encoder, FrameEncoder)
    frames = thinned(training.split.training.anchors, FRAMES)
    latents = embedded(encoder, training.data, frames)[frames].astype(np.float64)
    rows: list[int] = []
    weights, bias, kept = [], [], torch.ones(encoder.latents)
    for part in training.parts:
        if part.name == TIME or shares.get(part.name, 1.0) == 1:
            continue
        regression, share = regressions[part.name], shares[part.name]
        own = latents[:, part.latents]
        # the regression in the units and the orientation that the latents have now
        turned = regressed(predict(regression, training.rows, frames), own, FAINT)
        slopes = regression.weights @ turned.weights
        at_zero = turned(regression(np.zeros((1, len(regression.origin)))))[0]
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
