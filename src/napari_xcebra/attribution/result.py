"""Scores of every cell for every factor, as a value: ranked, tabulated, saved.

Torch is not imported here, so that a window can show an attribution without it.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from napari_xcebra.attribution.method_notes import method_over_time
from napari_xcebra.attribution.stability import Stability
from napari_xcebra.attribution.tables import write_tables
from napari_xcebra.attribution.tested import Significance
from napari_xcebra.files import whole
from napari_xcebra.learn.parts import Part, part_named
from napari_xcebra.recording import InputError, Recording

if TYPE_CHECKING:
    from napari_xcebra.attribution.stream import FrameChoice
    from napari_xcebra.learn.result import Fit

FORMAT = 3
"""Version of the saved file; a later version of the program reads earlier ones."""
_ARRAYS = ("cell_ids", "latent_scores", "factor_scores")
_TESTED = ("p_values", "q_values", "q_beside_variables")
_BY_SEED = "scores_by_seed"
_DETAIL = "detail "
"""Arrays of the saved file, each there or not; the last begins the name of any."""

_OVER_SEEDS = {
    "score_mean": "score",
    "score_sd": "score_sd",
    "z_mean": "z",
    "rank_low": "rank_low",
    "rank_high": "rank_high",
    "stable": "stable",
}
"""Columns of the table, and what they are called in that of `Stability`."""


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
    latent_scores : (latents, cells) float32 or None
        NaN where a cell was not used: not accepted, or constant. None for a method that scores a
        factor as a whole.
    n_frames : int
        Frames the scores are taken over.
    above_chance : mapping of str to bool
        False where the map of a factor means nothing, by the fit's verdict. A factor that could
        not be tested is not said to be at chance.
    verdicts : mapping of str to str
        The same in a sentence.
    factor_scores : (factors, cells) float32 or None
        Of a method that scores a factor as a whole, in place of `latent_scores`.
    details : mapping of str to (factors, cells) float32
        More that a method says of each cell, by the name of the column in `table`.
    significance : Significance or None
        p and q of the same cells and factors, if they were tested.
    stability : Stability or None
        Scores by fits with other seeds, if training was repeated.
    seed : int
        Of the methods that draw at random.
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
    latent_scores: np.ndarray | None
    n_frames: int
    above_chance: Mapping[str, bool]
    verdicts: Mapping[str, str]
    factor_scores: np.ndarray | None = None
    details: Mapping[str, np.ndarray] = field(default_factory=dict)
    significance: Significance | None = None
    stability: Stability | None = None
    seed: int = 0
    notes: tuple[str, ...] = ()
    source: str = ""
    fit: Fit | None = field(default=None, repr=False)
    recording: Recording | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if (self.latent_scores is None) == (self.factor_scores is None):
            raise TypeError("either latent_scores or factor_scores is needed")

    @property
    def factors(self) -> tuple[str, ...]:
        """Names of the factors."""
        return tuple(part.name for part in self.parts)

    @property
    def has_latents(self) -> bool:
        """Whether there are scores for single latents."""
        return self.latent_scores is not None

    @property
    def used(self) -> np.ndarray:
        """(cells,) bool, which cells have scores."""
        return ~np.isnan(self.score(self.factors[0]))

    def part(self, factor: str) -> Part:
        """Part of that name, or a sentence listing those there are."""
        return part_named(factor, self.parts)

    def score(self, factor: str) -> np.ndarray:
        """Mean over the factor's latents: (cells,) float32, NaN where a cell was not used.

        A method that scores a factor as a whole has that score instead. As for the mean: on nine
        fits of the box model it ranks cells as well as the root mean square and, where latents
        differ, better than the maximum (auROC 0.82 against 0.79 on average).
        """
        part = self.part(factor)
        if self.factor_scores is not None:
            return self.factor_scores[self.parts.index(part)]
        assert self.latent_scores is not None
        return self.latent_scores[part.latents].mean(0)

    def latent(self, factor: str, i: int) -> np.ndarray:
        """Score for one latent of a factor: (cells,) float32."""
        part = self.part(factor)
        if self.latent_scores is None:
            raise InputError(
                f"{self.method} scores a factor as a whole: it has no scores for single latents."
            )
        if not 0 <= i < part.stop - part.start:
            raise InputError(
                f"Factor {factor!r} has no latent {i}: 0 to {part.stop - part.start - 1} is "
                "what it has."
            )
        return self.latent_scores[part.start + i]

    def detail(self, factor: str, name: str) -> np.ndarray:
        """More that the method says of a factor, one of `details`: (cells,) float32."""
        return self.details[name][self.factors.index(factor)]

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

    def not_tested(self, factor: str) -> bool:
        """Whether the factor could not be tested; False as well if the fit is not at hand."""
        return self.fit is not None and self.fit.goodness[factor].strength == "not tested"

    def with_significance(self, significance: Significance) -> Attribution:
        """Copy with p and q of the same cells and factors; tables then have them as well."""
        if not significance.fits(self.factors, self.cell_ids):
            cells = significance.p_values.shape[1]
            raise InputError(
                f"The test is of {cells} cells for {', '.join(significance.factors)}, and this "
                f"attribution of {len(self.cell_ids)} for {', '.join(self.factors)}: a test of "
                "the same fit and recording is needed."
            )
        return replace(self, significance=significance)

    def with_stability(self, stability: Stability) -> Attribution:
        """Copy with the scores by other seeds; tables then have their spread."""
        if not stability.is_of(self.method, self.factors, self.cell_ids):
            raise InputError(
                f"The seeds were compared by {stability.method} for {len(stability.cell_ids)} "
                f"cells and {', '.join(stability.factors)}, and this attribution is by "
                f"{self.method} for {len(self.cell_ids)} and {', '.join(self.factors)}: repeat "
                "the same training with other seeds."
            )
        return replace(self, stability=replace(stability, fits=()))

    def consensus(self) -> Attribution:
        """What the seeds agree on, as a map of its own: the mean over them of z."""
        if self.stability is None:
            raise InputError("Training was not repeated with other seeds: there is no consensus.")
        by_seed = self.stability.of_consensus
        return replace(
            self,
            method=by_seed.method,
            latent_scores=None,
            factor_scores=by_seed.scores.mean(0),
            details={},
            stability=by_seed,
        )

    def table(self, factor: str, threshold: float = 0.0) -> pd.DataFrame:
        """One row a ROI, in the order of the recording: cell, score, z, selected, at_chance.

        Conditional encoding has more: low and high, the interval from 5 to 95 %; of_explainable,
        the share of what is not noise from frame to frame; beside_variables and beside_state,
        whose geometric mean is the score; interaction, the share of tunings that are scaled by
        the factor; lag, the seconds by which the cell follows the behaviour, negative if it
        leads, and lag_error; sign, 1 or −1 if the cell rises or falls with the variable.

        Once tested also p and q, and q_beside_variables without the state; how is in
        ``table.attrs["significance"]``. Once repeated with other seeds also score_mean, score_sd,
        z_mean, rank_low, rank_high and stable, as in `Stability.table`. `at_chance` is the same in
        every row, so that it goes wherever the rows go; the verdict is in
        ``table.attrs["verdict"]``.
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
        for name in self.details:
            table[name] = self.detail(factor, name)
        table.attrs.update(factor=factor, method=self.method, verdict=self.verdicts[factor])
        if self.significance is not None:
            table["p"], table["q"] = self.significance.p(factor), self.significance.q(factor)
            if (alone := self.significance.beside_variables(factor)) is not None:
                table["q_beside_variables"] = alone
            table.attrs["significance"] = self.significance.how(factor)
        if self.stability is not None:
            by_seed = self.stability.table(factor, threshold)
            for name, source in _OVER_SEEDS.items():
                table[name] = by_seed[source]
        return table

    def over_time(
        self, factor: str, frames: FrameChoice = slice(0, 500), smooth: float = 0.0
    ) -> np.ndarray:
        """Score of every cell at every frame, computed anew.

        For conditional encoding, which explains whole traces, that of the generative gradient.

        Parameters
        ----------
        factor : str
        frames : slice, (n,) int or (frames,) bool, optional
            All frames if None.
        smooth : float
            Standard deviation in frames of a Gaussian within each trial; 0 for none.

        Returns
        -------
        (frames asked for, cells) float32
            NaN at frames whose window leaves its trial, and for cells that were not used.
        """
        part = self.part(factor)
        if self.fit is None or self.recording is None:
            raise InputError(
                "Scores over time are computed from the fit and the recording, which a saved "
                "attribution does not hold: call attribute again."
            )
        from napari_xcebra.attribution.by_frame import scores_by_frame

        return scores_by_frame(
            self.fit,
            self.recording,
            part.latents,
            method_over_time(self.method),
            frames,
            smooth=smooth,
            seed=self.seed,
        )

    def to_csv(
        self,
        path: str | os.PathLike[str],
        threshold: float = 0.0,
        *,
        beside: Sequence[Attribution] = (),
    ) -> Path:
        """Write one row a ROI and factor: cell, factor, score, z, selected, at_chance and more.

        Parameters
        ----------
        path : path
        threshold : float
            z above which a cell counts as selected.
        beside : sequence of Attribution
            Other maps of the same cells, whose scores get a column each, named by their method.
        """

        def table(factor: str) -> pd.DataFrame:
            rows = self.table(factor, threshold)
            for other in beside:
                rows[other.method.replace("-", "_")] = other.score(factor)
            return rows

        return write_tables(path, self.factors, table)

    def to_npz(self, path: str | os.PathLike[str]) -> Path:
        """Write everything but the fit and the recording; `load` reads it."""
        about = {
            "format": FORMAT,
            "kind": "napari-xcebra attribution",
            "method": self.method,
            "aggregate": self.aggregate,
            "parts": [part.as_dict() for part in self.parts],
            "n_frames": self.n_frames,
            "above_chance": dict(self.above_chance),
            "verdicts": dict(self.verdicts),
            "seed": self.seed,
            "notes": list(self.notes),
            "source": self.source,
            "significance": self.significance and self.significance.as_dict(),
            "seeds": list(self.stability.seeds) if self.stability else [],
        }
        with whole(path) as file, file.open("wb") as opened:
            arrays: dict[str, Any] = {"about": np.array(json.dumps(about)), **self._arrays()}
            np.savez(opened, **arrays)
        return Path(path)

    def _arrays(self) -> dict[str, np.ndarray]:
        given = {name: getattr(self, name) for name in _ARRAYS}
        given |= {_DETAIL + name: values for name, values in self.details.items()}
        if self.significance is not None:
            given |= {name: getattr(self.significance, name) for name in _TESTED}
        if self.stability is not None:
            given[_BY_SEED] = self.stability.scores
        return {name: array for name, array in given.items() if array is not None}

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Attribution:
        """Read what `to_npz` wrote, by this or an earlier version."""
        try:
            with np.load(path, allow_pickle=False) as file:
                about = json.loads(str(file["about"]))
                arrays = {name: file[name] for name in _ARRAYS if name in file}
                tested = [file[name] for name in _TESTED if name in file]
                by_seed = file.get(_BY_SEED)
                details = {
                    name.removeprefix(_DETAIL): file[name]
                    for name in file.files
                    if name.startswith(_DETAIL)
                }
            _check_kind(about, path)
            del about["kind"], about["format"]
            about["parts"] = tuple(Part.from_dict(part) for part in about["parts"])
            about["notes"] = tuple(about["notes"])
            if about.get("significance") is not None:
                about["significance"] = Significance.from_dict(about["significance"], *tested)
            seeds = tuple(about.pop("seeds", ()))
            loaded = cls(**{"latent_scores": None, **arrays, **about, "details": details})
            return loaded if by_seed is None else loaded._with_seeds(seeds, by_seed)
        except InputError:
            raise
        except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
            raise InputError(
                f"{path} does not hold an attribution ({type(error).__name__}: {error})."
            ) from error

    def _with_seeds(self, seeds: tuple[int, ...], scores: np.ndarray) -> Attribution:
        """Copy with scores by seed, as a file has them: (seeds, factors, cells)."""
        if scores.shape != (len(seeds), len(self.parts), len(self.cell_ids)):
            raise ValueError(f"{_BY_SEED} has the shape {scores.shape}")
        by_seed = Stability(self.method, self.factors, self.cell_ids, scores, seeds)
        return replace(self, stability=by_seed)


def _check_kind(about: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    if about.get("kind") != "napari-xcebra attribution":
        raise InputError(f"{path} was not written by napari-xcebra.")
    if about["format"] > FORMAT:
        raise InputError(
            f"{path} was written by a later version of napari-xcebra (format {about['format']}; "
            f"this version reads up to {FORMAT}): update napari-xcebra."
        )
