"""What a simulation hands over: a recording, and the truth about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from napari_xcebra.recording import InputError, Recording


@dataclass(frozen=True)
class Simulation:
    """A recording whose truth is known.

    Parameters
    ----------
    recording : Recording
        What a lab would have.
    truth : mapping of str to (cells,) bool
        For each factor, which cells of the recording carry it.
    factors : mapping of str to tuple of str
        Factors worth fitting, and the behaviour variables each is tied to.
    hidden : mapping of str to (frames,) or (frames, k) float
        States that drive the cells but that nobody observed, on the clock of the recording.
    rates : (frames, cells) float or None
        Activity before any noise.
    cell_kinds : (cells,) str or None
        What each cell was made to be, such as "place" or "untuned".
    raw_behavior : mapping of str to (samples, k) float
        Behaviour as it came from its own clock, before it was brought to the frames.
    raw_times : (samples,) float or None
        That clock, in seconds from the first frame.
    description : str
        What was simulated, in words.
    """

    recording: Recording
    truth: Mapping[str, np.ndarray]
    factors: Mapping[str, tuple[str, ...]]
    hidden: Mapping[str, np.ndarray] = field(default_factory=dict)
    rates: np.ndarray | None = None
    cell_kinds: np.ndarray | None = None
    raw_behavior: Mapping[str, np.ndarray] = field(default_factory=dict)
    raw_times: np.ndarray | None = None
    description: str = ""

    def __post_init__(self) -> None:
        frames, cells = self.recording.n_frames, self.recording.n_cells
        for factor, carries in self.truth.items():
            _check_shape(f"truth[{factor!r}]", carries, (cells,))
        for name, state in self.hidden.items():
            _check_shape(f"hidden[{name!r}]", state[:, 0] if state.ndim > 1 else state, (frames,))
        if self.rates is not None:
            _check_shape("rates", self.rates, (frames, cells))
        if self.cell_kinds is not None:
            _check_shape("cell_kinds", self.cell_kinds, (cells,))
        for variables in self.factors.values():
            for name in variables:
                self.recording.variable(name)
        for name in ("truth", "factors", "hidden", "raw_behavior"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))


def _check_shape(name: str, values: np.ndarray, shape: tuple[int, ...]) -> None:
    if np.shape(values) != shape:
        raise InputError(f"{name} has shape {np.shape(values)}: {shape} is needed.")


def check_count(name: str, value: Any, least: int = 0) -> int:
    """Whole number of at least `least`, or one sentence about it."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{name} is {value!r}: a whole number of at least {least} is needed.")
    return int(value)


def check_strength(name: str, value: float) -> float:
    """Strength from 0 to 1, or one sentence about it."""
    return check_number(name, value, 0, 1)


def check_number(name: str, value: float, least: float, most: float = np.inf) -> float:
    """Finite number from `least` to `most`, or one sentence about it."""
    if not (np.isfinite(value) and least <= value <= most):
        span = f"of at least {least}" if most == np.inf else f"from {least} to {most}"
        raise InputError(f"{name} is {value!r}: a number {span} is needed.")
    return float(value)


def check_positive(name: str, value: float, most: float = np.inf) -> float:
    """Finite number above 0, or one sentence about it."""
    if not (np.isfinite(value) and 0 < value <= most):
        span = "above 0" if most == np.inf else f"above 0 and up to {most}"
        raise InputError(f"{name} is {value!r}: a number {span} is needed.")
    return float(value)
