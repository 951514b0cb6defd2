"""Images a simulation: a field of view, seen through a microscope and an extractor.

Everything happens at the level of ROIs, which is what a lab hands on; a frame of the movie is
rendered from them when it is looked at.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy  # whose parts are imported when they are first used
from scipy import sparse

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
from napari_xcebra.simulate.simulation import (
    Simulation,
    check_count,
    check_number,
    check_positive,
    check_strength,
    ornstein_uhlenbeck,
    smoothed,
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
    optics = _Optics(mean_rate, snr, neuropil_level, drift)
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
    rng: np.random.Generator, simulation: Simulation, tissue: _Tissue, optics: _Optics
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """ΔF/F of all ROIs, (frames, rois) float32, and background images by name."""
    for_spikes, for_neuropil, for_light, for_images = rng.spawn(4)
    rate, shape = simulation.recording.rate, tissue.footprints.shape
    rates = simulation.rates
    activity = np.asarray(simulation.recording.traces if rates is None else rates)
    spikes = _draw_spikes(for_spikes, activity, rate, optics.mean_rate)
    response = _indicator_response(for_spikes, spikes, rate)
    around = _neuropil(for_neuropil, response, tissue.centres, shape, rate)
    response = _with_silent(response, tissue.junk)
    shared = shared_light(tissue.footprints, len(tissue.centres))
    raw, ring = _imaged(for_light, response, around, tissue.brightness, shared, rate, optics)
    images = mean_and_max(
        for_images,
        tissue.footprints,
        tissue.brightness,
        response,
        tissue.vessels,
        optics.neuropil_level,
    )
    return _delta_f(raw, ring, rate), images


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


RISE, DECAY = 0.07, 0.6
"""Time constants of the indicator, in s; those of GCaMP6f in a soma."""
BRIGHTEST, HALF, COOPERATIVITY = 4.0, 10.0, 1.4
"""ΔF/F of a saturated cell; calcium of how many spikes reaches half of it; Hill exponent."""
SUBTRACTED = 0.7
"""Share of the surrounding neuropil that extractors subtract from an ROI."""
CONTAMINATION = (0.55, 0.9)
"""Range of the true contamination; the difference is left in the traces."""
NEUROPIL_SWING = 0.06
"""Standard deviation of neuropil, in its mean."""
LEAK = 0.5
"""Share of the light of an overlapping neighbour that extractors leave in an ROI."""
BURST = 5
"""Spikes of the burst that signal-to-noise ratios refer to."""
BASELINE_WINDOW, BASELINE_PERCENTILE = 60.0, 8
"""Seconds over which, and the percentile at which, a baseline is taken."""


@dataclass(frozen=True)
class _Optics:
    """Quality of the imaging.

    Parameters
    ----------
    mean_rate, snr, neuropil_level, drift : float
        As `field` takes them.
    """

    mean_rate: float = 2.0
    snr: float = 12.0
    neuropil_level: float = 0.6
    drift: float = 0.1

    def __post_init__(self) -> None:
        check_positive("mean_rate", self.mean_rate)
        check_positive("snr", self.snr)
        check_number("neuropil_level", self.neuropil_level, 0)
        check_number("drift", self.drift, 0, 0.9)

    def __str__(self) -> str:
        """Phrase for the notes of a recording."""
        return (
            f"{self.mean_rate:g} spikes per second, signal-to-noise {self.snr:g}, "
            f"neuropil {self.neuropil_level:g}, drift {self.drift:g}"
        )

    @property
    def photons(self) -> float:
        """Photons per frame at brightness 1, which give a typical cell its signal-to-noise."""
        resting = 1 + SUBTRACTED * self.neuropil_level
        return (self.snr / _burst_response()) ** 2 * resting


def _draw_spikes(
    rng: np.random.Generator, rates: np.ndarray, frame_rate: float, mean_rate: float
) -> np.ndarray:
    """Poisson spikes of cells that differ in how much they fire: (frames, cells) float32 counts.

    Parameters
    ----------
    rates : (frames, cells) float
        In any unit; a cell with negative ones is shifted so that its lowest is 0.
    frame_rate, mean_rate : float
        Frames per second, and spikes per second of a typical cell.
    """
    positive = rates - np.minimum(rates.min(axis=0), 0)
    mean = positive.mean(axis=0)
    wanted = mean_rate * rng.lognormal(-0.06, 0.35, rates.shape[1])
    scale = np.divide(wanted / frame_rate, mean, out=np.zeros_like(wanted), where=mean > 0)
    return rng.poisson(positive * scale).astype(np.float32)


def _indicator_response(
    rng: np.random.Generator, spikes: np.ndarray, frame_rate: float
) -> np.ndarray:
    """ΔF/F of the indicator: double-exponential kernel, then saturation.

    Spikes and ΔF/F are (frames, cells); time constants differ between cells by about 15 %.
    """
    response = np.empty(spikes.shape, np.float32)
    decay = DECAY * rng.uniform(0.8, 1.25, (spikes.shape[1],))
    for cell in range(spikes.shape[1]):
        response[:, cell] = _calcium(spikes[:, cell], RISE, decay[cell], frame_rate)
    return _saturated(response)


def _calcium(spikes: np.ndarray, rise: float, decay: float, frame_rate: float) -> np.ndarray:
    """Calcium of a spike train, 1 at the peak of a lone spike."""
    slow, fast = np.exp(-1 / (decay * frame_rate)), np.exp(-1 / (rise * frame_rate))
    time = np.arange(1, 2 + int(np.ceil(5 * rise * frame_rate)) + int(decay * frame_rate))
    peak = (slow**time - fast**time).max()
    # The difference of two exponentials, as one recursion.
    return scipy.signal.lfilter([(slow - fast) / peak], [1, -slow - fast, slow * fast], spikes)


def _saturated(calcium: np.ndarray) -> np.ndarray:
    """Hill curve: ΔF/F of calcium given in units of a lone spike."""
    bound = np.maximum(calcium, 0) ** COOPERATIVITY
    return (BRIGHTEST * bound / (bound + HALF**COOPERATIVITY)).astype(np.float32)


def _neuropil(
    rng: np.random.Generator,
    response: np.ndarray,
    centres: np.ndarray,
    shape: tuple[int, ...],
    frame_rate: float,
) -> np.ndarray:
    """Fluorescence of the tissue around each ROI, in its mean.

    Part of it is common (slow, and following the population), part differs from place to place.

    Parameters
    ----------
    response : (frames, cells) float
        ΔF/F of the cells.
    centres : (rois, 2) float
        Rows and columns of the ROIs.

    Returns
    -------
    (frames, rois) float32
    """
    frames = len(response)
    population = smoothed(response.mean(axis=1), frame_rate)
    population = (population - population.mean()) / max(population.std(), 1e-9)
    common = (population + ornstein_uhlenbeck(rng, frames, 20 * frame_rate)) / np.sqrt(2)
    sources = rng.uniform(0, shape, (8, 2))
    near = ((centres[None] - sources[:, None]) ** 2).sum(axis=2) / (0.25 * max(shape)) ** 2
    local = ornstein_uhlenbeck(rng, frames, 3 * frame_rate, len(sources)) @ np.exp(-near / 2)
    return (1 + NEUROPIL_SWING * (common[:, None] + local)).astype(np.float32)


def _imaged(
    rng: np.random.Generator,
    response: np.ndarray,
    around: np.ndarray,
    brightness: np.ndarray,
    shared: sparse.csr_array,
    frame_rate: float,
    optics: _Optics,
) -> tuple[np.ndarray, np.ndarray]:
    """Raw fluorescence of the ROIs and of the neuropil around them: two (frames, rois) float32.

    Parameters
    ----------
    response : (frames, rois) float32
        ΔF/F of what lies in the ROI.
    around : (frames, rois) float32
        Neuropil, in its mean.
    brightness : (rois,) float
        Resting fluorescence, typically 1.
    shared : (rois, rois) sparse
        See `drawing.shared_light`.
    """
    frames, rois = response.shape
    leaking = LEAK * shared + (1 - LEAK) * sparse.eye_array(rois)
    somatic = (leaking @ (brightness * (1 + response)).T).T
    contamination = rng.uniform(*CONTAMINATION, rois)
    outside = (optics.neuropil_level * around).astype(np.float32)
    light = (somatic + contamination * outside).astype(np.float32)
    fading = _fading(rng, frames, rois, frame_rate, optics.drift)
    light, outside = light * fading, outside * fading
    noise = np.sqrt(light / optics.photons) * rng.standard_normal(light.shape, np.float32)
    # A ring of neuropil has many more pixels than a soma, so it is less noisy.
    ring_noise = np.sqrt(outside / (10 * optics.photons)) * rng.standard_normal(
        light.shape, np.float32
    )
    return light + noise, outside + ring_noise


def _burst_response() -> float:
    """ΔF/F at the peak of a burst of `BURST` spikes at once."""
    return float(_saturated(np.array(float(BURST))))


def _fading(
    rng: np.random.Generator, frames: int, rois: int, frame_rate: float, drift: float
) -> np.ndarray:
    """Bleaching to a share 1 - drift, and slow movement in depth, (frames, rois)."""
    elapsed = np.linspace(0, 1, frames)
    bleached = (1 - np.exp(-2 * elapsed)) / (1 - np.exp(-2))
    depth = ornstein_uhlenbeck(rng, frames, 120 * frame_rate)[:, None]
    sensitivity = np.clip(rng.normal(0, 0.15 * drift, rois), -0.2, 0.2)
    moved = np.maximum(1 + depth * sensitivity, 0.1)
    return ((1 - drift * bleached)[:, None] * moved).astype(np.float32)


def _delta_f(raw: np.ndarray, ring: np.ndarray, frame_rate: float) -> np.ndarray:
    """ΔF/F after subtraction of neuropil, over a running baseline: (frames, rois) float32.

    The median of the neuropil is added back, so that dim cells are not divided by almost nothing.

    Parameters
    ----------
    raw, ring : (frames, rois) float
        Fluorescence of the ROIs, and around them.
    """
    corrected = raw - SUBTRACTED * (ring - np.median(ring, axis=0))
    baseline = _running_baseline(corrected, max(2, round(BASELINE_WINDOW * frame_rate)))
    floor = 0.05 * np.maximum(np.median(raw, axis=0), 1e-6)
    baseline = np.maximum(baseline, floor)
    return ((corrected - baseline) / baseline).astype(np.float32)


def _running_baseline(traces: np.ndarray, window: int) -> np.ndarray:
    """Low percentile of successive windows, joined by straight lines; (frames, rois)."""
    blocks = np.array_split(np.arange(len(traces)), max(1, len(traces) // window))
    levels = [np.percentile(traces[block], BASELINE_PERCENTILE, axis=0) for block in blocks]
    if len(blocks) == 1:
        return np.broadcast_to(levels[0], traces.shape)
    middles = np.array([block.mean() for block in blocks])
    frames = np.clip(np.arange(len(traces)), middles[0], middles[-1])
    return scipy.interpolate.make_interp_spline(middles, np.array(levels), k=1)(frames)
