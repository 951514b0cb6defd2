"""Traces on disk give what an array would give, and read no more than they are asked for."""

import pickle
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import basic_indices, integer_array_indices

import napari_xcebra.recording.traces
from napari_xcebra.errors import InputError
from napari_xcebra.recording import Recording
from napari_xcebra.recording.traces import CorrectedTraces, JoinedTraces, NpyTraces, in_blocks

FRAMES, CELLS = 12, 7
ARRAY = np.random.default_rng(0).random((FRAMES, CELLS)).astype(np.float32)


@pytest.fixture(params=["cells first", "frames first", "joined", "corrected"])
def traces(request, tmp_path):
    if request.param == "cells first":
        return on_disk(tmp_path / "F.npy", ARRAY)
    if request.param == "frames first":
        np.save(tmp_path / "F.npy", ARRAY)
        return NpyTraces(tmp_path / "F.npy", cells_first=False)
    if request.param == "joined":
        # one frame more than the others have
        longer = np.vstack([ARRAY, ARRAY[:1]])
        return JoinedTraces((on_disk(tmp_path / "F.npy", longer[:, :3]), ARRAY[:, 3:]))
    raised = on_disk(tmp_path / "F.npy", ARRAY + 0.5)
    return CorrectedTraces(raised, np.ones((FRAMES, CELLS)), 0.5)


@pytest.fixture(params=["at once", "by the cell"])
def reading(request, monkeypatch):
    if request.param == "by the cell":
        monkeypatch.setattr(napari_xcebra.recording.traces, "BLOCK_BYTES", 1)


def on_disk(path, array):
    np.save(path, array.T)
    return NpyTraces(path, cells_first=True)


def test_traces_have_the_shape_and_values_of_the_array(traces, reading):
    assert traces.shape == ARRAY.shape
    assert len(traces) == FRAMES
    np.testing.assert_allclose(np.asarray(traces), ARRAY, atol=1e-6)
    assert np.asarray(traces).flags.c_contiguous
    assert np.asarray(traces, np.float64).dtype == np.float64
    blocks = [block for _, block in in_blocks(traces)]
    np.testing.assert_allclose(np.concatenate(blocks, axis=1), ARRAY, atol=1e-6)


MASK = ARRAY[:, 0] > 0.5
INDICES = [
    (slice(None), slice(None)),
    (slice(None), [5, 0, 5]),
    (slice(None), ARRAY[0] > 0.5),
    (slice(2, 9, 3), slice(None, None, -2)),
    (slice(None, None, -1), [1, 4]),
    (slice(9, 2), slice(None)),
    (slice(None), []),
    ([], slice(None)),
    ([3, 3, -1], slice(1, 4)),
    ([3, 4], [0, -1]),
    np.ix_([3, 4, 1], [6, 0]),
    (MASK, slice(None)),
    (4, 2),
    (-1, slice(None)),
    (slice(None), np.int64(3)),
    ([[1, 2], [3, 4]], slice(None)),
    (2, [[1, 2], [3, 4]]),
    MASK,
    5,
    ...,
    (..., 2),
    (3, ...),
    (slice(1, 3),),
]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_an_index_gives_what_it_gives_of_an_array(traces, reading, index):
    found = traces[index]
    np.testing.assert_allclose(found, ARRAY[index], atol=1e-6)
    assert np.shape(found) == np.shape(ARRAY[index])
    assert found.dtype == np.float32


@given(
    index=basic_indices((FRAMES, CELLS)) | integer_array_indices((FRAMES, CELLS)),
    block=st.sampled_from([1, 200, 2**20]),
    gap=st.sampled_from([0, 2, 100]),
)
def test_any_index_gives_what_it_gives_of_an_array(index, block, gap):
    traces = JoinedTraces((ARRAY[:, :2], ARRAY[:, 2:]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(napari_xcebra.recording.traces, "BLOCK_BYTES", block)
        patch.setattr(napari_xcebra.recording.traces, "GAP", gap)
        np.testing.assert_array_equal(traces[index], ARRAY[index])


@pytest.mark.parametrize("index", [FRAMES, [0, -FRAMES - 1], None, (0, 0, 0), [0.5], MASK[:5]])
def test_an_index_that_an_array_refuses_is_refused(traces, index):
    with pytest.raises(IndexError):
        traces[index]


@pytest.mark.parametrize("index", [slice(None), (slice(2, 6), [4, 3]), ([1, 5], [0, 3]), (5, 3)])
def test_a_gap_is_named_by_its_frame_and_cell(tmp_path, reading, index):
    array = ARRAY.copy()
    array[5, 3] = np.nan
    with pytest.raises(InputError, match="column 3 is NaN or infinite at frame 5:"):
        on_disk(tmp_path / "F.npy", array)[index]


def test_a_gap_in_a_cell_that_is_not_asked_for_does_not_matter(tmp_path, reading):
    array = ARRAY.copy()
    array[5, 3] = np.inf
    traces = on_disk(tmp_path / "F.npy", array)
    np.testing.assert_array_equal(traces[:, [2, 4]], ARRAY[:, [2, 4]])
    np.testing.assert_array_equal(traces[[4, 6]], ARRAY[[4, 6]])


def test_numbers_of_any_type_are_read_as_float32(tmp_path):
    for dtype in ("<i2", ">f8", "u1", "f2"):
        np.save(tmp_path / "F.npy", np.arange(6).reshape(2, 3).astype(dtype))
        found = NpyTraces(tmp_path / "F.npy", cells_first=True)[:]
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, np.arange(6).reshape(2, 3).T)
    np.save(tmp_path / "F.npy", np.full((2, 3), 1e300))
    with pytest.raises(InputError, match="NaN or infinite"):
        NpyTraces(tmp_path / "F.npy", cells_first=True)[:]


def test_nothing_is_taken_from_a_constant_trace(tmp_path, reading):
    fluorescence = ARRAY.copy()
    fluorescence[:, 2], fluorescence[:, 5] = 0, 1.5
    fluorescence[:-1, 4] = 0  # all but constant
    neuropil = np.random.default_rng(1).random(ARRAY.shape).astype(np.float32)
    for source in (fluorescence, on_disk(tmp_path / "F.npy", fluorescence)):
        traces = CorrectedTraces(source, neuropil, 0.5)
        expected = fluorescence - 0.5 * neuropil
        expected[:, [2, 5]] = [0, 1.5]
        np.testing.assert_array_equal(traces[3:5, 1:6], expected[3:5, 1:6])
        np.testing.assert_array_equal(traces[:], expected)


def test_traces_are_pickled_as_their_path(tmp_path):
    traces = on_disk(tmp_path / "F.npy", np.zeros((1000, 1000), np.float32))
    assert traces.shape == (1000, 1000)
    pickled = pickle.dumps(CorrectedTraces(traces, traces, 0.7))
    assert len(pickled) < 1000
    assert pickle.loads(pickled).shape == (1000, 1000)


def test_a_file_that_went_away_is_reported(tmp_path):
    traces = on_disk(tmp_path / "F.npy", ARRAY)
    (tmp_path / "F.npy").unlink()
    with pytest.raises(InputError, match="cannot be read any more"):
        traces[0]


def test_a_file_that_was_written_anew_is_reported(tmp_path):
    traces = on_disk(tmp_path / "F.npy", ARRAY)
    assert traces.shape == ARRAY.shape
    (tmp_path / "F.npy").unlink()
    on_disk(tmp_path / "F.npy", ARRAY[:, :3])
    with pytest.raises(InputError, match="replaced after"):
        traces[:]


SHORTENED = """
import os, sys
from pathlib import Path
from napari_xcebra.errors import InputError
from napari_xcebra.recording import stored
from napari_xcebra.recording.traces import NpyTraces

path = Path(sys.argv[1])
traces = NpyTraces(path, cells_first=True)
traces[:, 3], traces[7]
if sys.argv[2] == "unseen":  # shortened after the size was compared
    stored.StoredFile.check_same = lambda self: None
os.truncate(path, 4096)
for index in [(slice(None), 199), 2000, (slice(0, 30), slice(150, 200)), slice(None)]:
    try:
        traces[index]
    except InputError as error:
        print(error)
"""


@pytest.mark.parametrize("when", ["seen", "unseen"])
def test_a_file_that_another_program_shortens_is_told_and_ends_nothing(tmp_path, when):
    np.save(tmp_path / "F.npy", np.random.default_rng(0).random((200, 3000)).astype(np.float32))
    command = [sys.executable, "-c", SHORTENED, str(tmp_path / "F.npy"), when]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("cannot be read any more") == 4


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux to tell")
def test_what_was_read_is_not_held_as_memory(tmp_path):
    np.save(tmp_path / "F.npy", np.ones((16, 2**20), np.float32))
    traces = NpyTraces(tmp_path / "F.npy", cells_first=False)
    traces[:1, :1]
    before = mapped_bytes()
    for frame in range(0, 16, 4):
        traces[frame : frame + 4]
    assert mapped_bytes() - before < 16 * 2**20  # of 64


def mapped_bytes():
    """Pages of files that count as memory of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    told = dict(line.split(":", 1) for line in lines)
    return 1024 * int(told["RssFile"].split()[0])


def test_a_recording_keeps_them_on_disk(tmp_path):
    recording = Recording(on_disk(tmp_path / "F.npy", ARRAY), rate=10.0)
    assert isinstance(recording.traces, NpyTraces)
    assert (recording.n_frames, recording.n_cells) == ARRAY.shape


def sparse_npy(path, shape):
    """A .npy file of zeros that takes no room on disk."""
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(
            file, {"descr": "<f4", "fortran_order": False, "shape": shape}
        )
        file.truncate(file.tell() + 4 * shape[0] * shape[1])


def test_a_few_cells_of_4_gb_take_the_memory_of_a_few_cells(tmp_path):
    sparse_npy(tmp_path / "F.npy", (10_000, 100_000))
    tracemalloc.start()
    try:
        traces = NpyTraces(tmp_path / "F.npy", cells_first=True)
        assert traces.shape == (100_000, 10_000)
        assert traces[:, [3, 9000]].shape == (100_000, 2)
        assert traces[50_000:50_100, 500:1500].shape == (100, 1000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 10 * 2**20
