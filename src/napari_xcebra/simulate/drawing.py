"""Draws a field of view as two-photon imaging shows it, and renders its movie when looked at."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy import sparse
from scipy.ndimage import gaussian_filter
from skimage.draw import disk

from napari_xcebra.errors import InputError
from napari_xcebra.recording.footprints import Footprints
from napari_xcebra.recording.movies import Movie, RenderedFrames

RADII = (5.0, 6.5)
"""Range of the radius of a soma, in pixels."""
PIXEL_SIZE = 1.2
"""Micrometres: somata are 12 to 16 µm across."""
REACH = 10
"""Half the side of the window a soma is drawn in, in pixels; no soma touches the border."""
EDGE = 0.6
"""Softness of the edge of a soma, in pixels."""
FAINTEST = 0.2
"""Pixels below this weight are not part of a footprint."""
APART, CLOSEST = 14.0, 9.0
"""Distance of somata that do not overlap, in pixels, and what it is relaxed to in a crowd."""
RELAXED = 0.95
"""Factor by which the distance shrinks each time there is no room left."""

HOLLOW = 0.45
"""How much dimmer the nucleus is, which excludes the indicator."""
VESSELS = 3
COUNTS, OFFSET = 400.0, 150.0
"""Detector counts of typical resting fluorescence, and of darkness."""


def place_somata(
    rng: np.random.Generator,
    cells: int,
    shape: tuple[int, int],
    overlap: float,
    vessels: np.ndarray | None = None,
) -> np.ndarray:
    """Rows and columns of somata, (cells, 2) float64: most of them apart, some in pairs.

    Parameters
    ----------
    overlap : float
        Share of the cells, 0 to 1, that share pixels with a neighbour; more of them do where the
        field is crowded.
    vessels : (height, width) float, optional
        Darkness of blood vessels, 0 to 1; no soma lies in one.
    """
    if min(shape) < 4 * REACH:
        raise InputError(f"shape is {shape}: at least {4 * REACH} × {4 * REACH} pixels are needed.")
    # Each of them makes two cells overlap: itself and a host of its own.
    satellites = min(round(overlap * cells / 2), cells // 2)
    hosts = _spread_out(rng, cells - satellites, shape, vessels)
    if len(hosts) < cells - satellites:
        raise InputError(
            f"shape is {shape}: only about {len(hosts) + satellites} of {cells} cells fit into it; "
            "a larger field of view is needed."
        )
    beside = [_place_overlapping(rng, host, shape) for host in rng.permutation(hosts)[:satellites]]
    return rng.permutation(np.array([*hosts, *beside], float))


def _spread_out(
    rng: np.random.Generator, cells: int, shape: tuple[int, int], vessels: np.ndarray | None
) -> np.ndarray:
    """Random places at some distance from each other, fewer than asked for if there is no room."""
    allowed = np.zeros(shape, bool)
    allowed[REACH:-REACH, REACH:-REACH] = True
    if vessels is not None:
        allowed &= vessels < 0.3
    centres: list[np.ndarray] = []
    distance = APART
    while len(centres) < cells and distance >= CLOSEST:
        free = allowed.copy()
        for centre in centres:
            free[disk(centre, distance, shape=shape)] = False
        for pixel in rng.permutation(np.argwhere(free)):
            if len(centres) < cells and free[pixel[0], pixel[1]]:
                centres.append(pixel)
                free[disk(pixel, distance, shape=shape)] = False
        distance *= RELAXED
    return np.array(centres)


def _place_overlapping(
    rng: np.random.Generator, host: np.ndarray, shape: tuple[int, int]
) -> np.ndarray:
    """Place that overlaps the host but does not cover it."""
    far, angle = rng.uniform(7, 9), rng.uniform(0, 2 * np.pi)
    place = host + far * np.array([np.sin(angle), np.cos(angle)])
    outside = (place < REACH) | (place > np.array(shape) - 1 - REACH)
    return np.where(outside, 2 * host - place, place)


def draw_somata(
    rng: np.random.Generator, centres: np.ndarray, shape: tuple[int, int]
) -> Footprints:
    """Slightly irregular ellipses with soft edges.

    Parameters
    ----------
    centres : (cells, 2) float
        Rows and columns, at least `REACH` pixels from the border.
    """
    window = np.arange(-REACH, REACH + 1)
    pixels: list[list[np.ndarray]] = [[], [], [], []]
    for cell, centre in enumerate(centres):
        corner = np.round(centre).astype(int)
        y, x = np.meshgrid(window, window, indexing="ij")
        weight = _soma(rng, y - (centre - corner)[0], x - (centre - corner)[1])
        row, column = np.nonzero(weight >= FAINTEST)
        values = (np.full(len(row), cell), row + corner[0] - REACH, column + corner[1] - REACH)
        for part, value in zip(pixels, (*values, weight[row, column]), strict=True):
            part.append(value)
    cell_, row_, column_ = (np.concatenate(part).astype(np.int32) for part in pixels[:3])
    return Footprints(shape, cell_, row_, column_, np.concatenate(pixels[3]).astype(np.float32))


def _soma(rng: np.random.Generator, y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Weights, at most 1, of pixels at these distances from the centre of a soma."""
    angle, far = np.arctan2(y, x), np.hypot(y, x)
    radius, flat = rng.uniform(*RADII), rng.uniform(0.0, 0.15)
    edge = radius * (1 + flat * np.cos(2 * (angle - rng.uniform(0, np.pi))))
    for harmonic, size in ((3, 0.05), (4, 0.03)):
        edge += radius * size * rng.normal() * np.cos(harmonic * angle + rng.uniform(0, 2 * np.pi))
    edge = np.clip(edge, 3.5, REACH - 2)
    inside = 1 / (1 + np.exp((far - edge) / EDGE))
    weight = inside * (1 - HOLLOW * np.exp(-((far / (0.45 * edge)) ** 2)))
    return weight / weight.max()


def shared_light(footprints: Footprints, n_rois: int) -> sparse.csr_array:
    """Share of each ROI's signal that comes from every other one, through shared pixels.

    Entry (i, j) of (rois, rois) is Σ w_i w_j / Σ w_i², with 1 on the diagonal.
    """
    pixel = footprints.row.astype(np.int64) * footprints.shape[1] + footprints.column
    size = (n_rois, footprints.shape[0] * footprints.shape[1])
    weights = sparse.csr_array((footprints.weight, (footprints.cell, pixel)), shape=size)
    products = sparse.csr_array(weights @ weights.T)
    own = sparse.diags_array(1 / products.diagonal())
    return sparse.csr_array(own @ products)


def draw_vessels(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Darkness of blood vessels, (height, width) float from 0 to 1."""
    vessels = np.zeros(shape)
    size = max(shape)
    for radius in rng.uniform(0.006, 0.02, VESSELS) * size:
        place, heading = rng.uniform(0, shape), rng.uniform(0, 2 * np.pi)
        # From the middle both ways, so that every vessel crosses the field.
        for way in (0, np.pi):
            turns = np.cumsum(rng.normal(0, 0.07, 2 * size))
            angle = heading + way + turns
            path = place + np.cumsum(np.stack([np.sin(angle), np.cos(angle)], 1), axis=0)
            for centre in path[:: max(1, int(radius / 2))]:
                vessels[disk(centre, radius, shape=shape)] = 1
    return gaussian_filter(vessels, 1.2)


def mean_and_max(
    rng: np.random.Generator,
    footprints: Footprints,
    brightness: np.ndarray,
    response: np.ndarray,
    vessels: np.ndarray,
    neuropil_level: float,
) -> dict[str, np.ndarray]:
    """Mean and maximum image over time, in detector counts, without rendering every frame.

    Parameters
    ----------
    brightness : (rois,) float
        Resting fluorescence.
    response : (frames, rois) float
        ΔF/F.
    vessels : (height, width) float
        Darkness, 0 to 1.
    """
    shape = footprints.shape
    tissue = 1.2 * neuropil_level * _texture(rng, shape) * (1 - 0.75 * vessels)
    at_mean = _painted(footprints, brightness * (1 + response.mean(axis=0)))
    at_max = _painted(footprints, brightness * (1 + 0.7 * response.max(axis=0)))
    light = _illumination(shape)
    mean, most = ((tissue + somata) * light for somata in (at_mean, at_max))
    mean, most = gaussian_filter(mean, 0.7), gaussian_filter(most, 0.7)
    mean += 0.02 * np.sqrt(mean) * rng.standard_normal(shape)
    # The maximum of many noisy frames lies a few deviations above the true maximum.
    most += np.sqrt(most) * rng.gumbel(0.35, 0.05, shape)
    return {
        "mean": (OFFSET + COUNTS * mean).astype(np.float32),
        "max": (OFFSET + COUNTS * most).astype(np.float32),
    }


def _illumination(shape: tuple[int, ...]) -> np.ndarray:
    """Share of the light that reaches each pixel: 1 in the middle, less in the corners."""
    return 1 - 0.35 * _distance_from_middle(shape) ** 2


def _painted(footprints: Footprints, value: np.ndarray) -> np.ndarray:
    image = np.zeros(footprints.shape)
    np.add.at(
        image, (footprints.row, footprints.column), footprints.weight * value[footprints.cell]
    )
    return image


def _texture(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Mottled brightness of neuropil around 1."""
    texture = np.ones(shape)
    for sigma, size in ((1.2, 0.12), (4, 0.12), (25, 0.15)):
        layer = gaussian_filter(rng.standard_normal(shape), sigma)
        texture += size * layer / layer.std()
    return np.maximum(texture, 0.1)


def _distance_from_middle(shape: tuple[int, ...]) -> np.ndarray:
    """0 in the middle of the field, 1 in its corners."""
    y, x = np.meshgrid(*(np.linspace(-1, 1, n) for n in shape), indexing="ij")
    return np.hypot(y, x) / np.sqrt(2)


NOISE = 0.35
"""Standard deviation of a pixel at brightness 1, in its brightness."""


def movie_of(
    traces: np.ndarray,
    footprints: Footprints,
    brightness: np.ndarray,
    mean: np.ndarray,
    rate: float,
    seed: int = 0,
) -> Movie:
    """Movie whose mean is the mean image, and whose cells follow the traces.

    Parameters
    ----------
    traces : (frames, rois) float32
        ΔF/F.
    footprints : Footprints
    brightness : (rois,) float
        Resting fluorescence.
    mean : (height, width) float32
        In detector counts.
    rate : float
        Frames per second.
    """
    pixel = np.ravel_multi_index(footprints.pixels, mean.shape)
    light = _illumination(mean.shape).reshape(-1)[pixel]
    gain = COUNTS * footprints.weight * brightness[footprints.cell] * light
    rest = mean.astype(np.float32)
    np.add.at(rest.reshape(-1), pixel, -gain * traces.mean(axis=0)[footprints.cell])
    # the darkest vessels still scatter some light
    rest = np.maximum(rest, np.float32(OFFSET))
    noise = NOISE * float(np.sqrt(COUNTS))
    frames = RenderedFrames(traces, footprints, rest, gain.astype(np.float32), OFFSET, noise, seed)
    low, high = np.percentile(mean, [1, 99.5])
    contrast = float(low) * 0.7, float(high) * 1.5
    return Movie((frames,), Path("simulated movie"), rate=rate, contrast=contrast)
