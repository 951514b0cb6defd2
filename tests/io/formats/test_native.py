"""A recording that is saved comes back as it was, or not at all."""

import json
import pickle
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from napari_xcebra.errors import InputError
from napari_xcebra.io import open_recording, save_recording
from napari_xcebra.io.containers.npy import NpzTraces
from napari_xcebra.recording import Footprints, Recording, Variable
from napari_xcebra.recording.traces import NpyTraces

RNG = np.random.default_rng(0)


def full_recording():
    values = RNG.normal(size=(50, 2))
    values[3] = np.nan
    return Recording(
        traces=RNG.normal(size=(50, 4)).astype(np.float32),
        rate=7.3,
        behavior={
            "position": Variable("position", values, unit="cm"),
            "odd/key é": Variable("heading", RNG.uniform(0, 360, 50), "circular", "deg", 360.0),
            "choice": Variable("choice", RNG.integers(0, 2, 50), "discrete"),
        },
        cell_ids=np.array([9, 2, 700, 1]),
        accepted=np.array([True, False, True, True]),
        starts=np.array([0, 20]),
        excluded=np.arange(50) == 7,
        footprints=Footprints.on_a_grid(4),
        images={"mean": RNG.random((24, 24)).astype(np.float32), "max": RNG.random((3, 5))},
        source="folder/λ",
        notes=("One sentence.", "Another: é."),
        times=3 + np.arange(50) / 7.3 + RNG.uniform(0, 0.01, 50),
        cells={"name": np.array(["a", "b", "é", ""]), "probability": RNG.random(4)},
    )


def same(a, b):
    for name in ("traces", "cell_ids", "accepted", "starts", "excluded", "times"):
        one, other = getattr(a, name), getattr(b, name)
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    assert (a.rate, a.source, a.notes) == (b.rate, b.source, b.notes)
    assert list(a.behavior) == list(b.behavior)
    for one, other in zip(a.behavior.values(), b.behavior.values(), strict=True):
        np.testing.assert_array_equal(one.values, other.values)
        about = [(v.name, v.kind, v.unit, v.period) for v in (one, other)]
        assert about[0] == about[1]
    assert list(a.images) == list(b.images)
    for name, image in a.images.items():
        assert image.dtype == b.images[name].dtype
        np.testing.assert_array_equal(image, b.images[name])
    assert list(a.cells) == list(b.cells)
    for name, column in a.cells.items():
        np.testing.assert_array_equal(column, b.cells[name], strict=True)
    assert (a.footprints is None) == (b.footprints is None)
    if a.footprints is not None:
        assert a.footprints.shape == b.footprints.shape
        names = ("cell", "row", "column", "weight")
        for name in names if a.footprints.plane is None else (*names, "plane"):
            np.testing.assert_array_equal(
                getattr(a.footprints, name), getattr(b.footprints, name), strict=True
            )
    return True


@pytest.fixture
def saved(tmp_path):
    return save_recording(full_recording(), tmp_path / "recording.npz")


def test_everything_comes_back(tmp_path):
    recording = full_recording()
    assert same(recording, open_recording(save_recording(recording, tmp_path / "r.npz")))


def test_planes_come_back(tmp_path):
    masks = np.zeros((2, 3, 4, 5))
    masks[0, 0, :2], masks[1, 2, 2:] = 1, 0.5
    recording = Recording(RNG.random((5, 2)), 1.0, footprints=Footprints.from_masks(masks))
    assert same(recording, open_recording(recording.save(tmp_path / "r.npz")))


def test_a_file_of_the_first_format_still_opens(saved, tmp_path):
    with np.load(saved) as file:
        arrays = {n: file[n] for n in file.files if n != "times" and not n.startswith("cells_")}
    about = json.loads(str(arrays["about"])) | {"format": 1}
    del about["cells"]
    np.savez(tmp_path / "first.npz", **arrays | {"about": np.array(json.dumps(about))})
    recording = open_recording(tmp_path / "first.npz")
    np.testing.assert_array_equal(recording.traces, arrays["traces"])
    np.testing.assert_allclose(recording.times, np.arange(50) / 7.3)
    assert dict(recording.cells) == {}


def on_disk(folder, traces):
    np.save(folder / "t.npy", np.ascontiguousarray(traces.T))
    return NpyTraces(folder / "t.npy", cells_first=True)


def test_traces_on_disk_are_written_by_the_block_and_come_back(tmp_path, monkeypatch):
    monkeypatch.setattr("napari_xcebra.recording.traces.BLOCK_BYTES", 4 * 50 * 2)
    traces = RNG.normal(size=(50, 7)).astype(np.float32)
    lazy, read = on_disk(tmp_path, traces), []
    block = NpyTraces.block
    monkeypatch.setattr(
        NpyTraces, "block", lambda self, f, c: read.append(c) or block(self, f, c)
    )  # fmt: skip
    path = Recording(lazy, 2.0, source="disk").save(tmp_path / "r.npz")
    assert [c.stop - c.start for c in read] == [2, 2, 2, 1]
    assert same(Recording(traces, 2.0, source="disk"), open_recording(path))
    with np.load(path, allow_pickle=False) as file:
        np.testing.assert_array_equal(file["traces"], traces)


def test_large_traces_are_mapped_where_they_lie(tmp_path, monkeypatch):
    recording = full_recording()
    path = recording.save(tmp_path / "r.npz")
    monkeypatch.setattr("napari_xcebra.io.containers.npy.IN_MEMORY", 700)
    opened = open_recording(path)
    assert isinstance(opened.traces, NpzTraces)
    assert len(pickle.dumps(opened.traces)) < recording.traces.nbytes
    again = pickle.loads(pickle.dumps(opened.traces))
    np.testing.assert_array_equal(again[3:9, 1:], recording.traces[3:9, 1:])
    assert same(recording, replace(opened, traces=np.asarray(opened.traces)))
    # saving over the file that the traces lie in
    assert same(
        recording, replace(opened, traces=np.asarray(open_recording(opened.save(path)).traces))
    )


def test_traces_that_went_away_are_missed_in_one_sentence(tmp_path, monkeypatch):
    path = full_recording().save(tmp_path / "r.npz")
    monkeypatch.setattr("napari_xcebra.io.containers.npy.IN_MEMORY", 700)
    traces = pickle.loads(pickle.dumps(open_recording(path).traces))
    np.savez(path, other=np.zeros(3))
    with pytest.raises(InputError, match="cannot be read any more"):
        np.asarray(traces)
    path.unlink()
    with pytest.raises(InputError, match=r"r\.npz"):
        np.asarray(traces)


def test_gaps_in_traces_on_disk_are_found_when_saving_and_leave_no_file(tmp_path):
    traces = RNG.normal(size=(50, 7)).astype(np.float32)
    traces[4, 2] = np.nan
    recording = Recording(on_disk(tmp_path, traces), 2.0)
    with pytest.raises(InputError, match="column 2 is NaN or infinite at frame 4"):
        recording.save(tmp_path / "r.npz")
    assert [p.name for p in tmp_path.iterdir()] == ["t.npy"]


def test_large_traces_that_are_damaged_are_refused(tmp_path, monkeypatch):
    path = full_recording().save(tmp_path / "r.npz")
    monkeypatch.setattr("napari_xcebra.io.containers.npy.IN_MEMORY", 700)
    content = path.read_bytes()
    begin = content.index(b"traces.npy")
    for position in range(begin - 30, begin + 110):
        damaged = bytearray(content)
        damaged[position] ^= 0x10
        path.write_bytes(damaged)
        try:
            traces = np.asarray(open_recording(path).traces)
        except InputError as error:
            assert "\n" not in str(error)
        else:
            assert traces.shape[1] == 4


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"footprint_shape": np.array([10**6, 10**6])}, "field of view"),
        ({"footprint_row": np.full(4 * 69, 0.5)}, "valid recording"),
        ({"rate": np.array([1.0, 2.0])}, "complete recording"),
        ({"cells_0": np.zeros(9)}, "cells has 'name'"),
        ({"starts": np.array([1e300])}, "recording"),
    ],
)
def test_parts_that_do_not_fit_are_refused(saved, tmp_path, changed, sentence):
    with np.load(saved) as file:
        arrays = dict(file)
    np.savez(tmp_path / "odd.npz", **arrays | changed)
    with pytest.raises(InputError, match=sentence):
        open_recording(tmp_path / "odd.npz")


def test_a_bare_recording_comes_back(tmp_path):
    recording = Recording(RNG.random((5, 2)), 1.0, source="memory")
    assert same(recording, open_recording(save_recording(recording, tmp_path / "no-ending")))


def test_numpy_alone_reads_it_without_pickle(saved):
    with np.load(saved, allow_pickle=False) as file:
        assert json.loads(str(file["about"]))["format"] == 2
        assert all(file[name].dtype != object for name in file.files)


def test_a_rate_that_is_given_stands_above_the_file(saved):
    assert open_recording(saved, rate=30.0).rate == 30.0


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.9, 0.999])
def test_a_truncated_file_is_refused_in_one_sentence(saved, share):
    content = saved.read_bytes()
    saved.write_bytes(content[: int(share * len(content))])
    with pytest.raises(InputError, match=r"recording\.npz"):
        open_recording(saved)


def test_a_flipped_byte_never_passes_as_other_data(saved):
    """Every byte that matters is covered by a checksum, a name or a check of the whole."""
    recording, content = open_recording(saved), saved.read_bytes()
    for position in np.random.default_rng(1).integers(len(content), size=300):
        damaged = bytearray(content)
        damaged[position] ^= 0x10
        saved.write_bytes(damaged)
        try:
            opened = open_recording(saved)
        except InputError as error:
            assert "\n" not in str(error)
        else:
            assert same(recording, opened)  # a byte without meaning, such as a date


def test_a_later_version_is_told_apart_from_damage(saved, tmp_path):
    with np.load(saved) as file:
        arrays = dict(file)
    about = json.loads(str(arrays["about"])) | {"format": 3}
    np.savez(tmp_path / "later.npz", **arrays | {"about": np.array(json.dumps(about))})
    with pytest.raises(InputError, match="later version"):
        open_recording(tmp_path / "later.npz")


def test_a_missing_part_is_refused(saved, tmp_path):
    with np.load(saved) as file:
        arrays = {name: file[name] for name in file.files if name != "behavior_1"}
    np.savez(tmp_path / "part.npz", **arrays)
    with pytest.raises(InputError, match=r"complete recording.*behavior_1"):
        open_recording(tmp_path / "part.npz")


def test_a_save_that_fails_leaves_the_earlier_file(saved):
    recording = full_recording()
    object.__setattr__(recording, "images", {"mean": np.array([object()])})
    with pytest.raises(InputError, match="Python objects"):
        save_recording(recording, saved)
    assert zipfile.is_zipfile(saved)
    assert [path.name for path in saved.parent.iterdir()] == ["recording.npz"]
