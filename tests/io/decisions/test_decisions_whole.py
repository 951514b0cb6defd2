"""Decisions go to several files: all of them are new, or all as they were."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from written_files import CELLS, state, temporary_files

from napari_xcebra.errors import InputError
from napari_xcebra.files import TEMPORARY, temporary_beside
from napari_xcebra.io import open_recording
from napari_xcebra.io.decisions.backups import _lists
from napari_xcebra.io.decisions.outputs import plan_output
from napari_xcebra.io.decisions.plan import Plan, change_to
from napari_xcebra.io.decisions.restoring import plan_restore, repair, restore
from napari_xcebra.io.formats.suite2p.writing import ISCELL, SIDECAR

STEPS = [(os, "replace"), (os, "link"), (os, "unlink"), (os, "fsync"), (os, "open")]


def inverted(folder):
    recording = open_recording(folder)
    return plan_output("suite2p", recording, folder, ~recording.accepted)


class Failing:
    """Every step of writing fails from the n-th on, `times` times."""

    def __init__(self, patch, error, first, times=1):
        self.count, self.error = 0, error
        self.range = range(first, first + times)
        patch.setattr(os, "fsync", lambda _: None)  # the disk is slow, and does not fail here
        for module, name in STEPS:
            patch.setattr(module, name, self.wrapped(getattr(module, name)))

    def wrapped(self, real):
        def step(*given, **named):
            self.count += 1
            if self.count - 1 in self.range:
                raise self.error
            return real(*given, **named)

        return step


def each_failure(action, error, times=1):
    """Run the action with a failure at every step in turn; yields after each."""
    for first in range(500):
        with pytest.MonkeyPatch.context() as patch:
            failing = Failing(patch, error, first, times)
            failed = False
            try:
                action()
            except BaseException as raised:
                failed = True
                if not isinstance(raised, (InputError, Crash)):
                    raise
        yield failed
        if failing.count <= first:
            assert first > 20  # there were steps to fail
            return
    raise AssertionError("it never ended")


class Crash(BaseException):
    """The program ends here."""


@pytest.fixture
def three(tmp_path):
    """A file of another program, one that was written here before, and one that is yet to be."""
    folder = tmp_path / "three"
    for name in ("plane0/a.txt", "combined/b.txt"):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text(f"{name} of another program")
    planned(folder, ["combined/b.txt"], "before").write()
    return folder


def planned(folder, names, text):
    changes = (change_to(folder / name, "", lambda path: path.write_text(text)) for name in names)
    return Plan("csv", tuple(changes))


def write_three(folder):
    return planned(folder, ["plane0/a.txt", "combined/b.txt", "c.txt"], "new").write()


def outcomes_of(three, error, times=1):
    """Whether writing failed and what there is then, for a failure at each step; old and new."""
    again = shutil.copytree(three, three.with_name("again"))
    old = state(three)
    write_three(again)
    new = state(again)
    assert new["plane0/a.txt.original"] == old["plane0/a.txt"]
    assert new["combined/b.txt.previous"] == old["combined/b.txt"]
    assert new["combined/b.txt.original"] == old["combined/b.txt.original"]
    outcomes = []
    for failed in each_failure(lambda: write_three(three), error, times):
        left = temporary_files(three)
        repair(three)
        outcomes.append((failed, state(three), len(left)))
        for orphan in _lists().glob("*.json"):  # of a program that ended before it began to write
            orphan.unlink()
        shutil.rmtree(three)
        restart(three, old)
    return old, new, outcomes


def restart(folder, old):
    for name, content in old.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def test_a_failure_at_any_step_leaves_all_files_old_or_all_new(three):
    old, new, outcomes = outcomes_of(three, OSError(28, "No space left on device"))
    assert len(outcomes) > 40
    for failed, now, left in outcomes:
        assert now == (old if failed else new)
        assert left <= 1  # where removing it was what failed
    assert [failed for failed, _, _ in outcomes].count(True) > 20


def test_a_program_that_ends_at_any_step_leaves_all_files_old_or_all_new(three):
    old, new, outcomes = outcomes_of(three, Crash(), times=10_000)
    assert all(now in (old, new) for _, now, _ in outcomes)
    assert any(now == old and left for _, now, left in outcomes)
    assert outcomes[-1][1] == new


def test_restoring_is_all_or_nothing_too(folder):
    original = state(folder)
    inverted(folder).write()
    curated = state(folder)
    plan = plan_restore(folder)
    for failed in each_failure(lambda: plan.write(), OSError(5, "Input/output error")):
        if not failed:
            break
        assert state(folder) == curated
    now = state(folder)
    assert {name: now[name] for name in original} == original


def test_the_first_original_stays_whatever_is_written_later(folder):
    iscell = folder / "plane0" / ISCELL
    original = iscell.read_bytes()
    recording = open_recording(folder)
    versions = []
    for flip in range(4):
        accepted = recording.accepted.copy()
        accepted[flip] ^= True
        plan_output("suite2p", open_recording(folder), folder, accepted).write()
        assert iscell.with_name("iscell.npy.original").read_bytes() == original
        versions.append(iscell.read_bytes())
    assert iscell.with_name("iscell.npy.previous").read_bytes() == versions[-2]
    assert not iscell.with_name("iscell.npy.original-2").exists()
    restore(iscell)
    assert iscell.read_bytes() == original


def test_what_another_program_wrote_in_between_is_kept_as_well(folder):
    iscell = folder / "plane0" / ISCELL
    first = iscell.read_bytes()
    inverted(folder).write()
    by_hand = np.load(iscell)
    by_hand[:, 0] = [1, 0, 1, 0, 1]
    np.save(iscell, by_hand)  # as suite2p's window does
    second = iscell.read_bytes()
    inverted(folder).write()
    assert iscell.with_name("iscell.npy.original").read_bytes() == first
    assert iscell.with_name("iscell.npy.original-2").read_bytes() == second
    restore(folder)
    assert iscell.read_bytes() == second


def test_what_was_restored_can_be_brought_back(folder):
    inverted(folder).write()
    curated = np.load(folder / "plane1" / ISCELL)
    written = restore(folder)
    assert {path.name for path in written.files} == {ISCELL, SIDECAR}
    assert not (folder / SIDECAR).exists()
    restore(folder, "previous")
    np.testing.assert_array_equal(np.load(folder / "plane1" / ISCELL), curated)
    restore(folder)
    assert not np.array_equal(np.load(folder / "plane1" / ISCELL), curated)


def test_restoring_after_suite2p_was_run_again_is_refused(folder):
    inverted(folder).write()
    plane = folder / "plane0"
    for name in ("F", "Fneu", "spks"):
        np.save(plane / f"{name}.npy", np.load(plane / f"{name}.npy")[:-1])
    with pytest.raises(InputError, match=r"5 ROIs but F.npy beside it has 4: suite2p has been run"):
        restore(plane)


def test_a_file_that_changed_since_the_preview_is_not_written_over(folder):
    plan = inverted(folder)
    np.save(folder / "plane1" / ISCELL, np.ones((CELLS, 2)))
    before = state(folder)
    with pytest.raises(InputError, match="since the preview: nothing was written"):
        plan.write()
    assert state(folder) == before


def test_nothing_to_restore_is_a_sentence(tmp_path):
    (tmp_path / "traces.npy").write_bytes(b"1")
    with pytest.raises(InputError, match="nothing to restore"):
        restore(tmp_path / "traces.npy")


def test_a_link_stays_a_link(tmp_path):
    real = tmp_path / "real.txt"
    real.write_text("old")
    link = tmp_path / "elsewhere" / "link.txt"
    link.parent.mkdir()
    link.symlink_to(real)
    Plan("csv", (change_to(link, "", lambda path: path.write_text("new")),)).write()
    assert link.is_symlink() and real.read_text() == "new"
    assert (tmp_path / "real.txt.original").read_text() == "old"


def test_access_to_a_file_stays_as_it_was(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("old")
    path.chmod(0o640)
    Plan("csv", (change_to(path, "", lambda new: new.write_text("new")),)).write()
    assert path.stat().st_mode & 0o777 == 0o640


def test_without_hard_links_files_are_copied(folder, monkeypatch):
    def no_links(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "link", no_links)
    old = state(folder)
    inverted(folder).write()
    assert state(folder)["plane0/iscell.npy.original"] == old[f"plane0/{ISCELL}"]
    restore(folder)
    assert {name: content for name, content in state(folder).items() if name in old} == old
    assert not temporary_files(folder)


def test_temporary_files_of_long_ago_are_swept_away_and_others_are_not(three):
    """The time of a second name is that of its file, which may be old while it is being written."""
    now = temporary_beside(three / "c.txt")
    os.utime(now, (0, 0))
    long_ago = three / f"{TEMPORARY}1700000000-{'0' * 32}.npy"
    others = three / f"{TEMPORARY}1700000000-of-another-program.npy"
    long_ago.touch()
    others.touch()
    write_three(three)
    assert now.exists() and others.exists() and not long_ago.exists()


def test_what_is_read_only_is_told_before_anything_is_written(folder, monkeypatch):
    real = os.access
    locked = folder / "combined"
    monkeypatch.setattr(os, "access", lambda p, mode: Path(p) != locked and real(p, mode))
    old = state(folder)
    with pytest.raises(InputError, match=r"combined is read-only.*choose another destination"):
        inverted(folder)
    assert state(folder) == old


def test_a_disk_without_room_is_told_before_anything_is_written(tmp_path, monkeypatch):
    change = change_to(tmp_path / "large.nwb", "", Path.touch, size=10**15)
    with pytest.raises(InputError, match=r"takes 1000000.0 GB but .* GB left: make room"):
        Plan("nwb", (change,)).write()
    assert not list(tmp_path.iterdir())
