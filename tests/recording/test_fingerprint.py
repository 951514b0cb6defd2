"""A fingerprint tells a recording from any other, and costs nothing where nothing changed."""

import json
import os
import pickle
import shutil
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from napari_xcebra.errors import InputError
from napari_xcebra.io import open_recording, save_recording
from napari_xcebra.recording import Footprints, Recording, fingerprint, traces
from napari_xcebra.recording.fingerprint import (
    Fingerprint,
    check_same,
    confirmed_fingerprint,
    known_sums,
    note_on_another,
    trace_sums,
)
from napari_xcebra.recording.traces import CorrectedTraces, NpyTraces
from napari_xcebra.recording.variables import Variable

FRAMES, CELLS = 40, 6
LONG_AGO = 1_000_000_000


def made(**changes):
    values = np.random.default_rng(0).random((FRAMES, CELLS)).astype(np.float32)
    given = {"footprints": Footprints.on_a_grid(CELLS), "source": "mouse.npy", **changes}
    return Recording(given.pop("traces", values), **{"rate": 10.0, **given})


def on_disk(path, array, *, by_frame=True, age=LONG_AGO):
    np.save(path, array if by_frame else array.T)
    os.utime(path, (age, age))
    return NpyTraces(path, cells_first=not by_frame)


def noise(recording):
    """All but the five frames that a small sample would look at."""
    values = np.random.default_rng(1).random(recording.traces.shape).astype(np.float32)
    kept = np.linspace(0, FRAMES - 1, 5).astype(int)
    values[kept] = recording.traces[kept]
    return replace(recording, traces=values)


def one_value(recording):
    values = recording.traces.copy()
    values[7, 3] = np.nextafter(values[7, 3], np.float32(1))
    return replace(recording, traces=values)


CHANGES = {
    "noise": (noise, "its traces"),
    "one value": (one_value, "its traces"),
    "signs": (lambda r: replace(r, traces=-r.traces), "its traces"),
    "cells reversed": (lambda r: replace(r, traces=r.traces[:, ::-1].copy()), "its traces"),
    "frames rolled": (lambda r: replace(r, traces=np.roll(r.traces, 3, 0)), "its traces"),
    "rate": (lambda r: replace(r, rate=12.0, times=None), "the times of its frames"),
    "times": (lambda r: replace(r, times=np.arange(FRAMES) + 0.5), "the times of its frames"),
    "footprints in another order": (
        lambda r: replace(r, footprints=replace(r.footprints, cell=CELLS - 1 - r.footprints.cell)),
        "its footprints",
    ),
    "trials": (lambda r: replace(r, starts=np.array([0, 20])), "its trial boundaries"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_each_change_is_found_and_named(name):
    change, words = CHANGES[name]
    recording = made()
    assert recording.fingerprint.changes(change(recording).fingerprint) == [words]


def test_the_same_cells_in_another_order_have_the_same_traces_and_footprints():
    recording = made()
    turned = replace(
        recording,
        traces=recording.traces[:, ::-1].copy(),
        cell_ids=recording.cell_ids[::-1],
        footprints=replace(recording.footprints, cell=CELLS - 1 - recording.footprints.cell),
    )
    changes = recording.fingerprint.changes(turned.fingerprint)
    assert changes == ["the order of its cells"]
    assert recording.fingerprint.has_same_cells(turned.fingerprint)


def test_pixels_in_another_order_are_the_same_footprints():
    recording = made()
    print_ = recording.footprints
    order = np.random.default_rng(0).permutation(len(print_.cell))
    parts = {name: getattr(print_, name)[order] for name in ("cell", "row", "column", "weight")}
    mixed = replace(recording, footprints=replace(print_, **parts))
    assert mixed.fingerprint == recording.fingerprint


@given(st.integers(1, 90), st.integers(1, 40), st.integers(1, 5000))
def test_how_traces_are_read_does_not_matter(frames, cells, block):
    values = np.random.default_rng(frames).standard_normal((frames, cells)).astype(np.float32)
    expected = trace_sums(values)
    for turned in (np.asfortranarray(values), np.repeat(values, 2, 0)[::2]):
        np.testing.assert_array_equal(trace_sums(turned), expected)


@pytest.mark.parametrize("by_frame", [True, False])
@pytest.mark.parametrize("block", [1, 300, 2**20])
def test_traces_on_disk_have_the_fingerprint_of_the_same_in_memory(
    tmp_path, by_frame, block, monkeypatch
):
    monkeypatch.setattr(traces, "BLOCK_BYTES", block)
    recording = made()
    stored = on_disk(tmp_path / "F.npy", recording.traces, by_frame=by_frame)
    assert recording.fingerprint.changes(made(traces=stored).fingerprint) == []


def test_a_recording_that_was_saved_has_the_fingerprint_it_had(tmp_path):
    recording = made()
    saved = open_recording(save_recording(recording, tmp_path / "recording.npz"))
    assert saved.fingerprint == recording.fingerprint


def test_traces_are_read_once_for_all_copies_here_and_in_other_processes(monkeypatch):
    recording = made()
    before = recording.fingerprint
    monkeypatch.setattr(fingerprint, "blocks_as_stored", None)
    assert replace(recording, notes=("x",)).fingerprint == before
    sent = pickle.loads(pickle.dumps(replace(recording, notes=("x",))))
    assert sent.fingerprint == before


def test_sums_are_forgotten_with_the_traces():
    values = np.ones((3, 2), np.float32)
    trace_sums(values)
    assert known_sums(values) is not None
    key = id(values)
    del values
    assert key not in fingerprint._SUMS


def test_unchanged_files_of_known_results_are_not_read(tmp_path, monkeypatch):
    recording = made(traces=on_disk(tmp_path / "F.npy", np.ones((FRAMES, CELLS), np.float32)))
    kept = recording.fingerprint.as_dict()
    again = made(traces=NpyTraces(tmp_path / "F.npy", cells_first=False))
    monkeypatch.setattr(fingerprint, "_BY_STAMP", {})
    monkeypatch.setattr(fingerprint, "blocks_as_stored", None)
    known = Fingerprint.from_dict(kept)
    assert again.fingerprint == known
    os.utime(tmp_path / "F.npy", (LONG_AGO + 1, LONG_AGO + 1))
    touched = made(traces=NpyTraces(tmp_path / "F.npy", cells_first=False))
    with pytest.raises(TypeError):  # it would be read
        _ = touched.fingerprint


def test_a_file_written_to_a_moment_ago_has_no_stamp(tmp_path):
    """A second write within the same tick of the clock would not show."""
    np.save(tmp_path / "F.npy", np.ones((FRAMES, CELLS), np.float32))
    recording = made(traces=NpyTraces(tmp_path / "F.npy", cells_first=False))
    assert recording.fingerprint.stamp == ""


@pytest.mark.parametrize("sent", [False, True])
def test_traces_rewritten_after_opening_are_refused_also_in_another_process(tmp_path, sent):
    ones = np.ones((FRAMES, CELLS), np.float32)
    stored = CorrectedTraces(
        on_disk(tmp_path / "F.npy", ones), on_disk(tmp_path / "Fneu.npy", ones), 0.5
    )
    recording = made(traces=stored)
    if sent:
        recording = pickle.loads(pickle.dumps(recording))
    else:
        _ = recording.fingerprint
    with (tmp_path / "Fneu.npy").open("r+b") as file:  # in place: the same file, the same size
        file.seek(-4, os.SEEK_END)
        file.write(b"\0\0\0\0")
    with pytest.raises(InputError, match="replaced after the recording was opened"):
        recording.traces[:]
    with pytest.raises(InputError, match="replaced after the recording was opened"):
        confirmed_fingerprint(recording)


def test_a_result_of_another_recording_is_refused_in_a_sentence():
    recording = made()
    assert check_same(recording.fingerprint, made(), "the run") == ""
    assert check_same(None, made(), "the run") == ""
    with pytest.raises(InputError, match=r"mouse.npy was changed since the run was made.*traces"):
        check_same(recording.fingerprint, noise(recording), "the run")
    shorter = replace(recording, traces=recording.traces[:20].copy(), times=None, excluded=None)
    with pytest.raises(InputError, match="that one had 6 cells and 40 frames, this one has 6 and"):
        check_same(recording.fingerprint, shorter, "the run")
    split = replace(recording, starts=np.array([0, 20]))
    assert "trial boundaries" in check_same(recording.fingerprint, split, "the run")
    assert "its traces differ" in note_on_another(recording.fingerprint, noise(recording))


def test_behaviour_that_changed_is_said_and_what_was_added_is_not():
    course = np.linspace(0, 1, FRAMES)
    before = made(behavior={"x": Variable("x", course), "y": Variable("y", course)})
    after = made(behavior={"x": Variable("x", course[::-1]), "z": Variable("z", course)})
    note = check_same(before.fingerprint, after, "the run")
    assert note == ("The values of x in mouse.npy differ from those that the run was made with.")
    assert "the values of x differ" in note_on_another(before.fingerprint, after)
    again = Fingerprint.from_dict(json.loads(json.dumps(before.fingerprint.as_dict())))
    assert again == before.fingerprint
    assert check_same(again, made(), "the run") == ""


def test_what_lacks_footprints_may_be_the_same_recording():
    """As in a sweep, which sends recordings without pictures to other processes."""
    assert check_same(made(footprints=None).fingerprint, made(), "the run") == ""


def test_footprints_tell_cells_and_where_there_are_none_traces_do():
    whole, bare = made(), made(footprints=None)
    assert whole.fingerprint.has_same_cells(noise(whole).fingerprint) is True
    assert bare.fingerprint.has_same_cells(bare.fingerprint) is True
    assert bare.fingerprint.has_same_cells(noise(bare).fingerprint) is None
    turned = CHANGES["footprints in another order"][0](whole)
    assert whole.fingerprint.has_same_cells(turned.fingerprint) is False
    others = made(cell_ids=np.arange(CELLS) + 1)
    assert whole.fingerprint.has_same_cells(others.fingerprint) is False


def test_a_copied_file_has_the_same_fingerprint(tmp_path):
    recording = made(traces=on_disk(tmp_path / "F.npy", np.ones((FRAMES, CELLS), np.float32)))
    shutil.copy(tmp_path / "F.npy", tmp_path / "G.npy")
    copied = made(traces=NpyTraces(tmp_path / "G.npy", cells_first=False))
    assert recording.fingerprint.changes(copied.fingerprint) == []
