"""Every cell can be seen and picked, wherever others lie over it."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from napari_xcebra.errors import InputError
from napari_xcebra.recording.footprints import Footprints

SIZE = 4


@st.composite
def crowded(draw):
    """Footprints in a field so small that cells cover each other, some of them wholly."""
    pixel = st.tuples(
        st.integers(0, SIZE - 1), st.integers(0, SIZE - 1), st.sampled_from([0.1, 0.2, 0.5, 1.0])
    )
    cells = draw(st.lists(st.lists(pixel, max_size=6), min_size=1, max_size=20))
    flat = [(i, *p) for i, pixels in enumerate(cells) for p in pixels]
    cell, row, column, weight = np.array(flat).reshape(-1, 4).T
    return Footprints(
        (SIZE, SIZE), cell.astype(int), row.astype(int), column.astype(int), weight
    )  # fmt: skip


@given(crowded())
def test_no_cell_disappears_unless_there_is_no_room(footprints):
    labels = footprints.label_image()
    shown = set(np.unique(labels)) - {0}
    present = set((footprints.cell + 1).tolist())
    assert shown <= present
    pixel = footprints.row * SIZE + footprints.column
    graph = coo_array(
        (np.ones(len(pixel)), (footprints.cell, pixel)), (len(footprints.cell) + 20, SIZE**2)
    ).tocsr()  # fmt: skip
    most = int((maximum_bipartite_matching(graph, perm_type="column") >= 0).sum())
    assert len(shown) == most


@given(crowded())
def test_a_pixel_is_given_only_to_a_cell_that_has_it(footprints):
    labels = footprints.label_image()
    theirs = set(zip(footprints.row, footprints.column, footprints.cell + 1, strict=True))
    for place in np.argwhere(labels):
        assert (*place, labels[tuple(place)]) in theirs
    assert set(map(tuple, np.argwhere(labels == 0))).isdisjoint({(r, c) for r, c, _ in theirs})


@given(crowded())
def test_a_shared_pixel_goes_to_the_heavier_cell_unless_a_hidden_one_needs_it(footprints):
    labels = footprints.label_image()
    sizes = np.bincount(labels.ravel(), minlength=30)
    for row, column in np.argwhere(labels):
        here = (footprints.row == row) & (footprints.column == column)
        heaviest = footprints.weight[here].max()
        owner = labels[row, column]
        own = footprints.weight[here & (footprints.cell == owner - 1)].max()
        assert own == heaviest or sizes[owner] == 1


def masks(count, *, planes=2, size=6):
    images = np.zeros((count, planes, size, size), np.float32)
    for i, image in enumerate(images):
        image[i % planes, i : i + 2, 1:4] = i + 1
    return images


def test_planes_are_kept_apart():
    footprints = Footprints.from_masks(masks(4))
    assert footprints.shape == (2, 6, 6)
    labels = footprints.label_image()
    assert labels.shape == (2, 6, 6)
    for i in range(4):
        np.testing.assert_array_equal(labels == i + 1, masks(4)[i] > 0)


def test_masks_may_be_of_any_number_type_and_nan_is_outside():
    mask = np.full((3, 3), np.nan)
    mask[1, 1] = 0.5
    footprints = Footprints.from_masks([mask, np.eye(3, dtype=bool), np.eye(3, dtype=np.uint8)])
    np.testing.assert_array_equal(np.bincount(footprints.cell), [1, 3, 3])
    assert footprints.weight.dtype == np.float32


def test_a_mask_without_pixels_keeps_the_place_of_its_cell():
    footprints = Footprints.from_masks([np.eye(3), np.zeros((3, 3)), np.eye(3)])
    assert set(footprints.cell) == {0, 2}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ([], "masks is empty"),
        ([np.eye(3), np.eye(4)], r"Mask 1 has the shape \(4, 4\) but the first has \(3, 3\)"),
        ([np.ones(3)], r"Mask 0 has the shape \(3,\)"),
        ([np.array([["a"]])], "numbers"),
    ],
)
def test_masks_that_are_no_masks_are_refused(given, sentence):
    with pytest.raises(InputError, match=sentence):
        Footprints.from_masks(given)


def one_pixel(**changes):
    whole = {name: np.zeros(1, np.int32) for name in ("cell", "row", "column")}
    return Footprints(**{"shape": (4, 4), **whole, "weight": np.ones(1), **changes})


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"shape": (10**6, 10**6)}, "field of view of 1000000 × 1000000 pixels"),
        ({"shape": (-4, -4)}, "field of view of -4 × -4"),
        ({"shape": (4, 4, 4)}, "shape"),
        ({"cell": np.array([-1])}, "a cell -1"),
        ({"row": np.array([0.5])}, "row of type float64"),
        ({"column": np.zeros((1, 1), int)}, r"column of type int64 and shape \(1, 1\)"),
    ],
)
def test_footprints_that_cannot_be_are_refused(changes, sentence):
    with pytest.raises(InputError, match=sentence):
        one_pixel(**changes)


def test_weights_that_are_not_known_give_way():
    footprints = Footprints(
        (1, 2), np.array([0, 0, 1]), np.zeros(3, int), np.array([0, 1, 0]),
        np.array([0.1, np.nan, np.nan]),
    )  # fmt: skip
    np.testing.assert_array_equal(footprints.label_image(), [[2, 1]])


def many(n_cells, size, radius=6):
    """Discs at random places; a tenth lie wholly under another."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[-radius : radius + 1, -radius : radius + 1]
    disc = np.argwhere(y**2 + x**2 <= radius**2) - radius
    centres = rng.integers(radius, size - radius, (n_cells, 2))
    centres[::10] = centres[1::10]
    pixels = (centres[:, None] + disc + 0).reshape(-1, 2).clip(0, size - 1)
    weight = np.repeat(np.where(np.arange(n_cells) % 10, 1.0, 0.5), len(disc))
    cell = np.repeat(np.arange(n_cells), len(disc))
    return Footprints((size, size), cell, pixels[:, 0], pixels[:, 1], weight.astype(np.float32))


def test_ten_thousand_cells_are_labelled_in_about_a_second():
    footprints = many(10_000, 2048)
    start = time.process_time()
    labels = footprints.label_image()
    assert time.process_time() - start < 5  # 0.3 s
    assert len(np.unique(labels)) == 10_001
    assert labels.dtype == np.uint16


def test_more_cells_than_sixteen_bits_hold_still_have_a_label_each():
    labels = Footprints.on_a_grid(70_000, spacing=3, radius=1).label_image()
    assert labels.max() == 70_000
    assert len(np.unique(labels)) == 70_001
