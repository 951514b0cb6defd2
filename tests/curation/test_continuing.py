import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from napari_xcebra.curation import (
    CellsInDoubt,
    JournalInUse,
    journal_path,
    journals_of,
    open_curation,
    summary_of,
)
from napari_xcebra.curation.journal import FOLDER
from napari_xcebra.errors import InputError

NOBODY = 65534


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "plane0"
    folder.mkdir()
    return folder


@pytest.fixture
def read_only(folder):
    """Make the recording's folder one that cannot be written to; gives the way back."""
    if os.name == "nt":
        pytest.skip("permissions of folders are another matter there")

    def back():
        if os.getuid() == 0:
            os.seteuid(0)
        for each in (folder, *folder.glob(FOLDER)):
            each.chmod(0o777)

    def make():
        for each in (folder, *folder.glob(FOLDER)):
            each.chmod(0o555)
        if os.getuid() == 0:  # whom nothing is forbidden
            for parent in (folder.parent, *folder.parent.parents):
                if parent.stat().st_uid == 0 and parent != Path("/") and "pytest" in str(parent):
                    parent.chmod(0o777)
            os.seteuid(NOBODY)
        return back

    yield make
    back()


def test_decisions_on_a_folder_are_kept_inside_it_and_gone_on_with(folder, make_recording):
    recording = make_recording()
    with open_curation(recording, folder, curator="Ann") as curation:
        curation.decide(2, "accepted")
    place = folder / FOLDER / "napari-xcebra-curation.jsonl"
    assert journal_path(recording, folder) == place
    assert summary_of(place).curators == ("Ann",)
    with open_curation(recording, folder) as curation:
        assert curation.notes == ()
        assert curation.status_of(2) == "accepted"


def test_napari_opens_the_folder_of_a_recording_as_before_it_was_curated(folder, make_recording):
    """Its own reader takes all files of a folder for one stack, and fails on what is no picture."""
    from napari_builtins.io import napari_get_reader

    for number in range(3):
        np.save(folder / f"{number}.npy", np.full((4, 5), number))

    def opened():
        ((stack, *_),) = napari_get_reader(str(folder))(str(folder))
        return np.asarray(stack)

    before = opened()
    with open_curation(make_recording(), folder) as curation:
        curation.decide(2, "accepted")
        np.testing.assert_array_equal(opened(), before)
    np.testing.assert_array_equal(opened(), before)
    with open_curation(make_recording(), folder) as curation:
        curation.undo()


def test_nothing_is_left_in_a_folder_where_nothing_was_decided(folder, make_recording):
    open_curation(make_recording(), folder).close()
    assert list(folder.iterdir()) == []


def test_a_journal_of_an_earlier_version_is_gone_on_with_where_it_is(folder, make_recording):
    """As the earlier version may still be in use for the same recording."""
    recording = make_recording()
    old = folder / "napari-xcebra-curation.jsonl"
    for name in ("", "Ben"):
        with open_curation(recording, folder, name=name) as curation:
            curation.decide(2, "accepted")
            written = curation.journal.path
        written.rename(folder / written.name)
    with open_curation(recording, folder) as curation:
        assert curation.journal.path == old and curation.status_of(2) == "accepted"
        curation.decide(3, "rejected")
    with open_curation(recording, folder, name="Cid") as curation:
        assert curation.journal.path.parent == folder / FOLDER
        curation.decide(4, "rejected")
    names = [
        path.name.removeprefix("napari-xcebra-curation") for path in journals_of(recording, folder)
    ]
    assert names == [".jsonl", "-Ben.jsonl", "-Cid.jsonl"]


def test_decisions_that_an_earlier_version_put_aside_are_found_too(folder, make_recording):
    with open_curation(make_recording(), folder) as curation:
        curation.decide(2, "accepted")
    with open_curation(make_recording(7), folder) as curation:
        curation.decide(0, "rejected")
    (aside,) = (folder / FOLDER).glob("*other-cells*")
    aside.rename(folder / aside.name)
    with open_curation(make_recording(), folder) as curation:
        assert curation.status_of(2) == "accepted"


@pytest.mark.parametrize("name", ["mouse 3.nwb", "a[1].zarr"])
def test_decisions_on_a_file_are_kept_beside_it(tmp_path, make_recording, name):
    source = tmp_path / name
    source.mkdir() if source.suffix == ".zarr" else source.touch()
    recording = make_recording(source=source)
    with open_curation(recording) as curation:
        curation.decide(2, "accepted")
        assert curation.journal.path == tmp_path / f"{name}.curation.jsonl"
    assert journals_of(recording) == [tmp_path / f"{name}.curation.jsonl"]


def test_decisions_on_a_recording_without_a_path_are_found_by_what_it_is(
    data_directory, make_recording
):
    for pixels in (3, 0):
        recording = make_recording(pixels=pixels)
        with open_curation(recording) as curation:
            assert curation.journal.path.is_relative_to(data_directory)
            curation.decide(2, "accepted")
        with open_curation(make_recording(pixels=pixels)) as again:
            assert again.status_of(2) == "accepted"
        with open_curation(make_recording(7, pixels=pixels)) as another:
            assert not another.can_undo
    with open_curation(make_recording(pixels=0, seed=1)) as another:
        assert not another.can_undo


def test_beside_a_read_only_recording_decisions_go_to_the_data_directory(
    folder, data_directory, make_recording, read_only
):
    recording = make_recording()
    data_directory.mkdir(mode=0o777)
    data_directory.chmod(0o777)
    back = read_only()
    with open_curation(recording, folder) as curation:
        assert curation.journal.path.is_relative_to(data_directory)
        curation.decide(2, "accepted")
    back()
    with open_curation(recording, folder) as curation:
        assert curation.status_of(2) == "accepted", "also once the folder can be written to again"


def test_decisions_beside_a_recording_that_became_read_only_go_on_in_the_data_directory(
    folder, data_directory, make_recording, read_only
):
    recording = make_recording()
    with open_curation(recording, folder, curator="Ann") as curation:
        curation.decide(2, "accepted")
    near = (folder / FOLDER / "napari-xcebra-curation.jsonl").read_bytes()
    data_directory.mkdir(mode=0o777)
    data_directory.chmod(0o777)
    back = read_only()
    with open_curation(recording, folder) as curation:
        assert "cannot be written to" in curation.notes[0]
        assert curation.status_of(2) == "accepted"
        curation.decide(3, "rejected")
    looking = open_curation(recording, folder, read_only=True)
    assert looking.status_of(3) == "rejected"
    back()
    assert (folder / FOLDER / "napari-xcebra-curation.jsonl").read_bytes() == near


def test_where_nothing_can_be_written_a_sentence_says_so(make_recording, data_directory):
    data_directory.write_text("a file where a folder should be")
    with pytest.raises(InputError, match="NAPARI_XCEBRA_DATA"):
        open_curation(make_recording())


def test_a_second_window_may_look_or_keep_decisions_of_its_own(folder, make_recording):
    recording = make_recording()
    with open_curation(recording, folder, curator="Ann") as first:
        first.decide(2, "accepted")
        with pytest.raises(JournalInUse, match="by Ann"):
            open_curation(recording, folder, curator="Ben")
        assert open_curation(recording, folder, read_only=True).status_of(2) == "accepted"
        with open_curation(recording, folder, curator="Ben", name="Ben") as second:
            assert second.journal.path.name == "napari-xcebra-curation-Ben.jsonl"
            second.decide(2, "rejected")
        assert first.status_of(2) == "accepted"
    names = [path.name for path in journals_of(recording, folder)]
    assert names == ["napari-xcebra-curation.jsonl", "napari-xcebra-curation-Ben.jsonl"]


@pytest.mark.parametrize("change", [{"n_cells": 7}, {"pixels": 4}, {"ids": [9, 1, 2, 3, 4, 5]}])
def test_decisions_on_other_cells_are_kept_under_another_name(folder, make_recording, change):
    with open_curation(make_recording(), folder) as curation:
        curation.decide(2, "accepted")
    before = (folder / FOLDER / "napari-xcebra-curation.jsonl").read_bytes()
    with open_curation(make_recording(**change), folder) as curation:
        assert len(curation.notes) == 1
        assert "holds 1 decisions on 6" in curation.notes[0] and "kept as" in curation.notes[0]
        assert not curation.can_undo
        curation.decide(0, "rejected")
    (kept,) = folder.glob(f"{FOLDER}/*other-cells*")
    assert kept.read_bytes().startswith(before)
    assert journals_of(make_recording(**change), folder) == [
        folder / FOLDER / "napari-xcebra-curation.jsonl"
    ]


def test_decisions_that_were_put_aside_are_found_when_their_cells_come_back(folder, make_recording):
    with open_curation(make_recording(), folder) as curation:
        curation.decide(2, "accepted")
    with open_curation(make_recording(7), folder) as curation:
        curation.decide(0, "rejected")
    with open_curation(make_recording(), folder) as curation:
        assert curation.status_of(2) == "accepted"
        assert "and are continued" in curation.notes[1]
    with open_curation(make_recording(7), folder) as curation:
        assert curation.status_of(0) == "rejected"


def test_other_traces_of_the_same_cells_keep_the_decisions(folder, make_recording):
    with open_curation(make_recording(), folder) as curation:
        curation.decide(2, "accepted")
    with open_curation(make_recording(scale=3.0), folder) as curation:
        assert curation.status_of(2) == "accepted"
        assert "opened in another way" in curation.notes[0]


def test_footprints_in_another_order_are_other_cells(folder, make_recording):
    """Also where every cell has as many pixels as before."""
    recording = make_recording()
    with open_curation(recording, folder) as curation:
        curation.decide(2, "rejected")
    cell = recording.n_cells - 1 - recording.footprints.cell
    turned = replace(recording, footprints=replace(recording.footprints, cell=cell))
    with open_curation(turned, folder) as curation:
        assert not curation.can_undo
        assert "other cells" in curation.notes[0]


@pytest.mark.parametrize("same", [True, False])
def test_without_footprints_other_traces_are_asked_about(folder, make_recording, same):
    with open_curation(make_recording(pixels=0), folder) as curation:
        curation.decide(2, "rejected")
    other = make_recording(pixels=0, seed=1)
    with pytest.raises(CellsInDoubt, match=r"1 decision, but the traces .* differ"):
        open_curation(other, folder)
    with open_curation(other, folder, same_cells=same) as curation:
        assert curation.can_undo == same
        assert curation.notes


def test_looking_at_a_journal_of_other_cells_is_refused(folder, make_recording):
    with open_curation(make_recording(), folder) as curation:
        curation.decide(2, "accepted")
    with pytest.raises(InputError, match="6 cells, and this recording has 7"):
        open_curation(make_recording(7), folder, read_only=True)


def test_a_journal_can_be_named_by_its_file(tmp_path, make_recording):
    recording = make_recording()
    with open_curation(recording, journal=tmp_path / "mine.jsonl") as curation:
        curation.decide(np.arange(6) > 3, "rejected")
    with open_curation(recording, journal=tmp_path / "mine.jsonl") as curation:
        assert curation.status.tolist() == [0, 0, 0, 0, 2, 2]


def test_a_name_that_cannot_be_part_of_a_file_name_is_refused(folder, make_recording):
    with pytest.raises(InputError, match="file name"):
        open_curation(make_recording(), folder, name="../")
