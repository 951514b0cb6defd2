"""Clocks of cameras and microscopes lie in files of their own, with the faults that these have."""

import numpy as np
import pandas as pd
import pytest

from napari_xcebra.errors import InputError
from napari_xcebra.io import open_recording
from napari_xcebra.io.clocks.resample import _clock_of
from napari_xcebra.io.clocks.timestamps import rate_of, usual_step
from napari_xcebra.io.opening import Opening
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.recording.summary import overlap_of

N = 1000
UNIX = 1_764_635_175.0
TAKEN = UNIX + np.arange(N) / 20
"""When the microscope took its frames, in Unix time."""
CAMERA = UNIX - 1 + np.cumsum(np.tile([0.015, 0.085], N // 2 + 30))
"""A camera whose frames come in pairs."""


@pytest.fixture
def miniscope(tmp_path):
    """Traces, poses, and the times of both in further files."""
    np.save(tmp_path / "traces.npy", np.random.default_rng(0).normal(size=(N, 6)))
    parts = [("LED", 1.0), ("tail", 0.1)]
    rows = np.arange(len(CAMERA))
    table = {}
    for part, likelihood in parts:
        table |= {("net", part, "x"): CAMERA - UNIX, ("net", part, "y"): rows * 0.0}
        table |= {("net", part, "likelihood"): np.where(rows < 50, 1.0, likelihood)}
    poses = pd.DataFrame(table)
    poses.columns = pd.MultiIndex.from_tuples(table, names=["scorer", "bodyparts", "coords"])
    poses.to_csv(tmp_path / "poses.csv")
    camera = pd.DataFrame({"frame_index": rows, "unix_time": CAMERA})
    camera.to_csv(tmp_path / "camera.csv", index=False)
    taken = pd.DataFrame({"frame": range(N), "timestamp_first": TAKEN})
    taken.to_csv(tmp_path / "microscope.csv", index=False)
    return tmp_path


def opened(folder, **choices):
    given = {
        "behavior_times": str(folder / "camera.csv"),
        "trigger": str(folder / "microscope.csv"),
    }
    return open_recording(folder / "traces.npy", folder / "poses.csv", **{**given, **choices})


def test_poses_are_placed_by_the_clocks_of_camera_and_microscope(miniscope):
    recording = opened(miniscope)
    led = recording.behavior["LED"]
    assert led.known.all()
    np.testing.assert_allclose(led.values[:, 0], TAKEN - UNIX, atol=1e-5)
    assert recording.rate == pytest.approx(20, rel=1e-3)  # nothing else says it
    assert not any("gap" in note for note in recording.notes)


def test_intervals_of_15_and_85_ms_by_turns_are_no_gaps_and_a_pause_is(miniscope):
    clock = _clock_of(np.r_[CAMERA, CAMERA + 70], TAKEN)
    assert len(clock.gaps) == 1
    assert _clock_of(CAMERA, TAKEN).known.all()
    # samples taken in bursts keep their pauses
    bursts = (np.arange(0, 100, 10)[:, None] + np.arange(5) / 5).ravel()
    assert len(_clock_of(bursts, np.arange(0, 100, 0.1)).gaps) == 9


def test_a_gap_is_told_with_its_place_and_its_length(miniscope):
    camera = pd.read_csv(miniscope / "camera.csv")
    camera.loc[600:, "unix_time"] += 4.0
    camera.to_csv(miniscope / "camera.csv", index=False)
    notes = " ".join(opened(miniscope).notes)
    assert "has a gap of 4.02 s at 29 s" in notes
    assert "more than 0.255 s is a gap" in notes


def test_one_stamp_of_a_thousand_out_of_order_is_named_and_can_be_mended(miniscope):
    wrong = TAKEN.copy()
    wrong[804] -= 0.072
    pd.DataFrame({"timestamp": wrong}).to_csv(miniscope / "microscope.csv", index=False)
    with pytest.raises(InputError, match=r"row 805 is 22 ms earlier .*1 of 1,000.*`mend_times`"):
        opened(miniscope)
    recording = opened(miniscope, mend_times=True)
    np.testing.assert_allclose(recording.behavior["LED"].values[:, 0], TAKEN - UNIX, atol=1e-4)
    assert any("row 805 is 22 ms earlier" in note for note in recording.notes)


def test_wrong_stamps_at_the_ends_go_on_as_the_others(miniscope):
    wrong = TAKEN.copy()
    wrong[0], wrong[-1] = TAKEN[5], TAKEN[2]
    np.save(miniscope / "taken.npy", wrong)
    recording = opened(miniscope, trigger=str(miniscope / "taken.npy"), mend_times=True)
    np.testing.assert_allclose(recording.behavior["LED"].values[:, 0], TAKEN - UNIX, atol=1e-4)


def test_a_file_of_times_that_is_none_is_refused(miniscope):
    np.save(miniscope / "noise.npy", np.random.default_rng(0).normal(size=N))
    with pytest.raises(InputError, match="does not hold the times of frames"):
        opened(miniscope, trigger=str(miniscope / "noise.npy"), mend_times=True)
    with pytest.raises(InputError, match="There is no file of times"):
        opened(miniscope, behavior_times="camera_times.csv")
    np.save(miniscope / "short.npy", CAMERA[:500])
    with pytest.raises(InputError, match=r"500 times \(`behavior_times`\), but .* 1,060 rows"):
        opened(miniscope, behavior_times=str(miniscope / "short.npy"))


def test_a_few_rows_more_than_times_are_left_out_and_told(miniscope):
    np.save(miniscope / "camera.npy", CAMERA[:-2])
    recording = opened(miniscope, behavior_times=str(miniscope / "camera.npy"))
    assert "the last 2 rows of poses.csv are left out" in " ".join(recording.notes)


def test_a_body_part_that_is_hardly_seen_is_named(miniscope):
    recording = opened(miniscope, likelihood=0.05)
    assert "tail" not in overlap_of(recording)
    poor = opened(miniscope, likelihood=0.9, gap=1.0)
    assert "every variable known at 3 % of the frames; tail at 3 % of them" in overlap_of(poor)
    assert "(`likelihood`): tail 95 %, LED 0 %" in " ".join(poor.notes)


def test_files_of_times_are_found_again_where_the_folder_was_moved_to(miniscope, tmp_path_factory):
    files = {"behavior_times": "camera.csv", "trigger": "microscope.csv"}
    settings = OpenSettings(**{name: str(miniscope / file) for name, file in files.items()})
    opening = Opening(miniscope / "traces.npy", (miniscope / "poses.csv",), settings=settings)
    opening.save(miniscope)
    moved = tmp_path_factory.mktemp("other") / "moved"
    miniscope.rename(moved)
    recording = Opening.load(moved).open()
    assert recording.behavior["LED"].known.all()


def test_the_rate_of_an_uneven_clock_is_its_mean():
    assert rate_of(CAMERA) == pytest.approx(20, rel=1e-3)
    dropped = np.delete(np.arange(N) / 30, [100, 300, 301, 700])
    assert rate_of(dropped) == pytest.approx(30, rel=1e-3)
    assert usual_step(np.diff(dropped)) == pytest.approx(1 / 30)
