"""Images a simulation: a field of view, seen through a microscope and an extractor.

Everything happens at the level of ROIs, which is what a lab hands on; a frame of the movie is
rendered from them when it is looked at.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.recording.footprints import Footprints
from napari_xcebra.recording.traces import Origin
from napari_xcebra.simulate.arena_model import arena
from napari_xcebra.simulate.drawing import (
    PIXEL_SIZE,
    REACH,
    draw_somata,
    draw_vessels,
    mean_and_max,
    movie_of,
    place_somata,
    shared_light,
)
from napari_xcebra.simulate.fluorescence import (
    Optics,
    delta_f,
    draw_spikes,
    imaged,
    indicator_response,
    neuropil,
)
from napari_xcebra.simulate.simulation import (
    Simulation,
    check_count,
    check_positive,
    check_strength,
)

CELLS, FRAMES, RATE = 200, 20_000, 10.0
"""Recording that is simulated if none is given."""


def field(
    simulation: Simulation | None = None,
    *,
    cells: int | None = None,
    frames: int | None = None,
    rate: float | None = None,
    shape: tuple[int, int] = (256, 256),
    mean_rate: float = 2.0,
    snr: float = 12.0,
    neuropil_level: float = 0.6,
    overlap: float = 0.2,
    drift: float = 0.1,
    junk: int = 0,
    seed: int = 0,
) -> Simulation:
    """Two-photon calcium imaging of a simulated population.

    Parameters
    ----------
    simulation : Simulation, optional
        The cells to image. Without it, an animal in an arena: a quarter each of place, direction,
        speed and untuned cells.
    cells, frames : int, optional
        Size of that arena's recording, 200 and 20,000; a given simulation brings its own.
    rate : float, optional
        Its frames per second, 10; a given simulation brings its own.
    shape : (height, width)
        Field of view, in pixels; a soma is about 12 across.
    mean_rate : float
        Spikes per second of a typical cell.
    snr : float
        Peak of a burst of five spikes, in standard deviations of the noise of a typical cell.
    neuropil_level : float
        Brightness of neuropil, in resting brightness of a typical cell.
    overlap : float
        0 to 1, share of the cells that share pixels with a neighbour.
    drift : float
        0 to 1, share of the light that is lost by bleaching until the end.
    junk : int
        Number of ROIs that are no cells but neuropil; they come last and are not accepted.
    seed : int

    Returns
    -------
    Simulation
        Traces are ΔF/F after subtraction of neuropil. Images are "mean" and "max". The movie
        follows the traces.

    Examples
    --------
    >>> simulation = field(cells=12, frames=300, shape=(96, 96), junk=2)
    >>> simulation.recording.n_cells, int(simulation.recording.accepted.sum())
    (14, 12)
    """
    optics = Optics(mean_rate, snr, neuropil_level, drift)
    check_count("junk", junk)
    check_strength("overlap", overlap)
    shape = _checked_shape(shape)
    simulation = _population(simulation, cells, frames, rate, check_count("seed", seed))
    # A stream apart from the one that made the population with the same seed.
    for_tissue, for_light = np.random.default_rng([seed, 1]).spawn(2)
    tissue = _draw_tissue(for_tissue, simulation.recording.n_cells, junk, shape, overlap)
    traces, images = image(for_light, simulation, tissue, optics)
    return _imaged_simulation(simulation, traces, images, tissue, seed, f"{optics}, {tissue}")


@dataclass(frozen=True)
class _Tissue:
    """Cells, other ROIs and vessels in the field of view.

    Parameters
    ----------
    centres : (rois, 2) float
        Rows and columns; cells first, then ROIs that are no cells.
    footprints : Footprints
    brightness : (rois,) float32
        Resting fluorescence, typically 1.
    vessels : (height, width) float
        Darkness of blood vessels, 0 to 1.
    junk : int
        Number of ROIs that are no cells.
    """

    centres: np.ndarray
    footprints: Footprints
    brightness: np.ndarray
    vessels: np.ndarray
    junk: int

    def __str__(self) -> str:
        """Phrase for the notes of a recording."""
        height, width = self.footprints.shape
        return f"{height} × {width} pixels, {self.junk} ROIs that are no cells"


def _draw_tissue(
    rng: np.random.Generator, cells: int, junk: int, shape: tuple[int, int], overlap: float
) -> _Tissue:
    """Random tissue with somata, ROIs of neuropil that are no cells, and blood vessels."""
    for_vessels, for_cells, for_junk = rng.spawn(3)
    vessels = draw_vessels(for_vessels, shape)
    centres = place_somata(for_cells, cells, shape, overlap, vessels)
    stray = for_junk.uniform(REACH, np.array(shape) - 1 - REACH, (junk, 2))
    centres = np.concatenate([centres, stray])
    brightness = for_cells.lognormal(0, 0.4, cells)
    brightness = np.r_[brightness, 0.2 * for_junk.lognormal(0, 0.3, junk)]
    footprints = draw_somata(for_cells, centres, shape)
    return _Tissue(centres, footprints, brightness.astype(np.float32), vessels, junk)


def image(
    rng: np.random.Generator, simulation: Simulation, tissue: _Tissue, optics: Optics
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """ΔF/F of all ROIs, (frames, rois) float32, and background images by name."""
    for_spikes, for_neuropil, for_light, for_images = rng.spawn(4)
    rate, shape = simulation.recording.rate, tissue.footprints.shape
    rates = simulation.rates
    activity = np.asarray(simulation.recording.traces if rates is None else rates)
    spikes = draw_spikes(for_spikes, activity, rate, optics.mean_rate)
    response = indicator_response(for_spikes, spikes, rate)
    around = neuropil(for_neuropil, response, tissue.centres, shape, rate)
    response = _with_silent(response, tissue.junk)
    shared = shared_light(tissue.footprints, len(tissue.centres))
    raw, ring = imaged(for_light, response, around, tissue.brightness, shared, rate, optics)
    images = mean_and_max(
        for_images,
        tissue.footprints,
        tissue.brightness,
        response,
        tissue.vessels,
        optics.neuropil_level,
    )
    return delta_f(raw, ring, rate), images


def _imaged_simulation(
    simulation: Simulation,
    traces: np.ndarray,
    images: dict[str, np.ndarray],
    tissue: _Tissue,
    seed: int,
    how: str,
) -> Simulation:
    """Copy of the simulation with imaged traces; ROIs that are no cells carry nothing."""
    junk, before = tissue.junk, simulation.recording
    note = (
        f"Imaged as ΔF/F of a GCaMP6f-like indicator at {before.rate:g} frames per second: {how}."
    )
    recording = replace(
        before,
        traces=traces,
        cell_ids=None,
        accepted=np.r_[np.asarray(before.accepted), np.zeros(junk, bool)],
        footprints=tissue.footprints,
        pixel_size=PIXEL_SIZE,
        images=images,
        source=f"simulated field, seed {seed}",
        notes=(*before.notes, note),
        movie=movie_of(
            traces, tissue.footprints, tissue.brightness, images["mean"], before.rate, seed
        ),
        origin=Origin(signal="dff"),
    )
    rates, kinds = simulation.rates, simulation.cell_kinds
    return replace(
        simulation,
        recording=recording,
        truth={k: np.r_[cells, np.zeros(junk, bool)] for k, cells in simulation.truth.items()},
        rates=None if rates is None else _with_silent(rates, junk),
        cell_kinds=None if kinds is None else np.r_[kinds, np.full(junk, "junk")],
        description=f"{simulation.description} {note}",
    )


def _with_silent(activity: np.ndarray, rois: int) -> np.ndarray:
    """Activity, (frames, cells), with silent ROIs added."""
    return np.pad(activity, ((0, 0), (0, rois)))


def _population(
    simulation: Simulation | None,
    cells: int | None,
    frames: int | None,
    rate: float | None,
    seed: int,
) -> Simulation:
    """Use the simulation given, or make an arena of four kinds of cells."""
    if simulation is not None:
        for name, value in {"cells": cells, "frames": frames, "rate": rate}.items():
            if value is not None:
                raise InputError(
                    f"{name} is {value!r} but a simulation was given, which brings its own: "
                    f"leave {name} out."
                )
        return simulation
    cells = CELLS if cells is None else check_count("cells", cells, 1)
    rate = RATE if rate is None else check_positive("rate", rate)
    quarter = cells // 4
    return arena(
        place=quarter,
        grid=0,
        direction=quarter,
        speed=quarter,
        untuned=cells - 3 * quarter,
        frames=FRAMES if frames is None else frames,
        dt=1 / rate,
        seed=seed,
    )


def _checked_shape(shape: tuple[int, int]) -> tuple[int, int]:
    if len(shape) != 2:
        raise InputError(f"shape is {shape!r}: two numbers, height and width, are needed.")
    height, width = (check_count(f"shape[{i}]", n, 4 * REACH) for i, n in enumerate(shape))
    return height, width
