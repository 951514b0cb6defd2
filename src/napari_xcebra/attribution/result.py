"""Scores of every cell for every factor, as a value: ranked, tabulated, saved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from napari_xcebra.learn.parts import Part
from napari_xcebra.learn.result import Fit
from napari_xcebra.recording import InputError, Recording


@dataclass(frozen=True, eq=False)
class Attribution:
    """How much each cell carries each factor.

    Parameters
    ----------
    method, aggregate : str
        As given to `attribute`.
    parts : tuple of Part
        Which latents belong to which factor.
    cell_ids : (cells,) int64
        Every ROI of the recording, in its order.
    latent_scores : (latents, cells) float32
        NaN where a cell was not used: not accepted, or constant.
    n_frames : int
        Frames the scores are taken over.
    above_chance : mapping of str to bool
        Whether the map of a factor means anything, by the fit's held-out goodness.
    verdicts : mapping of str to str
        The same in a sentence.
    notes : tuple of str
    source : str
        Recording the scores belong to.
    fit, recording
        For `over_time`; None for an attribution read from a file.
    """

    method: str
    aggregate: str
    parts: tuple[Part, ...]
    cell_ids: np.ndarray
    latent_scores: np.ndarray
    n_frames: int
    above_chance: Mapping[str, bool]
    verdicts: Mapping[str, str]
    notes: tuple[str, ...] = ()
    source: str = ""
    fit: Fit | None = field(default=None, repr=False)
    recording: Recording | None = field(default=None, repr=False)

    @property
    def factors(self) -> tuple[str, ...]:
        """Names of the factors."""
        return tuple(part.name for part in self.parts)

    def part(self, factor: str) -> Part:
        """Part of that name, or a sentence listing those there are."""
        for part in self.parts:
            if part.name == factor:
                return part
        raise InputError(
            f"There is no factor {factor!r} in this attribution; it has: {', '.join(self.factors)}."
        )

    def score(self, factor: str) -> np.ndarray:
        """Mean over the factor's latents: (cells,) float32, NaN where a cell was not used."""
        return self.latent_scores[self.part(factor).latents].mean(0)

    def latent(self, factor: str, i: int) -> np.ndarray:
        """Score for one latent of a factor: (cells,) float32."""
        part = self.part(factor)
        if not 0 <= i < part.stop - part.start:
            raise InputError(
                f"Factor {factor!r} has no latent {i}: 0 to {part.stop - part.start - 1} is "
                "what it has."
            )
        return self.latent_scores[part.start + i]

    def z(self, factor: str) -> np.ndarray:
        """Score standardised over the cells that have one: (cells,) float32."""
        score = self.score(factor)
        spread = np.nanstd(score)
        return (score - np.nanmean(score)) / (spread if spread > 0 else 1)

    def selected(self, factor: str, threshold: float = 0.0) -> np.ndarray:
        """Cells with z above the threshold: (cells,) bool."""
        return self.z(factor) > threshold

    def at_chance(self, factor: str) -> bool:
        """Whether the factor was not found in the cells, so that its map means nothing."""
        return not self.above_chance[self.part(factor).name]

    def table(self, factor: str, threshold: float = 0.0) -> pd.DataFrame:
        """One row a ROI, in the order of the recording: cell, score, z, selected, at_chance.

        `at_chance` is the same in every row, so that it goes wherever the rows go; the verdict
        is in ``table.attrs["verdict"]``.
        """
        table = pd.DataFrame(
            {
                "cell": self.cell_ids,
                "score": self.score(factor),
                "z": self.z(factor),
                "selected": self.selected(factor, threshold),
                "at_chance": self.at_chance(factor),
            }
        )
        table.attrs.update(factor=factor, method=self.method, verdict=self.verdicts[factor])
        return table
