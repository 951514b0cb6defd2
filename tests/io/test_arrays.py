"""Traces as plain arrays become recordings, or one sentence says why not."""

import pickle

import numpy as np
import pytest

from napari_xcebra.io import open_recording
from napari_xcebra.recording import InputError

TRACES = np.random.default_rng(0).random((30, 3)).astype(np.float32)


@pytest.fixture(params=["npy", "npz", "csv", "unnamed npz"])
def traces_file(request, tmp_path):
    if request.param == "npy":
        np.save(tmp_path / "traces.npy", TRACES)
    elif request.param == "csv":
        np.savetxt(tmp_path / "traces.csv", TRACES, delimiter=",", fmt="%.9g")
    else:
        name = "traces" if request.param == "npz" else "arr_0"
        np.savez(tmp_path / "traces.npz", **{name: TRACES})
    return next(tmp_path.iterdir())


def test_every_ending_gives_the_same_traces(traces_file):
    recording = open_recording(traces_file, rate=10.0)
    np.testing.assert_array_equal(recording.traces, TRACES)
    assert recording.rate == 10.0
    assert recording.source == str(traces_file)


def test_a_missing_rate_is_asked_for(traces_file):
    with pytest.raises(InputError, match="frames there are per second: give rate"):
        open_recording(traces_file)


@pytest.mark.parametrize("length", [0, 5, 50, 150])
@pytest.mark.parametrize("write", [np.save, np.savez])
def test_a_truncated_array_is_refused(tmp_path, write, length):
    write(tmp_path / "traces", TRACES)
    path = next(tmp_path.iterdir())
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(InputError, match="cannot be read: it is damaged"):
        open_recording(path, rate=10.0)


def test_an_array_that_is_longer_than_it_says_is_refused(tmp_path):
    np.save(tmp_path / "traces.npy", TRACES)
    with (tmp_path / "traces.npy").open("ab") as file:
        file.write(b"more")
    with pytest.raises(InputError, match="longer than its header says"):
        open_recording(tmp_path / "traces.npy", rate=10.0)


class Trap:
    sprung = False

    def __setstate__(self, state):
        Trap.sprung = True

    def __getstate__(self):
        return {"set": True}


def test_a_pickle_is_never_opened(tmp_path):
    np.save(tmp_path / "stat.npy", np.array([Trap()], dtype=object), allow_pickle=True)
    (tmp_path / "raw.npy").write_bytes(pickle.dumps(Trap()))
    np.savez(tmp_path / "traces.npz", traces=np.array([Trap()], dtype=object))
    for path in tmp_path.iterdir():
        with pytest.raises(InputError):
            open_recording(path, rate=1.0)
    assert not Trap.sprung


def test_an_npz_may_bring_rate_and_behaviour(tmp_path):
    speed, xy = np.linspace(0, 1, 30), np.random.default_rng(0).random((30, 2))
    np.savez(tmp_path / "all.npz", traces=TRACES, rate=5, speed_cm_s=speed, xy=xy, stray=speed[:4])
    recording = open_recording(tmp_path / "all.npz")
    assert recording.rate == 5.0
    assert list(recording.behavior) == ["speed_cm_s", "xy"]
    assert "stray" in recording.notes[0]


def test_an_npz_without_traces_says_what_it_has(tmp_path):
    np.savez(tmp_path / "other.npz", a=TRACES, b=TRACES)
    with pytest.raises(InputError, match="no array called traces; it has: a, b"):
        open_recording(tmp_path / "other.npz", rate=1.0)


def test_cells_of_a_table_keep_the_numbers_in_its_header(tmp_path):
    (tmp_path / "t.csv").write_text("frame,cell_12,cell_7\n0,0.5,1\n1,0.25,2\n")
    recording = open_recording(tmp_path / "t.csv", rate=1.0)
    np.testing.assert_array_equal(recording.cell_ids, [12, 7])
    np.testing.assert_array_equal(recording.traces, [[0.5, 1], [0.25, 2]])


@pytest.mark.parametrize("index", [True, False])
def test_a_table_as_pandas_writes_it_is_understood(tmp_path, index):
    import pandas as pd

    pd.DataFrame(TRACES).to_csv(tmp_path / "t.csv", index=index)
    np.testing.assert_allclose(open_recording(tmp_path / "t.csv", rate=1.0).traces, TRACES)


def test_a_table_from_a_spreadsheet_with_decimal_commas_is_understood(tmp_path):
    (tmp_path / "t.csv").write_text("a;b\n0,5;1\n0,25;2\n", encoding="utf-8-sig")
    np.testing.assert_array_equal(
        open_recording(tmp_path / "t.csv", rate=1.0).traces, [[0.5, 1], [0.25, 2]]
    )


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "t.csv"),
        (b"\x89PNG\r\n\x1a\n\x00\xff\xfe", "cannot be read as a table"),
        (b"a,b\n1,2\nx,3\n", "Column a of .* no numbers"),
        (b"a,b\n", "no rows"),
        (b"time,a\n0,1\n0.1,2\n", "column time beside the cells"),
        (b"a,b\n1,2\n1,\n", "NaN or infinite"),
    ],
)
def test_a_table_that_holds_no_traces_is_refused(tmp_path, content, sentence):
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(InputError, match=sentence):
        open_recording(tmp_path / "t.csv", rate=1.0)


def test_more_cells_than_frames_is_remarked_upon(tmp_path):
    np.save(tmp_path / "F.npy", TRACES.T)
    assert "transpose" in open_recording(tmp_path / "F.npy", rate=1.0).notes[0]


def test_an_unknown_format_says_what_was_looked_for(tmp_path):
    (tmp_path / "movie.tif").write_bytes(b"II*\0")
    with pytest.raises(InputError, match=r"Looked for: a recording saved .*; traces as an array"):
        open_recording(tmp_path / "movie.tif")
    with pytest.raises(InputError, match="no file or folder"):
        open_recording(tmp_path / "nothing")
