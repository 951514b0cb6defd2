"""Footprints look like somata, overlap as much as asked, and are visible in the images."""

import numpy as np
import pytest
from skimage.measure import label

from napari_xcebra.errors import InputError
from napari_xcebra.simulate.drawing import (
    draw_somata,
    draw_vessels,
    mean_and_max,
    place_somata,
    shared_light,
)

SHAPE, FIELD = (200, 240), (160, 200)


def somata(overlap, cells=100):
    rng = np.random.default_rng(0)
    return draw_somata(rng, place_somata(rng, cells, SHAPE, overlap), SHAPE)


def share_overlapping(footprints, cells=100):
    shared = shared_light(footprints, cells).toarray()
    np.fill_diagonal(shared, 0)
    return (shared > 0.05).any(axis=1).mean()


@pytest.mark.parametrize("overlap", [0.3, 1.0])
def test_footprints_overlap_but_no_cell_disappears(overlap):
    footprints = somata(overlap)
    assert overlap - 0.05 < share_overlapping(footprints) < overlap + 0.2
    assert len(np.unique(footprints.label_image())) == 101


def test_without_overlap_somata_lie_apart():
    assert share_overlapping(somata(overlap=0.0)) < 0.05


def test_a_soma_is_one_piece_of_10_to_15_pixels_across():
    footprints = somata(overlap=0.0)
    for cell in range(100):
        mask = np.zeros(SHAPE, int)
        own = footprints.cell == cell
        mask[footprints.row[own], footprints.column[own]] = 1
        assert label(mask).max() == 1
        assert 60 < mask.sum() < 200


def test_weights_are_soft_at_the_edge_and_at_most_1():
    weight = somata(overlap=0.0).weight
    assert weight.max() == pytest.approx(1)
    assert 0.1 < (weight < 0.5).mean() < 0.5


def test_shared_light_is_none_without_shared_pixels_and_1_with_oneself():
    shared = shared_light(somata(overlap=0.3), 100)
    np.testing.assert_allclose(shared.diagonal(), 1, rtol=1e-5)
    assert shared.min() == 0
    assert shared.nnz < 0.05 * 100**2


def test_no_soma_lies_in_a_vessel():
    rng = np.random.default_rng(0)
    vessels = draw_vessels(rng, SHAPE)
    centres = place_somata(rng, 80, SHAPE, 0.0, vessels)
    assert vessels[tuple(centres.astype(int).T)].max() < 0.3
    assert vessels.max() > 0.9


def test_a_crowd_that_does_not_fit_is_refused():
    with pytest.raises(InputError, match=r"shape is \(64, 64\): only about \d+ of 200 cells fit"):
        place_somata(np.random.default_rng(0), 200, (64, 64), 0.0)


@pytest.fixture(scope="module")
def scene():
    rng = np.random.default_rng(0)
    vessels = draw_vessels(rng, FIELD)
    footprints = draw_somata(rng, place_somata(rng, 40, FIELD, 0.1, vessels), FIELD)
    response = rng.exponential(0.3, (500, 40))
    images = mean_and_max(rng, footprints, np.ones(40), response, vessels, 0.6)
    return vessels, footprints, images


@pytest.mark.parametrize("name", ["mean", "max"])
def test_cells_are_brighter_than_neuropil_and_neuropil_than_vessels(scene, name):
    vessels, footprints, images = scene
    inside = footprints.label_image() > 0
    image = images[name]
    assert image.shape == FIELD
    assert image.dtype == np.float32
    neuropil = image[~inside & (vessels < 0.05)].mean()
    assert image[inside].mean() > 1.3 * neuropil
    assert neuropil > 1.1 * image[~inside & (vessels > 0.9)].mean()


def test_the_maximum_lies_above_the_mean(scene):
    images = scene[2]
    assert (images["max"] > images["mean"]).mean() > 0.99
