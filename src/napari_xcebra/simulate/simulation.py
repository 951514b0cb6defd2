"""Holds a recording with its truth, its cells, what drives them, and another day of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import scipy

from napari_xcebra.errors import InputError
from napari_xcebra.recording.footprints import Footprints
from napari_xcebra.recording.recording import Recording

TEMPLATES = 60
"""Tuned cells whose distribution of rates and time scale the untuned cells take over."""


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
    description : str
        What was simulated, in words.
    """

    recording: Recording
    truth: Mapping[str, np.ndarray]
    factors: Mapping[str, tuple[str, ...]]
    hidden: Mapping[str, np.ndarray] = field(default_factory=dict)
    rates: np.ndarray | None = None
    cell_kinds: np.ndarray | None = None
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
        for name in ("truth", "factors", "hidden"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))


def _check_shape(name: str, values: np.ndarray, shape: tuple[int, ...]) -> None:
    if np.shape(values) != shape:
        raise InputError(f"{name} has shape {np.shape(values)}: {shape} is needed.")


@dataclass(frozen=True)
class Population:
    """Cells of some kinds: their rates and what they carry.

    Parameters
    ----------
    rates : (frames, cells) float32
    kinds : (cells,) str
    truth : mapping of str to (cells,) bool
    """

    rates: np.ndarray
    kinds: np.ndarray
    truth: Mapping[str, np.ndarray]

    def __str__(self) -> str:
        """Phrase for the notes of a recording."""
        return ", ".join(f"{n} {kind}" for kind, n in Counter(self.kinds.tolist()).items())

    def simulation(
        self,
        recording: Recording,
        factors: Mapping[str, tuple[str, ...]],
        hidden: Mapping[str, np.ndarray],
    ) -> Simulation:
        """Recording of these cells with their truth; that of hidden states only if a cell has it.

        Parameters
        ----------
        recording : Recording
            Its first note describes it.
        factors, hidden
            As `Simulation` has them.
        """
        truth = {f: cells for f, cells in self.truth.items() if f in factors or cells.any()}
        description = recording.notes[0]
        return Simulation(
            recording, truth, factors, hidden, self.rates, self.kinds, description=description
        )

    def lookalikes(self, rng: np.random.Generator, cells: int) -> Population:
        """Untuned cells that look like these, one by one, but follow a process of their own.

        Each has the distribution of rates and the time scale of one of them, so that neither
        gives it away.
        """
        frames, own = self.rates.shape
        timescales = _correlation_time(self.rates)
        rates = np.empty((frames, cells), np.float32)
        for cell, template in enumerate(np.resize(rng.permutation(own), cells)):
            process = ornstein_uhlenbeck(rng, frames, timescales[template])
            rates[np.argsort(process), cell] = np.sort(self.rates[:, template])
        truth = {factor: np.zeros(cells, bool) for factor in self.truth}
        return Population(rates, np.full(cells, "untuned"), truth)


def joined(*populations: Population) -> Population:
    """Cells of all of them, in that order."""
    return Population(
        rates=np.hstack([p.rates for p in populations]),
        kinds=np.concatenate([p.kinds for p in populations]),
        truth={
            factor: np.concatenate([p.truth[factor] for p in populations])
            for factor in populations[0].truth
        },
    )


def population_of(
    rates: Mapping[str, np.ndarray], carried: Mapping[str, Collection[str]]
) -> Population:
    """Cells by kind.

    Parameters
    ----------
    rates : mapping of str to (frames, cells) float
        Rates of the cells of each kind.
    carried : mapping of str to collection of str
        For each factor, the kinds that carry it.
    """
    kinds = np.repeat(list(rates), [r.shape[1] for r in rates.values()])
    truth = {factor: np.isin(kinds, list(by)) for factor, by in carried.items()}
    return Population(np.hstack(list(rates.values())).astype(np.float32), kinds, truth)


def template_counts(kinds: Collection[str], cells: int) -> dict[str, int]:
    """Number of templates of each kind for that many untuned cells."""
    return dict.fromkeys(kinds, -(-min(cells, TEMPLATES) // len(kinds)))


def check_cells(counts: Mapping[str, int]) -> None:
    """Number of cells of each kind, not all 0, or one sentence about it."""
    if sum(check_count(name, count) for name, count in counts.items()) == 0:
        raise InputError(f"{', '.join(counts)} are all 0: at least one cell is needed.")


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


def ornstein_uhlenbeck(
    rng: np.random.Generator, frames: int, timescale: float, columns: int | None = None
) -> np.ndarray:
    """Stationary Ornstein-Uhlenbeck processes of mean 0 and variance 1: (frames[, columns]).

    Parameters
    ----------
    timescale : float
        Frames after which the autocorrelation is 1/e; exact for any size of step.
    columns : int, optional
        Number of independent processes.
    """
    kept = np.exp(-1 / timescale)
    kicks = rng.standard_normal(frames if columns is None else (frames, columns))
    kicks[1:] *= np.sqrt(1 - kept**2)
    return scipy.signal.lfilter([1.0], [1.0, -kept], kicks, axis=0)


def _correlation_time(activity: np.ndarray) -> np.ndarray:
    """Frames until the autocorrelation of each column falls below 1/e, at least 1: (columns,)."""
    frames = len(activity)
    centred = activity - activity.mean(axis=0)
    spectrum = np.fft.rfft(centred, 2 * frames, axis=0)
    correlation = np.fft.irfft(np.abs(spectrum) ** 2, axis=0)[:frames]
    below = correlation < correlation[0] / np.e
    return np.where(below.any(axis=0), np.maximum(below.argmax(axis=0), 1.0), float(frames))


def smoothed(values: np.ndarray, timescale: float) -> np.ndarray:
    """Exponential moving average along the first axis; `timescale` in frames."""
    kept = np.exp(-1 / timescale)
    start = kept * values[:1]
    return scipy.signal.lfilter([1 - kept], [1.0, -kept], values, axis=0, zi=start)[0]


def on_and_off(rng: np.random.Generator, frames: int, off: float, on: float) -> np.ndarray:
    """Switch that stays off, then on, for random times without memory: (frames,) bool.

    `off` and `on` are the mean frames it stays so.
    """
    start, switches = bool(rng.random() < on / (off + on)), 1 - np.exp(-1 / np.array([off, on]))
    chances = (rng.random(frames)[:, None] < switches).tolist()
    states = [start]
    for from_off, from_on in chances[1:]:
        states.append(not from_on if states[-1] else from_off)
    return np.array(states)


def drifted(
    simulation: Simulation,
    *,
    gain: float = 0.4,
    baseline: float = 0.5,
    lost: float = 0.1,
    seed: int = 0,
) -> Simulation:
    """The same cells as another day shows them.

    Parameters
    ----------
    simulation : Simulation
        Such as ``arena(seed=0, day=1)``.
    gain : float
        Standard deviation of the logarithm of the factor by which a cell's trace is stretched.
    baseline : float
        Standard deviation of what is added to it, in standard deviations of the trace.
    lost : float
        0 to 1, share of the cells that are not found; the others keep their ids.
    seed : int

    Examples
    --------
    >>> from napari_xcebra.simulate import arena
    >>> day = drifted(arena(place=10, grid=0, direction=0, speed=0, frames=200, day=1), lost=0.2)
    >>> day.recording.n_cells
    8
    """
    check_number("gain", gain, 0)
    check_number("baseline", baseline, 0)
    check_strength("lost", lost)
    rng = np.random.default_rng([check_count("seed", seed), 2])
    recording, cells = simulation.recording, simulation.recording.n_cells
    traces = np.asarray(recording.traces)
    stretch = np.exp(gain * rng.standard_normal(cells))
    added = baseline * rng.standard_normal(cells) * traces.std(axis=0)
    kept = np.sort(rng.permutation(cells)[round(lost * cells) :])
    traces = (traces * stretch + added).astype(np.float32)
    changed = replace(recording, traces=traces, movie=None)  # which shows the first day
    return _of_cells(replace(simulation, recording=changed), kept)


def _of_cells(simulation: Simulation, kept: np.ndarray) -> Simulation:
    recording, rates, kinds = simulation.recording, simulation.rates, simulation.cell_kinds
    footprints = None if recording.footprints is None else _footprints(recording, kept)
    return replace(
        simulation,
        recording=replace(
            recording,
            traces=np.asarray(recording.traces)[:, kept],
            cell_ids=np.asarray(recording.cell_ids)[kept],
            accepted=np.asarray(recording.accepted)[kept],
            cells={name: np.asarray(column)[kept] for name, column in recording.cells.items()},
            footprints=footprints,
        ),
        truth={factor: carries[kept] for factor, carries in simulation.truth.items()},
        rates=None if rates is None else rates[:, kept],
        cell_kinds=None if kinds is None else kinds[kept],
    )


def _footprints(recording: Recording, kept: np.ndarray) -> Footprints:
    before = recording.footprints
    assert before is not None
    position = np.full(recording.n_cells, -1)
    position[kept] = np.arange(len(kept))
    stays = position[before.cell] >= 0
    return replace(
        before,
        cell=position[before.cell[stays]],
        row=before.row[stays],
        column=before.column[stays],
        weight=before.weight[stays],
        plane=None if before.plane is None else before.plane[stays],
    )
