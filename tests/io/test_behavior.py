"""Behaviour comes with the right kind, unit and length."""

import numpy as np
import pandas as pd
import pytest

from napari_xcebra.io import open_recording
from napari_xcebra.io.kinds import variable_from
from napari_xcebra.recording import InputError

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


def test_words_become_numbered_categories_and_gaps_stay_gaps(traces):
    path = traces.with_name("behaviour.csv")
    words = np.where(TURN > 5, "", np.where(TURN > 2, "right", "left"))
    pd.DataFrame({"choice": words, "when": [f"12:{i}" for i in range(FRAMES)]}).to_csv(path)
    recording = open_recording(traces, path, rate=10.0)
    choice = recording.behavior["choice"]
    assert choice.kind == "discrete"
    np.testing.assert_array_equal(choice.known, TURN <= 5)
    np.testing.assert_array_equal(choice.values[choice.known, 0], (TURN > 2)[TURN <= 5])
    assert "left = 0, right = 1" in recording.notes[0]
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
        open_recording(traces, path, rate=10.0)


def test_other_mistakes_get_a_sentence(traces):
    with pytest.raises(InputError, match="no behaviour file"):
        open_recording(traces, traces.with_name("none.csv"), rate=10.0)
    with pytest.raises(InputError, match=r"neither \.csv nor \.npz"):
        open_recording(traces, traces, rate=10.0)
    with pytest.raises(InputError, match="no variable 'z'"):
        open_recording(traces, rate=10.0, kinds={"z": "circular"})
    broken = traces.with_name("b.npz")
    broken.write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(InputError, match=r"b\.npz cannot be read"):
        open_recording(traces, broken, rate=10.0)
