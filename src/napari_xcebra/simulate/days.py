"""Simulates another day of a field: cells brighter or darker, and some not found again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from napari_xcebra.recording import Footprints, Recording
from napari_xcebra.simulate.simulation import (
    Simulation,
    check_count,
    check_number,
    check_strength,
)


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
