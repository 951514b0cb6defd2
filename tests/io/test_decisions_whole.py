"""Decisions go to several files: all of them are new, or all as they were."""

import json
import os
import re
import shutil
import tempfile
from pathlib import Path

import numpy as np
import psutil
import pytest

from napari_xcebra.io import open_recording
from napari_xcebra.io.decisions import plan_output, plan_restore, restore
from napari_xcebra.io.decisions import together as together_module
from napari_xcebra.io.decisions.plan import Plan, change_to
from napari_xcebra.io.decisions.restoring import folders_near
from napari_xcebra.io.decisions.suite2p import ISCELL, SIDECAR
from napari_xcebra.io.write_suite2p import write_suite2p
from napari_xcebra.recording import Footprints, InputError, Recording

FRAMES, CELLS = 40, 5
STEPS = [(os, "replace"), (os, "link"), (os, "unlink"), (os, "fsync"), (tempfile, "mkstemp")]


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """Two planes and `combined`, as suite2p puts them."""
    rng = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("template") / "suite2p"
    planes = []
    for number in range(2):
        traces = rng.random((FRAMES, CELLS)).astype(np.float32) + 1
        planes.append(
            Recording(
                traces,
                rate=15.0,
                accepted=rng.random(CELLS) > 0.5,
                footprints=Footprints.on_a_grid(CELLS),
                cells={"probability": rng.random(CELLS)},
            )
        )
        write_suite2p(planes[-1], folder / f"plane{number}")
    combined = folder / "combined"
    shutil.copytree(folder / "plane0", combined)
    for name in ("F", "Fneu", "spks", "iscell", "stat"):
        parts = [np.load(folder / f"plane{i}" / f"{name}.npy", allow_pickle=True) for i in (0, 1)]
        if name == "stat":
            for number, part in enumerate(parts):
                for roi in part:
                    roi["iplane"] = number
        np.save(combined / f"{name}.npy", np.concatenate(parts), allow_pickle=True)
    return folder


@pytest.fixture
def folder(template, tmp_path):
    return shutil.copytree(template, tmp_path / "suite2p")


def state(folder):
    """Every file that is not a temporary one, with its content (but for the time of a record)."""
    return {
        str(path.relative_to(folder)): re.sub(rb'"time": "[^"]*"', b'"time": ""', path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith(".napari-xcebra-")
    }


def temporary_files(folder):
    return list(folder.rglob(".napari-xcebra-*"))


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
        together_module.undo_interrupted(folders_near(three))
        outcomes.append((failed, state(three), len(left)))
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
    with pytest.raises(InputError, match=r"5 ROIs but F.npy beside it has 4: suite2p was run"):
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


@pytest.mark.parametrize("name", ["../../elsewhere", "a/b/c", "/etc/passwd"])
def test_a_list_of_unfinished_files_names_none_elsewhere(tmp_path, name):
    about = {"pid": 1, "started": 0, "host": "x", "places": [[name, None, None, 0, 0]]}
    (tmp_path / together_module.LIST).write_text(json.dumps(about))
    with pytest.raises(InputError, match="damaged"):
        together_module.undo_interrupted([tmp_path])


def test_a_list_of_unfinished_files_removes_temporary_ones_alone(tmp_path):
    (tmp_path / "F.npy").write_text("traces")
    about = {"pid": 1, "started": 0, "host": "x", "places": [["new.npy", "F.npy", None, 0, 0]]}
    (tmp_path / together_module.LIST).write_text(json.dumps(about))
    with pytest.raises(InputError, match="damaged"):
        together_module.undo_interrupted([tmp_path])
    assert (tmp_path / "F.npy").exists()


def test_another_window_that_is_writing_is_left_alone(three):
    parent = psutil.Process(os.getppid())
    host = together_module.platform.node()
    about = {"pid": parent.pid, "started": parent.create_time(), "host": host, "places": []}
    (three / together_module.LIST).write_text(json.dumps(about))
    with pytest.raises(InputError, match="Another window is writing"):
        together_module.undo_interrupted([three])
    about["started"] -= 1000  # it ended, and another program has its number now
    (three / together_module.LIST).write_text(json.dumps(about))
    together_module.undo_interrupted([three])
    assert not (three / together_module.LIST).exists()


def test_temporary_files_of_long_ago_are_swept_away_and_others_are_not(three):
    """The time of a second name is that of its file, which may be old while it is being written."""
    now = together_module.temporary_beside(three / "c.txt")
    os.utime(now, (0, 0))
    long_ago = three / f"{together_module.TEMPORARY}1700000000-xyz.npy"
    long_ago.touch()
    together_module.undo_interrupted([three])
    assert now.exists() and not long_ago.exists()


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
