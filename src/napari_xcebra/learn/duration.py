"""About how long training takes, to be said before it starts."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING

from napari_xcebra.learn.settings import FitSettings

if TYPE_CHECKING:
    from napari_xcebra.learn.result import Fit


def seconds_to_fit(
    settings: FitSettings, cells: int, latents: int, like: Fit | None = None
) -> float:
    """About how long `fit` takes, in seconds.

    Time goes by steps, batch, latents and cells, and hardly by frames. Measured on a virtual core
    of 2026 with one thread; a busy machine takes several times as long, and a GPU less.

    Parameters
    ----------
    settings : FitSettings
    cells, latents : int
    like : Fit, optional
        One that was timed on this machine, to go by.
    """
    step = 1e-3 * (2.5 * latents + 0.018 * cells) * settings.batch_size / 512 * settings.window
    seconds = 1 + settings.steps * step
    if like is None or isnan(like.seconds):
        return seconds
    usual = seconds_to_fit(like.settings, len(like.inputs.cell_ids), like.parts[-1].stop)
    return seconds * like.seconds / usual
