"""A session comes back as it was saved, also after the data were moved."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest

from napari_xcebra.attribution import attribute
from napari_xcebra.io import save_recording
from napari_xcebra.learn import Factor, FitSettings, fit
from napari_xcebra.opening import Opening
from napari_xcebra.recording import InputError
from napari_xcebra.runs import Run, free_name, now
from napari_xcebra.sessions import Opened, SavedSession, load_session, save_session
from napari_xcebra.simulate import box


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
    saved = SavedSession([opened_from(data, run)], 0, {"run": "first", "threshold": 0.5})
    again = load_session(save_session(saved, tmp_path / "session"))
    assert again.current == 0
    assert again.shown == {"run": "first", "threshold": 0.5}
    (opened,) = again.opened
    (loaded,) = opened.runs
    assert (loaded.name, loaded.created, loaded.verdict) == (run.name, run.created, run.verdict)
    (method,) = run.attributions
    pd.testing.assert_frame_equal(
        loaded.attributions[method].table("z2"), run.attributions[method].table("z2")
    )
    np.testing.assert_array_equal(opened.recording.traces, saved.opened[0].recording.traces)


def test_a_recording_that_came_from_no_file_is_saved_along(tmp_path, simulation, run):
    saved = SavedSession([Opened("simulated", simulation.recording, runs=[run])], 0)
    (opened,) = load_session(save_session(saved, tmp_path / "session")).opened
    np.testing.assert_array_equal(opened.recording.traces, simulation.recording.traces)


def test_it_opens_after_data_and_session_were_moved_together(tmp_path, data, run):
    save_session(SavedSession([opened_from(data, run)], 0), tmp_path / "session")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    shutil.move(data, elsewhere / "data")
    shutil.move(tmp_path / "session", elsewhere / "session")
    (opened,) = load_session(elsewhere / "session").opened
    assert opened.opening.path.resolve() == (elsewhere / "data" / "recording.npz").resolve()


def test_it_asks_where_the_data_are_when_they_alone_were_moved(tmp_path, data, run):
    save_session(SavedSession([opened_from(data, run)], 0), tmp_path / "session")
    moved = tmp_path / "moved.npz"
    shutil.move(data / "recording.npz", moved)
    with pytest.raises(InputError, match="no longer there"):
        load_session(tmp_path / "session")
    asked = []
    (opened,) = load_session(tmp_path / "session", lambda p: asked.append(p) or moved).opened
    assert asked == [data / "recording.npz"]
    assert opened.opening.path == moved


def test_another_recording_in_its_place_is_refused(tmp_path, data, run):
    save_session(SavedSession([opened_from(data, run)], 0), tmp_path / "session")
    other = box(d1=2, d2=2, cells=(6, 6), frames=2000, seed=1)
    save_recording(other.recording, data / "recording.npz")
    with pytest.raises(InputError, match="not the recording"):
        load_session(tmp_path / "session")


def test_saving_again_leaves_nothing_of_the_first_time(tmp_path, data, run):
    opened = opened_from(data, run)
    for _ in range(2):
        save_session(SavedSession([opened], 0), tmp_path / "session")
    assert len(list((tmp_path / "session" / "runs").iterdir())) == 1


@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", '{"kind": "napari-xcebra session", "format": 99}', "{truncated"]
)
def test_a_damaged_file_gets_a_sentence(tmp_path, text):
    (tmp_path / "session.json").write_text(text)
    with pytest.raises(InputError):
        load_session(tmp_path)


def test_a_crafted_file_cannot_reach_outside_its_folder(tmp_path, data, run):
    folder = save_session(SavedSession([opened_from(data, run)], 0), tmp_path / "session")
    about = json.loads((folder / "session.json").read_text())
    about["recordings"][0]["runs"] = ["../data"]
    (folder / "session.json").write_text(json.dumps(about))
    with pytest.raises(InputError, match="outside"):
        load_session(folder)


def test_names_are_made_different():
    assert free_name("a", []) == "a"
    assert free_name("a", ["a"]) == "a 2"
