"""Commands on what was trained: how good it is, and how it carries to other sessions."""

import re

import pandas as pd
import pytest

from napari_xcebra.cli import main
from napari_xcebra.io import save_recording
from napari_xcebra.simulate import field

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
