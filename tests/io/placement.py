"""Whether footprints lie on the cells of an image, measured apart from how they are read."""

import numpy as np
from scipy.ndimage import binary_dilation


def drawn(footprints, cell):
    """Weights of one cell as an image."""
    image = np.zeros(footprints.shape)
    own = footprints.cell == cell
    image[tuple(axis[own] for axis in footprints.pixels)] = footprints.weight[own]
    return image


def brighter(footprints, image):
    """(cells,) bool, whether the middle of each cell is brighter than the ring around it."""
    found = []
    for cell in range(footprints.n_cells):
        mask = drawn(footprints, cell)
        middle = mask > 0.5 * mask.max()
        ring = binary_dilation(mask > 0, iterations=4) & ~(mask > 0)
        found.append(image[middle].mean() > image[ring].mean())
    return np.array(found)
