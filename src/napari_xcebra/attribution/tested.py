"""p and q of every cell for every factor, as a value that is shown and saved without torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_xcebra.attribution.predictors import Predictors
from napari_xcebra.learn.parts import TIME
from napari_xcebra.recording import InputError, Recording

if TYPE_CHECKING:
    from napari_xcebra.learn.result import Fit

SHIFTS = 1000
"""Shifts in time to compare with, if not said otherwise."""


@dataclass(frozen=True, eq=False)
class Significance:
    """Which cells carry a factor by more than chance.

    Parameters
    ----------
    factors : tuple of str
    p_values, q_values : (factors, cells) float32
        NaN where a cell was not used or a factor not tested. q is p after Benjamini and Hochberg,
        over the cells of a factor: among the cells with q ≤ 0.1, a tenth is expected to be there
        by chance.
    shifts : int
        Shifts in time that the p-values come from.
    shortest : mapping of str to float
        Shortest shift of each factor that was tested, in seconds.
    impossible : mapping of str to str
        Of factors that cannot be tested, why, in a sentence.
    """

    factors: tuple[str, ...]
    p_values: np.ndarray
    q_values: np.ndarray
    shifts: int
    shortest: Mapping[str, float]
    impossible: Mapping[str, str] = field(default_factory=dict)

    def p(self, factor: str) -> np.ndarray:
        """(cells,) float32, NaN where not tested."""
        return self.p_values[self._row(factor)]

    def q(self, factor: str) -> np.ndarray:
        """(cells,) float32, NaN where not tested."""
        return self.q_values[self._row(factor)]

    def how(self, factor: str) -> str:
        """How it was computed, or why not, in a sentence."""
        if factor not in self.shortest:
            return self.impossible.get(factor, f"{factor} was not tested.")
        return (
            f"q (Benjamini–Hochberg over cells): what {factor} adds to everything else, compared "
            f"with {self.shifts} shifts of the traces by {self.shortest[factor]:.0f} s or more, "
            "which keep the time scale of traces and variables."
        )

    def in_short(self, factor: str) -> str:
        """How it was computed, in a line; empty if it was not."""
        if factor not in self.shortest:
            return ""
        least = f"{self.shortest[factor]:.0f} s or more"
        return f"Compared with {self.shifts} shifts of the traces by {least}."

    def fits(self, factors: tuple[str, ...], cell_ids: np.ndarray) -> bool:
        """Whether it is of so many cells, and of these factors."""
        return self.factors == factors and self.p_values.shape[1] == len(cell_ids)

    def _row(self, factor: str) -> int:
        if factor not in self.factors:
            known = ", ".join(self.factors)
            raise InputError(f"There is no factor {factor!r} here; there are: {known}.")
        return self.factors.index(factor)

    def as_dict(self) -> dict[str, Any]:
        """All but the arrays, as plain values for a file."""
        return {
            "factors": list(self.factors),
            "shifts": self.shifts,
            "shortest": dict(self.shortest),
            "impossible": dict(self.impossible),
        }

    @classmethod
    def from_dict(
        cls, about: Mapping[str, Any], p_values: np.ndarray, q_values: np.ndarray
    ) -> Significance:
        """From a file."""
        return cls(
            tuple(about["factors"]),
            p_values,
            q_values,
            about["shifts"],
            dict(about["shortest"]),
            dict(about.get("impossible", {})),
        )


def seconds_to_test(fit: Fit, recording: Recording) -> float:
    """About how long `significance` takes on one core, in seconds.

    Time goes by the product of frames, cells and columns of the factors, and hardly by the number
    of shifts. Measured on a virtual core of 2026; a busy machine takes several times as long.
    """
    widths = [
        span.stop - span.start for span in Predictors.of(recording, fit.parts).columns.values()
    ]
    latents = sum(part.stop - part.start for part in fit.parts if part.name == TIME)
    columns, factors = sum(widths) + 7 * latents, len(fit.parts)
    frames, cells = recording.n_frames, len(fit.inputs.cell_ids)
    comparing = 1.2e-9 * frames * np.log2(max(frames, 2)) * cells * columns
    predicting = 4e-9 * frames * (columns + 7 * latents * factors) ** 2
    return float(1 + comparing + predicting)
