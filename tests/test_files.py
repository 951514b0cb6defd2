"""A file is written whole or not at all."""

import os
import stat
from pathlib import Path

import pytest

from napari_xcebra.files import whole


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
    with pytest.raises(PermissionError), whole(path) as file:
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
