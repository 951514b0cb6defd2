"""Folders as Minian writes them become recordings; what a store claims is not believed."""

import json
import pickle
import shutil
import sys
from importlib import import_module

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from napari_xcebra.errors import InputError
from napari_xcebra.io import open_recording
from napari_xcebra.io.containers.zarr import _stored_array
from napari_xcebra.io.formats import minian
from napari_xcebra.recording.traces import LazyTraces

zarr = pytest.importorskip("zarr")
numcodecs = pytest.importorskip("numcodecs")

RNG = np.random.default_rng(0)
IDS = np.array([3, 4, 9, 20])
FRAMES, HEIGHT, WIDTH = 60, 12, 15
TOP, LEFT = 5, 7


def footprints():
    masks = np.zeros((len(IDS), HEIGHT, WIDTH))
    for i, mask in enumerate(masks):
        mask[2 * i : 2 * i + 3, 3 * i : 3 * i + 4] = RNG.uniform(0.1, 1, (3, 4))
    return masks


def arrays():
    return {
        "A": (("unit_id", "height", "width"), footprints()),
        "C": (("unit_id", "frame"), RNG.random((len(IDS), FRAMES))),
        "S": (("unit_id", "frame"), RNG.random((len(IDS), FRAMES)) * (RNG.random(FRAMES) < 0.1)),
        "YrA": (("unit_id", "frame"), RNG.normal(size=(len(IDS), FRAMES))),
        "max_proj": (("height", "width"), RNG.random((HEIGHT, WIDTH))),
    }


COORDINATES = {
    "unit_id": IDS,
    "frame": np.arange(FRAMES),
    "height": TOP + np.arange(HEIGHT),
    "width": LEFT + np.arange(WIDTH),
}


def put(group, name, values, axes, *, chunks=None, compressor="auto", **how):
    values = np.asarray(values)
    array = group.create_array(
        name, shape=values.shape, chunks=chunks or values.shape, dtype=values.dtype,
        compressors=compressor, **how,
    )  # fmt: skip
    array[...] = values
    array.attrs["_ARRAY_DIMENSIONS"] = list(axes)


def write(folder, found=None, *, one_store=False, coordinates=COORDINATES, **how):
    """A folder as `save_minian` leaves it."""
    for name, (axes, values) in (found or arrays()).items():
        store = folder / ("all.zarr" if one_store else f"{name}.zarr")
        group = zarr.open_group(store, mode="a", zarr_format=2)
        chunks = tuple(min(size, 7) for size in np.shape(values))
        put(group, name, values, axes, chunks=chunks, **how)
        for axis in axes:
            if axis in coordinates and axis not in group:
                put(group, axis, coordinates[axis], [axis])
    return folder / "all.zarr" if one_store else folder


@pytest.mark.parametrize("one_store", [False, True])
def test_units_keep_their_ids_footprints_and_traces(tmp_path, one_store):
    found = arrays()
    path = write(tmp_path, found, one_store=one_store)
    recording = open_recording(path, rate=20.0)
    np.testing.assert_array_equal(recording.cell_ids, IDS)
    np.testing.assert_allclose(recording.traces, found["C"][1].T, rtol=1e-6)
    masks = found["A"][1]
    np.testing.assert_array_equal(
        recording.footprints.label_image()[TOP:, LEFT:] > 0, masks.max(0) > 0
    )
    for i, mask in enumerate(masks):
        own = recording.footprints.cell == i
        rows, columns = recording.footprints.row[own], recording.footprints.column[own]
        np.testing.assert_allclose(
            recording.footprints.weight[own], mask[rows - TOP, columns - LEFT], rtol=1e-6
        )
    assert recording.footprints.shape == (TOP + HEIGHT, LEFT + WIDTH)
    assert recording.images["max"].shape == recording.footprints.shape
    np.testing.assert_allclose(
        recording.images["max"][TOP:, LEFT:], found["max_proj"][1], rtol=1e-6
    )
    events = open_recording(path, rate=20.0, traces="events").traces
    np.testing.assert_allclose(events, found["S"][1].T, rtol=1e-6)
    raw = open_recording(path, rate=20.0, traces="raw").traces
    np.testing.assert_allclose(raw, (found["C"][1] + found["YrA"][1]).T, atol=1e-6)


def test_a_folder_called_minian_within_is_found(tmp_path):
    write(tmp_path / "minian", {n: v for n, v in arrays().items() if n in "AC"})
    assert open_recording(tmp_path, rate=20.0).n_cells == 4


def test_axes_may_lie_in_another_order(tmp_path):
    found = arrays()
    axes, values = found["A"]
    turned = {"A": (axes[::-1], values.transpose()), "C": (("frame", "unit_id"), found["C"][1].T)}
    recording = open_recording(write(tmp_path, turned), rate=20.0)
    np.testing.assert_allclose(recording.traces, found["C"][1].T, rtol=1e-6)
    np.testing.assert_array_equal(
        recording.footprints.label_image()[TOP:, LEFT:] > 0, values.max(0) > 0
    )


def test_units_are_matched_by_id(tmp_path):
    found = arrays()
    write(tmp_path, {"C": found["C"]})
    axes, masks = found["A"]
    other = COORDINATES | {"unit_id": np.array([20, 77, 4])}
    write(tmp_path, {"A": (axes, masks[[3, 2, 1]])}, coordinates=other)
    recording = open_recording(tmp_path, rate=20.0)
    assert set(recording.footprints.cell) == {1, 3}
    assert any("1 units of A have no trace" in note for note in recording.notes)
    assert any("2 units have no footprint" in note for note in recording.notes)


def test_units_thrown_out_by_hand_are_not_accepted(tmp_path):
    write(tmp_path)
    group = zarr.open_group(tmp_path / "C.zarr", mode="a", zarr_format=2)
    put(group, "unit_labels", np.array([3, -1, 9, 20]), ["unit_id"])
    assert open_recording(tmp_path, rate=1.0).accepted.tolist() == [True, False, True, True]


def test_dropped_frames_end_a_segment(tmp_path):
    frames = np.r_[np.arange(20), 30 + np.arange(40)]
    write(tmp_path, coordinates=COORDINATES | {"frame": frames})
    assert open_recording(tmp_path, rate=1.0).starts.tolist() == [0, 20]


def test_stores_without_coordinates_are_numbered(tmp_path):
    write(tmp_path, coordinates={})
    recording = open_recording(tmp_path, rate=1.0)
    assert recording.cell_ids.tolist() == [0, 1, 2, 3]
    assert recording.footprints.shape == (HEIGHT, WIDTH)


@pytest.mark.parametrize(
    "compressor",
    [None, numcodecs.Blosc("zstd"), numcodecs.Zstd(), numcodecs.GZip(), numcodecs.Zlib(),
     numcodecs.LZ4(), numcodecs.BZ2(), numcodecs.LZMA()],
    ids=str,
)  # fmt: skip
def test_every_usual_compression_is_read(tmp_path, compressor):
    found = arrays()
    write(tmp_path, found, compressor=compressor)
    traces = open_recording(tmp_path, rate=1.0).traces
    np.testing.assert_allclose(traces, found["C"][1].T, rtol=1e-6)


def test_chunks_in_folders_of_their_own_are_read(tmp_path):
    found = arrays()
    write(tmp_path, found, chunk_key_encoding={"name": "v2", "separator": "/"})
    assert (tmp_path / "C.zarr" / "C" / "0" / "0").is_file()
    np.testing.assert_allclose(
        open_recording(tmp_path, rate=1.0).traces, found["C"][1].T, rtol=1e-6
    )


def test_large_traces_stay_on_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(import_module("napari_xcebra.io.assemble"), "IN_MEMORY", 10)
    found = arrays()
    recording = open_recording(write(tmp_path, found), rate=1.0)
    assert isinstance(recording.traces, LazyTraces)
    again = pickle.loads(pickle.dumps(recording.traces))
    np.testing.assert_allclose(again[5:9, 1:3], found["C"][1].T[5:9, 1:3], rtol=1e-6)
    (tmp_path / "C.zarr" / "C" / "0.0").write_bytes(b"damaged")
    with pytest.raises(InputError, match="cannot be read"):
        np.asarray(again)


def test_other_folders_are_left_to_others(tmp_path):
    assert not minian.sniff(tmp_path)
    assert not minian.sniff(tmp_path / "nothing")
    (tmp_path / "A.zarr").mkdir()
    (tmp_path / "C.zarr").mkdir()
    assert not minian.sniff(tmp_path)


# what a store claims


def changed(folder, **about):
    path = folder / "C.zarr" / "C" / ".zarray"
    path.write_text(json.dumps(json.loads(path.read_text()) | about))
    return folder


@pytest.mark.parametrize(
    ("about", "sentence"),
    [
        ({"shape": [4, 10**11]}, r"claims 4 × 100000000000 values but its chunks end at 4 × 63"),
        ({"shape": [10**11, 60]}, "its chunks end"),
        ({"shape": [4, 10**30]}, "its shape is"),
        ({"shape": [-4, 60]}, "its shape is"),
        ({"shape": [4, True]}, "its shape is"),
        ({"shape": "4"}, "its shape is"),
        ({"shape": [4]}, "chunks of"),
        ({"shape": [0, 60]}, "are needed"),
        ({"chunks": [4, 10**10]}, "chunks claim"),
        ({"chunks": [0, 7]}, "chunks of"),
        ({"dtype": "|O"}, "plain numbers"),
        ({"dtype": [["x", "<f8"]]}, "plain numbers"),
        ({"dtype": "<U5"}, "plain numbers"),
        ({"dtype": "nonsense"}, "cannot be read"),
        ({"dtype": "<f4"}, "is damaged"),
        ({"compressor": {"id": "pickle"}}, "packed by 'pickle'"),
        ({"filters": [{"id": "pickle"}]}, "packed by 'pickle'"),
        ({"filters": [{"id": "json2"}]}, "packed by 'json2'"),
        ({"filters": [{"id": "vlen-array", "dtype": "|O"}]}, "packed by 'vlen-array'"),
        ({"filters": [{"id": "astype", "encode_dtype": "|O", "decode_dtype": "<f8"}]}, "a filter"),
        ({"filters": "delta"}, "its filters"),
        ({"compressor": None}, "instead of"),
        ({"compressor": "gzip"}, "packed by None"),
        ({"zarr_format": 3}, "version 2"),
        ({"order": "X"}, "order"),
        ({"dimension_separator": "../"}, "named with"),
    ],
)
def test_what_an_array_may_not_claim_is_refused(tmp_path, about, sentence):
    write(tmp_path)
    with pytest.raises(InputError, match=sentence) as caught:
        open_recording(changed(tmp_path, **about), rate=1.0)
    assert "\n" not in str(caught.value)


def test_a_field_of_view_as_large_as_a_country_is_refused(tmp_path):
    write(tmp_path)
    path = tmp_path / "A.zarr" / "A" / ".zarray"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"shape": [4, 10**6, 10**6]}))
    with pytest.raises(InputError, match="field of view of 1000000 × 1000000"):
        open_recording(tmp_path, rate=1.0)


@pytest.mark.parametrize("part", ["C.zarr", "C.zarr/C", "C.zarr/C/0.0", "C.zarr/C/.zattrs"])
def test_links_that_leave_the_folder_are_not_followed(tmp_path, part):
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    write(inside)
    (inside / part).rename(outside)
    (inside / part).symlink_to(outside)
    with pytest.raises(InputError, match="leads out of the folder"):
        open_recording(inside, rate=1.0)


def test_a_folder_of_chunks_that_leads_out_is_not_followed(tmp_path):
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    write(inside, chunk_key_encoding={"name": "v2", "separator": "/"})
    (inside / "C.zarr" / "C" / "0").rename(outside)
    (inside / "C.zarr" / "C" / "0").symlink_to(outside)
    with pytest.raises(InputError, match="leads out of the folder"):
        open_recording(inside, rate=1.0)


def test_a_second_description_of_an_array_is_not_believed(tmp_path):
    write(tmp_path)
    (tmp_path / "C.zarr" / "C" / "zarr.json").write_text("{}")
    with pytest.raises(InputError, match="version 3"):
        open_recording(tmp_path, rate=1.0)


def test_a_store_of_one_number_can_be_read(tmp_path):
    group = zarr.open_group(tmp_path / "x.zarr", mode="w", zarr_format=2)
    put(group, "one", np.float64(5.0), [])
    assert _stored_array(tmp_path / "x.zarr" / "one", tmp_path).read() == 5.0


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sound")
    few = {n: v for n, v in arrays().items() if n in ("A", "C", "S")}
    return [write(folder / name, few, compressor=compressor) for name, compressor in (
        ("blosc", "auto"), ("zstd", numcodecs.Zstd()), ("lz4", numcodecs.LZ4()), ("plain", None),
        ("gzip", numcodecs.GZip()),
    )]  # fmt: skip


FILES = ["A.zarr/A/.zarray", "C.zarr/C/.zarray", "C.zarr/C/.zattrs", "C.zarr/C/0.0",
         "A.zarr/A/0.0.0", "C.zarr/unit_id/.zarray", "C.zarr/unit_id/0"]  # fmt: skip


@settings(max_examples=120, suppress_health_check=list(HealthCheck))
@given(
    which=st.integers(0, 4),
    file=st.sampled_from(FILES),
    keep=st.floats(0, 1),
    flips=st.lists(st.tuples(st.floats(0, 0.999), st.integers(0, 255)), max_size=4),
)
def test_damage_gives_one_sentence_or_a_recording(
    sound, tmp_path_factory, which, file, keep, flips
):
    path = sound[which] / file
    before = path.read_bytes()
    content = bytearray(before)
    for place, value in flips:
        content[int(place * len(content))] = value
    path.write_bytes(content if keep > 0.4 else content[: int(2 * keep * len(content))])
    try:
        open_recording(sound[which], rate=1.0)
    except InputError as error:
        assert "\n" not in str(error)
    finally:
        path.write_bytes(before)


def test_a_missing_library_is_named(tmp_path, monkeypatch):
    write(tmp_path)
    monkeypatch.setitem(sys.modules, "zarr", None)
    with pytest.raises(InputError, match=r"pip install napari-xcebra\[zarr\]"):
        open_recording(tmp_path, rate=1.0)


def test_a_missing_chunk_is_empty(tmp_path):
    found = arrays()
    write(tmp_path, found, fill_value=0)
    (tmp_path / "C.zarr" / "C" / "0.0").unlink()
    traces = open_recording(tmp_path, rate=1.0).traces
    assert (traces[:7, :4] == 0).all()
    shutil.rmtree(tmp_path / "C.zarr" / "unit_id")
    assert open_recording(tmp_path, rate=1.0).cell_ids.tolist() == [0, 1, 2, 3]


def test_large_traces_whose_chunks_do_not_say_their_size_are_refused(tmp_path, monkeypatch):
    """They would be unpacked later, in the process of the window."""
    monkeypatch.setattr(minian, "IN_MEMORY", 100)
    for codec, fine in ((numcodecs.BZ2(), False), (numcodecs.Zstd(), True)):
        folder = tmp_path / codec.codec_id
        write(folder, compressor=codec)
        if fine:
            assert open_recording(folder, rate=10.0).n_cells == len(IDS)
            continue
        with pytest.raises(InputError, match="does not say how large"):
            open_recording(folder, rate=10.0)
