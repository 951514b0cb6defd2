"""Footprints from label images, masks and ImageJ ROIs, or one sentence that says why not."""

import struct
import time
import zipfile
from types import SimpleNamespace

import numpy as np
import pytest
import tifffile
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from roifile import ROI_OPTIONS, ROI_TYPE, ImagejRoi

from napari_xcebra.errors import InputError
from napari_xcebra.io import open_recording
from napari_xcebra.io.footprint_files import read_footprints, read_regions
from napari_xcebra.recording import Recording

RNG = np.random.default_rng(0)
LABELS = np.zeros((12, 20), np.uint16)
LABELS[1:4, 1:5] = 2
LABELS[6:9, 3:8] = 5
LABELS[2:6, 12:18] = 9
CELLS = 3
IN_ORDER = np.searchsorted([0, 2, 5, 9], LABELS)


def written(tmp_path, kind):
    path = tmp_path / f"labels.{kind.split()[0]}"
    if kind == "npy":
        np.save(path, LABELS)
    elif kind == "tif zlib":
        tifffile.imwrite(path, LABELS, compression="zlib")
    elif kind == "tif float":
        tifffile.imwrite(path, LABELS.astype(np.float32))
    elif kind == "tif imagej":
        tifffile.imwrite(path, LABELS, imagej=True)
    elif kind == "tif tiles":
        tifffile.imwrite(path, LABELS, tile=(16, 16))
    else:
        tifffile.imwrite(path, LABELS)
    return path


KINDS = ["npy", "tif", "tif zlib", "tif float", "tif imagej", "tif tiles"]


@pytest.mark.parametrize("kind", KINDS)
def test_labels_in_ascending_order_are_the_cells_in_order(tmp_path, kind):
    footprints = read_footprints(written(tmp_path, kind), CELLS)
    np.testing.assert_array_equal(footprints.label_image(), IN_ORDER)


def test_an_array_and_a_layer_are_as_good_as_a_file():
    layer = SimpleNamespace(data=LABELS, name="my cells")
    for given_ in (LABELS, layer, LABELS.tolist(), LABELS.astype(np.float64)):
        np.testing.assert_array_equal(read_footprints(given_, CELLS).label_image(), IN_ORDER)
    with pytest.raises(InputError, match="my cells has 3 cells but the traces have 8"):
        read_footprints(layer, 8)


def test_what_the_name_says_matters_less_than_what_is_in_the_file(tmp_path):
    written(tmp_path, "tif").rename(tmp_path / "labels.npy")
    assert read_footprints(str(tmp_path / "labels.npy"), CELLS).n_cells == CELLS


def test_the_number_of_labels_must_be_that_of_the_cells(tmp_path):
    path = tmp_path / "labels.tif"
    tifffile.imwrite(path, np.arange(32, dtype=np.uint8).reshape(4, 8))
    with pytest.raises(InputError, match=r"^labels\.tif has 31 cells but the traces have 36"):
        read_footprints(path, 36)


def test_labels_with_gaps_may_be_the_numbers_of_the_cells():
    footprints = read_footprints(LABELS, 10)
    assert set(footprints.cell) == {1, 4, 8}
    np.testing.assert_array_equal(footprints.label_image(), LABELS)
    with pytest.raises(InputError, match="has 3 cells but the traces have 8"):
        read_footprints(LABELS, 8)


def test_a_stack_of_labels_has_planes(tmp_path):
    stack = np.zeros((2, *LABELS.shape), np.uint16)
    stack[0] = LABELS
    stack[1, 5:8, 5:8] = 11
    for write, name in ((tifffile.imwrite, "labels.tif"), (np.save, "labels.npy")):
        write(tmp_path / name, stack)
        footprints = read_footprints(tmp_path / name, 4)
        assert footprints.shape == stack.shape
        labels = footprints.label_image()
        np.testing.assert_array_equal(labels, np.searchsorted([0, 2, 5, 9, 11], stack))


def test_three_planes_are_not_mistaken_for_colours(tmp_path):
    stack = np.stack([LABELS, LABELS, 2 * LABELS])
    how = {"photometric": "rgb", "planarconfig": "separate"}  # the writer's guess until 2026
    tifffile.imwrite(tmp_path / "labels.tif", stack, **how)
    assert read_footprints(tmp_path / "labels.tif", 6).shape == (3, *LABELS.shape)


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.float32])
@pytest.mark.parametrize("cells_last", [False, True])
def test_masks_are_footprints_too(tmp_path, dtype, cells_last):
    masks = np.stack([LABELS == label for label in (2, 5, 9)]).astype(dtype)
    masks = masks * np.float32(0.5) if dtype is np.float32 else masks
    np.save(tmp_path / "masks.npy", np.moveaxis(masks, 0, -1) if cells_last else masks)
    footprints = read_footprints(tmp_path / "masks.npy", CELLS)
    np.testing.assert_array_equal(footprints.label_image(), IN_ORDER)
    assert footprints.weight[0] == (0.5 if dtype is np.float32 else 1)


# ImageJ


def polygon(points, kind=ROI_TYPE.POLYGON, **about):
    roi = ImagejRoi.frompoints(points)
    roi.roitype = kind
    for name, value in about.items():
        setattr(roi, name, value)
    return roi


def box(kind, top, left, bottom, right):
    roi = ImagejRoi()
    roi.roitype, roi.version = kind, 227
    roi.top, roi.left, roi.bottom, roi.right = top, left, bottom, right
    return roi


def composite():
    """A square of 10 with a hole of 4."""
    path = []
    for low, high in ((2, 12), (5, 9)):
        path += [0, low, low, 1, high, low, 1, high, high, 1, low, high, 4]
    roi = box(ROI_TYPE.RECT, 2, 2, 12, 12)
    roi.multi_coordinates = np.array(path, np.float32)
    roi.shape_roi_size = len(path)
    return roi


def point():
    return polygon([[3, 3]], ROI_TYPE.POINT)


def roi_set(path, rois):
    with zipfile.ZipFile(path, "w") as archive:
        for number, roi in enumerate(rois):
            archive.writestr(f"{number:04}.roi", roi.tobytes())
    return path


SQUARE = [[2, 3], [7, 3], [7, 9], [2, 9]]


@pytest.mark.parametrize("kind", [ROI_TYPE.POLYGON, ROI_TYPE.FREEHAND, ROI_TYPE.TRACED])
def test_an_outline_holds_the_pixels_whose_centre_is_inside(tmp_path, kind):
    footprints = read_footprints(roi_set(tmp_path / "RoiSet.zip", [polygon(SQUARE, kind)]), 1)
    expected = np.zeros((9, 7), int)
    expected[3:9, 2:7] = 1
    np.testing.assert_array_equal(footprints.label_image(), expected)


def test_rectangles_ovals_and_holes_are_filled_as_imagej_does(tmp_path):
    rois = [box(ROI_TYPE.RECT, 0, 20, 4, 25), box(ROI_TYPE.OVAL, 20, 0, 30, 20), composite()]
    footprints = read_footprints(roi_set(tmp_path / "RoiSet.zip", rois), 3)
    labels = footprints.label_image()
    assert (labels == 1).sum() == 4 * 5
    assert (labels[:4, 20:25] == 1).all()
    assert (labels == 2).sum() == pytest.approx(np.pi * 5 * 10, rel=0.03)
    assert np.argwhere(labels == 2).mean(0).tolist() == [24.5, 9.5]
    assert (labels == 3).sum() == 100 - 16
    assert (labels[5:9, 5:9] == 0).all()


def test_outlines_between_pixels_and_boxes_between_pixels_are_understood(tmp_path):
    fine = polygon(np.array([[1.6, 1.6], [4.4, 1.6], [4.4, 4.4], [1.6, 4.4]], np.float32))
    assert fine.subpixelresolution
    oval = box(ROI_TYPE.RECT, 0, 10, 2, 12)
    oval.options |= ROI_OPTIONS.SUB_PIXEL_RESOLUTION
    oval.xd, oval.yd, oval.widthd, oval.heightd = 9.8, 0.1, 2.0, 2.0
    labels = read_footprints(roi_set(tmp_path / "RoiSet.zip", [fine, oval]), 2).label_image()
    assert np.argwhere(labels == 1).min(0).tolist() == [2, 2]
    assert (labels == 1).sum() == 4
    assert (labels == 2).sum() == 4


def test_a_single_roi_is_a_single_cell(tmp_path):
    (tmp_path / "cell.roi").write_bytes(polygon(SQUARE).tobytes())
    assert read_footprints(tmp_path / "cell.roi", 1).n_cells == 1


def test_points_are_passed_over_or_cells_without_pixels(tmp_path):
    path = roi_set(
        tmp_path / "RoiSet.zip", [polygon(SQUARE), point(), box(ROI_TYPE.OVAL, 9, 9, 20, 20)]
    )
    assert set(read_footprints(path, 2).cell) == {0, 1}
    assert set(read_footprints(path, 3).cell) == {0, 2}
    with pytest.raises(InputError, match="has 2 cells and 1 points or lines but the traces have 4"):
        read_footprints(path, 4)


def test_rois_reaching_over_the_edge_are_cut(tmp_path):
    footprints = read_footprints(
        roi_set(tmp_path / "RoiSet.zip", [box(ROI_TYPE.RECT, -3, -2, 4, 5)]), 1
    )
    assert footprints.shape == (4, 5)


def test_rois_lie_in_the_field_of_view_if_it_is_known(tmp_path):
    path = roi_set(tmp_path / "RoiSet.zip", [polygon(SQUARE)])
    assert read_footprints(path, 1, (30, 40)).shape == (30, 40)
    assert read_footprints(path, 1, (3, 4)).shape == (9, 7)
    recording = Recording(RNG.random((5, 1)), 1.0, images={"mean": np.zeros((30, 40))})
    opened = open_recording(recording.save(tmp_path / "r.npz"), footprints=path)
    assert opened.footprints.shape == (30, 40)


def test_a_name_that_leads_elsewhere_leads_nowhere(tmp_path):
    inside = tmp_path / "inside"
    inside.mkdir()
    with zipfile.ZipFile(inside / "RoiSet.zip", "w") as archive:
        archive.writestr("../../escaped.roi", polygon(SQUARE).tobytes())
    assert read_footprints(inside / "RoiSet.zip", 1).n_cells == 1
    assert [p.name for p in tmp_path.rglob("*")] == ["inside", "RoiSet.zip"]


def far_away():
    return polygon(np.array([[0, 0], [1e8, 0], [0, 5]], np.float32))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda p: roi_set(p, []), "holds no ImageJ ROI"),
        (lambda p: roi_set(p, [point()]), "has 0 cells and 1 points"),
        (lambda p: roi_set(p, [box(ROI_TYPE.RECT, 0, 0, 9000, 9000)]), "no cell is that large"),
        (lambda p: roi_set(p, [far_away()]), "outside any field of view"),
        (lambda p: p.write_bytes(b"PK\5\6"), "damaged"),
        (lambda p: p.write_bytes(b"Iout" + bytes(7)), "too short|requires a buffer"),
        (lambda p: p.write_bytes(b"hello"), "neither a label image"),
    ],
)
def test_rois_that_cannot_be_are_refused(tmp_path, make, sentence):
    path = tmp_path / "RoiSet.zip"
    make(path)
    start = time.process_time()
    with pytest.raises(InputError, match=sentence):
        read_footprints(path, 5)
    assert time.process_time() - start < 5


# TIFF


def header(width, height, *, compression=1, pages_loop=False):
    """A TIFF of one page that claims to be that large and has 100 bytes."""
    tags = [(256, 4, width), (257, 4, height), (258, 3, 16), (259, 3, compression), (262, 3, 1),
            (273, 4, 8), (277, 3, 1), (278, 4, height), (279, 4, 100)]  # fmt: skip
    place = 108
    content = struct.pack("<2sHI", b"II", 42, place) + bytes(100) + struct.pack("<H", len(tags))
    content += b"".join(struct.pack("<HHII", tag, type_, 1, value) for tag, type_, value in tags)
    return content + struct.pack("<I", place if pages_loop else 0)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (header(10**6, 10**6), "more memory than it can have"),
        (header(10**6, 10**6, compression=8), "more memory than it can have"),
        (header(10**5, 10**5, compression=8), "it is damaged"),
        (header(5, 10, pages_loop=True), "cannot be read"),
        (header(5, 10, compression=5), "imagecodecs|cannot be read"),
        (b"II*\0", "cannot be read"),
        (b"II*\0" + bytes(4), "contains no image"),
    ],
)
def test_a_tiff_that_claims_what_it_cannot_hold_is_refused(tmp_path, content, sentence, caplog):
    (tmp_path / "labels.tif").write_bytes(content)
    with pytest.raises(InputError, match=sentence) as caught:
        read_footprints(tmp_path / "labels.tif", 5)
    assert "\n" not in str(caught.value)
    assert not caplog.records


def test_a_coloured_image_is_no_label_image(tmp_path):
    tifffile.imwrite(tmp_path / "rgb.tif", np.zeros((8, 8, 3), np.uint8), photometric="rgb")
    with pytest.raises(InputError, match="one greyscale image, or several"):
        read_footprints(tmp_path / "rgb.tif", 5)


@pytest.mark.parametrize(
    ("image", "sentence"),
    [
        (np.zeros((4, 4), int), "has no label"),
        (np.full((4, 4), -2), "the label -2"),
        (np.full((4, 4), 0.5), "not whole numbers"),
        (np.full((4, 4), np.nan), "not whole numbers"),
        (np.full((4, 4), 1e30), "not whole numbers"),
        (np.ones(4, int), "shape"),
        (np.array([["a"]]), "type <U1"),
        (object(), "cannot be read|shape"),
    ],
)
def test_an_image_without_labels_is_refused(image, sentence):
    with pytest.raises(InputError, match=sentence):
        read_footprints(image, 1)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"no file .*nothing\.tif"):
        read_footprints(tmp_path / "nothing.tif", 5)


def test_the_labels_of_another_program_fit_its_traces(shared_data):
    regions = read_regions(shared_data / "generic" / "labels.tif")
    assert regions.fit(36)
    assert not regions.fit(2000)
    assert regions.of_cells(36).shape == (128, 128)


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sound")
    rois = [polygon(SQUARE), box(ROI_TYPE.OVAL, 9, 9, 20, 20), composite()]
    paths = [roi_set(folder / "RoiSet.zip", rois)]
    for number, kind in enumerate(KINDS):
        (folder / str(number)).mkdir()
        paths.append(written(folder / str(number), kind))
    roi = folder / "one.roi"
    roi.write_bytes(composite().tobytes())
    return [p.read_bytes() for p in [*paths, roi]], folder / "damaged"


@settings(max_examples=300, suppress_health_check=list(HealthCheck))
@given(
    which=st.integers(0, len(KINDS) + 1),
    keep=st.floats(0, 1),
    flips=st.lists(st.tuples(st.floats(0, 0.999), st.integers(0, 255)), max_size=4),
    early=st.booleans(),
)
def test_damage_gives_one_sentence_or_footprints(sound, which, keep, flips, early):
    contents, path = sound
    content = bytearray(contents[which])
    reach = min(len(content), 200) if early else len(content)  # headers are where damage tells
    for place, value in flips:
        content[int(place * reach)] = value
    path.write_bytes(content if keep > 0.7 else content[: int(keep * len(content))])
    try:
        read_footprints(path, CELLS)
    except InputError as error:
        assert "\n" not in str(error)
