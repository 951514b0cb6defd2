"""Combinations of variables are compared with shuffled labels and with their parts."""

import numpy as np
import pandas as pd
import pytest

from napari_xcebra import hypotheses
from napari_xcebra.batch.hypotheses import Hypotheses, Hypothesis, _shuffled
from napari_xcebra.cli import main
from napari_xcebra.errors import InputError
from napari_xcebra.io import save_recording
from napari_xcebra.learn import FitSettings
from napari_xcebra.recording import Recording, Trials
from napari_xcebra.report.figures.comparisons import hypotheses_side_by_side
from napari_xcebra.simulate import arena
from napari_xcebra.simulate.simulation import ornstein_uhlenbeck

SETTINGS = FitSettings(steps=60, batch_size=128)


@pytest.fixture(scope="module")
def recording():
    """Cells of place; and a lure that is in none of them."""
    carrying = arena(place=30, grid=0, direction=0, speed=0, frames=4000, seed=3).recording
    lure = ornstein_uhlenbeck(np.random.default_rng(0), 4000, 10)
    behavior = {"position": carrying.variable("position").values, "lure": lure}
    return Recording.from_arrays(np.array(carrying.traces), carrying.rate, behavior)


@pytest.fixture(scope="module")
def found(recording):
    return hypotheses(recording, ["position", "lure"], SETTINGS, seeds=2, shuffles=2)


def test_what_is_in_the_cells_stands_out_and_what_is_not_adds_nothing(found):
    by_name = {each.name: each for each in found.tried}
    assert by_name.keys() == {"position", "lure", "position + lure"}
    assert by_name["position"].stands_out
    assert by_name["position"].strength != "at chance"
    assert by_name["lure"].strength == "at chance"
    assert by_name["lure"].nats < 0.2 * by_name["position"].nats
    assert found.adds(by_name["position + lure"]) < 0.2
    assert found.reason.startswith("position") and "lure" in found.reason


def hypothesis(name, *goodness):
    factors = tuple(name.split(" + "))
    return Hypothesis(factors, goodness, (0.5,), (0.0, 0.1), (0.0,), 0.9, 0.001, "clear")


def test_a_combination_is_preferred_only_where_every_seed_beats_its_parts():
    position, speed = hypothesis("position", 2.0, 2.1), hypothesis("speed", 0.5, 0.6)
    scattered = hypothesis("position + speed", 2.05, 2.4)
    assert Hypotheses((position, speed, scattered)).reason.startswith("position has the most: 2.05")
    clear = hypothesis("position + speed", 2.3, 2.4)
    said = Hypotheses((position, speed, clear)).reason
    assert said.startswith("position + speed has the most: 2.35")
    assert "0.30 more than the best of its parts" in said
    nothing = Hypotheses((hypothesis("speed", 0.05, 0.06),))
    assert "learned better than shuffled" in nothing.reason


def test_the_table_has_a_row_each_and_the_picture_every_fit(found, tmp_path):
    table = found.table()
    assert list(table.hypothesis) == [each.name for each in found.ranked]
    assert np.isfinite(table.consistency).all()
    assert len(pd.read_csv(found.to_csv(tmp_path / "hypotheses.csv"))) == 3
    figure = hypotheses_side_by_side(found, tmp_path / "hypotheses.png")
    points = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
    assert len(points) == 3 * (2 + 2)


def test_only_named_combinations_are_tried(recording):
    quick = FitSettings(steps=3, batch_size=64)
    found = hypotheses(
        recording, ["position", "lure"], quick, together=[("lure", "position")], seeds=1, shuffles=0
    )
    assert [each.factors for each in found.tried] == [("lure", "position")]
    assert np.isnan(found.tried[0].consistency)
    with pytest.raises(InputError, match="'speed' is none of position, lure"):
        hypotheses(recording, ["position", "lure"], quick, together=[("speed",)])


def test_many_combinations_must_be_named():
    recording = Recording.from_arrays(
        np.zeros((200, 8)), 10.0, {f"v{n}": np.arange(200.0) for n in range(6)}
    )
    with pytest.raises(InputError, match="6 variables have 63 combinations: name those to try"):
        hypotheses(recording, [f"v{n}" for n in range(6)])


def test_stopping_gives_nothing(recording):
    assert hypotheses(recording, ["position"], SETTINGS, stop=lambda: True) is None


def test_labels_known_by_trial_are_exchanged_between_trials():
    first = np.arange(0, 400, 20)
    side = np.arange(20) % 2.0
    trials = Trials(first, first + 20, {"side": side})
    recording = Recording.from_arrays(
        np.random.default_rng(0).random((400, 8)),
        10.0,
        {"side": np.repeat(side, 20), "speed": np.arange(400.0)},
        trials=trials,
    )
    moved = _shuffled(recording, 1, 2, 0)
    values = moved.variable("side").values.reshape(20, 20)
    assert (values == values[:, :1]).all()
    assert sorted(values[:, 0]) == sorted(side)
    assert (values[:, 0] != side).any()
    assert not np.array_equal(moved.variable("speed").values, recording.variable("speed").values)


def test_the_command_writes_table_and_picture(recording, tmp_path, capsys):
    path = save_recording(recording, tmp_path / "recording.npz")
    flags = ["--factor", "place=position", "--factor", "lure=lure", "--together", "place+lure"]
    flags += ["--seeds", "1", "--shuffles", "1", "--steps", "5", "--batch-size", "64"]
    out = ["--out", str(tmp_path / "out"), "--processes", "1"]
    main(["hypotheses", str(path), *flags, *out])
    assert "place + lure" in capsys.readouterr().out
    assert list(pd.read_csv(tmp_path / "out" / "hypotheses.csv").hypothesis) == ["place + lure"]
    assert (tmp_path / "out" / "hypotheses.png").stat().st_size > 5000
