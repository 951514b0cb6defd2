"""NWB files open by the types of their objects, whatever these are called."""

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from placement import brighter, drawn

from napari_xcebra.errors import InputError
from napari_xcebra.io import open_recording
from napari_xcebra.io.behavior import nwb as nwb_behavior
from napari_xcebra.io.containers.hdf5 import turned
from napari_xcebra.io.formats.nwb import reading as nwb
from napari_xcebra.io.settings import OpenSettings

HEIGHT, WIDTH, FRAMES, CELLS = 24, 20, 50, 6
RNG = np.random.default_rng(0)
DEFAULTS = OpenSettings()


def scene(height=HEIGHT, width=WIDTH):
    """(cells, height, width) masks, and an image on which they are bright."""
    masks = np.zeros((CELLS, height, width), np.float32)
    for i, (row, column) in enumerate([(1, 2), (5, 13), (9, 4), (13, 11), (17, 3), (17, 14)]):
        masks[i, row : row + 3, column : column + 4] = i + 1
    return masks, (masks > 0).sum(0) + 0.1 * RNG.random((height, width))


MASKS, IMAGE = scene()


class Writer:
    """Writes typed objects under any names, as the specification has them."""

    def __init__(self, path):
        self.file = h5py.File(path, "w")
        self.file.attrs.update({"nwb_version": "2.7.0", "neurodata_type": "NWBFile"})

    def group(self, path, kind):
        group = self.file.require_group(path)
        group.attrs["neurodata_type"] = kind
        return group

    def series(self, path, kind, data, *, rate=10.0, start=0.0, times=None, **about):
        group = self.group(path, kind)
        group["data"] = data
        group["data"].attrs.update({"conversion": 1.0, "unit": "n.a.", **about})
        if times is None:
            group["starting_time"] = start
            group["starting_time"].attrs["rate"] = rate
        else:
            group["timestamps"] = times
        return group

    def table(self, path, kind="PlaneSegmentation", **columns):
        group = self.group(path, kind)
        ends = [values for name, values in columns.items() if name.endswith("_index")]
        length = len(ends[0] if ends else next(iter(columns.values())))
        group["id"] = np.arange(length)
        group.attrs["colnames"] = [n for n in columns if not n.endswith("_index")]
        for name, values in columns.items():
            group[name] = values
        return group

    def responses(self, path, data, table, rows=None, *, holder="Fluorescence", **more):
        self.group(path.rpartition("/")[0], holder)
        series = self.series(path, "RoiResponseSeries", data, **more)
        series["rois"] = np.arange(data.shape[1]) if rows is None else rows
        series["rois"].attrs["table"] = table.ref
        return series

    def image(self, path, pixels):
        self.file[path] = pixels
        self.file[path].attrs["neurodata_type"] = "GrayscaleImage"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()


def pixel_columns(masks, x="row"):
    """Columns of a table with the masks as lists of pixels."""
    pixels, ends = [], []
    for mask in masks:
        row, column = np.nonzero(mask)
        first, second = (row, column) if x == "row" else (column, row)
        pixels += zip(first, second, mask[row, column], strict=True)
        ends.append(len(pixels))
    kind = [("x", "u4"), ("y", "u4"), ("weight", "f4")]
    return {"pixel_mask": np.array(pixels, kind), "pixel_mask_index": np.array(ends, "u2")}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "recording.nwb"


TRACES = RNG.random((FRAMES, CELLS)).astype("f4")


def write(path, columns=None, image=IMAGE, **more):
    with Writer(path) as writer:
        table = writer.table("processing/any/seg/thing", **(columns or pixel_columns(MASKS)))
        writer.responses("processing/any/f/series", TRACES, table, **more)
        if image is not None:
            writer.image("processing/any/pictures/avg_projection", image)
    return path


def assert_in_place(footprints, masks=MASKS):
    assert footprints.shape == masks.shape[1:]
    for cell, mask in enumerate(masks):
        np.testing.assert_array_equal(drawn(footprints, cell), mask)


def test_objects_are_found_by_type_under_any_name(path):
    found = nwb.load(write(path, start=2.0), DEFAULTS)
    np.testing.assert_array_equal(np.asarray(found.signals["fluorescence"]), TRACES)
    assert found.rate == 10
    np.testing.assert_allclose(found.times[:3], [2.0, 2.1, 2.2])
    assert_in_place(found.footprints)
    np.testing.assert_allclose(found.images["mean"], IMAGE, rtol=1e-6)
    assert found.accepted is None


def test_the_recording_starts_when_the_file_says(path):
    recording = open_recording(write(path, times=np.arange(FRAMES) / 5 + 100))
    assert recording.rate == pytest.approx(5)
    assert recording.times[0] == 100


@pytest.mark.parametrize("x", ["row", "column"])
@pytest.mark.parametrize("square", [False, True])
def test_pixels_lie_right_whichever_way_round_they_were_written(path, x, square):
    """In a square field of view, by brightness alone."""
    masks, image = scene(HEIGHT, HEIGHT) if square else (MASKS, IMAGE)
    found = nwb.load(write(path, pixel_columns(masks, x), image), DEFAULTS)
    assert_in_place(found.footprints, masks)
    assert not any("rows from columns" in note for note in found.notes)


@pytest.mark.parametrize("turn", [False, True])
@pytest.mark.parametrize("square", [False, True])
def test_images_of_masks_lie_right_whichever_way_round_they_were_written(path, turn, square):
    masks, image = scene(HEIGHT, HEIGHT) if square else (MASKS, IMAGE)
    stored = masks.transpose(0, 2, 1) if turn else masks
    found = nwb.load(write(path, {"image_mask": stored}, image), DEFAULTS)
    assert_in_place(found.footprints, masks)


def test_what_cannot_be_told_is_said_and_can_be_swapped(path):
    masks, _ = scene(HEIGHT, HEIGHT)
    dull = np.zeros((HEIGHT, HEIGHT))
    write(path, pixel_columns(masks), dull)
    found = nwb.load(path, DEFAULTS)
    assert_in_place(found.footprints, masks)
    assert any("swap_axes" in note for note in found.notes)
    swapped = nwb.load(path, OpenSettings(swap_axes=True))
    assert_in_place(swapped.footprints, masks.transpose(0, 2, 1))
    assert not any("swap_axes" in note for note in swapped.notes)


def test_without_an_image_pixels_have_the_row_first_and_images_the_column(path):
    pixels = nwb.load(write(path, image=None), DEFAULTS).footprints
    assert_in_place(pixels, MASKS[:, : pixels.shape[0], : pixels.shape[1]])
    images = nwb.load(write(path, {"image_mask": MASKS}, None), DEFAULTS).footprints
    assert_in_place(images, MASKS.transpose(0, 2, 1))


def test_images_by_neuroconv_are_turned(path):
    write(path, image=IMAGE.T)
    with h5py.File(path, "r+") as file:
        file["general/source_script"] = "Created using NeuroConv v0.7.0"
    found = nwb.load(path, DEFAULTS)
    np.testing.assert_allclose(found.images["mean"], IMAGE, rtol=1e-6)
    assert_in_place(found.footprints)


def test_voxels_have_planes(path):
    kind = [("x", "u4"), ("y", "u4"), ("z", "u4"), ("weight", "f4")]
    voxels = np.array([(1, 2, 0, 1), (3, 4, 2, 5)], kind)
    columns = {"voxel_mask": voxels, "voxel_mask_index": np.array([1, 1, 1, 1, 1, 2])}
    footprints = nwb.load(write(path, columns, None), DEFAULTS).footprints
    assert footprints.shape == (3, 4, 5)
    assert footprints.plane.tolist() == [0, 2]
    assert footprints.cell.tolist() == [0, 5]


def test_a_region_picks_and_orders_the_rows_of_its_table(path):
    rows = np.array([4, 0, 5])
    with Writer(path) as writer:
        table = writer.table("seg/t", **pixel_columns(MASKS), name=[f"n{i}" for i in range(CELLS)])
        table["id"][:] = 10 * np.arange(CELLS)
        writer.responses("x/f/raw", TRACES[:, :3], table, rows)
        reordered = TRACES[:, [2, 1, 3, 0]] * 2
        writer.responses("x/d/dff", reordered, table, np.array([5, 0, 1, 4]), holder="DfOverF")
        writer.image("x/mean", IMAGE)
    found = nwb.load(path, DEFAULTS)
    assert found.cell_ids.tolist() == [0, 40, 50]
    assert found.cells["name"].tolist() == ["n0", "n4", "n5"]
    assert_in_place(found.footprints, MASKS[[0, 4, 5]])
    np.testing.assert_array_equal(np.asarray(found.signals["fluorescence"]), TRACES[:, [1, 0, 2]])
    np.testing.assert_array_equal(np.asarray(found.signals["dff"]), 2 * TRACES[:, [1, 0, 2]])
    assert any("3 ROIs have no trace" in note for note in found.notes)


@pytest.mark.parametrize(
    ("column", "values", "accepted", "probability"),
    [
        ("iscell", np.array([[1, 0.9], [0, 0.1]] * 3), [True, False] * 3, [0.9, 0.1] * 3),
        ("iscell", np.array([1.0, 0.0] * 3), [True, False] * 3, None),
        ("is_cell", np.array([0.8, 0.3] * 3), [True, False] * 3, [0.8, 0.3] * 3),
        ("Accepted", np.array([0, 1] * 3), [False, True] * 3, None),
        ("is_accepted", np.array([False, True] * 3), [False, True] * 3, None),
        ("Rejected", np.array([0, 1] * 3), [True, False] * 3, None),
        ("area", np.arange(6.0), None, None),
    ],
)
def test_acceptance_is_found_in_the_columns_that_writers_use(
    path, column, values, accepted, probability
):
    found = nwb.load(write(path, {**pixel_columns(MASKS), column: values}), DEFAULTS)
    if accepted is None:
        assert found.accepted is None
        assert found.cells["area"].tolist() == list(range(6))
    else:
        assert found.accepted.tolist() == accepted
        assert found.cells.get("probability", np.array(None)).tolist() == probability


@pytest.mark.parametrize(
    ("holder", "series", "signal"),
    [
        ("Fluorescence", "Fluorescence/RoiResponseSeries", "fluorescence"),
        ("DfOverF", "any/any", "dff"),
        ("Fluorescence", "f/dff", "dff"),
        ("Fluorescence", "Neuropil/plane0", "neuropil"),
        ("Fluorescence", "f/neuropil_corrected", "fluorescence"),
        ("Fluorescence", "f/Deconvolved", "events"),
        ("Fluorescence", "f/inferred_spikes", "events"),
        ("Fluorescence", "f/Denoised", "denoised"),
        ("ProcessingModule", "ophys/any", "traces"),
    ],
)
def test_what_a_series_is_follows_from_its_name_and_its_container(path, holder, series, signal):
    with Writer(path) as writer:
        table = writer.table("t", **pixel_columns(MASKS))
        writer.responses(series, TRACES, table, holder=holder)
    assert list(nwb.load(path, DEFAULTS).signals) == [signal]


def test_conversion_and_offset_bring_values_to_their_unit(path):
    write(path, conversion=2.0, offset=3.0)
    traces = np.asarray(nwb.load(path, DEFAULTS).signals["fluorescence"])
    np.testing.assert_allclose(traces, 2 * TRACES + 3, rtol=1e-6)


def test_turned_traces_are_turned_back(path):
    with Writer(path) as writer:
        table = writer.table("t", **pixel_columns(MASKS))
        writer.responses("x/f/raw", TRACES.T, table, np.arange(CELLS))
    found = nwb.load(path, DEFAULTS)
    np.testing.assert_array_equal(np.asarray(found.signals["fluorescence"]), TRACES)


def test_several_tables_are_planes(path):
    with Writer(path) as writer:
        for plane, cells in enumerate([slice(0, 4), slice(4, 6)]):
            columns = pixel_columns(MASKS[cells])
            table = writer.table(f"seg/p{plane}", **columns, iscell=np.arange(len(MASKS[cells])))
            data = TRACES[: FRAMES - plane, cells]
            writer.responses(f"x/Fluorescence/p{plane}", data, table)
            writer.responses(f"x/Neuropil/p{plane}", data, table)
            writer.image(f"images/p{plane}/mean", IMAGE + plane)
    found = nwb.load(path, DEFAULTS)
    assert (found.n_frames, found.n_cells) == (FRAMES - 1, CELLS)
    np.testing.assert_array_equal(np.asarray(found.signals["neuropil"]), TRACES[:-1])
    assert found.footprints.shape == (2, HEIGHT, WIDTH)
    for cell, mask in enumerate(MASKS):
        image = drawn(found.footprints, cell)
        np.testing.assert_array_equal(image[int(cell >= 4)], mask)
        assert not image[int(cell < 4)].any()
    assert found.cells["plane"].tolist() == [0, 0, 0, 0, 1, 1]
    assert found.cells["id_in_plane"].tolist() == [0, 1, 2, 3, 0, 1]
    assert found.accepted.tolist() == [False, True, True, True, False, True]
    np.testing.assert_allclose(found.images["mean"][1], IMAGE + 1, rtol=1e-6)


def test_invalid_times_are_left_out(path):
    write(path)
    with h5py.File(path, "r+") as file:
        group = file.create_group("intervals/invalid_times")
        group.attrs.update({"neurodata_type": "TimeIntervals", "colnames": ["start_time"]})
        group["start_time"], group["stop_time"] = [1.0], [2.0]
    excluded = open_recording(path).excluded
    assert np.flatnonzero(excluded).tolist() == list(range(10, 20))


def add_behavior(writer):
    times = np.arange(200) / 40
    xy = np.stack([times, -times], axis=1)
    xy[3] = np.nan
    writer.group("processing/b/pos", "Position")
    writer.series(
        "processing/b/pos/head", "SpatialSeries", xy, times=times, unit="meters", conversion=0.01
    )
    writer.group("processing/b/dir", "CompassDirection")
    turn = np.linspace(0, 359, 200)
    writer.series("processing/b/dir/hd", "SpatialSeries", turn, rate=40.0, unit="degrees")
    writer.group("processing/b/bts", "BehavioralTimeSeries")
    writer.series("processing/b/bts/speed", "TimeSeries", times[:, None], times=times, unit="cm/s")
    writer.group("processing/b/events", "BehavioralEvents")
    writer.series("processing/b/events/lick", "TimeSeries", np.ones(3), times=[1.0, 1.04, 3.0])
    writer.group("processing/b/epochs", "BehavioralEpochs")
    marks = np.array([1, -1, 1, -1])
    writer.series("processing/b/epochs/run", "IntervalSeries", marks, times=[0.5, 1.0, 2.0, 3.0])
    writer.series("acquisition/wheel", "TimeSeries", np.arange(100), rate=20.0, offset=5.0)
    writer.table(
        "intervals/trials",
        "TimeIntervals",
        start_time=[0.0, 2.0],
        stop_time=[2.0, 4.0],
        side=["left", "right"],
        reward=[0.5, 1.0],
    )


def test_behavior_of_the_same_file_is_on_the_same_clock(path):
    write(path)
    writer = Writer.__new__(Writer)
    writer.file = h5py.File(path, "r+")
    with writer:
        add_behavior(writer)
    recording = open_recording(path)
    names = {"head", "hd", "speed", "lick", "wheel", "side", "reward"}
    assert names <= set(recording.behavior)
    seconds = recording.times
    inside = (seconds > 0.2) & (seconds < 4.8)
    head = recording.behavior["head"]
    np.testing.assert_allclose(head.values[inside, 1], -0.01 * seconds[inside], atol=1e-6)
    assert head.unit == "m"
    assert (recording.behavior["hd"].kind, recording.behavior["hd"].unit) == ("circular", "deg")
    assert recording.behavior["speed"].unit == "cm/s"
    np.testing.assert_allclose(
        recording.behavior["wheel"].values[inside, 0], 5 + 20 * seconds[inside], atol=1e-6
    )
    assert {0, 20, 40} <= set(recording.starts.tolist())


def test_events_are_known_to_be_none_between_events(path):
    write(path)
    writer = Writer.__new__(Writer)
    writer.file = h5py.File(path, "r+")
    with writer:
        add_behavior(writer)
    lick = open_recording(path).behavior["lick"]
    assert lick.kind == "event"
    assert np.isfinite(lick.values).all()
    assert lick.values.sum() == 3
    assert set(np.flatnonzero(lick.values)) <= {9, 10, 11, 29, 30, 31}


def test_behavior_comes_from_a_file_of_its_own(path, tmp_path):
    alone = tmp_path / "behaviour.nwb"
    with Writer(alone) as writer:
        add_behavior(writer)
    assert nwb_behavior.sniff(alone)
    found = nwb_behavior.load(alone, DEFAULTS)
    assert {s.name for s in found.series} == {"head", "hd", "speed", "wheel"}
    assert [e.name for e in found.events] == ["lick"]
    assert [i.name for i in found.intervals] == ["trials", "run"]
    assert found.intervals[1].stop.tolist() == [1.0, 3.0]
    recording = open_recording(write(path), alone)
    assert recording.behavior["speed"].known.sum() > 45
    with pytest.raises(InputError, match="no traces of ROIs"):
        nwb.load(alone, DEFAULTS)
    with pytest.raises(InputError, match="no time series, events or intervals"):
        nwb_behavior.load(path, DEFAULTS)


def test_series_of_one_name_are_told_apart_and_useless_ones_left_out(path):
    with Writer(path) as writer:
        for holder in ("left", "right"):
            writer.group(f"b/{holder}", "PupilTracking")
            writer.series(f"b/{holder}/size", "TimeSeries", np.arange(10.0))
        writer.series("b/words", "TimeSeries", np.array([b"a", b"b"]))
        writer.series("b/short", "TimeSeries", np.arange(10.0), times=np.arange(9.0))
        writer.group("b/motion", "CorrectedImageStack")
        writer.series("b/motion/shift", "TimeSeries", np.arange(10.0))
        backwards = np.array([2.0, 1.0, np.nan, 0.0])
        writer.series("b/backwards", "TimeSeries", backwards, times=backwards)
    found = nwb_behavior.load(path, DEFAULTS)
    assert {s.name for s in found.series} == {"left_size", "right_size", "backwards"}
    assert next(s for s in found.series if s.name == "backwards").values.tolist() == [0, 1, 2]
    assert len(found.notes) == 2


def test_unlikely_points_of_a_pose_are_not_known(path):
    with Writer(path) as writer:
        writer.group("b/pose", "PoseEstimation")
        points = np.ones((3, 2))
        series = writer.series("b/pose/nose", "PoseEstimationSeries", points)
        series["confidence"] = [0.99, 0.2, 0.95]
    (nose,) = nwb_behavior.load(path, DEFAULTS).series
    np.testing.assert_array_equal(np.isnan(nose.values[:, 0]), [False, True, False])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda f: f.attrs.__delitem__("nwb_version"), "no nwb_version"),
        (lambda f: f.attrs.__setitem__("nwb_version", "1.0.6"), "version 2 or later"),
        (lambda f: f.__delitem__("processing/any/f/series/data"), "no data of frames"),
        (lambda f: f["processing/any/f/series/rois"].__setitem__(0, 99), "for row 99"),
        (lambda f: f["processing/any/f/series/rois"].__setitem__(0, -1), "the ROI -1"),
        (lambda f: f["processing/any/seg/thing/pixel_mask_index"].__setitem__(5, 9999), "index"),
        (lambda f: f["processing/any/seg/thing/pixel_mask"].__setitem__(0, (2**31, 1, 1)),
         "outside any image"),
        (lambda f: f.move("processing/any/f/series/rois", "gone"), None),
    ],
)  # fmt: skip
def test_what_does_not_fit_together_gets_a_sentence(path, change, sentence):
    write(path)
    with h5py.File(path, "r+") as file:
        change(file)
    if sentence is None:
        assert nwb.load(path, DEFAULTS).n_cells == CELLS
        return
    with pytest.raises(InputError, match=sentence):
        nwb.load(path, DEFAULTS)


@pytest.mark.parametrize("rows", [[0] * CELLS, [0, 1, 2, 3, 4, 4]])
def test_traces_that_name_the_same_roi_are_kept_apart_and_without_footprints(path, rows):
    write(path)
    with h5py.File(path, "r+") as file:
        file["processing/any/f/series/rois"][...] = rows
    found = nwb.load(path, DEFAULTS)
    assert (found.n_cells, found.footprints, found.cell_ids) == (CELLS, None, None)
    times = rows.count(rows[-1])
    assert any(f"names ROI {rows[-1]} for {times} of its 6 traces" in n for n in found.notes)


def test_traces_in_another_file_are_not_opened(path, tmp_path):
    write(path)
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["data"] = TRACES
    with h5py.File(path, "r+") as file:
        del file["processing/any/f/series/data"]
        file["processing/any/f/series/data"] = h5py.ExternalLink("other.h5", "/data")
    with pytest.raises(InputError, match="links to another file"):
        open_recording(path)


def test_a_file_cut_short_is_said_to_be_incomplete(path):
    write(path)
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(InputError, match="damaged, incomplete"):
        open_recording(path)


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_file_opens_or_gets_a_sentence(path, data):
    if not path.exists():
        with Writer(path) as writer:
            table = writer.table("t", **pixel_columns(MASKS), iscell=np.ones(CELLS))
            writer.responses("x/f/raw", TRACES[:10], table)
            writer.image("x/mean", IMAGE)
            add_behavior(writer)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    broken = path.with_name("broken.nwb")
    broken.write_bytes(content)
    try:
        open_recording(broken)
    except InputError as error:
        assert str(error)


@pytest.fixture(scope="session")
def by_neuroconv(shared_data):
    return open_recording(shared_data / "nwb" / "neuroconv_suite2p.nwb")


@pytest.fixture(scope="session")
def by_pynwb(shared_data):
    return open_recording(shared_data / "nwb" / "nwb_imagemask_rate.nwb")


def test_the_shared_files_open_with_the_right_numbers(by_neuroconv, by_pynwb):
    assert (by_neuroconv.n_cells, by_neuroconv.accepted.sum(), by_neuroconv.n_frames) == (
        36, 30, 2000
    )  # fmt: skip
    assert (by_pynwb.n_cells, by_pynwb.accepted.sum(), by_pynwb.n_frames) == (32, 24, 2000)
    assert by_pynwb.footprints.shape == (128, 100)
    assert by_pynwb.times[0] == pytest.approx(0.1)
    assert list(by_pynwb.behavior) == ["speed", "position", "direction"]


def test_cells_of_the_shared_files_are_brighter_than_around_them(by_neuroconv, by_pynwb):
    for recording in (by_neuroconv, by_pynwb):
        for image in recording.images.values():
            found = brighter(recording.footprints, image)[recording.accepted]
            assert found.mean() > 0.95
    wrong = turned(by_neuroconv.footprints)
    for image in by_neuroconv.images.values():
        assert brighter(wrong, image)[by_neuroconv.accepted].mean() < 0.6


def test_the_same_recording_looks_the_same_from_suite2p_and_from_neuroconv(
    by_neuroconv, shared_data
):
    folder = shared_data / "suite2p-1.1-two-planes" / "plane0"
    traces = np.load(folder / "F.npy")
    raw = open_recording(shared_data / "nwb" / "neuroconv_suite2p.nwb", traces="raw")
    np.testing.assert_array_equal(raw.traces, traces.T)
    with np.load(shared_data / "suite2p-1.1-two-planes" / "truth_plane0.npz") as truth:
        masks = truth["masks"].any(0) if truth["masks"].ndim == 3 else truth["masks"] > 0
    labels = by_neuroconv.footprints.label_image() > 0
    here, there = (masks & labels).sum(), (masks & labels.T).sum()
    assert here > 2 * there


def test_the_same_recording_looks_the_same_from_caiman_and_from_nwb(by_pynwb, shared_data):
    caiman = open_recording(shared_data / "caiman" / "cnmf_results.hdf5")
    np.testing.assert_array_equal(by_pynwb.accepted, caiman.accepted)
    np.testing.assert_allclose(by_pynwb.traces, caiman.traces, atol=1e-5)
    for cell in range(32):
        expected = drawn(caiman.footprints, cell)
        np.testing.assert_allclose(drawn(by_pynwb.footprints, cell), expected, rtol=1e-5)


def test_roiextractors_finds_the_same(by_pynwb, shared_data):
    """In the file with images of masks; it does not read lists of pixels, as neuroconv writes."""
    roiextractors = pytest.importorskip("roiextractors")
    pytest.importorskip("pynwb")
    path = shared_data / "nwb" / "nwb_imagemask_rate.nwb"
    other = roiextractors.NwbSegmentationExtractor(path)
    np.testing.assert_allclose(by_pynwb.traces, other.get_traces(name="dff"), rtol=1e-5)
    masks = other.get_roi_image_masks()
    for cell in range(32):
        np.testing.assert_allclose(drawn(by_pynwb.footprints, cell), masks[..., cell], rtol=1e-5)
