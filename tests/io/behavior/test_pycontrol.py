"""Logs of pyControl: states become trials and a variable, events keep their names."""

import numpy as np
import pytest

from napari_xcebra.errors import InputError
from napari_xcebra.io import open_recording
from napari_xcebra.io.behavior import pycontrol
from napari_xcebra.io.settings import OpenSettings

TEXT = """I Experiment name  : gratings
I Task name : drifting
I Subject ID : 1

S {"degrees_0": 2, "degrees_90": 3, "baseline": 1}

E {"lick": 4, "reward": 5}

D 0 1
D 1000 2
D 1500 4
D 2000 1
P 2100 said
D 3000 3
D 3500 5
D 4000 1
D 5000 2
D 6000 1
"""

TSV = """time\ttype\tsubtype\tcontent
0.000\tinfo\texperiment_name\tgratings
0.000\tstate\t\tbaseline
1.000\tstate\t\tdegrees_0
1.500\tevent\tinput\tlick
2.000\tstate\t\tbaseline
3.000\tstate\t\tdegrees_90
3.500\tevent\tinput\treward
4.000\tstate\t\tbaseline
5.000\tstate\t\tdegrees_0
6.000\tstate\t\tbaseline
"""


@pytest.mark.parametrize(("text", "name"), [(TEXT, "log.txt"), (TSV, "log.tsv")])
def test_states_and_events_of_a_log_are_found_on_the_frames(tmp_path, text, name):
    (tmp_path / name).write_text(text)
    np.save(tmp_path / "traces.npy", np.random.default_rng(0).random((70, 3)))
    traces = tmp_path / "traces.npy"
    recording = open_recording(traces, tmp_path / name, rate=10.0, layout="frames-cells")
    assert recording.trials.first.tolist() == [10, 30, 50]
    assert recording.trials.columns["degrees"].tolist() == [0, 90, 0]
    assert np.flatnonzero(recording.behavior["lick"].values).tolist() == [15]
    assert np.flatnonzero(recording.behavior["reward"].values).tolist() == [35]
    state = recording.behavior["state"]
    assert state.words == ("baseline", "degrees_0", "degrees_90")
    assert state.values[[5, 15, 25, 35], 0].tolist() == [0, 1, 0, 2]


def test_a_table_is_no_log(tmp_path):
    (tmp_path / "b.txt").write_text("I\tJ\n1\t2\n")
    assert not pycontrol.sniff(tmp_path / "b.txt")


@pytest.mark.parametrize("line", ["D x 1", "D 1", "D 999999999999 1", "S {"])
def test_a_damaged_log_gets_a_sentence(tmp_path, line):
    path = tmp_path / "log.txt"
    path.write_text(line + "\n" if line == "S {" else TEXT + line + "\n")
    if line == "S {":
        path.write_text(TEXT.replace('S {"deg', "S {{"))
    with pytest.raises(InputError, match=r"log\.txt"):
        pycontrol.load(path, OpenSettings())


@pytest.mark.parametrize(("text", "name"), [(TEXT, "log.txt"), (TSV, "log.tsv")])
def test_two_sessions_in_a_log_are_refused(tmp_path, text, name):
    again = [line for line in text.splitlines() if line[:2] == "D " or line[:1].isdigit()]
    (tmp_path / name).write_text(text + "\n".join(again) + "\n")
    with pytest.raises(InputError, match=r"goes back from 6 s to 0 s at 'baseline': .* several"):
        pycontrol.load(tmp_path / name, OpenSettings())
