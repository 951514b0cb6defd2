"""A recording written as NWB follows the specification, and reads back as it was."""

import builtins
import os
import subprocess
import sys
from dataclasses import replace
from datetime import datetime

import h5py
import numpy as np
import pytest

from napari_xcebra.errors import InputError
from napari_xcebra.io import open_recording
from napari_xcebra.io.formats.nwb.writing import write_nwb
from napari_xcebra.recording import Footprints, Origin, Recording, Variable
from napari_xcebra.recording.traces import NpyTraces

FRAMES, CELLS = 60, 7
RNG = np.random.default_rng(0)


@pytest.fixture
def recording():
    x = np.cumsum(RNG.normal(size=FRAMES))
    x[20] = np.nan
    turn = RNG.uniform(0, 5, FRAMES)
    variables = [
        Variable("place", np.stack([x, -x], 1), unit="cm"),
        Variable("heading", turn, kind="circular", unit="rad", period=5.0),
        Variable("Speed (cm/s)", np.abs(x), unit="cm/s"),
        Variable("Speed (cm_s)", np.abs(x), unit="cm/s"),
        Variable("lap", np.arange(FRAMES) // 2, kind="discrete"),
        Variable("steps", np.arange(FRAMES) % 3, kind="continuous"),
    ]
    excluded = np.zeros(FRAMES, bool)
    excluded[[3, 4, 30, 59]] = True
    pixels = 40
    return Recording(
        traces=RNG.random((FRAMES, CELLS)),
        rate=7.3,
        behavior={variable.name: variable for variable in variables},
        cell_ids=np.array([3, 1, 4, 15, 9, 2, 6]),
        accepted=np.arange(CELLS) % 2 == 0,
        starts=[0, 11, 45],
        excluded=excluded,
        footprints=Footprints(
            (30, 30),
            np.sort(RNG.choice([0, 1, 2, 4, 5], pixels)),
            RNG.integers(0, 20, pixels),
            RNG.integers(0, 28, pixels),
            RNG.random(pixels).astype("f4"),
        ),
        images={"mean": RNG.random((30, 30)), "my map": RNG.random((30, 30))},
        source="somewhere/suite2p",
        notes=("Opened it.", "Traces are denoised by the extractor."),
        origin=Origin("suite2p", "denoised", "denoised by the extractor"),
        cells={"probability": RNG.random(CELLS), "name": np.array(list("abcdefg"))},
    )


pynwb = pytest.importorskip("pynwb")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "recording.nwb"


def assert_same(one, other):
    np.testing.assert_array_equal(np.asarray(one.traces), np.asarray(other.traces))
    assert one.rate == pytest.approx(other.rate)
    np.testing.assert_allclose(one.times, other.times)
    for name in ("cell_ids", "accepted", "starts", "excluded"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert set(one.behavior) - {"trials"} == set(other.behavior)
    for name, variable in other.behavior.items():
        again = one.behavior[name]
        np.testing.assert_array_equal(again.values, variable.values)
        assert (again.kind, again.unit) == (variable.kind, variable.unit)
        assert again.period == variable.period or variable.kind != "circular"
    assert set(one.cells) == set(other.cells)
    for name, column in other.cells.items():
        np.testing.assert_array_equal(one.cells[name], column)
    assert set(one.images) == set(other.images)
    for name, image in other.images.items():
        np.testing.assert_allclose(one.images[name], image, rtol=1e-6)
    assert one.footprints.shape == other.footprints.shape
    for name in ("cell", "row", "column", "weight", "plane"):
        np.testing.assert_array_equal(
            getattr(one.footprints, name), getattr(other.footprints, name)
        )


def test_a_recording_reads_back_as_it_was(recording, path):
    assert write_nwb(recording, path) == path
    assert_same(open_recording(path), recording)


def test_relative_traces_and_times_of_their_own_read_back(recording, path):
    times = recording.times + 3 + 0.01 * RNG.random(FRAMES)
    origin = Origin("NWB", "dff", "ΔF/F as in the file")
    recording = replace(recording, times=times, origin=origin)
    write_nwb(recording, path)
    again = open_recording(path)
    assert_same(again, recording)
    assert any("ΔF/F as in the file" in note for note in again.notes)


def test_planes_read_back(recording, path):
    plane = RNG.integers(0, 2, 40)
    footprints = replace(recording.footprints, shape=(3, 30, 30), plane=plane)
    images = {name: RNG.random((3, 30, 30)) for name in ("mean", "my map")}
    recording = replace(recording, footprints=footprints, images=images)
    write_nwb(recording, path)
    assert_same(open_recording(path), recording)


def test_a_recording_of_traces_alone_reads_back(path):
    recording = Recording.from_arrays(RNG.random((FRAMES, CELLS)), rate=10.0)
    write_nwb(recording, path)
    again = open_recording(path)
    np.testing.assert_allclose(again.traces, recording.traces)
    assert again.footprints is None and len(again.starts) == 1


def test_traces_on_disk_are_written_by_the_block(recording, path, tmp_path):
    np.save(tmp_path / "traces.npy", np.asarray(recording.traces))
    lazy = replace(recording, traces=NpyTraces(tmp_path / "traces.npy", cells_first=False))
    write_nwb(lazy, path)
    assert_same(open_recording(path), recording)


def test_the_file_is_valid_and_pynwb_finds_masks_and_images_with_x_first(recording, path):
    write_nwb(recording, path, started=datetime(2024, 5, 6, 7, 8))
    assert not pynwb.validate(path=str(path))
    with pynwb.NWBHDF5IO(path, "r") as reader:
        file = reader.read()
        assert file.session_start_time.year == 2024
        table = file.processing["ophys"]["ImageSegmentation"]["PlaneSegmentation"]
        x, y, _ = table["pixel_mask"][0][0]
        footprints = recording.footprints
        assert (x, y) == (footprints.column[0], footprints.row[0])
        assert len(table["pixel_mask"][3]) == 0
        images = file.processing["ophys"]["SegmentationImages"]
        np.testing.assert_allclose(images["mean"].data[:], recording.images["mean"].T, rtol=1e-6)
        series = file.processing["behavior"]["Position"]["place"]
        assert series.unit == "centimeters"
        assert len(file.trials) == 3 and len(file.invalid_times) == 3


def test_a_failure_leaves_what_was_there(recording, path, monkeypatch):
    path.write_text("before")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(pynwb.NWBHDF5IO, "write", fail)
    with pytest.raises(OSError, match="disk full"):
        write_nwb(recording, path)
    assert path.read_text() == "before"
    assert len(list(path.parent.iterdir())) == 1


def test_without_pynwb_the_user_is_told_what_to_install(recording, path, monkeypatch):
    real = builtins.__import__

    def without(name, *rest, **more):
        if name.startswith("pynwb"):
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InputError, match=r"install napari-xcebra\[nwb\]"):
        write_nwb(recording, path)
    assert not path.exists()


def test_the_file_is_compressed(recording, path):
    write_nwb(recording, path)
    with h5py.File(path) as file:
        assert file["processing/ophys/Fluorescence/traces/data"].compression == "gzip"


def test_the_shared_recording_of_caiman_reads_back(shared_data, path):
    recording = open_recording(shared_data / "caiman" / "cnmf_results.hdf5")
    write_nwb(recording, path)
    assert_same(open_recording(path), recording)


@pytest.mark.skipif(os.name == "nt", reason="Windows knows no such limits")
def test_a_full_disk_is_a_sentence_and_leaves_nothing(tmp_path):
    program = f"""
import resource
import numpy as np
from napari_xcebra.io.formats.nwb.writing import write_nwb
from napari_xcebra.recording import Recording
recording = Recording(np.ones((300, 40), np.float32), 10.0)
whole = write_nwb(recording, {str(tmp_path / "whole.nwb")!r}).stat().st_size
for size in (0, 1000, whole // 2, whole - 1, whole + 1):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, -1))
    try:
        write_nwb(recording, {str(tmp_path / "cut.nwb")!r})
        print("done")
    except OSError as error:
        print(error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1))
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert len(ran.stdout.splitlines()) == 5 and "done" not in ran.stdout
    assert [file.name for file in tmp_path.iterdir()] == ["whole.nwb"]
