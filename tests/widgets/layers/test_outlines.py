"""Rings lie around the cells, in their plane, and leave nothing behind."""

import numpy as np

from napari_xcebra.recording.footprints import Footprints
from napari_xcebra.widgets.layers.picking import Outlines


def test_a_ring_touches_the_cell_and_covers_none_of_it():
    labels = Footprints.on_a_grid(9).label_image()
    outlines = Outlines(labels, width=2)
    assert outlines.draw([4])
    ring, cell = outlines.image == 5, labels == 5
    assert not (ring & cell).any()
    rows, columns = np.nonzero(ring)
    own_rows, own_columns = np.nonzero(cell)
    assert rows.min() == own_rows.min() - 2
    assert columns.max() == own_columns.max() + 2
    middle = int(own_rows.mean())
    np.testing.assert_array_equal(ring[middle, own_columns.min() - 2 : own_columns.min()], True)


def test_drawing_others_removes_the_first_and_drawing_the_same_is_no_change():
    outlines = Outlines(Footprints.on_a_grid(9).label_image())
    outlines.draw([0, 1, 8])
    assert not outlines.draw([0, 1, 8])
    assert outlines.draw([8])
    assert set(np.unique(outlines.image)) == {0, 9}
    outlines.draw([])
    assert not outlines.image.any()


def test_a_ring_stays_in_its_plane():
    plane = Footprints.on_a_grid(4).label_image()
    outlines = Outlines(np.stack([plane, 0 * plane]))
    outlines.draw([2])
    assert outlines.image[0].any()
    assert not outlines.image[1].any()


def test_cells_without_pixels_have_no_ring():
    labels = np.zeros((20, 20), np.uint16)
    labels[5:9, 5:9] = 2
    outlines = Outlines(labels)
    outlines.draw([0, 7])
    assert not outlines.image.any()
    outlines.draw([0, 1, 7])
    assert set(np.unique(outlines.image)) == {0, 2}
