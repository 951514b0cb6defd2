"""Cells must be visible in the images, where the footprints say they are."""

import numpy as np
import pytest

from napari_xcebra.simulate.background import draw_vessels, mean_and_max
from napari_xcebra.simulate.footprints import draw_somata, place_somata

SHAPE = (160, 200)


@pytest.fixture(scope="module")
def scene():
    rng = np.random.default_rng(0)
    vessels = draw_vessels(rng, SHAPE)
    footprints = draw_somata(rng, place_somata(rng, 40, SHAPE, 0.1, vessels), SHAPE)
    response = rng.exponential(0.3, (500, 40))
    images = mean_and_max(rng, footprints, np.ones(40), response, vessels, 0.6)
    return vessels, footprints, images


@pytest.mark.parametrize("name", ["mean", "max"])
def test_cells_are_brighter_than_neuropil_and_neuropil_than_vessels(scene, name):
    vessels, footprints, images = scene
    inside = footprints.label_image() > 0
    image = images[name]
    assert image.shape == SHAPE
    assert image.dtype == np.float32
    neuropil = image[~inside & (vessels < 0.05)].mean()
    assert image[inside].mean() > 1.3 * neuropil
    assert neuropil > 1.1 * image[~inside & (vessels > 0.9)].mean()


def test_the_maximum_lies_above_the_mean(scene):
    images = scene[2]
    assert (images["max"] > images["mean"]).mean() > 0.99
