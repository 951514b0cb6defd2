"""Reports where a training run stands, and estimates how long it takes; imports no torch."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING, Literal

from napari_xcebra.learn.settings import FitSettings

if TYPE_CHECKING:
    from napari_xcebra.learn.result import Fit

Phase = Literal["preparing", "settling", "raising λ", "holding", "measuring"]


@dataclass(frozen=True)
class Progress:
    """Progress of a training run.

    Parameters
    ----------
    step, steps : int
        Done, and in all.
    phase : {"preparing", "settling", "raising λ", "holding", "measuring"}
        The first and the last are reported of large recordings, where they take long.
    loss : dict of str to float
        Mean over the steps since the last report: InfoNCE of each part in nats, or the mean
        squared error in supervised mode; empty where there was no step.
    penalty : float
        ‖J_f‖²_F; NaN while λ is 0.
    lambda_ : float
    seconds : float
        Since the run began or was resumed.
    """

    step: int
    steps: int
    phase: Phase
    loss: dict[str, float]
    penalty: float
    lambda_: float
    seconds: float


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
