"""Splits the embedding into named parts: one for each behaviour factor, and one for time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, get_args

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.learn.data.inputs import Filter
from napari_xcebra.learn.data.labels import Labels, pairs_within, step_offset
from napari_xcebra.learn.data.trials import Course
from napari_xcebra.learn.settings import FitSettings, Similarity
from napari_xcebra.recording import Recording

TIME = "time"
RESERVED = (TIME, "step", "penalty", "lambda")


@dataclass(frozen=True)
class Factor:
    """Variables to attribute together, and settings of their own where these differ from the rest.

    Parameters
    ----------
    variables : sequence of str
        Behaviour variables of the recording; one with two columns counts as two.
    latents : int, optional
        Dimensions in the embedding; as many as the variables have, if not given (an angle: 2).
    similarity : {"euclidean", "dot", "power"}, optional
    temperature : float, optional
        Fixes τ of this factor.
    """

    variables: Sequence[str]
    latents: int | None = None
    similarity: Similarity | None = None
    temperature: float | None = None

    def __post_init__(self) -> None:
        names = [self.variables] if isinstance(self.variables, str) else self.variables
        object.__setattr__(self, "variables", tuple(names))


@dataclass(frozen=True)
class Part:
    """Dimensions start to stop of the embedding, and what they are trained on.

    Parameters
    ----------
    similarity : {"euclidean", "dot", "power"}
    temperature : float
        τ of the similarity φ/τ; where learning starts if `learned`.
    offset : int
        Frames over which the positive pair steps.
    time_weight : float
        Weight of this part's φ/τ inside the time objective, where learning starts: a label that
        moves further over a time pair than over its own step counts less there (App. A.2 asks
        that both agree). Learned, because what the cells tell of a label moves differently again;
        a fixed weight makes the time latents repeat the factor, which spoils the inverse.
    lambda_ : float
        λ that training ended with for this part; NaN before, and in fits of earlier versions.
    """

    name: str
    variables: tuple[str, ...]
    start: int
    stop: int
    similarity: Similarity
    temperature: float
    learned: bool = False
    offset: int = 1
    time_weight: float = 1.0
    lambda_: float = float("nan")

    @property
    def latents(self) -> slice:
        """Dimensions of the embedding."""
        return slice(self.start, self.stop)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for a file; JSON has no NaN, so None stands for it."""
        lambda_ = None if np.isnan(self.lambda_) else self.lambda_
        return asdict(self) | {"variables": list(self.variables), "lambda_": lambda_}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Part:
        """Part from a file; fields that this version does not know are ignored."""
        known = {f.name: values[f.name] for f in fields(cls) if values.get(f.name) is not None}
        return cls(**{**known, "variables": tuple(values["variables"])})


def part_named(name: str, parts: Sequence[Part]) -> Part:
    """Part of that name; the error lists the names there are."""
    for part in parts:
        if part.name == name:
            return part
    known = ", ".join(part.name for part in parts)
    raise InputError(f"There is no factor {name!r} here; there are: {known}.")


Factors = Mapping[str, "Factor | Sequence[str] | str"]


def as_factors(factors: Factors | None, settings: FitSettings) -> dict[str, Factor]:
    """Factors as the user may write them: a name, a list of names, or a `Factor`."""
    if not isinstance(factors or {}, Mapping):
        raise InputError(
            f"`factors` is {factors!r}: a mapping of names to variables is needed, such as "
            '{"place": ["position"]}.'
        )
    resolved = {}
    for name, given in (factors or {}).items():
        resolved[name] = given if isinstance(given, Factor) else Factor(given)
        _check(name, resolved[name])
    if settings.mode == "time":
        return {}
    if not resolved:
        raise InputError(
            f"`mode` {settings.mode!r} needs at least one of `factors`, each with its behaviour "
            "variables; `mode` 'time' needs none."
        )
    return resolved


def _check(name: str, factor: Factor) -> None:
    if not name or name in RESERVED:
        raise InputError(
            f"A factor is called {name!r}: it needs a name other than {', '.join(RESERVED)}, which "
            "are reserved."
        )
    latents, similarity, temperature = factor.latents, factor.similarity, factor.temperature
    if latents is not None and not (isinstance(latents, int | np.integer) and latents >= 1):
        raise InputError(f"Factor {name!r} has {latents!r} latents: 1 or more is needed.")
    if similarity is not None and similarity not in get_args(Similarity):
        known = ", ".join(get_args(Similarity))
        raise InputError(
            f"Factor {name!r} has similarity {similarity!r}: one of {known} is needed."
        )
    if temperature is not None and not 0 < temperature < np.inf:
        raise InputError(f"Factor {name!r} has temperature {temperature!r}: > 0 is needed.")


def factor_labels(recording: Recording, factors: Mapping[str, Factor]) -> dict[str, Labels]:
    """Labels of every factor."""
    return {name: Labels.of(recording, f.variables, name) for name, f in factors.items()}


def label_offsets(
    recording: Recording, labels: Mapping[str, Labels], settings: FitSettings
) -> dict[str, int]:
    """Frames over which each factor's labels step, at most 5 s and what the blocks allow."""
    if settings.label_offset:
        return dict.fromkeys(labels, settings.label_offset)
    longest = max(1, min(round(5 * recording.rate), recording.n_frames // (10 * settings.blocks)))
    return {
        name: step_offset(label, recording.segment, settings.label_step, longest)
        for name, label in labels.items()
    }


def time_offset(recording: Recording, offsets: Mapping[str, int], settings: FitSettings) -> int:
    """Frames between the members of a time pair: as set, else the slowest label's step."""
    return settings.time_offset or max(offsets.values(), default=max(1, round(recording.rate / 2)))


def lay_out(
    factors: Mapping[str, Factor],
    labels: Mapping[str, Labels],
    segment: np.ndarray,
    offsets: Mapping[str, int],
    settings: FitSettings,
) -> tuple[Part, ...]:
    """Parts of the embedding: factors in their order, then time.

    Parameters
    ----------
    segment : (frames,) int64
        Trial of each frame; label steps are taken within.
    offsets : mapping of str to int
        Frames a step, of each factor and of "time".
    """
    parts: list[Part] = []
    stop = 0
    for name, factor in factors.items():
        label, similarity = labels[name], factor.similarity or settings.similarity
        latents = factor.latents or label.dimensions
        if settings.mode == "supervised":
            latents = label.targets().shape[1]
        step, longer = (_step_variance(label, segment, offsets[n]) for n in (name, TIME))
        matched = settings.temperature == "matched" and similarity == "euclidean" and step > 0
        # τ = 2σ² of the label steps: the optimum of InfoNCE then has the scale of the labels
        temperature = factor.temperature or (2 * step if matched else settings.temperature_value)
        parts.append(
            Part(
                name,
                tuple(factor.variables),
                stop,
                stop + latents,
                similarity,
                temperature,
                settings.temperature == "learned" and factor.temperature is None,
                offsets[name],
                step / longer if longer > 0 and settings.time_weights == "learned" else 1.0,
            )
        )
        stop += latents
    if settings.mode in ("hybrid", "time"):
        parts.append(
            Part(
                TIME,
                (),
                stop,
                stop + settings.time_latents,
                settings.similarity,
                settings.temperature_value,
                settings.temperature == "learned",
                offsets[TIME],
            )
        )
    return tuple(parts)


@dataclass(frozen=True)
class Plan:
    """Labels and layout of a training run.

    Parameters
    ----------
    labels : mapping of str to Labels
        Of every factor.
    offsets : mapping of str to int
        Frames over which the labels of each factor step.
    time_offset : int
        Frames between the members of a time pair.
    parts : tuple of Part
    filter : Filter, optional
        Undoes delay and decay of the indicator; found on the recording if not given.
    courses : mapping of str to Course or None
        Where in each trial a factor is known that has one value in it; None for other factors.
    """

    labels: Mapping[str, Labels]
    offsets: Mapping[str, int]
    time_offset: int
    parts: tuple[Part, ...]
    filter: Filter | None = None
    courses: Mapping[str, Course | None] = field(default_factory=dict)


def plan_for(recording: Recording, factors: Mapping[str, Factor], settings: FitSettings) -> Plan:
    """Labels, offsets and parts for a recording."""
    labels = factor_labels(recording, factors)
    offsets = label_offsets(recording, labels, settings)
    offset = time_offset(recording, offsets, settings)
    parts = lay_out(factors, labels, recording.segment, {**offsets, TIME: offset}, settings)
    courses = {name: Course.of(recording, label) for name, label in labels.items()}
    return Plan(labels, offsets, offset, parts, courses=courses)


def _step_variance(labels: Labels, segment: np.ndarray, offset: int) -> float:
    start = pairs_within(labels, segment, offset)
    return labels.step_variance(start, start + offset)
