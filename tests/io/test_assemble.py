"""Numbers that cannot be calculated with, and names that command a terminal, end at the door."""

import numpy as np
import pandas as pd
import pytest

from napari_xcebra.cli import main
from napari_xcebra.errors import InputError
from napari_xcebra.io import open_recording

RNG = np.random.default_rng(0)
TRACES = RNG.normal(size=(400, 20))


@pytest.fixture
def saved(tmp_path):
    def save(traces=TRACES, **behavior):
        np.save(tmp_path / "time_x_cells.npy", traces)
        pd.DataFrame({"y_cm": np.arange(400.0), **behavior}).to_csv(tmp_path / "b.csv", index=False)
        return tmp_path / "time_x_cells.npy", tmp_path / "b.csv"

    return save


@pytest.mark.parametrize("size", [1e300, 1e-300, 1e150])
def test_labels_without_a_size_that_numbers_have_are_a_sentence(saved, size):
    files = saved(x_cm=np.arange(400) * size)
    with pytest.raises(InputError, match=r"x_cm of b\.csv reaches .*e[+-]\d+ \(frame 399\)"):
        open_recording(*files, rate=10.0)


@pytest.mark.parametrize("stored", ["in memory", "on disk"])
@pytest.mark.parametrize("size", [1e37, 1e39, 1e-37])
def test_traces_without_such_a_size_are_a_sentence(saved, monkeypatch, stored, size):
    files = saved(TRACES * size)
    if stored == "on disk":
        for module in ("formats.arrays", "assemble"):
            monkeypatch.setattr(f"napari_xcebra.io.{module}.IN_MEMORY", 100)
    with pytest.raises(InputError, match=r"traces of .*npy reach .*power of ten"):
        open_recording(*files, rate=10.0)


def test_units_of_any_usual_size_say_nothing(saved):
    for size in (1e-9, 1.0, 1e9):
        recording = open_recording(*saved(TRACES * size, x_cm=np.arange(400) * size), rate=10.0)
        assert (recording.warnings, recording.accepted.all()) == ((), True)


def test_a_cell_out_of_all_proportion_is_named(saved):
    traces = TRACES.copy()
    traces[:, 3] *= 1e30
    traces[:, 5] *= 1e-12
    recording = open_recording(*saved(traces), rate=10.0)
    huge, faint = recording.warnings
    assert huge.startswith("Cell 3 has values up to 3.")
    assert faint.startswith("Cell 5 has values that vary 1")
    assert np.flatnonzero(~recording.accepted).tolist() == [3]


ESCAPE = "\x1b]0;owned\x07\x1b[31m"


def test_no_name_commands_a_terminal(tmp_path, capsys):
    table = pd.DataFrame(TRACES[:, :3], columns=[f"pyr{ESCAPE} 1", "pv 2", "pv 3"])
    table.to_csv(tmp_path / "t.csv", index=False)
    words = np.where(np.arange(400) > 200, f"air{ESCAPE}", "odour")
    pd.DataFrame({f"speed{ESCAPE}": np.arange(400.0), "smell": words}).to_csv(
        tmp_path / "b.csv", index=False
    )
    recording = open_recording(tmp_path / "t.csv", tmp_path / "b.csv", rate=10.0)
    variable = recording.behavior["speed_]0;owned__[31m"]
    assert variable.name == "speed_]0;owned__[31m"
    said = [*recording.notes, *recording.cells["name"], *recording.behavior["smell"].words]
    assert "\x1b" not in "".join(said)
    files = [str(tmp_path / "t.csv"), "--behavior", str(tmp_path / "b.csv"), "--rate", "10"]
    assert main(["info", *files]) == 0
    odd = tmp_path / f"{ESCAPE}.csv"
    (tmp_path / "b.csv").rename(odd)
    assert main(["info", files[0], "--behavior", str(odd), "--rate", "10"]) == 0
    assert main(["info", files[0], "--behavior", f"{odd}2", "--rate", "10"]) == 2
    assert main(["run", *files[:1], "--behavior", str(odd), "--rate", "10", "--factor", "a=b",
                 "--out", str(tmp_path / "out")]) == 2  # fmt: skip
    printed = capsys.readouterr()
    assert "owned" in printed.out and "owned" in printed.err
    assert not {"\x1b", "\x07"} & set(printed.out + printed.err)


def test_a_thousand_variables_open_at_once(saved):
    table = {f"v{i}": np.cumsum(RNG.normal(size=400)) for i in range(1000)}
    assert len(open_recording(*saved(**table), rate=10.0).behavior) == 1001
