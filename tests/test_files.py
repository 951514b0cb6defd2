"""A file is written whole or not at all."""

import contextlib
import errno
import os
import signal
import socket
import stat
from pathlib import Path

import numpy as np
import pytest

import napari_xcebra as xc
from napari_xcebra import files
from napari_xcebra.attribution import Attribution
from napari_xcebra.batch.plan import read_sweep
from napari_xcebra.curation import open_curation
from napari_xcebra.curation.changes import read_journal
from napari_xcebra.errors import InputError
from napari_xcebra.files import TEMPORARY_NAME, read_description, read_json, whole
from napari_xcebra.io.discovery import format_of
from napari_xcebra.io.opening import Opening
from napari_xcebra.learn import Fit
from napari_xcebra.recording import Recording
from napari_xcebra.runs import Run
from napari_xcebra.spreadsheets import read_csv
from napari_xcebra.workspace_file import load_workspace


def names(folder):
    return {path.name for path in folder.iterdir()}


def test_the_file_appears_only_once_it_is_complete(tmp_path):
    path = tmp_path / "table.csv"
    with whole(path) as file:
        file.write_text("half")
        assert not path.exists()
        file.write_text("complete")
    assert path.read_text() == "complete"
    assert names(tmp_path) == {"table.csv"}


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt], ids=lambda e: e.__name__)
def test_a_failure_while_writing_leaves_the_earlier_file_and_nothing_else(tmp_path, error):
    path = tmp_path / "table.csv"
    path.write_text("earlier")
    with pytest.raises(error), whole(path) as file:
        file.write_text("half")
        raise error
    assert path.read_text() == "earlier"
    assert names(tmp_path) == {"table.csv"}


def test_a_failure_while_replacing_leaves_the_earlier_file_and_nothing_else(tmp_path, monkeypatch):
    def refuse(self, target):
        raise PermissionError("in use by another program")

    path = tmp_path / "table.csv"
    path.write_text("earlier")
    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(InputError, match="in use by another program"), whole(path) as file:
        file.write_text("later")
    assert path.read_text() == "earlier"
    assert names(tmp_path) == {"table.csv"}


def test_where_nothing_was_a_failure_leaves_nothing(tmp_path):
    with pytest.raises(ValueError), whole(tmp_path / "table.csv") as file:
        file.write_text("half")
        raise ValueError
    assert names(tmp_path) == set()


def test_missing_folders_are_made(tmp_path):
    with whole(tmp_path / "a" / "b" / "table.csv") as file:
        file.write_text("complete")
    assert (tmp_path / "a" / "b" / "table.csv").read_text() == "complete"


def test_the_temporary_file_has_the_ending_that_tells_writers_the_format(tmp_path):
    with whole(tmp_path / "scores.npz") as file:
        assert file.suffix == ".npz"
        assert file.parent == tmp_path  # elsewhere it could not take the other's place in one step


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_others_in_the_lab_may_read_what_the_umask_lets_them(tmp_path):
    before = os.umask(0o027)
    try:
        with whole(tmp_path / "table.csv") as file:
            file.write_text("complete")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "table.csv").stat().st_mode) == 0o640


@pytest.mark.skipif(os.name == "nt", reason="Windows cannot open folders")
def test_the_new_name_is_on_disk_before_writing_is_reported(tmp_path, monkeypatch):
    steps = []
    replace, fsync = os.replace, os.fsync

    def noted_replace(old, new):
        steps.append("replace")
        replace(old, new)

    def noted_fsync(file):
        steps.append("folder" if stat.S_ISDIR(os.fstat(file).st_mode) else "file")
        fsync(file)

    monkeypatch.setattr(os, "replace", noted_replace)
    monkeypatch.setattr(os, "fsync", noted_fsync)
    with whole(tmp_path / "table.csv") as file:
        file.write_text("complete")
    assert steps == ["file", "replace", "folder"]


@pytest.mark.parametrize(
    "name", ["t.csv", "n" * 255, "n" * 251 + ".npz", "n." + "e" * 253, "n.a b"]
)
def test_however_long_a_name_is_the_temporary_one_is_short_and_known_as_ours(tmp_path, name):
    with whole(tmp_path / name) as file:
        assert TEMPORARY_NAME.fullmatch(file.name)
        file.write_text("complete")
    assert names(tmp_path) == {name}


@pytest.mark.parametrize(
    "number, advice",
    [(errno.ENOSPC, "free some space"), (errno.EACCES, "allow writing"), (errno.EIO, "another")],
)
@pytest.mark.parametrize("step", ["open", "fsync", "replace", "mkdir", "chmod"])
def test_what_cannot_be_written_is_told_in_a_sentence(tmp_path, monkeypatch, step, number, advice):
    path = tmp_path / "new" / "table.csv"

    def fails(*_, **__):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, step, fails)
        said = rf"table\.csv could not be written \({os.strerror(number)}\): .*{advice}"
        with pytest.raises(InputError, match=said) as raised, whole(path) as file:
            file.write_text("complete")
    assert isinstance(raised.value, OSError) and raised.value.errno == number
    assert not list(tmp_path.rglob("*.csv"))


def test_a_name_that_is_too_long_is_told_in_a_sentence(tmp_path):
    with pytest.raises(InputError, match="choose a shorter name"), whole(tmp_path / ("n" * 256)):
        pass
    assert names(tmp_path) == set()


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[" * 100_000, b'{"a":' * 100_000, b"\xff\xfe", b"9" * 10_000, b"\0" * 100],
    ids=["empty", "cut off", "deep lists", "deep objects", "no text", "a long number", "zeros"],
)
def test_json_that_cannot_be_read_gets_a_sentence(tmp_path, content):
    path = tmp_path / "run.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"run\.json is damaged: .*\.$"):
        read_json(path)
    with pytest.raises(InputError, match=r"run\.json is damaged: .*\.$"):
        read_description(path, "run", 1)


def test_a_file_far_larger_than_any_description_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MOST_TEXT", 100)
    (tmp_path / "run.json").write_text(" " * 99 + "1")
    assert read_json(tmp_path / "run.json") == 1
    (tmp_path / "run.json").write_text(" " * 100 + "1")
    with pytest.raises(InputError, match="too large"):
        read_json(tmp_path / "run.json")


def test_a_missing_file_gets_a_sentence(tmp_path):
    with pytest.raises(InputError, match=r"cannot be read: No such file"):
        read_json(tmp_path / "run.json")
    with pytest.raises(InputError, match=r"holds no workspace: No such file"):
        read_description(tmp_path / "run.json", "session", 1, called="workspace")


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_nothing_is_written_through_a_link_by_a_name_of_ours(tmp_path):
    (tmp_path / "fit").symlink_to(tmp_path / "thesis")
    with pytest.raises(InputError, match="fit is a link to another place"):
        files.refuse_link(tmp_path / "fit")
    files.refuse_link(tmp_path / "run")


def in_place_of_a_file(path, kind):
    """Something that is no file, or claims more than any file of ours has."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with contextlib.chdir(path.parent), socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        with path.open("wb") as file:
            file.truncate(6 * 2**30)
    return path


def read_table_here(path):
    try:
        read_csv(path)
    except OSError as error:
        raise InputError(str(error)) from error


def open_a_curation(path):
    recording = Recording.from_arrays(np.ones((20, 3), np.float32), rate=10.0)
    open_curation(recording, None, journal=path)


@pytest.mark.skipif(os.name == "nt", reason="has no pipes among its files")
@pytest.mark.parametrize("kind", ["pipe", "socket", "device", "holes"])
@pytest.mark.parametrize(
    "name, read",
    [
        ("journal.jsonl", read_journal),
        ("journal.jsonl", open_a_curation),
        ("workspace/session.json", lambda path: load_workspace(path.parent)),
        ("run/run.json", lambda path: Run.load(path.parent)),
        ("fit/fit.json", lambda path: Fit.load(path.parent)),
        ("map.npz", Attribution.load),
        ("table.csv", read_table_here),
        ("out/opening.json", lambda path: Opening.load(path.parent)),
        ("traces.npy", lambda path: xc.open_recording(path, rate=10.0)),
        ("behaviour.csv", lambda path: format_of(path, "behaviour file").load(path, None)),
        ("sweep.toml", read_sweep),
    ],
)
def test_what_is_no_file_is_a_sentence_and_never_waited_for(tmp_path, kind, name, read):
    path = in_place_of_a_file(tmp_path / name, kind)
    if kind == "holes" and name in ("traces.npy", "behaviour.csv"):
        pytest.skip("the limited child reads these: tests/io/test_guard.py")
    signal.signal(signal.SIGALRM, lambda *_: pytest.fail("it waits"))
    signal.alarm(10)
    try:
        with pytest.raises(InputError) as error:
            read(path)
    finally:
        signal.alarm(0)
    assert path.parts[-1] in str(error.value) or path.parent.name in str(error.value)
