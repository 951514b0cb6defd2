"""Holds the scores of every cell for every factor, and saves them.

Torch is not imported here, so that a window can show an attribution without it.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_xcebra.attribution.methods import method_named
from napari_xcebra.attribution.shift_test.result import Significance
from napari_xcebra.attribution.stability import Stability
from napari_xcebra.attribution.tables import score_table, write_tables
from napari_xcebra.errors import InputError
from napari_xcebra.files import check_description, parsed_json, read_bytes, whole
from napari_xcebra.learn.data.factors import Part, part_named
from napari_xcebra.learn.quality.verdict import FOUND
from napari_xcebra.recording import Recording
from napari_xcebra.recording.fingerprint import Fingerprint
from napari_xcebra.standardise import standardised

if TYPE_CHECKING:
    import pandas as pd

    from napari_xcebra.attribution.stream import FrameChoice
    from napari_xcebra.learn.result import Fit

NOT_LEARNED = "not learned"
"""Strength of a factor in a map from an encoder that did not learn it."""
FORMAT = 3
"""Version of the saved file; a later version of the program reads earlier ones."""
_ARRAYS = ("cell_ids", "latent_scores", "factor_scores")
_TESTED = ("p_values", "q_values", "q_beside_variables")
_BY_SEED = "scores_by_seed"
_DETAIL = "detail "
"""Optional arrays of the saved file; the last is a prefix."""


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
        NaN where a cell was not used: not accepted, or constant. None for a method that tells no
        latents apart.
    n_frames : int
        Frames the scores are taken over.
    strengths : mapping of str to {"clear", "weak", "not tested", "at chance", "not learned"}
        Of each factor, by the fit's verdict; at chance, or in a map from an encoder that did not
        learn it, its map means nothing.
    verdicts : mapping of str to str
        The same in a sentence.
    factor_scores : (factors, cells) float32 or None
        Of a method that scores a factor as a whole; else the mean over its latents counts.
    details : mapping of str to (factors, cells) float32
        Further columns of `table`, by name.
    significance : Significance or None
        p and q of the same cells and factors, if they were tested.
    stability : Stability or None
        Scores by fits with other seeds, if training was repeated.
    seed : int
        Of the methods that draw at random.
    notes : tuple of str
    source : str
        Recording the scores belong to.
    fingerprint : Fingerprint or None
        Of that recording.
    fit, recording
        For `over_time`; None for an attribution read from a file.
    """

    method: str
    aggregate: str
    parts: tuple[Part, ...]
    cell_ids: np.ndarray
    latent_scores: np.ndarray | None
    n_frames: int
    strengths: Mapping[str, str]
    verdicts: Mapping[str, str]
    factor_scores: np.ndarray | None = None
    details: Mapping[str, np.ndarray] = field(default_factory=dict)
    significance: Significance | None = None
    stability: Stability | None = None
    seed: int = 0
    notes: tuple[str, ...] = ()
    source: str = ""
    fingerprint: Fingerprint | None = None
    fit: Fit | None = field(default=None, repr=False)
    recording: Recording | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.latent_scores is None and self.factor_scores is None:
            raise TypeError("latent_scores or factor_scores is needed")

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
        """Part of that name, or a sentence that lists the parts."""
        return part_named(factor, self.parts)

    def score(self, factor: str) -> np.ndarray:
        """Mean over the factor's latents: (cells,) float32, NaN where a cell was not used.

        A method that scores a factor as a whole has that score instead. Why the mean: on nine fits
        of the box model it ranks cells as well as the root mean square and, where latents differ,
        better than the maximum (auROC 0.82 against 0.79 on average).
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
                f"Factor {factor!r} has no latent {i}: it has 0 to {part.stop - part.start - 1}."
            )
        return self.latent_scores[part.start + i]

    def detail(self, factor: str, name: str) -> np.ndarray:
        """One of `details` for a factor: (cells,) float32."""
        return self.details[name][self.factors.index(factor)]

    def z(self, factor: str) -> np.ndarray:
        """Score standardised over the cells that have one: (cells,) float32."""
        return standardised(self.score(factor), skip_nan=True)

    def above(self, factor: str, threshold: float = 0.0) -> np.ndarray:
        """Cells with z above the threshold: (cells,) bool.

        With the inverted neuron gradient, Â = 1{Σ_x |J_f⁺(x)| > ε} (Eq. 11): `inverse` is J_f⁺,
        `attribute` takes the mean over frames x, and ε is in standard deviations over cells.
        """
        return self.z(factor) > threshold

    def selected(self, factor: str, threshold: float = 0.0) -> np.ndarray:
        """Cells above the threshold, none unless the factor was found: (cells,) bool."""
        return self.above(factor, threshold) & self.was_found(factor)

    def at_chance(self, factor: str) -> bool:
        """Whether its map means nothing: not found in the cells, or not learned by its encoder."""
        return self.strengths[self.part(factor).name] in ("at chance", NOT_LEARNED)

    def not_tested(self, factor: str) -> bool:
        """Whether the factor could not be tested."""
        return self.strengths[self.part(factor).name] == "not tested"

    def mark_of_doubt(self, factor: str) -> str:
        """Suffix of the title of a map at chance, or of one that could not be tested."""
        if self.at_chance(factor):
            return " (at chance)"
        return " (not tested)" if self.not_tested(factor) else ""

    def was_found(self, factor: str) -> bool:
        """Whether the factor was found in the cells."""
        return self.strengths[self.part(factor).name] in FOUND

    def with_significance(self, significance: Significance) -> Attribution:
        """Copy with p and q of the same cells and factors, which tables then include."""
        if not significance.fits(self.factors, self.cell_ids):
            cells = significance.p_values.shape[1]
            raise InputError(
                f"The test has {cells} cells and {', '.join(significance.factors)}, but this "
                f"attribution has {len(self.cell_ids)} and {', '.join(self.factors)}: a test of "
                "the same fit and recording is needed."
            )
        return replace(self, significance=significance)

    def with_stability(self, stability: Stability) -> Attribution:
        """Copy with the scores by other seeds, whose spread tables then include."""
        if not stability.is_of(self.method, self.factors, self.cell_ids):
            raise InputError(
                f"The seeds were compared by {stability.method} for {len(stability.cell_ids)} "
                f"cells and {', '.join(stability.factors)}, but this attribution is by "
                f"{self.method} for {len(self.cell_ids)} and {', '.join(self.factors)}: repeat "
                "the same training with other seeds."
            )
        return replace(self, stability=replace(stability, fits=()))

    def consensus(self) -> Attribution:
        """What the seeds agree on, as a map of its own: the mean of z over seeds."""
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
        the score as a share of the variance that is not frame-to-frame noise; beside_variables and
        beside_state, whose geometric mean is the score; interaction, the share of tunings that are
        scaled by the factor; lag, the seconds by which the cell follows the behaviour, negative if
        it leads, and lag_error; sign, 1 or −1 if the cell rises or falls with the variable.

        Once tested, also p and q, and q_beside_variables without the state;
        ``table.attrs["significance"]`` says how. Once repeated with other seeds, also score_mean,
        score_sd, z_mean, rank_low, rank_high and stable, as in `Stability.table`. `at_chance` is
        repeated in every row, so that it stays with the rows; ``table.attrs["verdict"]`` has the
        verdict.
        """
        return score_table(self, factor, threshold)

    def over_time(
        self, factor: str, frames: FrameChoice = slice(0, 500), smooth: float = 0.0
    ) -> np.ndarray:
        """Score of every cell at every frame, computed on demand.

        For conditional encoding, which explains whole traces, by the generative gradient.

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
                "Scores over time need the fit and the recording, which a saved attribution does "
                "not hold: call attribute again."
            )
        from napari_xcebra.attribution.over_time import scores_by_frame

        return scores_by_frame(
            self.fit,
            self.recording,
            part.latents,
            method_named(self.method).over_time,
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
        """Write one row per ROI and factor: cell, factor, score, z, selected and more.

        What else is known of the cells, such as depth or region, follows as further columns.

        Parameters
        ----------
        path : path
        threshold : float
            z above which a cell counts as above threshold.
        beside : sequence of Attribution
            Other maps of the same cells, each a column named by its method.
        """

        def table(factor: str) -> pd.DataFrame:
            rows = self.table(factor, threshold)
            for other in beside:
                rows[other.method.replace("-", "_")] = other.score(factor)
            about = {} if self.recording is None else self.recording.cells
            return rows.assign(**{n if n not in rows else f"cell_{n}": v for n, v in about.items()})

        return write_tables(path, self.factors, table)

    def to_npz(self, path: str | os.PathLike[str]) -> Path:
        """Write everything but the fit and the recording; `load` reads it."""
        with whole(path) as file:
            file.write_bytes(self.packed())
        return Path(path)

    def packed(self) -> bytes:
        """Content of the file that `to_npz` writes."""
        return _packed(self)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Attribution:
        """Read what `to_npz` wrote, by this or an earlier version."""
        try:
            content = read_bytes(path)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise InputError(f"{path} cannot be read: {why}.") from error
        return cls.unpacked(content, path)

    @classmethod
    def unpacked(cls, content: bytes, path: str | os.PathLike[str]) -> Attribution:
        """From the content of a file, which sentences name."""
        return _unpacked(content, path)


def _packed(scores: Attribution) -> bytes:
    """Content of a .npz file."""
    arrays = _arrays(scores)
    about = {
        "format": FORMAT,
        "kind": "napari-xcebra attribution",
        "method": scores.method,
        "aggregate": scores.aggregate,
        "parts": [part.as_dict() for part in scores.parts],
        "n_frames": scores.n_frames,
        "strengths": dict(scores.strengths),
        "verdicts": dict(scores.verdicts),
        "seed": scores.seed,
        "notes": list(scores.notes),
        "source": scores.source,
        "fingerprint": scores.fingerprint and scores.fingerprint.as_dict(),
        "significance": scores.significance and scores.significance.as_dict(),
        "seeds": list(scores.stability.seeds) if scores.stability else [],
        "arrays": list(arrays),
    }
    content = io.BytesIO()
    # typed, as mypy takes the names of arrays for options
    named: dict[str, Any] = {"about": np.array(json.dumps(about)), **arrays}
    np.savez(content, **named)
    return content.getvalue()


def _unpacked(content: bytes, path: str | os.PathLike[str]) -> Attribution:
    """From the content of a file, which sentences name."""
    try:
        arrays = _checked_arrays(content)
        about = parsed_json(str(arrays.pop("about")), path)
        check_description(about, path, "attribution", FORMAT)
        return _attribution(arrays, about)
    except InputError:
        raise
    # a damaged file fails in zipfile, zlib or numpy, each in its own way
    except Exception as error:
        raise InputError(
            f"{path} does not hold an attribution ({type(error).__name__}: {error})."
        ) from error


def _arrays(scores: Attribution) -> dict[str, np.ndarray]:
    given = {name: getattr(scores, name) for name in _ARRAYS}
    given |= {_DETAIL + name: values for name, values in scores.details.items()}
    if scores.significance is not None:
        given |= {name: getattr(scores.significance, name) for name in _TESTED}
    if scores.stability is not None:
        given[_BY_SEED] = scores.stability.scores
    return {name: array for name, array in given.items() if array is not None}


def _attribution(arrays: dict[str, np.ndarray], about: dict[str, Any]) -> Attribution:
    del about["kind"], about["format"]
    if missing := set(about.pop("arrays", ())) - arrays.keys():
        raise ValueError(f"{', '.join(sorted(missing))} is missing")
    scores = {name: arrays[name] for name in _ARRAYS if name in arrays}
    tested = [arrays[name] for name in _TESTED if name in arrays]
    about["details"] = {
        name.removeprefix(_DETAIL): array
        for name, array in arrays.items()
        if name.startswith(_DETAIL)
    }
    about["parts"] = tuple(Part.from_dict(part) for part in about["parts"])
    about["notes"] = tuple(about["notes"])
    about["fingerprint"] = Fingerprint.from_dict(about.get("fingerprint"))
    if about.get("significance") is not None:
        about["significance"] = Significance.from_dict(about["significance"], *tested)
    seeds = tuple(about.pop("seeds", ()))
    loaded = Attribution(**{"latent_scores": None, **scores, **about})
    by_seed = arrays.get(_BY_SEED)
    return loaded if by_seed is None else _with_seeds(loaded, seeds, by_seed)


def _with_seeds(loaded: Attribution, seeds: tuple[int, ...], scores: np.ndarray) -> Attribution:
    """Copy with scores by seed: (seeds, factors, cells)."""
    if scores.shape != (len(seeds), len(loaded.parts), len(loaded.cell_ids)):
        raise ValueError(f"{_BY_SEED} has the shape {scores.shape}")
    by_seed = Stability(loaded.method, loaded.factors, loaded.cell_ids, scores, seeds)
    return replace(loaded, stability=by_seed)


def _checked_arrays(content: bytes) -> dict[str, np.ndarray]:
    """Arrays of a .npz file by name, all of whose bytes are as they were written."""
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        if (damaged := file.testzip()) is not None:
            raise zipfile.BadZipFile(f"{damaged} is damaged")
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}
