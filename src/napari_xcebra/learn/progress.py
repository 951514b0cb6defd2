"""Where a training run stands, as it reports it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Phase = Literal["settling", "raising λ", "holding"]


@dataclass(frozen=True)
class Progress:
    """Where a training run stands.

    Parameters
    ----------
    step, steps : int
        Done, and in all.
    phase : {"settling", "raising λ", "holding"}
    loss : dict of str to float
        Mean over the steps since the last report: InfoNCE of each part in nats, or the mean
        squared error in supervised mode.
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
