"""A write that was cut short is undone by whoever began it, and by nobody else's list."""

import errno
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from written_files import caiman_file, state, temporary_files

from napari_xcebra.cli.commands import main
from napari_xcebra.errors import InputError
from napari_xcebra.io import open_recording
from napari_xcebra.io.decisions.outputs import plan_output
from napari_xcebra.io.decisions.plan import Plan, change_to
from napari_xcebra.io.decisions.restoring import plan_restore, repair, restore
from napari_xcebra.io.formats.suite2p.writing import ISCELL

OLD_LIST, NOTE = ".napari-xcebra-unfinished.json", ".napari-xcebra-unfinished-{}.json"


class Crash(BaseException):
    """The program ends here."""


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """The folder that is this user's alone."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "napari-xcebra" / "unfinished"


def inverted(folder):
    recording = open_recording(folder)
    return plan_output("suite2p", recording, folder, ~recording.accepted)


def interrupt(plan, after=1):
    """Write, and end once so many files of decisions have taken their place."""
    with pytest.MonkeyPatch.context() as patch:
        real, count = os.replace, iter(range(after))

        def dying(old, new):
            if Path(new).name == ISCELL and next(count, None) is None:
                for name in ("replace", "unlink", "link", "open"):
                    patch.setattr(os, name, crash)
                crash()
            real(old, new)

        def crash(*_, **__):
            raise Crash

        patch.setattr(os, "replace", dying)
        with pytest.raises(Crash):
            plan.write()


def everything(folder):
    """Every file with its content, but for what a killed program locked."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock"]
    return {path: path.read_bytes() for path in files}


def tables(folder):
    return [np.load(folder / name / ISCELL).tolist() for name in ("plane0", "plane1", "combined")]


@pytest.mark.parametrize("kind", ["suite2p", "csv"])
@pytest.mark.parametrize(
    "place", [["a", "../thesis/.env", None, 0, 0], ["b", None, "../thesis/.git", -1, -1]]
)
def test_a_crafted_list_in_a_shared_folder_is_never_obeyed(folder, kind, place, capsys):
    thesis = folder.parent / "thesis"
    (thesis / ".git").mkdir(parents=True)
    (thesis / ".env").write_text("key")
    about = {"pid": 1, "started": 0, "host": "x", "places": [place]}
    for name in (OLD_LIST, NOTE.format("0" * 32), NOTE.format("../" * 10 + "etc")[:60]):
        (folder / Path(name).name).write_text(json.dumps(about))
    before = everything(folder.parent)
    recording = open_recording(folder)
    plan = plan_output(kind, recording, folder, ~recording.accepted)
    assert "and did not finish" in plan.warnings[-1] and "on x" in plan.warnings[-1]
    assert "remove .napari-xcebra-unfinished" in recording.notes[-1]
    with pytest.raises(InputError, match="nothing to restore"):
        restore(folder)
    assert main(["restore", str(folder), "--dry-run"]) == 2
    assert everything(folder.parent) == before
    plan.write()
    restore(folder if kind == "suite2p" else plan.files[0].path)
    assert (thesis / ".env").read_text() == "key" and (thesis / ".git").is_dir()
    assert (folder / OLD_LIST).exists()  # not ours to remove


def test_an_old_list_of_a_write_that_never_began_is_forgotten(folder, home):
    home.mkdir(parents=True)
    about = {"folders": [str(folder)], "places": []}
    for name, days in (("old", 31), ("new", 1)):
        (home / f"{name}.json").write_text(json.dumps(about))
        os.utime(home / f"{name}.json", (time.time() - days * 86400,) * 2)
    repair(folder)
    assert [file.name for file in home.iterdir()] == ["new.json"]


def test_what_a_note_says_is_shown_in_part_and_not_as_it_is(folder):
    about = {"host": "<img src=x>" + "\n" * 9 + "h" * 3000}
    (folder / OLD_LIST).write_text(json.dumps(about))
    (folder / NOTE.format("1" * 32)).write_text("[" * 10_000)
    (folder / NOTE.format("2" * 32)).symlink_to("/dev/zero")
    notes = [note for note in open_recording(folder).notes if "did not finish" in note]
    assert len(notes) == 2
    assert not re.search(r"[<>\n]|h{70}", "".join(notes))


def test_previews_and_opening_report_an_interrupted_write_and_leave_it(folder):
    interrupt(inverted(folder))
    before = everything(folder)
    recording = open_recording(folder)
    assert "was interrupted" in recording.notes[-1]
    assert any("was interrupted" in note for note in open_recording(folder / "plane1").notes)
    assert "was interrupted" in inverted(folder).warnings[-1]
    with pytest.raises(InputError, match="nothing to restore"):
        plan_restore(folder, "previous")
    table = plan_output("csv", recording, folder, recording.accepted)
    assert "was interrupted" in table.warnings[-1]
    assert everything(folder) == before


def test_the_next_write_undoes_it_first_and_asks_for_another_look(folder):
    old = tables(folder)
    interrupt(inverted(folder))
    assert tables(folder) != old
    with pytest.raises(InputError, match="interrupted and has now been undone; nothing else"):
        inverted(folder).write()
    assert tables(folder) == old
    assert not temporary_files(folder)
    recording = open_recording(folder)
    assert not any("interrupted" in note for note in recording.notes)
    inverted(folder).write()
    np.testing.assert_array_equal(open_recording(folder).accepted, ~recording.accepted)


def test_a_write_to_one_plane_undoes_all_of_an_interrupted_one(folder):
    old = tables(folder)
    interrupt(inverted(folder))
    recording = open_recording(folder / "plane1")
    alone = plan_output(
        "suite2p", recording, folder / "plane1", ~recording.accepted, together=False
    )
    alone.write()  # this plane had not been replaced yet
    assert tables(folder)[::2] == old[::2]


def test_restoring_undoes_it_and_goes_on_to_the_original(folder):
    original = tables(folder)
    interrupt(inverted(folder))
    assert restore(folder).files  # nothing else was ever written
    assert tables(folder) == original
    inverted(folder).write()
    first = tables(folder)
    recording = open_recording(folder)
    plan = plan_output("suite2p", recording, folder, np.ones(recording.n_cells, bool))
    interrupt(plan)
    assert tables(folder) != first
    restore(folder)
    assert tables(folder) == original


def test_the_command_line_repairs_unless_only_asked(folder, capsys):
    old = tables(folder)
    interrupt(inverted(folder))
    half = everything(folder)
    assert main(["restore", str(folder), "--previous", "--dry-run"]) == 2
    assert everything(folder) == half
    assert main(["restore", str(folder)]) == 0
    assert "An earlier write was interrupted and has been undone" in capsys.readouterr().out
    assert tables(folder) == old


@pytest.mark.parametrize("where", ["", "plane0", "plane1", "combined"])
def test_a_folder_that_was_moved_in_between_is_still_repaired(folder, home, where):
    old = tables(folder)
    interrupt(inverted(folder))
    moved = folder.parent / "archive" / "mouse3"
    moved.parent.mkdir()
    folder.rename(moved)
    assert "was interrupted" in open_recording(moved).notes[-1]
    assert repair(moved / where)
    assert tables(moved) == old
    assert not list(home.iterdir())


def test_a_copy_is_not_repaired_in_place_of_what_it_is_a_copy_of(folder):
    interrupt(inverted(folder))
    copy = shutil.copytree(folder, folder.parent / "copy")
    before = everything(copy)
    assert not repair(copy)
    assert "did not finish" in open_recording(copy).notes[-1]
    assert everything(copy) == before


def test_a_note_that_was_put_elsewhere_moves_nothing_there(folder, tmp_path):
    """Somebody takes the notes and temporary files along, but leads folders elsewhere."""
    interrupt(inverted(folder))
    private = shutil.copytree(folder, tmp_path / "private" / "suite2p")
    before = everything(private)
    shared = tmp_path / "shared"
    shared.mkdir()
    for name in ("plane0", "plane1", "combined"):
        (shared / name).symlink_to(private / name)
    for note in folder.glob(".napari-xcebra-unfinished*"):
        shutil.copy2(note, shared / note.name)
    shutil.rmtree(folder)
    assert not repair(shared)
    assert everything(private) == before


def test_another_user_is_told_whose_write_it_was_and_loses_nothing(folder, tmp_path, monkeypatch):
    """A begins and is cut short; B, who has no list, writes; A comes back."""
    original = {name: (folder / name / ISCELL).read_bytes() for name in ("plane0", "plane1")}
    interrupt(inverted(folder), after=2)
    with monkeypatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path / "state of B"))
        recording = open_recording(folder)
        assert re.search(r"\w+ began to write to .* on .* and did not finish", recording.notes[-1])
        plan = inverted(folder)
        assert "did not finish" in plan.warnings[-1]
        plan.write()
        by_b = tables(folder)
    repair(folder)
    assert tables(folder) == by_b
    for name, content in original.items():
        kept = [*(folder / name).glob("iscell.npy*")]
        assert content in [each.read_bytes() for each in kept]
    assert not any("finish" in note for note in open_recording(folder).notes)


def test_what_cannot_be_put_back_at_once_is_put_back_later(folder):
    old = state(folder)
    plan = inverted(folder)
    with pytest.MonkeyPatch.context() as patch:
        real, count = os.replace, iter(range(1))

        def failing(one, other):
            if Path(other).name == ISCELL and next(count, None) is None:
                raise OSError(errno.EIO, "Input/output error")
            real(one, other)

        patch.setattr(os, "replace", failing)
        with pytest.raises(InputError, match="not all files could be put back"):
            plan.write()
    assert state(folder) != old
    repair(folder)
    assert state(folder) == old


def test_temporary_files_that_are_gone_are_told_and_nothing_is_removed(folder):
    interrupt(inverted(folder))
    for name in folder.rglob(".napari-xcebra-1*"):
        name.unlink()
    before = everything(folder)
    with pytest.raises(InputError, match=r"a temporary file is gone: check .*iscell.npy, whose"):
        repair(folder)
    assert everything(folder) == before
    assert (folder / "plane0" / "iscell.npy.original").exists()


def test_a_file_whose_original_was_deleted_is_not_taken_away(folder):
    inverted(folder).write()
    (folder / "plane0" / "iscell.npy.original").unlink()
    restore(folder)
    assert (folder / "plane0" / ISCELL).exists()


def test_what_agreed_at_the_preview_must_still_agree(folder):
    """A plan that leaves a plane as it is reports decisions of that plane as well."""
    recording = open_recording(folder)
    accepted = recording.accepted.copy()
    accepted[-1] ^= True
    plan = plan_output("suite2p", recording, folder, accepted)
    assert folder / "plane0" / ISCELL not in [change.path for change in plan.files]
    np.save(folder / "plane0" / ISCELL, np.ones_like(np.load(folder / "plane0" / ISCELL)))
    with pytest.raises(InputError, match=r"plane0.*since the preview"):
        plan.write()


def test_a_change_while_a_large_copy_is_made_is_noticed(tmp_path):
    path = caiman_file(tmp_path / "results.hdf5")
    recording = open_recording(path)
    plan = plan_output("caiman", recording, path, ~recording.accepted)
    change = plan.files[0]
    make = change.make

    def slow(temporary):
        make(temporary)
        path.write_bytes(b"of CaImAn")

    object.__setattr__(change, "make", slow)
    with pytest.raises(InputError, match="since the preview"):
        plan.write()
    assert path.read_bytes() == b"of CaImAn"
    assert [file.name for file in tmp_path.iterdir() if file.is_file()] == ["results.hdf5"]


def test_a_long_name_is_written_or_refused_in_a_sentence(tmp_path):
    for length in (246, 247, 255, 256):
        path = tmp_path / ("n" * (length - 4) + ".csv")
        try:
            for text in ("first", "second"):
                Plan("csv", (change_to(path, "", lambda file, t=text: file.write_text(t)),)).write()
        except InputError as error:
            assert length > 246 and "choose a shorter name" in str(error)
    assert len([path for path in tmp_path.iterdir() if path.suffix == ".csv"]) == 1


@pytest.mark.skipif(os.name == "nt", reason="Windows knows no such limits")
def test_a_full_disk_is_a_sentence_and_leaves_the_recording_as_it_was(tmp_path):
    path = caiman_file(tmp_path / "results.hdf5")
    before = path.read_bytes()
    program = f"""
import resource
from napari_xcebra.errors import InputError
from napari_xcebra.io import open_recording
from napari_xcebra.io.decisions.outputs import plan_output
recording = open_recording({str(path)!r})
for size in (0, 10, 1000, {len(before) - 10}, {len(before) + 10}):
    plan = plan_output("caiman", recording, {str(path)!r}, ~recording.accepted)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, -1))
    try:
        plan.write()
        print("done")
    except InputError as error:
        print(error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1))
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert len(ran.stdout.splitlines()) == 5 and "done" not in ran.stdout
    assert path.read_bytes() == before
    assert not temporary_files(tmp_path)


def test_too_little_memory_is_a_sentence(tmp_path):
    def greedy(_):
        raise MemoryError

    with pytest.raises(InputError, match="not enough memory"):
        Plan("csv", (change_to(tmp_path / "table.csv", "", greedy),)).write()
    assert not list(tmp_path.glob("*.csv")) and not temporary_files(tmp_path)
