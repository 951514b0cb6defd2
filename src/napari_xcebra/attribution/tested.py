"""p and q of every cell for every factor, as a value that is shown and saved without torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_xcebra.attribution.encoding.predictors import Predictors
from napari_xcebra.learn.parts import TIME
from napari_xcebra.recording import InputError, Recording

if TYPE_CHECKING:
    from napari_xcebra.learn.result import Fit

SHIFTS = 100
"""Other labels to compare with, if not said otherwise."""


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
    q_beside_variables : (factors, cells) float32 or None
        q beside the other variables alone. `q_values` are beside the unobserved state as well:
        where only these are low, variable and state cannot be told apart.
    shifts : int
        Other labels that the p-values come from, at most.
    shortest : mapping of str to float
        Shortest shift of each factor that was tested, or stretch that was moved, in seconds.
    reordered : tuple of str
        Factors whose label comes back again and again: stretches were put in another order.
    different : mapping of str to float
        Truly different labels among those, counted by how long the label remembers itself.
    impossible : mapping of str to str
        Of factors that cannot be tested, why, in a sentence.
    """

    factors: tuple[str, ...]
    p_values: np.ndarray
    q_values: np.ndarray
    shifts: int
    shortest: Mapping[str, float]
    impossible: Mapping[str, str] = field(default_factory=dict)
    reordered: tuple[str, ...] = ()
    different: Mapping[str, float] = field(default_factory=dict)
    q_beside_variables: np.ndarray | None = None

    def p(self, factor: str) -> np.ndarray:
        """(cells,) float32, NaN where not tested."""
        return self.p_values[self._row(factor)]

    def q(self, factor: str) -> np.ndarray:
        """(cells,) float32, NaN where not tested."""
        return self.q_values[self._row(factor)]

    def beside_variables(self, factor: str) -> np.ndarray | None:
        """(cells,) float32, q beside the other variables alone; None in earlier files."""
        found = self.q_beside_variables
        return None if found is None else found[self._row(factor)]

    def how(self, factor: str) -> str:
        """How it was computed, or why not, in a sentence."""
        if factor not in self.shortest:
            return self.impossible.get(factor, f"{factor} was not tested.")
        count = self.different.get(factor)
        truly = f", about {count:.0f} of them truly different" if count is not None else ""
        return (
            f"q (Benjamini–Hochberg over cells): what {factor} adds to everything else, compared "
            f"with {self.shifts} other labels{truly}: {self._made(factor)}, which keeps the time "
            "scale of traces and variables."
        )

    def in_short(self, factor: str) -> str:
        """How it was computed, in a line; empty if it was not."""
        if factor not in self.shortest:
            return ""
        return f"Compared with {self.shifts} other labels: {self._made(factor)}."

    def _made(self, factor: str) -> str:
        seconds = f"{self.shortest[factor]:.2g} s or more"
        if factor in self.reordered:
            return f"its own in stretches of {seconds}, in another order"
        return f"its own shifted by {seconds}"

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
            "reordered": list(self.reordered),
            "different": dict(self.different),
        }

    @classmethod
    def from_dict(
        cls,
        about: Mapping[str, Any],
        p_values: np.ndarray,
        q_values: np.ndarray,
        q_beside_variables: np.ndarray | None = None,
    ) -> Significance:
        """From a file."""
        return cls(
            tuple(about["factors"]),
            p_values,
            q_values,
            about["shifts"],
            dict(about["shortest"]),
            dict(about.get("impossible", {})),
            tuple(about.get("reordered", ())),
            dict(about.get("different", {})),
            q_beside_variables,
        )


def seconds_to_test(fit: Fit, recording: Recording) -> float:
    """About how long `significance` takes on one core, in seconds.

    Time goes by the product of bins, cells and columns of the factors. Measured on a virtual core
    of 2026; a busy machine takes several times as long.
    """
    widths = [len(own) for own in Predictors.of(recording, fit.parts, 0.0).columns.values()]
    latents = sum(part.stop - part.start for part in fit.parts if part.name == TIME)
    frames, cells = recording.n_frames, len(fit.inputs.cell_ids)
    compared = sum(min(width, 24) for width in widths) * (2 if latents else 1)
    comparing = 1e-10 * SHIFTS * 3 * min(frames, 4000) * cells * compared
    predicting = 1e-8 * frames * (sum(widths) + cells) * 10
    return float(1 + comparing + predicting)
