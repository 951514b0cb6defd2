"""A workspace comes back as it was saved, also after the data were moved."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from damage import damaged_copies

from napari_xcebra.attribution import attribute
from napari_xcebra.errors import InputError
from napari_xcebra.io import save_recording
from napari_xcebra.io.opening import Opening
from napari_xcebra.learn import Factor, FitSettings, fit
from napari_xcebra.runs import Run, free_name, now
from napari_xcebra.simulate import box, field
from napari_xcebra.workspace_file import Opened, WorkspaceFile, load_workspace, save_workspace


@pytest.fixture(scope="module")
def simulation():
    return box(d1=2, d2=2, cells=(6, 6), frames=2000, seed=0)


@pytest.fixture(scope="module")
def run(simulation):
    settings = FitSettings(steps=5, batch_size=64, smoothing=0.0)
    trained = fit(simulation.recording, simulation.factors, settings)
    made = Run("first", now(), {"z2": Factor(simulation.factors["z2"])}, trained)
    return made.with_attribution(attribute(trained, simulation.recording))


@pytest.fixture
def data(tmp_path, simulation):
    folder = tmp_path / "data"
    folder.mkdir()
    save_recording(simulation.recording, folder / "recording.npz")
    return folder


def opened_from(data, run):
    opening = Opening(data / "recording.npz")
    return Opened("mine", opening.open(), opening=opening, runs=[run])


def test_recording_runs_scores_and_view_come_back(tmp_path, data, run):
    saved = WorkspaceFile([opened_from(data, run)], 0, [{"run": "first", "threshold": 0.5}])
    again = load_workspace(save_workspace(saved, tmp_path / "session"))
    assert again.current == 0
    assert again.shown == [{"run": "first", "threshold": 0.5}]
    (opened,) = again.opened
    (loaded,) = opened.runs
    assert (loaded.name, loaded.created, loaded.verdict) == (run.name, run.created, run.verdict)
    (method,) = run.attributions
    pd.testing.assert_frame_equal(
        loaded.attributions[method].table("z2"), run.attributions[method].table("z2")
    )
    np.testing.assert_array_equal(opened.recording.traces, saved.opened[0].recording.traces)


def test_a_recording_that_came_from_no_file_is_saved_along(tmp_path, simulation, run):
    saved = WorkspaceFile([Opened("simulated", simulation.recording, runs=[run])], 0)
    (opened,) = load_workspace(save_workspace(saved, tmp_path / "session")).opened
    np.testing.assert_array_equal(opened.recording.traces, simulation.recording.traces)


def test_a_sample_has_its_movie_again(tmp_path):
    sample = field(cells=6, frames=60, shape=(64, 64)).recording
    saved = WorkspaceFile([Opened("sample", sample)], 0)
    (opened,) = load_workspace(save_workspace(saved, tmp_path / "session")).opened
    movie, before = opened.recording.movie, sample.movie
    assert (movie.words, movie.contrast) == (before.words, before.contrast)
    for number in (0, 59):
        np.testing.assert_array_equal(movie.frame(number), before.frame(number))


def test_it_opens_after_data_and_session_were_moved_together(tmp_path, data, run):
    save_workspace(WorkspaceFile([opened_from(data, run)], 0), tmp_path / "session")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    shutil.move(data, elsewhere / "data")
    shutil.move(tmp_path / "session", elsewhere / "session")
    (opened,) = load_workspace(elsewhere / "session").opened
    assert opened.opening.path.resolve() == (elsewhere / "data" / "recording.npz").resolve()


def test_it_asks_where_the_data_are_when_they_alone_were_moved(tmp_path, data, run):
    save_workspace(WorkspaceFile([opened_from(data, run)], 0), tmp_path / "session")
    moved = tmp_path / "moved.npz"
    shutil.move(data / "recording.npz", moved)
    with pytest.raises(InputError, match="no longer there"):
        load_workspace(tmp_path / "session")
    asked = []
    (opened,) = load_workspace(tmp_path / "session", lambda p: asked.append(p) or moved).opened
    assert asked == [data / "recording.npz"]
    assert opened.opening.path == moved


def test_another_recording_in_its_place_is_refused(tmp_path, data, run):
    save_workspace(WorkspaceFile([opened_from(data, run)], 0), tmp_path / "session")
    other = box(d1=2, d2=2, cells=(6, 6), frames=2000, seed=1)
    save_recording(other.recording, data / "recording.npz")
    with pytest.raises(InputError, match="was changed since the workspace was made"):
        load_workspace(tmp_path / "session")


def test_the_file_keeps_its_name_and_keys_so_that_other_versions_open_it(tmp_path, data, run):
    folder = save_workspace(WorkspaceFile([opened_from(data, run)], 0, [{"run": "a"}]), tmp_path)
    about = json.loads((folder / "session.json").read_text())
    assert (about["kind"], about["format"]) == ("napari-xcebra session", 1)
    # earlier versions pass over the last two
    keys = {"kind", "format", "recordings", "current", "shown", "files", "checksum"}
    assert set(about) == keys
    assert set(about["recordings"][0]) == {"name", "runs", "fingerprint", "opening", "shown"}


def test_a_folder_without_one_is_said_to_hold_no_workspace(tmp_path):
    with pytest.raises(InputError, match="holds no workspace"):
        load_workspace(tmp_path)


def test_saving_again_leaves_nothing_of_the_first_time(tmp_path, data, run):
    opened = opened_from(data, run)
    for _ in range(2):
        save_workspace(WorkspaceFile([opened], 0), tmp_path / "session")
    assert len(list((tmp_path / "session" / "runs").iterdir())) == 1


@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", '{"kind": "napari-xcebra session", "format": 99}', "{truncated"]
)
def test_a_damaged_file_gets_a_sentence(tmp_path, text):
    (tmp_path / "session.json").write_text(text)
    with pytest.raises(InputError):
        load_workspace(tmp_path)


def test_a_crafted_file_cannot_reach_outside_its_folder(tmp_path, data, run):
    folder = save_workspace(WorkspaceFile([opened_from(data, run)], 0), tmp_path / "session")
    about = json.loads((folder / "session.json").read_text())
    del about["checksum"]
    about["recordings"][0]["runs"] = ["../data"]
    (folder / "session.json").write_text(json.dumps(about))
    with pytest.raises(InputError, match="outside"):
        load_workspace(folder)


@pytest.mark.parametrize(
    "named",
    [".", "", "thesis", "Runs/0123abcd-0-0", "runs/0123abcd-0-0/fit", "runs/./0123abcd-0-0",
     "runs//0123abcd-0-0", "runs/0123ABCD-0-0", "runs/0123abcd-0-\u0661"],
)  # fmt: skip
def test_a_run_is_opened_only_under_a_name_that_is_given_here(tmp_path, data, run, named):
    folder = save_workspace(WorkspaceFile([opened_from(data, run)], 0), tmp_path / "session")
    about = json.loads((folder / "session.json").read_text())
    del about["checksum"]
    about["recordings"][0]["runs"] = [named]
    (folder / "session.json").write_text(json.dumps(about))
    with pytest.raises(InputError, match="which no workspace file is saved with"):
        load_workspace(folder)


@pytest.mark.parametrize("named", [".", "thesis", "runs", "runs/../thesis", "runs/0123abcd-0-0"])
def test_saving_over_a_crafted_file_removes_nothing_that_was_not_written_here(
    tmp_path, data, run, named
):
    folder = tmp_path / "workspace"
    thesis = folder / "thesis" / "chapter.tex"
    thesis.parent.mkdir(parents=True)
    thesis.write_text("years of work")
    (folder / "runs").mkdir()
    # even a name of ours may lead elsewhere
    (folder / "runs" / "0123abcd-0-0").symlink_to(thesis.parent)
    about = {"kind": "napari-xcebra session", "format": 1, "current": 0, "shown": {}}
    about["recordings"] = [{"name": "x", "runs": [named], "file": "thesis/chapter.tex"}]
    (folder / "session.json").write_text(json.dumps(about))

    save_workspace(WorkspaceFile([opened_from(data, run)], 0), folder)

    assert thesis.read_text() == "years of work"
    assert len(load_workspace(folder).opened[0].runs) == 1


def test_saving_never_removes_a_run_that_this_workspace_did_not_write(tmp_path, data, run):
    theirs = run.save(tmp_path / "session" / "runs" / "0123abcd-0-0")
    about = {"kind": "napari-xcebra session", "format": 1, "current": 0, "shown": {}}
    about["recordings"] = [{"name": "x", "runs": ["runs/0123abcd-0-0"]}]
    files = {"runs/0123abcd-0-0/run.json": {"sha256": "0" * 64, "size": 1}}
    for described in (about, {**about, "files": files}):
        (tmp_path / "session" / "session.json").write_text(json.dumps(described))
        save_workspace(WorkspaceFile([opened_from(data, run)], 0), tmp_path / "session")
        assert Run.load(theirs).name == run.name


def test_what_a_user_put_into_the_folder_of_a_run_stays(tmp_path, data, run):
    folder = save_workspace(WorkspaceFile([opened_from(data, run)], 0), tmp_path / "session")
    (first,) = (folder / "runs").iterdir()
    (first / "notes.txt").write_text("years of work")
    save_workspace(WorkspaceFile([opened_from(data, run)], 0), folder)
    assert [path.name for path in first.iterdir()] == ["notes.txt"]


def test_runs_behind_a_link_are_neither_removed_nor_added_to(tmp_path, data, run):
    folder = save_workspace(WorkspaceFile([opened_from(data, run)], 0), tmp_path / "session")
    shutil.move(folder / "runs", tmp_path / "elsewhere")
    (folder / "runs").symlink_to(tmp_path / "elsewhere")
    (first,) = (tmp_path / "elsewhere").iterdir()
    with pytest.raises(InputError, match="runs is a link to another place"):
        save_workspace(WorkspaceFile([opened_from(data, run)], 0), folder)
    assert list((tmp_path / "elsewhere").iterdir()) == [first]
    assert Run.load(first).name == run.name


def test_a_save_that_fails_leaves_the_earlier_workspace_and_nothing_else(
    tmp_path, data, run, monkeypatch
):
    folder = save_workspace(WorkspaceFile([opened_from(data, run)], 0), tmp_path / "session")
    before = {path for path in folder.rglob("*") if path.is_file()}

    def full(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr(Opening, "as_dict", full)
    with pytest.raises(OSError, match="No space"):
        save_workspace(WorkspaceFile([opened_from(data, run)], 0), folder)
    monkeypatch.undo()
    assert {path for path in folder.rglob("*") if path.is_file()} == before
    assert len(load_workspace(folder).opened[0].runs) == 1


def test_a_workspace_of_an_earlier_version_still_opens(tmp_path, data, run):
    folder = save_workspace(WorkspaceFile([opened_from(data, run)], 0), tmp_path / "session")
    about = json.loads((folder / "session.json").read_text())
    del about["checksum"], about["files"]
    (folder / "session.json").write_text(json.dumps(about))
    assert len(load_workspace(folder).opened[0].runs) == 1


def test_two_windows_that_save_one_workspace_take_turns(tmp_path, data, run):
    folder = tmp_path / "session"

    def save(number):
        opened = opened_from(data, replace(run, name=f"by {number}"))
        for _ in range(5):
            save_workspace(WorkspaceFile([opened], 0, [{"run": f"by {number}"}]), folder)

    with ThreadPoolExecutor(2) as windows:
        list(windows.map(save, range(2)))
    found = load_workspace(folder)
    assert found.opened[0].runs[0].name == found.shown[0]["run"]
    assert len(list((folder / "runs").iterdir())) == 1


def test_a_damaged_file_of_a_workspace_gets_a_sentence(tmp_path, simulation, run):
    saved = WorkspaceFile([Opened("simulated", simulation.recording, runs=[run])], 0, [{"at": 0.5}])
    folder = save_workspace(saved, tmp_path / "session")
    refused = 0
    for copy in damaged_copies(folder, tmp_path / "copy", rounds=150):
        try:
            found = load_workspace(copy)
        except InputError as error:
            refused += 1
            assert str(error).endswith(".")
        else:
            (opened,) = found.opened
            np.testing.assert_array_equal(opened.recording.traces, simulation.recording.traces)
            assert (found.shown, opened.name) == ([{"at": 0.5}], "simulated")
            np.testing.assert_array_equal(opened.runs[0].fit.scale, run.fit.scale)
    assert refused > 120


def test_names_are_made_different():
    assert free_name("a", []) == "a"
    assert free_name("a", ["a"]) == "a 2"


def test_a_file_that_is_nested_without_end_is_damaged(tmp_path):
    for name, load in (("session.json", load_workspace), ("opening.json", Opening.load)):
        (tmp_path / name).write_text("[" * 200_000)
        with pytest.raises(InputError, match=name):
            load(tmp_path)
