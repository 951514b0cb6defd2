"""Sorts cells so that those with similar activity are neighbours."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np

from napari_xcebra.errors import InputError

FEW = 4
"""Cells that are not divided any further."""
STEPS = 12
"""Of the power iteration that finds a principal component."""
NEAR = 10
"""Cells at the ends of two groups whose likeness decides which ends meet."""
INSTALL = 'pip install "napari-xcebra[rastermap]"'


def by_correlation(activity: np.ndarray) -> np.ndarray:
    """Positions of the cells, correlated ones beside each other: (cells,) int64.

    Cells are divided in two along the first principal component of their traces, each half again,
    and so on; halves are turned so that the ends that meet are the most alike.

    Parameters
    ----------
    activity : (cells, blocks) float

    Examples
    --------
    >>> phase = np.arange(40) % 4 * np.pi / 2
    >>> activity = np.sin(np.linspace(0, 60, 300) + phase[:, None])
    >>> order = by_correlation(activity)
    >>> int((np.diff(order % 4) != 0).sum())  # four groups, each in one piece
    3
    """
    z = np.asarray(activity, np.float32)
    z = z - z.mean(1, keepdims=True)
    z /= np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1e-12)
    return _divided(np.arange(len(z)), z)


def _divided(cells: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Some cells, in order."""
    score = _first_component(z[cells])
    cells = cells[np.argsort(score, kind="stable")]
    low = int((score < 0).sum())
    if len(cells) <= FEW or not 0 < low < len(cells):
        return cells
    if min(low, len(cells) - low) < len(cells) // 50:  # one that stands apart would halve nothing
        low = len(cells) // 2
    return _joined(_divided(cells[:low], z), _divided(cells[low:], z), z)


def _first_component(z: np.ndarray) -> np.ndarray:
    """Score of each row on the first principal component: (rows,) float32."""
    z = z - z.mean(0)
    # from the row that differs most, so that the same cells are always sorted alike
    axis = z[np.square(z).sum(1).argmax()]
    for _ in range(STEPS):
        axis = z.T @ (z @ axis)
        axis = axis / max(float(np.linalg.norm(axis)), 1e-12)
    score: np.ndarray = z @ axis
    return score


def _joined(one: np.ndarray, other: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Two groups one after the other, each as it is or the other way round."""
    ends = [(z[group[:NEAR]].mean(0), z[group[-NEAR:]].mean(0)) for group in (one, other)]
    alike = np.array([[float(a @ b) for b in ends[1]] for a in ends[0]])
    of_one, of_other = np.unravel_index(alike.argmax(), (2, 2))
    first = one if of_one == 1 else one[::-1]
    return np.concatenate([first, other if of_other == 0 else other[::-1]])


def has_rastermap() -> bool:
    """Whether rastermap is installed; it is an extra, as its licence is the GPL."""
    return find_spec("rastermap") is not None


def by_rastermap(activity: np.ndarray) -> np.ndarray:
    """Positions of the cells as rastermap sorts them (Stringer et al. 2025): (cells,) int64.

    Parameters
    ----------
    activity : (cells, blocks) float
    """
    if not has_rastermap():
        raise InputError(f"rastermap is not installed: {INSTALL}")
    from rastermap import Rastermap

    z = np.asarray(activity, np.float32)
    clusters = None if len(z) < 200 else 100
    parts = min(128, *(size - 1 for size in z.shape))
    model = Rastermap(n_clusters=clusters, n_PCs=parts, locality=0.0, verbose=False)
    return np.asarray(model.fit(z, compute_X_embedding=False).isort, np.int64)
