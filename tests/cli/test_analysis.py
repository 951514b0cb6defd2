"""One file makes a run again, from any folder, and never with other inputs in silence."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from lxml import html

from napari_xcebra.analysis_file import read_analysis
from napari_xcebra.batch.plan import read_sweep
from napari_xcebra.cli import main
from napari_xcebra.errors import InputError
from napari_xcebra.simulate import field

QUICK = ["--steps", "40", "--batch-size", "64", "--time-offset", "5", "--no-significance"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A lab's folder: traces and behaviour of plain files, and a run of them in another one."""
    home = tmp_path_factory.mktemp("lab") / "mouse λ 3"
    (home / "raw").mkdir(parents=True)
    recording = field(cells=14, frames=1500, shape=(96, 96), junk=2, seed=3).recording
    np.save(home / "raw/traces.npy", recording.traces)
    xy = recording.behavior["position"].values
    speed = recording.behavior["speed"].values[:, 0]
    table = pd.DataFrame({"time_s": recording.times, "x_m": xy[:, 0], "y_m": xy[:, 1], "v": speed})
    table.to_csv(home / "raw/behaviour.csv", index=False)
    given = [str(home / "raw/traces.npy"), "--behavior", str(home / "raw/behaviour.csv"),
             "--rate", "10", "--factor", "place=x_m,y_m", "--factor", "speed=v:1",
             "--kind", "v=continuous", "--seed", "4"]  # fmt: skip
    assert main(["run", *given, *QUICK, "--quiet", "--out", str(home / "results/run 1")]) == 0
    return home


def scores(folder: Path) -> bytes:
    return (folder / "attribution.csv").read_bytes()


def again(analysis: Path, out: Path, *more: str) -> int:
    return main(["run", str(analysis), "--out", str(out), "--quiet", *more])


def test_the_same_bytes_come_again_from_any_folder(made, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert again(made / "results/run 1/analysis.toml", tmp_path / "two") == 0
    assert scores(tmp_path / "two") == scores(made / "results/run 1")
    # what was made again says how it was made as well
    monkeypatch.chdir(tmp_path / "two")
    assert again(Path("analysis.toml"), Path("../three")) == 0
    assert scores(tmp_path / "three") == scores(made / "results/run 1")


def test_a_lab_that_moves_all_its_files_makes_the_run_again(made, tmp_path):
    moved = tmp_path / "elsewhere"
    shutil.copytree(made, moved)
    asked = read_analysis(moved / "results/run 1/analysis.toml")
    assert asked.opening.path.samefile(moved / "raw/traces.npy")
    assert asked.on(asked.opening.open()).n_cells == 16
    # and the results alone find the recording where it was
    shutil.copytree(made / "results/run 1", tmp_path / "a/b/run")
    asked = read_analysis(tmp_path / "a/b/run/analysis.toml")
    assert asked.opening.path.samefile(made / "raw/traces.npy")


@pytest.mark.parametrize("what", ["its traces", "the values of v", "the number of its cells"])
def test_inputs_that_changed_are_refused_in_a_sentence(made, tmp_path, capsys, what):
    shutil.copytree(made, tmp_path / "lab")
    raw = tmp_path / "lab/raw"
    traces = np.load(raw / "traces.npy")
    if what == "the values of v":
        table = pd.read_csv(raw / "behaviour.csv")
        table.loc[700, "v"] += 1
        table.to_csv(raw / "behaviour.csv", index=False)
    elif what == "its traces":
        traces[700, 3] += 1
        np.save(raw / "traces.npy", traces)
    else:
        np.save(raw / "traces.npy", traces[:, :-1])
    assert again(tmp_path / "lab/results/run 1/analysis.toml", tmp_path / "out") == 2
    said = capsys.readouterr().err
    assert "was changed since this analysis was written" in said and what in said
    assert not (tmp_path / "out").exists()


def test_cells_that_were_decided_on_since_do_not_change_what_is_made_again(made):
    asked = read_analysis(made / "results/run 1/analysis.toml")
    assert asked.cells.tolist() == list(range(16))
    recording = asked.opening.open()
    other = replace(recording, accepted=np.asarray(recording.cell_ids) > 2)
    assert asked.on(other).accepted.sum() == 16


def test_other_flags_beside_a_file_that_says_all_are_refused(made, tmp_path, capsys):
    analysis = made / "results/run 1/analysis.toml"
    assert again(analysis, tmp_path / "out", "--seed", "3") == 2
    assert "leave out --seed" in capsys.readouterr().err


def test_other_versions_are_said(made, tmp_path, capsys):
    text = (made / "results/run 1/analysis.toml").read_text("utf-8")
    path = made / "results/run 1/other.toml"
    path.write_text(text.replace("numpy = ", 'numpy = "1.0" # '), encoding="utf-8")
    assert again(path, tmp_path / "out") == 0
    assert "made with numpy 1.0 (now " in capsys.readouterr().err


def test_the_file_can_become_a_sweep(made):
    path = made / "results/run 1/many.toml"
    text = (made / "results/run 1/analysis.toml").read_text("utf-8")
    path.write_text(text.replace("seed = 4", "seed = [4, 5]"), encoding="utf-8")
    assert [member.settings.seed for member in read_sweep(path).members] == [4, 5]
    with pytest.raises(InputError, match="several runs"):
        read_analysis(path)


def test_the_report_says_what_makes_the_run_again(made, tmp_path):
    folder = made / "results/run 1"
    assert main(["report", str(folder), "--quiet", "--out", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text("utf-8")
    (command,) = html.fromstring(page).xpath("//pre/code")
    assert command.text_content() == "napari-xcebra run analysis.toml --out again"
    assert "this plugin" in page
    assert str(made) not in page
