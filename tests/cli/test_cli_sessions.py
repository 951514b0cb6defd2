"""Commands on what was trained: how good it is, and how it carries to other sessions."""

import re
import shutil

import pandas as pd
import pytest

from napari_xcebra.cli import main
from napari_xcebra.io import save_recording
from napari_xcebra.learn.result import JointFit
from napari_xcebra.simulate import arena, drifted, field

TINY = ["--steps", "20", "--batch-size", "64", "--time-latents", "1", "--time-offset", "5"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A recording on disk, and what `fit` wrote of it."""
    folder = tmp_path_factory.mktemp("trained")
    simulation = field(cells=16, frames=1500, shape=(96, 96))
    path = save_recording(simulation.recording, folder / "recording.npz")
    factors = ["--factor", "place=position", "--factor", "direction=direction"]
    assert main(["fit", str(path), *factors, "--out", str(folder), "--quiet", *TINY]) == 0
    return path, folder


def test_quality_prints_errors_in_units_and_writes_them(trained, tmp_path, capsys):
    path, folder = trained
    again = ["--also", str(folder), "--out", str(tmp_path)]
    assert main(["quality", str(folder), str(path), *again]) == 0
    said = capsys.readouterr().out
    assert re.search(r"^position +place +kNN, k \d+ +\S+ m ", said, re.MULTILINE)
    assert " rad " in said
    assert "Consistency between 2 runs: R² 1.000" in said
    table = pd.read_csv(tmp_path / "quality.csv")
    assert table["decoder"].tolist() == ["kNN", "linear"] * 2
    assert (table["error"] > 0).all()


def test_quality_needs_no_folder_to_write_to(trained, capsys):
    path, folder = trained
    assert main(["quality", str(folder), str(path)]) == 0
    assert "Written" not in capsys.readouterr().out


@pytest.fixture(scope="module")
def two_days(tmp_path_factory):
    """Two days of the same cells, and a table that says which is which."""
    folder = tmp_path_factory.mktemp("days")
    cells = {"place": 4, "grid": 0, "direction": 8, "speed": 0, "frames": 1500}
    paths = []
    for day in (0, 1):
        simulation = field(arena(**cells, day=day), shape=(96, 96))
        if day:
            simulation = drifted(simulation, lost=0.25)
        paths.append(save_recording(simulation.recording, folder / f"day {day}.npz"))
        kept = simulation.recording.cell_ids
    rows = [f"{i},{i if i in kept else ''}" for i in range(12)]
    (folder / "cells.csv").write_text("\n".join(["day 0,day 1", *rows]))
    return paths, folder


def test_sessions_writes_a_map_for_each_and_how_far_they_agree(two_days, tmp_path, capsys):
    paths, folder = two_days
    asked = ["--factor", "direction=direction", "--matched", str(folder / "cells.csv")]
    out = ["--out", str(tmp_path)]
    assert main(["sessions", *map(str, paths), *asked, *out, *TINY]) == 0
    said = capsys.readouterr().out
    for name in ("day-0", "day-1"):
        for file in ("attribution.csv", "painted.png", "fit/fit.json", "opening.json"):
            assert (tmp_path / name / file).exists()
    for file in ("consistency.csv", "consistency.png", "matched.csv", "matched.png"):
        assert (tmp_path / file).exists()
        assert str(tmp_path / file) in said
    assert JointFit.load(tmp_path / "joint").sessions == ("day 0", "day 1")
    assert "direction: consistency between sessions R²" in said
    assert "9 matched cells correlate" in said
    table = pd.read_csv(tmp_path / "day-1" / "attribution.csv")
    assert len(table) == 9 * 2
    assert "generative_gradient" in table  # both maps, as `run` writes them
    assert not (tmp_path / "checkpoint.safetensors").exists()


def test_sessions_are_called_by_their_day_and_a_table_may_call_them_by_their_file(
    two_days, tmp_path
):
    paths, folder = two_days
    named = [tmp_path / "m1_2024-05-01.npz", tmp_path / "m1_2024-05-02.npz"]
    for path, name in zip(paths, named, strict=True):
        shutil.copy(path, name)
    # the columns are in another order than the files
    table = pd.read_csv(folder / "cells.csv", dtype=str)
    table.columns = [name.stem for name in named]
    table.iloc[:, ::-1].to_csv(tmp_path / "cells.csv", index=False)
    asked = ["--factor", "direction=direction", "--matched", str(tmp_path / "cells.csv")]
    out = ["--out", str(tmp_path / "out"), "--no-significance", "--quiet"]
    assert main(["sessions", *map(str, named), *asked, *out, *TINY]) == 0
    assert JointFit.load(tmp_path / "out/joint").sessions == ("2024-05-01", "2024-05-02")
    assert (tmp_path / "out/2024-05-02/attribution.csv").exists()


def test_sessions_takes_a_file_that_says_more(two_days, tmp_path):
    paths, _ = two_days
    config = tmp_path / "sessions.toml"
    parts = "\n".join(f'[[recordings]]\nname = "{p.stem}"\npath = "{p}"' for p in paths)
    config.write_text(
        f'{parts}\n[factors]\ndirection = ["direction"]\n'
        "[settings]\nsteps = 5\nbatch_size = 64\ntime_latents = 1\ntime_offset = 5\n"
    )
    assert main(["sessions", str(config), "--out", str(tmp_path / "out"), "--quiet"]) == 0
    assert (tmp_path / "out" / "day-1" / "painted.png").exists()


def test_sessions_says_what_is_missing_before_it_trains(two_days, tmp_path, capsys):
    paths, out = two_days[0], ["--out", str(tmp_path)]
    assert main(["sessions", str(paths[0]), *out, "--factor", "direction=direction"]) == 2
    assert "1 session was given: joint training needs 2" in capsys.readouterr().err
    both = ["sessions", *map(str, paths), *out]
    assert main([*both, "--factor", "place=position", "--behavior", "x.csv"]) == 2
    assert "2 recordings and 1 --behavior are given" in capsys.readouterr().err
    assert main([*both, "--factor", "place=position", "--movie", "x.tif"]) == 2
    assert "--movie is that of one recording" in capsys.readouterr().err
    (tmp_path / "wrong.csv").write_text("a,b\n99,1\n")
    wrong = ["--factor", "direction=direction", "--matched", str(tmp_path / "wrong.csv")]
    assert main([*both, *wrong]) == 2
    assert "names cell 99 of session 'day 0'" in capsys.readouterr().err


def test_adapt_carries_a_fit_to_another_day(two_days, tmp_path, capsys):
    paths, folder = two_days
    fitted = ["fit", str(paths[0]), "--factor", "direction=direction", "--quiet", *TINY]
    assert main([*fitted, "--out", str(tmp_path / "first")]) == 0
    carry = ["adapt", str(tmp_path / "first"), str(paths[1])]
    assert main([*carry, "--out", str(tmp_path / "second")]) == 0
    said = capsys.readouterr().out
    assert "9 of 12 cells; nothing was trained" in said
    for file in ("attribution.csv", "painted.png", "fit/fit.json", "opening.json"):
        assert (tmp_path / "second" / file).exists()
    more = ["--how", "input-layer", "--steps", "10", "--out", str(tmp_path / "third")]
    assert main([*carry, *more]) == 0
    assert "only its input layer was trained, for 10 steps" in capsys.readouterr().out
    by_table = ["--matched", str(folder / "cells.csv"), "--out", str(tmp_path / "fourth")]
    assert main([*carry, *by_table, "--quiet"]) == 0
