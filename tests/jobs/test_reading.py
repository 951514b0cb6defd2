"""Files of others are read in a process that they can neither hang, nor blow up, nor take along."""

import bz2
import json
import lzma
import os
import struct
import threading
import time
import zipfile
from pathlib import Path

import h5py
import numpy as np
import psutil
import pytest

from napari_xcebra.errors import InputError
from napari_xcebra.io import guard, open_recording
from napari_xcebra.io.discovery import is_recording
from napari_xcebra.io.guard import open_task, question, reading
from napari_xcebra.io.opening import Opening
from napari_xcebra.io.sessions import read_matching
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.jobs import Failed, Finished, Worker, limits

MB = 2**20


@pytest.fixture(scope="module")
def reader():
    with Worker(warm_up="reading") as worker:
        yield worker


@pytest.fixture
def little(monkeypatch):
    """Limits that tests reach quickly."""
    monkeypatch.setattr(limits, "MEMORY", 500 * MB)
    monkeypatch.setattr(limits, "COMPUTING", 3.0)
    monkeypatch.setattr(guard, "AT_ONCE", 2.0)


SETTINGS = OpenSettings(rate=10.0, layout="frames-cells")


def opened(reader, path, **more):
    """Outcome of opening a path, and the most memory that the child had meanwhile."""
    job = reader.submit(open_task(Opening(Path(path), settings=SETTINGS, **more)))
    peak = 0
    while job.wait(0.02) is None:
        try:
            peak = max(peak, psutil.Process(reader.pid).memory_info().rss)
        except (psutil.Error, TypeError, ValueError):
            continue
    return job.outcome, peak


@pytest.fixture
def good(tmp_path):
    np.save(tmp_path / "good.npy", np.random.default_rng(0).random((300, 8)))
    return tmp_path / "good.npy"


def endless(path):
    """An NWB file over which libhdf5 loops for ever, holding Python's lock."""
    with h5py.File(path, "w") as file:
        file.attrs["nwb_version"] = "2.7.0"
    content = bytearray(path.read_bytes())
    heap = content.index(b"GCOL")
    content[heap + 16 : heap + 32] = bytes(16)
    path.write_bytes(content)
    return path


def test_a_file_that_libhdf5_loops_over_is_given_up(reader, little, tmp_path, good):
    path = endless(tmp_path / "damaged.nwb")
    looked = reader.submit(question(is_recording, path)).wait(60)
    assert isinstance(looked, Failed)
    assert looked.sentence.startswith(f"{path} could not be read within 2 s")
    outcome, _ = opened(reader, path)
    assert "could not be read within 3 s: it is probably damaged" in outcome.sentence
    assert isinstance(opened(reader, good)[0], Finished)


def test_a_file_that_is_looped_over_is_cancelled_at_once(reader, tmp_path, good):
    job = reader.submit(open_task(Opening(endless(tmp_path / "damaged.nwb"))))
    events = job.events()
    next(events)
    pid = reader.pid
    job.cancel(0)
    assert job.wait(5) is not None
    assert isinstance(opened(reader, good)[0], Finished)
    assert reader.pid != pid


def test_a_child_that_is_killed_while_it_reads_is_a_sentence(reader, tmp_path, good):
    job = reader.submit(open_task(Opening(endless(tmp_path / "damaged.nwb"))))
    next(job.events())
    os.kill(reader.pid, 9)
    assert "was killed" in job.wait(20).sentence
    assert isinstance(opened(reader, good)[0], Finished)


def minian_by_bz2(folder):
    """Units whose one chunk says that it has 8 MB, and has 2 GB."""
    part = bz2.compress(bytes(64 * MB))
    for name, shape, axes in (
        ("A", [2, 8, 8], ["unit_id", "height", "width"]),
        ("C", [2, 1 << 20], ["unit_id", "frame"]),
    ):
        home = folder / f"{name}.zarr" / name
        home.mkdir(parents=True)
        about = {"zarr_format": 2, "shape": shape, "chunks": shape, "dtype": "<f4", "order": "C"}
        about |= {"fill_value": 0, "filters": None, "compressor": {"id": "bz2", "level": 9}}
        (home / ".zarray").write_text(json.dumps(about))
        (home / ".zattrs").write_text(json.dumps({"_ARRAY_DIMENSIONS": axes}))
        (home / ".".join("0" for _ in shape)).write_bytes(32 * part)
    return folder


def tiff_by_lzma(path):
    """A label image of 64 × 64 pixels whose strip unpacks to 2 GB."""
    strip = 32 * lzma.compress(bytes(64 * MB))
    tags = [(256, 3, 64), (257, 3, 64), (258, 3, 8), (259, 3, 34925), (262, 3, 1), (273, 4, 8)]
    tags += [(277, 3, 1), (278, 3, 64), (279, 4, len(strip))]
    entries = b"".join(struct.pack("<HHII", tag, kind, 1, value) for tag, kind, value in tags)
    after = struct.pack("<H", len(tags)) + entries + bytes(4)
    path.write_bytes(b"II*\0" + struct.pack("<I", 8 + len(strip)) + strip + after)
    return path


def nwb_by_gzip(path):
    """Masks of ones, 2,000 × 512 × 512, in a few hundred KB."""
    cells, side = 2000, 512
    with h5py.File(path, "w") as file:
        file.attrs.update({"nwb_version": "2.7.0", "neurodata_type": "NWBFile"})
        table = file.create_group("seg")
        table.attrs.update({"neurodata_type": "PlaneSegmentation", "colnames": ["image_mask"]})
        table["id"] = np.arange(cells)
        shape = (cells, side, side)
        masks = table.create_dataset(
            "image_mask", shape, "u1", chunks=(200, side, side), compression="gzip"
        )
        for first in range(0, cells, 200):
            masks[first : first + 200] = 1
        series = file.create_group("series")
        series.attrs["neurodata_type"] = "RoiResponseSeries"
        series["data"] = np.random.default_rng(0).random((20, cells)).astype("f4")
        series["rois"] = np.arange(cells)
        series["rois"].attrs["table"] = table.ref
    return path


def npz_of_zeros(path):
    """A compressed array of 900 MB."""
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("traces.npy", "w", force_zip64=True) as file,
    ):
        about = {"descr": "|u1", "fortran_order": False, "shape": (900 * 1024, 1024)}
        np.lib.format.write_array_header_1_0(file, about)
        for _ in range(900):
            file.write(bytes(MB))
    return path


def parquet_of_one_value(path):
    """A column of 200 million rows."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    part = pa.table({"cell_1": pa.array(np.ones(10**6))})
    with parquet.ParquetWriter(path, part.schema, use_dictionary=True) as writer:
        for _ in range(200):
            writer.write_table(part)
    return path


BOMBS = {
    "minian": minian_by_bz2,
    "masks.nwb": nwb_by_gzip,
    "traces.npz": npz_of_zeros,
    "traces.parquet": parquet_of_one_value,
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_small_file_that_unpacks_to_gigabytes_is_given_up(reader, little, tmp_path, good, name):
    if name == "minian":
        pytest.importorskip("zarr")
    path = BOMBS[name](tmp_path / name)
    before = psutil.Process().memory_info().rss
    outcome, peak = opened(reader, path)
    assert isinstance(outcome, Failed)
    assert str(path) in outcome.sentence
    assert peak < 2048 * MB
    assert psutil.Process().memory_info().rss - before < 100 * MB
    assert isinstance(opened(reader, good)[0], Finished)


def test_a_label_image_that_unpacks_to_gigabytes_beside_traces_harms_nothing(
    reader, little, tmp_path, good
):
    tiff_by_lzma(good.parent / "labels.tif")
    outcome, peak = opened(reader, good)
    assert peak < 2048 * MB
    # what lies beside is passed over if the system refuses the memory, else the child is ended
    assert isinstance(outcome, Finished) or "a file that goes with it" in outcome.sentence
    # what the first try has freed is there for the second: the limit may be reached twice
    given, peak = opened(reader, good, footprints=good.parent / "labels.tif")
    assert isinstance(given, Failed)
    assert peak < 2048 * MB


def test_a_table_is_not_unpacked_by_its_name(reader, tmp_path):
    """A file that is both: text to whoever reads it, an archive to whoever goes by the suffix."""
    path = tmp_path / "behaviour.zip"
    rows = "".join(f"{i / 10:.1f},{i}\n" for i in range(20_000))  # only the start is looked at
    path.write_text(f"time,speed\n{rows}")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("inside.csv", f"time,secret\n{rows}")
    np.save(tmp_path / "traces.npy", np.random.default_rng(0).random((300, 8)))
    outcome, _ = opened(reader, tmp_path / "traces.npy", behavior=(path,))
    assert "secret" not in getattr(getattr(outcome, "result", None), "behavior", {})


def test_large_traces_that_stay_on_disk_open_within_the_limits(reader, little, tmp_path):
    path = tmp_path / "traces.npy"
    with path.open("wb") as file:
        about = {"descr": "<f4", "fortran_order": False, "shape": (100_000, 10_000)}
        np.lib.format.write_array_header_1_0(file, about)
        file.truncate(file.tell() + 4 * 10**9)
    outcome, peak = opened(reader, path)
    assert isinstance(outcome, Finished)
    assert outcome.result.traces.shape == (100_000, 10_000)
    assert peak < 500 * MB


def test_large_results_are_files_without_a_name_that_nobody_can_shorten(reader, tmp_path):
    array = np.random.default_rng(0).random((50_000, 200), dtype=np.float32)
    np.save(tmp_path / "traces.npy", array)
    outcome, _ = opened(reader, tmp_path / "traces.npy")
    np.testing.assert_array_equal(outcome.result.traces, array)
    os.truncate(tmp_path / "traces.npy", 100)
    np.testing.assert_array_equal(outcome.result.traces, array)
    traces = outcome.result.traces
    traces[0, 0] = 7  # as of any array in memory
    assert traces[0, 0] == 7


def test_a_pipe_is_refused_at_once(tmp_path):
    """Nothing is ever written to it: whoever opens it waits for ever."""
    if not hasattr(os, "mkfifo"):
        pytest.skip("needs named pipes")
    said = []

    def ask():
        for name in ("pipe.nwb", "pipe.csv", "pipe.npz", "pipe.mat", "pipe.npy", "pipe.tif"):
            os.mkfifo(tmp_path / name)
            assert not is_recording(tmp_path / name)
            for call in (open_recording, read_matching):
                with pytest.raises(InputError) as error:
                    call(tmp_path / name)
                said.append(str(error.value))

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(30)
    assert len(said) == 12
    assert "pipe or a device" in said[0]


def test_waiting_for_a_slow_drive_does_not_count_as_computing(reader, little, tmp_path, good):
    job = reader.submit(reading(time.sleep, 4, paths=[good]))
    assert isinstance(job.wait(30), Finished)
