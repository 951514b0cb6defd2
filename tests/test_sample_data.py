"""The sample opens in napari as what it claims to be."""

import numpy as np
from napari.layers import Image, Labels, Layer

from napari_xcebra.sample_data import CELLS, imaged_field


def test_the_sample_is_a_mean_image_with_every_cell_labelled_on_top_of_it():
    image, cells = (Layer.create(*layer) for layer in imaged_field())

    assert isinstance(image, Image)
    assert isinstance(cells, Labels)
    assert image.data.shape == cells.data.shape
    assert np.isfinite(image.data).all()
    assert np.ptp(image.data) > 0
    np.testing.assert_array_equal(np.unique(cells.data), np.arange(CELLS + 1))
