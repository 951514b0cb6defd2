"""Holds p and q of every cell for every factor; shown and saved without torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_xcebra.attribution.encoding.predictors import Predictors
from napari_xcebra.attribution.tables import check_factor
from napari_xcebra.learn.data.factors import TIME
from napari_xcebra.learn.quality.verdict import Null
from napari_xcebra.recording import Recording
from napari_xcebra.text import listed

if TYPE_CHECKING:
    from napari_xcebra.learn.result import Fit

SHIFTS = 100
"""Labels to compare with, by default."""
LEVEL = 0.1
"""A cell with q up to this is said to carry the factor: a tenth of such cells is by chance."""


@dataclass(frozen=True, eq=False)
class Significance:
    """p and q of every cell for every factor.

    Parameters
    ----------
    factors : tuple of str
    p_values, q_values : (factors, cells) float32
        NaN where a cell was not used or a factor not tested. q is p after Benjamini and Hochberg,
        over the cells of a factor: among the cells with q ≤ 0.1, a tenth is expected by chance.
    q_beside_variables : (factors, cells) float32 or None
        q beside the other variables alone. `q_values` are beside the unobserved state as well:
        where only these are low, variable and state cannot be told apart.
    shifts : int
        Other labels that the p-values come from, at most.
    shortest : mapping of str to float
        For each tested factor, the shortest shift or reordered stretch, in seconds.
    reordered : tuple of str
        Factors whose label recurs: stretches were reordered.
    different : mapping of str to float
        Truly different labels among those, by the correlation time of the label.
    impossible : mapping of str to str
        For factors that cannot be tested, a sentence on why.
    nulls : mapping of str to {"shifted", "reordered", "permuted", "turned"}
        What each tested factor was compared with, as `Goodness.null`; empty in earlier files.
    within, confounded : mapping of str to tuple of str
        Factors within whose conditions trials were permuted, and factors whose conditions could
        not be kept, or that tell nearly all of it, as `Goodness` has them.
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
    nulls: Mapping[str, Null] = field(default_factory=dict)
    within: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    confounded: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

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
        """A sentence on how it was computed, or why not."""
        if factor not in self.shortest:
            return self.impossible.get(factor, f"{factor} was not tested.")
        count = self.different.get(factor)
        truly = f", about {count:.0f} of them truly different" if count is not None else ""
        compared = (
            f"q (Benjamini–Hochberg over cells): what {factor} adds to everything else, compared "
            f"with {self.shifts} other labels{truly}: {self._made(factor)}"
        )
        if self.confounded.get(factor):
            others = listed(self.confounded[factor])
            if self.nulls.get(factor) not in ("permuted", "turned"):
                return (
                    f"{compared}. It goes with {others} so closely that hardly anything is left to "
                    "test: train without one of them, and take the cells for those of either."
                )
            return f"{compared}. It goes with {others} in nearly every trial: it may be that."
        if self.nulls.get(factor) in ("permuted", "turned"):
            return f"{compared}, which keeps what all trials share."
        return f"{compared}, which keeps the time scale of traces and variables."

    def in_short(self, factor: str) -> str:
        """A line on how it was computed; empty if it was not."""
        if factor not in self.shortest:
            return ""
        return f"Compared with {self.shifts} other labels: {self._made(factor)}."

    def _made(self, factor: str) -> str:
        seconds = f"{self.shortest[factor]:.2g} s or more"
        if self.nulls.get(factor) == "permuted":
            within = self.within.get(factor)
            return f"its values permuted over trials{f' within {listed(within)}' if within else ''}"
        if self.nulls.get(factor) == "turned":
            return "the sequence of its values shifted over trials"
        if factor in self.reordered:
            return f"its own values in stretches of {seconds}, in another order"
        return f"its own values shifted in time by {seconds}"

    def fits(self, factors: tuple[str, ...], cell_ids: np.ndarray) -> bool:
        """Whether it has these factors and as many cells."""
        return self.factors == factors and self.p_values.shape[1] == len(cell_ids)

    def _row(self, factor: str) -> int:
        check_factor(factor, self.factors)
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
            "nulls": dict(self.nulls),
            "within": {name: list(others) for name, others in self.within.items()},
            "confounded": {name: list(others) for name, others in self.confounded.items()},
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
            dict(about.get("nulls", {})),
            *({n: tuple(v) for n, v in about.get(k, {}).items()} for k in ("within", "confounded")),
        )


def seconds_to_test(fit: Fit, recording: Recording) -> float:
    """About how long `significance` takes on one core, in seconds.

    It grows with the product of bins, cells and columns of the factors. Measured on a virtual core
    of 2026; a busy machine takes several times as long.
    """
    widths = [len(own) for own in Predictors.of(recording, fit.parts, 0.0).columns.values()]
    latents = sum(part.stop - part.start for part in fit.parts if part.name == TIME)
    frames, cells = recording.n_frames, len(fit.inputs.cell_ids)
    compared = sum(min(width, 24) for width in widths) * (2 if latents else 1)
    comparing = 1e-10 * SHIFTS * 3 * min(frames, 4000) * cells * compared
    predicting = 1e-8 * frames * (sum(widths) + cells) * 10
    return float(1 + comparing + predicting)
