"""The embedding split into named parts: one a behaviour factor, and one for time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from napari_xcebra.learn.labels import Labels
from napari_xcebra.learn.settings import FitSettings, Similarity
from napari_xcebra.recording import InputError, Recording

TIME = "time"


@dataclass(frozen=True)
class Factor:
    """What the user wants attributed: variables, and how, where it should differ from the settings.

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


@dataclass(frozen=True)
class Part:
    """Dimensions start to stop of the embedding, and what they are trained on.

    Parameters
    ----------
    temperature : float
        τ of the similarity φ/τ; where learning starts if `learned`.
    """

    name: str
    variables: tuple[str, ...]
    start: int
    stop: int
    similarity: Similarity
    temperature: float
    learned: bool = False

    @property
    def latents(self) -> slice:
        """Dimensions of the embedding."""
        return slice(self.start, self.stop)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for a file."""
        return asdict(self) | {"variables": list(self.variables)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Part:
        """Part from a file."""
        return cls(**{**values, "variables": tuple(values["variables"])})


Factors = Mapping[str, "Factor | Sequence[str] | str"]


def as_factors(factors: Factors | None, settings: FitSettings) -> dict[str, Factor]:
    """Factors as the user may write them: a name, a list of names, or a `Factor`."""
    resolved = {}
    for name, given in (factors or {}).items():
        if isinstance(given, str):
            given = [given]
        factor = given if isinstance(given, Factor) else Factor(tuple(given))
        resolved[name] = factor
        if factor.latents is not None and factor.latents < 1:
            raise InputError(f"Factor {name!r} has {factor.latents} latents: 1 or more is needed.")
    if settings.mode == "time":
        return {}
    if not resolved:
        raise InputError(
            f"factors is empty: mode {settings.mode!r} needs at least one, such as "
            '{"place": ["position"]}; mode "time" needs none.'
        )
    if TIME in resolved:
        raise InputError(f'A factor is called "{TIME}", the name of the part for unobserved '
                         "states: another name is needed.")  # fmt: skip
    return resolved


def factor_labels(recording: Recording, factors: Mapping[str, Factor]) -> dict[str, Labels]:
    """Labels of every factor."""
    return {name: Labels.of(recording, f.variables, name) for name, f in factors.items()}


def lay_out(
    factors: Mapping[str, Factor],
    labels: Mapping[str, Labels],
    starts: np.ndarray,
    settings: FitSettings,
) -> tuple[Part, ...]:
    """Parts of the embedding: factors in their order, then time.

    Parameters
    ----------
    starts : (n,) int64
        First frames of the training pairs, from which label steps are taken.
    """
    parts: list[Part] = []
    stop = 0
    for name, factor in factors.items():
        latents = factor.latents or labels[name].dimensions
        if settings.mode == "supervised":
            latents = labels[name].targets().shape[1]
        parts.append(
            Part(
                name,
                tuple(factor.variables),
                stop,
                stop + latents,
                factor.similarity or settings.similarity,
                factor.temperature or _temperature(labels[name], starts, settings),
                settings.temperature == "learned" and factor.temperature is None,
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
            )
        )
    return tuple(parts)


def _temperature(labels: Labels, starts: np.ndarray, settings: FitSettings) -> float:
    """τ = 2σ² of the label steps: the optimum of InfoNCE then has the scale of the labels."""
    if settings.temperature != "matched" or settings.similarity != "euclidean":
        return settings.temperature_value
    known = starts[labels.known[starts] & labels.known[starts + settings.time_offset]]
    return 2 * labels.step_variance(known, known + settings.time_offset) or 1.0
