"""Footprints look like somata, overlap as much as asked, and are visible in the images."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from skimage.measure import label

from napari_xcebra.errors import InputError
from napari_xcebra.io import open_recording, save_recording
from napari_xcebra.simulate import field
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


@pytest.fixture(scope="module")
def recording():
    return field(cells=12, frames=400, shape=(96, 96), junk=2, overlap=0, seed=3).recording


def test_a_cell_brightens_in_the_movie_when_its_trace_rises(recording):
    movie, footprints = recording.movie, recording.footprints
    assert movie.shape == (400, 96, 96)
    for cell in np.flatnonzero(np.asarray(recording.accepted)):
        own = footprints.cell == cell
        rows, columns = footprints.row[own], footprints.column[own]
        seen = [movie.frame(n)[rows, columns].mean() for n in range(0, 400, 4)]
        assert np.corrcoef(seen, recording.traces[::4, cell])[0, 1] > 0.6


def test_the_mean_of_the_movie_is_the_mean_image(recording):
    mean = np.mean([recording.movie.frame(n) for n in range(400)], axis=0)
    np.testing.assert_allclose(mean, recording.images["mean"], rtol=0.12)


def test_a_frame_is_the_same_whenever_and_wherever_it_is_asked_for(recording):
    movie, sent = recording.movie, pickle.loads(pickle.dumps(recording)).movie
    frame = movie.frame(7)
    np.testing.assert_array_equal(sent.frame(7), frame)
    crop = movie.crop([7], 0, slice(10, 30), slice(5, 25))
    np.testing.assert_array_equal(crop[0], frame[10:30, 5:25])
    assert (movie.frame(8) != frame).any()


def test_the_movie_takes_no_second_copy_of_the_traces(recording):
    with_movie, without = (
        len(pickle.dumps(r)) for r in (recording, replace(recording, movie=None))
    )
    (frames,) = recording.movie.planes
    assert with_movie - without < frames.rest.nbytes + frames.gain.nbytes + 2000
    assert frames.traces is recording.traces


def test_a_saved_recording_keeps_its_movie_but_not_that_of_other_traces(recording, tmp_path):
    again = open_recording(save_recording(recording, tmp_path / "same.npz"))
    twice = open_recording(save_recording(again, tmp_path / "again.npz"))
    np.testing.assert_array_equal(twice.movie.frame(7), recording.movie.frame(7))
    doubled = replace(recording, traces=2 * np.asarray(recording.traces))
    assert open_recording(save_recording(doubled, tmp_path / "other.npz")).movie is None
