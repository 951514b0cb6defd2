"""Behaviour comes with the right kind, unit and length."""

from contextlib import suppress

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.io import savemat

from napari_xcebra.errors import InputError
from napari_xcebra.io import OpenSettings, open_recording
from napari_xcebra.io.behavior import arrays
from napari_xcebra.io.clocks.placing import on_frames
from napari_xcebra.io.kinds import variable_from

FRAMES = 60
RNG = np.random.default_rng(0)
TURN = RNG.uniform(0, 2 * np.pi, FRAMES)


@pytest.fixture
def traces(tmp_path):
    np.save(tmp_path / "traces.npy", RNG.random((FRAMES, 5)))
    return tmp_path / "traces.npy"


@pytest.mark.parametrize(
    ("name", "values", "kind", "unit", "period"),
    [
        ("x_cm", TURN, "continuous", "cm", None),
        ("speed_cm_s", TURN, "continuous", "cm/s", None),
        ("speed_m_per_s", TURN, "continuous", "m/s", None),
        ("heading_rad", TURN, "circular", "rad", 2 * np.pi),
        ("heading_rad", TURN - np.pi, "circular", "rad", 2 * np.pi),
        ("heading_deg", np.degrees(TURN), "circular", "deg", 360),
        ("headDirection", np.degrees(TURN) - 180, "circular", "", 360),
        ("running_direction", TURN, "circular", "", 2 * np.pi),
        ("heading_rad", np.unwrap(3 * np.cumsum(TURN)), "continuous", "rad", None),
        ("turn_rad_s", TURN - np.pi, "continuous", "rad/s", None),
        ("gradient", TURN, "continuous", "", None),
        ("lick", RNG.integers(0, 2, FRAMES), "discrete", "", None),
        ("direction", RNG.integers(0, 2, FRAMES), "discrete", "", None),
        ("stimulus", RNG.integers(0, 8, FRAMES) * 1.0, "discrete", "", None),
        ("position", np.arange(FRAMES), "continuous", "", None),
        ("rewarded", TURN > 1, "discrete", "", None),
        ("theta_phase", TURN / (2 * np.pi), "circular", "", 1),
        ("theta_phase", TURN - np.pi, "circular", "", 2 * np.pi),
        ("Heading (deg)", np.degrees(TURN), "circular", "deg", 360),
        ("Speed (cm/s)", TURN, "continuous", "cm/s", None),
        ("direction_index", TURN / 7, "continuous", "", None),
        ("heading_speed_rad", TURN, "continuous", "rad", None),
    ],
)
def test_kind_unit_and_period_are_read_off_name_and_values(name, values, kind, unit, period):
    variable = variable_from(name, values)
    assert (variable.kind, variable.unit) == (kind, unit)
    if period is not None:
        assert variable.period == pytest.approx(period)


def test_gaps_do_not_change_the_kind():
    values = np.where(TURN > 5, np.nan, (TURN > 2) * 1.0)
    assert variable_from("choice", values).kind == "discrete"


@pytest.mark.parametrize("ending", ["csv", "npz"])
def test_columns_become_variables(traces, ending):
    path = traces.with_name(f"behaviour.{ending}")
    columns = {"x_cm": TURN, "heading_rad": TURN}
    if ending == "csv":
        pd.DataFrame(columns).to_csv(path)
    else:
        np.savez(path, **columns)
    behavior = open_recording(traces, path, rate=10.0).behavior
    assert list(behavior) == ["x_cm", "heading_rad"]
    np.testing.assert_allclose(behavior["x_cm"].values[:, 0], TURN)


def test_the_user_overrules_a_guess(traces):
    path = traces.with_name("behaviour.csv")
    pd.DataFrame({"tilt": np.degrees(TURN), "lick": TURN > 1}).to_csv(path, index=False)
    kinds = {"tilt": "circular", "lick": "continuous"}
    behavior = open_recording(traces, path, rate=10.0, kinds=kinds).behavior
    assert behavior["tilt"].kind == "circular"
    assert behavior["tilt"].period == 360.0
    assert behavior["lick"].kind == "continuous"


def test_words_become_categories_that_keep_their_names_and_gaps_stay_gaps(traces):
    path = traces.with_name("behaviour.csv")
    words = np.where(TURN > 5, "", np.where(TURN > 2, "right", "left"))
    pd.DataFrame({"choice": words, "when": [f"12:{i}" for i in range(FRAMES)]}).to_csv(path)
    recording = open_recording(traces, path, rate=10.0)
    choice = recording.behavior["choice"]
    assert choice.kind == "discrete"
    np.testing.assert_array_equal(choice.known, TURN <= 5)
    np.testing.assert_array_equal(choice.values[choice.known, 0], (TURN > 2)[TURN <= 5])
    assert choice.words == ("left", "right")
    assert "holds words: left, right." in "".join(recording.notes)
    assert "when" not in recording.behavior


def test_the_wrong_length_is_refused_with_both_numbers(traces):
    path = traces.with_name("behaviour.csv")
    pd.DataFrame({"x": TURN[:50]}).to_csv(path)
    with pytest.raises(InputError, match="has 50 rows but the traces have 60 frames"):
        open_recording(traces, path, rate=10.0)


def test_transposed_traces_are_suspected(traces):
    np.save(traces, np.load(traces).T)
    path = traces.with_name("behaviour.csv")
    pd.DataFrame({"x": TURN}).to_csv(path)
    with pytest.raises(InputError, match="transposed"):
        open_recording(traces, path, rate=10.0, layout="frames-cells")


def test_other_mistakes_get_a_sentence(traces):
    with pytest.raises(InputError, match="no behaviour file"):
        open_recording(traces, traces.with_name("none.csv"), rate=10.0)
    (picture := traces.with_name("mouse.png")).write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    with pytest.raises(InputError, match=r"not a behaviour file in a known format.*DeepLabCut"):
        open_recording(traces, picture, rate=10.0)
    with pytest.raises(InputError, match="no variable 'z'"):
        open_recording(traces, rate=10.0, kinds={"z": "circular"})
    broken = traces.with_name("b.npz")
    broken.write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(InputError, match=r"b\.npz cannot be read"):
        open_recording(traces, broken, rate=10.0)


def test_the_kind_that_the_user_says_holds_before_angles_are_averaged(traces):
    times = np.arange(0, 6, 0.01)
    turning = np.degrees(3 * times) % 360
    pd.DataFrame({"time": times, "tilt": turning}).to_csv(traces.with_name("b.csv"), index=False)
    opened = open_recording(
        traces, traces.with_name("b.csv"), rate=10.0, kinds={"tilt": "circular"}
    )
    at_frames = np.degrees(3 * np.arange(FRAMES) / 10) % 360
    apart = (opened.behavior["tilt"].values[:, 0] - at_frames + 180) % 360 - 180
    assert np.abs(apart).max() < 1.0


def test_arrays_bring_their_clock_and_lie_either_way_round(traces):
    times = np.arange(0, 6, 0.05)
    path = traces.with_name("b.npz")
    position = np.stack([np.sin(times), np.cos(times)])
    np.savez(
        path,
        timestamps=times,
        position=position,
        speed=position[0],
        lick_time_ms=times[::4] * 1000,
        lick=np.arange(len(times[::4])) * 0.1,
        stray=np.zeros(7),
        volume=np.zeros((2, 2, 2)),
    )
    opened = open_recording(traces, path, rate=10.0)
    assert list(opened.behavior) == ["position", "speed", "lick"]
    frames = np.arange(FRAMES - 1) / 10
    found = opened.behavior["position"].values[:-1]
    np.testing.assert_allclose(found, np.c_[np.sin(frames), np.cos(frames)], atol=2e-3)
    np.testing.assert_allclose(opened.behavior["lick"].values[:-2, 0], frames[:-1] / 2, atol=1e-9)
    assert "stray" in "".join(opened.notes) and "volume" in "".join(opened.notes)


def test_a_rate_in_the_file_is_the_clock_of_its_arrays(traces):
    path = traces.with_name("b.npz")
    np.savez(path, fs=20.0, x=np.arange(120) / 20)
    opened = open_recording(traces, path, rate=10.0)
    np.testing.assert_allclose(opened.behavior["x"].values[:, 0], np.arange(FRAMES) / 10)


def test_a_single_array_is_named_by_its_file_and_fields_are_columns(traces):
    np.save(traces.with_name("speed_cm_s.npy"), TURN)
    fields = np.zeros(FRAMES, [("x", "f8"), ("choice", "U5")])
    fields["x"], fields["choice"] = TURN, np.where(TURN > 3, "right", "left")
    np.save(traces.with_name("maze.npy"), fields)
    paths = [traces.with_name("speed_cm_s.npy"), traces.with_name("maze.npy")]
    behavior = open_recording(traces, paths, rate=10.0).behavior
    assert list(behavior) == ["speed_cm_s", "x", "choice"]
    assert behavior["choice"].kind == "discrete"


def test_matlab_arrays_and_fields_of_structs_are_variables(traces):
    path = traces.with_name("b.mat")
    times = np.arange(0, 6, 0.05)
    savemat(path, {"session": {"time": times, "xy": np.stack([times, 2 * times])}, "n": 3.0})
    behavior = open_recording(traces, path, rate=10.0).behavior
    assert list(behavior) == ["xy"]
    np.testing.assert_allclose(behavior["xy"].values[:-1, 1], np.arange(FRAMES - 1) / 5, atol=1e-9)


def test_samples_without_times_follow_the_rate_that_is_given(traces):
    path = traces.with_name("b.csv")
    pd.DataFrame({"x": np.arange(300) / 50}).to_csv(path, index=False)
    opened = open_recording(traces, path, rate=10.0, behavior_rate=50.0)
    np.testing.assert_allclose(opened.behavior["x"].values[:, 0], np.arange(FRAMES) / 10)


def test_a_column_of_another_length_does_not_spoil_those_that_fit(traces):
    path = traces.with_name("b.npz")
    np.savez(path, x=TURN, edges=np.linspace(0, 1, 9))
    opened = open_recording(traces, path, rate=10.0)
    assert list(opened.behavior) == ["x"]
    assert "edges has 9 rows" in "".join(opened.notes)


@pytest.mark.parametrize("ending", ["npz", "npy"])
@given(cut=st.floats(0, 1), place=st.floats(0, 1), byte=st.integers(0, 255), renamed=st.booleans())
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_file_of_arrays_gets_a_sentence(tmp_path, ending, cut, place, byte, renamed):
    path = tmp_path / f"b.{ending}"
    times = np.arange(0, 6, 0.05)
    if ending == "npz":
        np.savez_compressed(path, time=times, x=np.sin(times))
    else:
        np.save(path, np.sin(times))
    content = bytearray(path.read_bytes())
    content[int(place * (len(content) - 1))] = byte
    path = path.with_suffix(".npy") if renamed else path
    path.write_bytes(content[: int(cut * len(content)) + 1])
    with suppress(InputError):
        on_frames(arrays.load(path, OpenSettings()), np.arange(0, 6, 0.1), OpenSettings())
