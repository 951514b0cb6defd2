"""Overlapping cells are drawn whole."""

import numpy as np
import scipy

from napari_xcebra.recording.footprints import Footprints, drawn_labels


def two_discs(first=1.0, second=1.0, noise=0.0, size=40):
    """Two discs of radius 8 that overlap by half, heavier in their middle."""
    y, x = np.mgrid[:size, :size]
    rng = np.random.default_rng(0)
    masks = []
    for column, weight in ((14, first), (22, second)):
        distance = np.hypot(y - 20, x - column)
        each = weight * (1.5 - distance / 8) * np.exp(noise * rng.normal(size=(size, size)))
        masks.append(np.where(distance <= 8, each, 0))
    return Footprints.from_masks(masks)


def parts(labels, cell):
    return scipy.ndimage.label(labels == cell + 1)[1]


def holes(labels, cell):
    own = labels == cell + 1
    return int((scipy.ndimage.binary_fill_holes(own) & ~own).sum())


def test_an_accepted_cell_lies_above_a_rejected_one_that_is_heavier():
    footprints = two_discs(first=1.0, second=50.0)
    labels = drawn_labels(footprints, np.array([True, False]))
    assert (labels == 1).sum() == (footprints.cell == 0).sum()
    swapped = drawn_labels(footprints, np.array([False, True]))
    assert (swapped == 2).sum() == (footprints.cell == 1).sum()


def test_noisy_weights_tear_neither_of_two_cells():
    footprints = two_discs(noise=0.6)
    plain = footprints.label_image()
    assert max(parts(plain, 0), parts(plain, 1), holes(plain, 0), holes(plain, 1)) > 1
    drawn = drawn_labels(footprints, np.array([True, True]))
    assert parts(drawn, 0) == parts(drawn, 1) == 1
    assert holes(drawn, 0) == holes(drawn, 1) == 0
    edges = [(np.diff(image, axis=axis) != 0).sum() for image in (plain, drawn) for axis in (0, 1)]
    assert sum(edges[2:]) < 0.8 * sum(edges[:2])


def test_the_heavier_of_two_accepted_cells_has_what_they_share():
    labels = drawn_labels(two_discs(first=1.0, second=5.0), np.array([True, True]))
    assert labels[20, 16] == 2 and labels[20, 8] == 1


def test_every_cell_keeps_a_pixel_in_each_plane():
    flat = two_discs()
    both = Footprints.stacked([flat, flat], [2, 2])
    labels = drawn_labels(both, np.array([True, False, False, True]))
    assert set(np.unique(labels[0])) == {0, 1, 2} and set(np.unique(labels[1])) == {0, 3, 4}
    assert (labels[0] == 1).sum() == (labels[1] == 4).sum() == (flat.cell == 0).sum()
