"""Variables that two files have are both kept, and a rate that the file denies is said."""

import numpy as np
import pandas as pd
import pytest

from napari_xcebra.io import open_recording, save_recording
from napari_xcebra.recording import Recording


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "traces.npy", rng.normal(size=(300, 5)).astype(np.float32))
    for name in ("camera", "wheel"):
        table = {"speed": rng.random(300), f"only_{name}": rng.random(300), "same": range(300)}
        pd.DataFrame(table).to_csv(tmp_path / f"{name}.csv", index=False)
    return tmp_path


def test_a_column_that_two_tables_have_is_kept_twice(folder):
    tables = [folder / "camera.csv", folder / "wheel.csv"]
    found = open_recording(folder / "traces.npy", tables, rate=10)
    assert list(found.behavior) == ["speed", "only_camera", "same", "speed_wheel", "only_wheel"]
    for name, table in (("speed", "camera"), ("speed_wheel", "wheel")):
        wanted = pd.read_csv(folder / f"{table}.csv")["speed"]
        np.testing.assert_allclose(found.behavior[name].values[:, 0], wanted)
    assert found.warnings == (
        "wheel.csv also has a variable speed: it is called speed_wheel here.",
    )


def test_behaviour_added_to_a_saved_recording_replaces_nothing(folder):
    found = open_recording(folder / "traces.npy", folder / "camera.csv", rate=10)
    saved = save_recording(found, folder / "saved.npz")
    again = open_recording(saved, [folder / "camera.csv", folder / "wheel.csv"])
    assert list(again.behavior) == ["speed", "only_camera", "same", "speed_wheel", "only_wheel"]


def test_trial_columns_keep_pace_with_their_new_names(folder):
    for name in ("one", "two"):
        table = {"start": np.arange(5) * 6.0, "stop": np.arange(5) * 6.0 + 5, "choice": range(5)}
        table["choice"] = ["left", "right", "left", "left", "right"] if name == "one" else "left"
        pd.DataFrame(table).to_csv(folder / f"{name}.csv", index=False)
    tables = [folder / "one.csv", folder / "two.csv"]
    found = open_recording(folder / "traces.npy", trials=tables, rate=10)
    assert {"choice", "choice_two"} <= set(found.behavior)
    assert "choice_two" in found.trials.columns


@pytest.mark.parametrize(("given", "said"), [(15.0, True), (10.04, False), (0.0, False)])
def test_a_given_rate_that_the_file_denies_is_said(folder, given, said):
    recording = Recording.from_arrays(np.random.default_rng(0).normal(size=(100, 3)), rate=10.0)
    saved = save_recording(recording, folder / "saved.npz")
    found = open_recording(saved, rate=given)
    assert bool(found.warnings) == said
    if said:
        assert "The file says 10 frames per second, but `rate` is 15" in found.warnings[0]
        assert found.rate == 15.0
