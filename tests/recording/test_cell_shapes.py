import numpy as np
import pytest
from skimage.measure import points_in_poly

from napari_xcebra.recording import Footprints
from napari_xcebra.recording.footprints import REACH, CellShapes, correlation


def discs(*places, radius=6, field=(60, 80), planes=None):
    """One disc at each place; overlapping ones keep all their pixels."""
    y, x = np.mgrid[: field[0], : field[1]]
    pixels = [np.nonzero((y - r) ** 2 + (x - c) ** 2 <= radius**2) for r, c in places]
    cell = np.repeat(np.arange(len(places)), [len(rows) for rows, _ in pixels])
    rows, columns = np.concatenate(pixels, axis=1)
    if planes is not None:
        planes = np.asarray(planes)[cell]
        field = (int(planes.max()) + 1, *field)
    return Footprints(field, cell, rows, columns, np.ones(len(cell), np.float32), planes)


def test_an_outline_encloses_its_pixels_and_is_smooth():
    shapes = CellShapes(discs((20, 20), (24, 25)), 2)
    (line,) = shapes.outline(1)
    np.testing.assert_allclose(line[0], line[-1])
    y, x = np.mgrid[:60, :80]
    inside = points_in_poly(np.c_[y.ravel(), x.ravel()], line).reshape(60, 80)
    own = np.zeros((60, 80), bool)
    own[shapes.pixels(1)] = True
    assert (inside != own).sum() <= 0.04 * own.sum()  # also where the other one overlaps
    distance = np.hypot(line[:, 0] - 24, line[:, 1] - 25)
    assert np.ptp(distance) < 0.8  # the steps of the pixels have 1.2


def test_cells_of_a_pixel_of_two_parts_or_of_none_have_their_outlines():
    cell = np.array([2, 0, 0])  # not in order
    shapes = CellShapes(
        Footprints((9, 9), cell, np.array([4, 1, 7]), np.array([4, 1, 7]), np.ones(3, np.float32)),
        4,
    )
    assert [len(shapes.outline(i)) for i in range(4)] == [2, 0, 1, 0]
    np.testing.assert_allclose(shapes.outline(2)[0].mean(axis=0), [4, 4], atol=0.2)
    assert shapes.neighbors(1) == []


def test_neighbours_are_the_cells_close_by_in_the_same_plane():
    places = (20, 20), (20, 24), (40, 70), (20, 33), (20, 21)
    shapes = CellShapes(discs(*places, planes=[0, 0, 0, 0, 1]), 5)
    near = shapes.neighbors(0)
    assert [n.cell for n in near] == [1, 3]
    assert near[0].distance == pytest.approx(4) and near[0].overlap > 0.5
    assert near[1].overlap == 0
    assert REACH * shapes.diameter == pytest.approx(30, abs=1)


def test_a_correlation_knows_doubles_and_leaves_unknown_frames_out():
    rng = np.random.default_rng(0)
    trace = rng.normal(size=500).astype(np.float32)
    assert correlation(trace, 3 * trace + 1) == pytest.approx(1)
    holes = np.where(np.arange(500) % 7, trace, np.nan)
    assert correlation(holes, -trace) == pytest.approx(-1)
    assert abs(correlation(trace, rng.normal(size=500))) < 0.2
    assert np.isnan(correlation(trace, np.ones(500)))


def test_only_a_neighbour_that_touches_may_be_part_of_the_same_cell():
    shapes = CellShapes(discs((20, 20), (20, 28), (20, 45)), 3)
    close, far = shapes.neighbors(0)
    assert close.may_be_same(0.9) and not close.may_be_same(0.3)
    assert not far.may_be_same(1.0)
