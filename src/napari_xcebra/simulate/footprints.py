"""Somata in a field of view: where they lie, which pixels are theirs, which they share."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from skimage.draw import disk

from napari_xcebra.recording import Footprints, InputError

RADII = (5.0, 6.5)
"""Range of the radius of a soma, in pixels."""
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


def place_somata(
    rng: np.random.Generator,
    cells: int,
    shape: tuple[int, int],
    overlap: float,
    vessels: np.ndarray | None = None,
) -> np.ndarray:
    """Centres of somata: most of them apart, a given share in overlapping pairs.

    Parameters
    ----------
    rng : numpy.random.Generator
    cells : int
    shape : (height, width)
        Field of view, in pixels.
    overlap : float
        Share of the cells, 0 to 1, that share pixels with a neighbour; more of them do where the
        field is crowded.
    vessels : (height, width) float, optional
        Darkness of blood vessels, 0 to 1; no soma lies in one.

    Returns
    -------
    (cells, 2) float64 rows and columns
    """
    if min(shape) < 4 * REACH:
        raise InputError(f"shape is {shape}: at least {4 * REACH} × {4 * REACH} pixels are needed.")
    # Each of them makes two cells overlap: itself and a host of its own.
    satellites = min(round(overlap * cells / 2), cells // 2)
    hosts = _apart(rng, cells - satellites, shape, vessels)
    if len(hosts) < cells - satellites:
        raise InputError(
            f"shape is {shape}: only about {len(hosts) + satellites} of {cells} cells fit into it; "
            "a larger field of view is needed."
        )
    beside = [_beside(rng, host, shape) for host in rng.permutation(hosts)[:satellites]]
    return rng.permutation(np.array([*hosts, *beside], float))


def _apart(
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


def _beside(rng: np.random.Generator, host: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Place that overlaps the host but does not cover it."""
    far, angle = rng.uniform(7, 9), rng.uniform(0, 2 * np.pi)
    place = host + far * np.array([np.sin(angle), np.cos(angle)])
    outside = (place < REACH) | (place > np.array(shape) - 1 - REACH)
    return np.where(outside, 2 * host - place, place)


def draw_somata(
    rng: np.random.Generator, centres: np.ndarray, shape: tuple[int, int], *, hollow: float = 0.45
) -> Footprints:
    """Slightly irregular ellipses with soft edges.

    Parameters
    ----------
    rng : numpy.random.Generator
    centres : (cells, 2) float
        Rows and columns, at least `REACH` pixels from the border.
    shape : (height, width)
    hollow : float
        How much dimmer the nucleus is, which excludes the indicator.
    """
    window = np.arange(-REACH, REACH + 1)
    pixels: list[list[np.ndarray]] = [[], [], [], []]
    for cell, centre in enumerate(centres):
        corner = np.round(centre).astype(int)
        y, x = np.meshgrid(window, window, indexing="ij")
        weight = _soma(rng, y - (centre - corner)[0], x - (centre - corner)[1], hollow)
        row, column = np.nonzero(weight >= FAINTEST)
        values = (np.full(len(row), cell), row + corner[0] - REACH, column + corner[1] - REACH)
        for part, value in zip(pixels, (*values, weight[row, column]), strict=True):
            part.append(value)
    cell_, row_, column_ = (np.concatenate(part).astype(np.int32) for part in pixels[:3])
    return Footprints(shape, cell_, row_, column_, np.concatenate(pixels[3]).astype(np.float32))


def _soma(rng: np.random.Generator, y: np.ndarray, x: np.ndarray, hollow: float) -> np.ndarray:
    """Weights, at most 1, of pixels at these distances from the centre of a soma."""
    angle, far = np.arctan2(y, x), np.hypot(y, x)
    radius, flat = rng.uniform(*RADII), rng.uniform(0.0, 0.15)
    edge = radius * (1 + flat * np.cos(2 * (angle - rng.uniform(0, np.pi))))
    for harmonic, size in ((3, 0.05), (4, 0.03)):
        edge += radius * size * rng.normal() * np.cos(harmonic * angle + rng.uniform(0, 2 * np.pi))
    edge = np.clip(edge, 3.5, REACH - 2)
    inside = 1 / (1 + np.exp((far - edge) / EDGE))
    weight = inside * (1 - hollow * np.exp(-((far / (0.45 * edge)) ** 2)))
    return weight / weight.max()


def shared_light(footprints: Footprints, n_rois: int) -> sparse.csr_array:
    """How much of each ROI's signal comes from each other one, through shared pixels.

    Entry (i, j) is Σ w_i w_j / Σ w_i², with 1 on the diagonal.

    Returns
    -------
    (rois, rois) sparse float32
    """
    pixel = footprints.row.astype(np.int64) * footprints.shape[1] + footprints.column
    size = (n_rois, footprints.shape[0] * footprints.shape[1])
    weights = sparse.csr_array((footprints.weight, (footprints.cell, pixel)), shape=size)
    products = sparse.csr_array(weights @ weights.T)
    own = sparse.diags_array(1 / products.diagonal())
    return sparse.csr_array(own @ products)
