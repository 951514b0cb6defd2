"""Measures an embedding: how well variables are decoded from it, and whether runs agree.

As in the CEBRA chapter of Schneider (2023): kNN and linear decoders, the median absolute error,
and the consistency between embeddings. Decoders see training frames and are measured on the
contiguous blocks of time that the encoder never saw.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.spatial import cKDTree

from napari_xcebra.errors import InputError
from napari_xcebra.files import whole
from napari_xcebra.learn.data.factors import TIME, Part, time_offset
from napari_xcebra.learn.data.labels import Labels, seconds_from_event
from napari_xcebra.learn.data.split import Split, split_by_memory
from napari_xcebra.learn.objective.ridge import thinned
from napari_xcebra.learn.quality.chance import Shifts
from napari_xcebra.learn.quality.consistency import FRAMES, consistency
from napari_xcebra.learn.result import Fit
from napari_xcebra.recording import Recording, Variable
from napari_xcebra.spreadsheets import write_csv

Decoder = Callable[[np.ndarray], np.ndarray]
"""From coordinates at the frames it was made from, (frames, k), to those of other frames."""

NEIGHBOURS = (1, 4, 9, 16, 25, 49, 100)
"""Numbers of neighbours that are tried."""


@dataclass(frozen=True)
class _Target:
    """A variable to predict.

    Parameters
    ----------
    coordinates : (frames, k) float64
        Values; cos and sin of an angle; a column for each value of a discrete variable. NaN where
        the variable is not known.
    variable : Variable
    """

    coordinates: np.ndarray
    variable: Variable

    @classmethod
    def of(cls, variable: Variable) -> _Target:
        """Coordinates of a variable."""
        values, known = variable.values, variable.known
        if variable.kind == "circular":
            angles = values * (2 * np.pi / variable.period)
            return cls(np.hstack([np.cos(angles), np.sin(angles)]), variable)
        if variable.kind == "continuous":
            return cls(np.where(known[:, None], values, np.nan), variable)
        code = np.unique(values[known], axis=0, return_inverse=True)[1].ravel()
        coordinates = np.full((len(known), int(code.max(initial=0)) + 1), np.nan)
        coordinates[known] = np.eye(coordinates.shape[1])[code]
        return cls(coordinates, variable)

    def shifted(self, frames: int) -> _Target:
        """The same, moved by so many frames, the last ones to the beginning."""
        return _Target(np.roll(self.coordinates, frames, axis=0), self.variable)

    def errors(self, predicted: np.ndarray, frames: np.ndarray) -> np.ndarray:
        """Errors of predictions, in units of the variable: (frames,), NaN where it is not known.

        Several columns count as one place, by its distance; a discrete value is right (0) or
        wrong (1).
        """
        true = self.coordinates[frames]
        if self.variable.kind == "continuous":
            return np.linalg.norm(predicted - true, axis=1)
        if self.variable.kind == "circular":
            turn = np.abs(np.angle(_complex(predicted) * _complex(true).conj()))
            off = np.linalg.norm(turn, axis=1) * self.variable.period / (2 * np.pi)
            return np.asarray(off)
        wrong = np.argmax(np.nan_to_num(predicted), axis=1) != np.argmax(
            np.nan_to_num(true), axis=1
        )
        return np.where(np.isnan(true).any(1) | np.isnan(predicted).any(1), np.nan, wrong)

    def error(self, predicted: np.ndarray, frames: np.ndarray) -> float:
        """Median absolute error, or the share of wrong values if they are discrete."""
        errors = self.errors(predicted, frames)
        if np.isnan(errors).all():
            return float("nan")
        discrete = self.variable.kind == "discrete"
        return float(np.nanmean(errors) if discrete else np.nanmedian(errors))

    def r2(self, predicted: np.ndarray, frames: np.ndarray, mean: np.ndarray) -> float:
        """Share of the variance of all coordinates that is predicted; NaN if discrete.

        Parameters
        ----------
        mean : (k,)
            Of the frames the decoder was fitted to.
        """
        if self.variable.kind == "discrete":
            return float("nan")
        true = self.coordinates[frames]
        both = ~(np.isnan(true) | np.isnan(predicted)).any(1)
        total = np.square(true[both] - mean).sum()
        missed = np.square(true[both] - predicted[both]).sum()
        return float(1 - missed / total) if total > 0 else float("nan")


def _complex(coordinates: np.ndarray) -> np.ndarray:
    cosine, sine = np.hsplit(coordinates, 2)
    return np.asarray(cosine + 1j * sine)


def _nearest(latents: np.ndarray, frames: np.ndarray, others: np.ndarray) -> np.ndarray:
    """The `frames` nearest to each of the others, as many as are ever used: (others, most) int."""
    most = min(max(NEIGHBOURS), len(frames))
    index = cKDTree(latents[frames]).query(latents[others], k=most)[1]
    return np.reshape(index, (len(others), most))


def _neighbour_decoder(near: np.ndarray) -> Decoder:
    """Mean over these frames where they are known; for discrete values, the votes."""

    def predict(coordinates: np.ndarray) -> np.ndarray:
        values = coordinates[near]
        known = ~np.isnan(values)
        with np.errstate(invalid="ignore"):
            return np.where(known, values, 0.0).sum(1) / known.sum(1)

    return predict


def _linear_decoder(latents: np.ndarray, frames: np.ndarray, others: np.ndarray) -> Decoder:
    """Least squares, with an intercept."""
    design, applied = (np.c_[np.ones(len(each)), latents[each]] for each in (frames, others))

    def predict(coordinates: np.ndarray) -> np.ndarray:
        known = ~np.isnan(coordinates).any(1)
        weights, *_ = np.linalg.lstsq(design[known], coordinates[known], rcond=1e-6)
        return applied @ weights

    return predict


TRAINED, HELD = 20_000, 5000
"""Frames at most, spread evenly, to fit decoders to and to measure them on."""

SHIFTS = 99
"""Shifts of a variable to compare with, at most."""

USUAL_NEIGHBOURS = 16
"""Neighbours where a recording is too short to choose them on frames set aside."""

NAN = float("nan")


@dataclass(frozen=True)
class Decoded:
    """Decoding of one variable from the latents of its factor, on held-out frames.

    Parameters
    ----------
    factor, variable : str
    decoder : {"kNN", "linear"}
    error : float
        Median absolute error in the variable's unit, around the circle if it is circular, by
        distance if it has several columns; the share of wrong values if it is discrete.
    unit : str
        Of `error`; "share wrong" for a discrete variable.
    chance : float
        The same with the variable shifted in time, the median over shifts; NaN if it changes too
        slowly to be shifted.
    p : float
        Share of the shifts, and the variable itself, with an error as small.
    r2, chance_r2 : float
        Share of variance explained, and its median over shifts; NaN if discrete.
    neighbours : int
        k of the kNN decoder, chosen on frames set aside; 0 for the linear one.
    """

    factor: str
    variable: str
    decoder: str
    error: float
    unit: str
    chance: float
    p: float
    r2: float
    chance_r2: float
    neighbours: int = 0

    @property
    def words(self) -> str:
        """The result in a sentence."""
        unit = "" if self.unit == "share wrong" or not self.unit else f" {self.unit}"
        what = "wrong in" if self.unit == "share wrong" else "median error"
        number = "{:.0%}" if self.unit == "share wrong" else "{:.3g}" + unit
        sentence = (
            f"{self.variable} from {self.factor} ({self.decoder}): {what} "
            f"{number.format(self.error)}"
        )
        if not np.isnan(self.chance):
            sentence += f" (chance {number.format(self.chance)}, p = {self.p:.2g})"
        if not np.isnan(self.r2):
            sentence += f", R² {self.r2:.2f}"
        return sentence + "."


@dataclass(frozen=True)
class EmbeddingQuality:
    """Decoding of every variable, and agreement with other runs.

    Parameters
    ----------
    decoded : tuple of Decoded
        Two for each variable of each factor: kNN and linear.
    consistency : float
        Mean R² between this embedding and those of other runs of the recording, after affine
        alignment; NaN without any.
    runs : int
        Runs that were compared, this one among them.
    """

    decoded: tuple[Decoded, ...]
    consistency: float = NAN
    runs: int = 1

    def of(self, factor: str) -> tuple[Decoded, ...]:
        """Decoding from one factor."""
        return tuple(each for each in self.decoded if each.factor == factor)

    def table(self) -> pd.DataFrame:
        """One row a variable and decoder, with columns as `Decoded` has them."""
        names = [about.name for about in fields(Decoded)]
        return pd.DataFrame([asdict(each) for each in self.decoded], columns=names)

    def summary(self) -> str:
        """A sentence for each variable and decoder."""
        lines = [each.words for each in self.decoded]
        return "\n".join([*lines, *filter(None, [self.agreement])])

    @property
    def agreement(self) -> str:
        """How well the runs agree, in a sentence; empty if there is only one."""
        if self.runs < 2:
            return ""
        return (
            f"Consistency between {self.runs} runs: R² {self.consistency:.3f} after affine "
            "alignment."
        )

    def to_csv(self, path: str | os.PathLike[str]) -> Path:
        """Write the table."""
        with whole(path) as file:
            write_csv(self.table(), file)
        return Path(path)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for a file; JSON has no NaN, so None stands for it."""
        rows = [{n: _plain(v) for n, v in asdict(each).items()} for each in self.decoded]
        return {"decoded": rows, "consistency": _plain(self.consistency), "runs": self.runs}


def embedding_quality(fit: Fit, recording: Recording, runs: Sequence[Fit] = ()) -> EmbeddingQuality:
    """Decode every variable of a fit from its factor's latents, on held-out blocks.

    Parameters
    ----------
    fit : Fit
    recording : Recording
        The one it was trained on, or another with the same cells and variables.
    runs : sequence of Fit, optional
        Other runs on the same recording, to compare embeddings with.

    Examples
    --------
    >>> from napari_xcebra.learn import FitSettings
    >>> from napari_xcebra.learn import fit as train
    >>> from napari_xcebra.simulate import box
    >>> simulation = box(frames=3000)
    >>> trained = train(simulation.recording, simulation.factors, FitSettings(steps=20))
    >>> embedding_quality(trained, simulation.recording).table()["decoder"].tolist()
    ['kNN', 'linear']
    """
    parts = [part for part in fit.parts if part.name != TIME]
    split = _split_of(fit, recording)
    embedding = fit.embed(recording) * fit.scale
    decoded = [
        found
        for part in parts
        for name in part.variables
        for found in _decoded(recording, part, name, embedding[:, part.latents], split)
    ]
    agreement, compared = NAN, [embedding, *(each.embed(recording) * each.scale for each in runs)]
    if len(compared) > 1:
        every = max(1, recording.n_frames // FRAMES)
        r2 = consistency([each[::every] for each in compared])
        agreement = float(r2[~np.eye(len(r2), dtype=bool)].mean())
    return EmbeddingQuality(tuple(decoded), agreement, len(compared))


def _split_of(fit: Fit, recording: Recording) -> Split:
    """Frames that a fit was trained on, set aside or held out."""
    parts = [part for part in fit.parts if part.name != TIME]
    labels = {part.name: Labels.of(recording, part.variables, part.name) for part in parts}
    offsets = {part.name: part.offset for part in fit.parts}
    offset = offsets.get(TIME) or time_offset(recording, offsets, fit.settings)
    return split_by_memory(recording, labels, fit.settings, offset)


def held_out_frames(fit: Fit, recording: Recording) -> np.ndarray:
    """Frames that a fit was not trained on: (n,) int64."""
    return _split_of(fit, recording).held_out.anchors


def _decoded(
    recording: Recording, part: Part, name: str, latents: np.ndarray, split: Split
) -> list[Decoded]:
    variable = _decodable(recording, name)
    target, known = _Target.of(variable), variable.known
    seen, held = split.training.anchors, split.held_out.anchors
    seen, held = thinned(seen[known[seen]], TRAINED), thinned(held[known[held]], HELD)
    if len(seen) == 0 or len(held) == 0:
        raise InputError(
            f"Variable {name!r} is known at {len(seen)} training frames and {len(held)} held-out "
            "ones: it cannot be decoded."
        )
    shifts = _shifts(recording, name)
    neighbours = _chosen_neighbours(target, latents, split)
    near = _nearest(latents, seen, held)[:, :neighbours]
    decoders: Mapping[str, tuple[Decoder, int]] = {
        "kNN": (_neighbour_decoder(near), neighbours),
        "linear": (_linear_decoder(latents, seen, held), 0),
    }
    return [
        Decoded(
            part.name, name, title, neighbours=k, **_measured(decode, target, seen, held, shifts)
        )
        for title, (decode, k) in decoders.items()
    ]


def _decodable(recording: Recording, name: str) -> Variable:
    """Variable to decode: of an event, whether it is near."""
    variable = recording.variable(name)
    if variable.kind != "event":
        return variable
    near = ~np.isnan(seconds_from_event(recording, variable))
    return Variable(name, np.where(variable.known, near, np.nan), "discrete")


def _measured(
    decode: Decoder, target: _Target, seen: np.ndarray, held: np.ndarray, shifts: np.ndarray
) -> dict[str, Any]:
    """Error and R² on held-out frames, and what shifted labels reach."""

    def reached(target: _Target) -> tuple[float, float]:
        fitted = target.coordinates[seen]
        predicted = decode(fitted)
        return target.error(predicted, held), target.r2(predicted, held, np.nanmean(fitted, 0))

    error, r2 = reached(target)
    null = np.array([reached(target.shifted(shift)) for shift in shifts]).reshape(-1, 2)
    tested = len(null) > 0
    return {
        "error": error,
        "unit": "share wrong" if target.variable.kind == "discrete" else target.variable.unit,
        "chance": float(np.nanmedian(null[:, 0])) if tested else NAN,
        "p": float((1 + (null[:, 0] <= error).sum()) / (1 + len(null))) if tested else NAN,
        "r2": r2,
        "chance_r2": float(np.median(null[:, 1])) if tested else NAN,
    }


def _shifts(recording: Recording, name: str) -> np.ndarray:
    """Frames to shift a variable by, so that it is another; none if it changes too slowly."""
    shifts = Shifts.of(Labels.of(recording, [name], name), recording.segment)
    return thinned(shifts.frames, SHIFTS) if shifts.enough else np.zeros(0, int)


def _chosen_neighbours(target: _Target, latents: np.ndarray, split: Split) -> int:
    """Number of neighbours that predicts frames set aside best, by squared error."""
    rest, aside, _ = split.set_aside()
    known = target.variable.known
    made, tried = (thinned(f.anchors[known[f.anchors]], HELD) for f in (rest, aside))
    if len(made) < max(NEIGHBOURS) or len(tried) == 0:
        return min(USUAL_NEIGHBOURS, max(1, len(made)))
    near, true = _nearest(latents, made, tried), target.coordinates[tried]
    missed = {
        k: float(np.square(_neighbour_decoder(near[:, :k])(target.coordinates[made]) - true).sum())
        for k in NEIGHBOURS
    }
    return min(missed, key=lambda k: missed[k])


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and np.isnan(value) else value
