"""Decisions are written and put back from the command line as in the window."""

import numpy as np
import pandas as pd
import pytest

from napari_xcebra.cli import main
from napari_xcebra.cli.commands import OUTPUT_KINDS as KINDS
from napari_xcebra.curation import open_curation
from napari_xcebra.io import open_recording
from napari_xcebra.io.decisions.outputs import OUTPUT_KINDS
from napari_xcebra.io.formats.suite2p.writing import write_suite2p
from napari_xcebra.recording import Footprints, Recording


@pytest.fixture
def plane(tmp_path):
    """A plane of suite2p with two decisions in its journal."""
    recording = Recording(
        np.random.default_rng(0).random((30, 5)) + 1,
        rate=10.0,
        accepted=np.array([1, 1, 0, 0, 1], bool),
        footprints=Footprints.on_a_grid(5),
    )
    folder = write_suite2p(recording, tmp_path / "plane0")
    curation = open_curation(open_recording(folder), folder, curator="me")
    curation.decide([0], "rejected")
    curation.decide([2], "accepted")
    curation.tag([2], "place")
    curation.close()
    return folder


DECIDED = [False, True, True, False, True]


def flags(folder):
    return (np.load(folder / "iscell.npy")[:, 0] > 0).tolist()


def test_decisions_go_to_suite2p_and_back(plane, capsys):
    before = flags(plane)
    assert main(["export-decisions", str(plane), "--to", "suite2p", "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "1 ROI becomes a cell and 1 no longer is" in said and "Nothing was written" in said
    assert flags(plane) == before
    assert main(["export-decisions", str(plane), "--to", "suite2p"]) == 0
    assert flags(plane) == DECIDED
    undo = capsys.readouterr().out.splitlines()[-1].split("napari-xcebra ")[1].split()
    assert main(undo) == 0
    assert flags(plane) == before
    assert main(["restore", str(plane), "--previous"]) == 0
    assert flags(plane) == DECIDED


def test_a_journal_of_another_name_is_found_and_the_one_taken_is_named(plane, tmp_path, capsys):
    usual = plane / "napari-xcebra" / "napari-xcebra-curation.jsonl"
    other = open_curation(open_recording(plane), plane, curator="Ann", name="Ann")
    other.decide([3], "accepted")
    other.close()
    out = tmp_path / "out.csv"
    given = ["export-decisions", str(plane), "--to", "csv", "--out", str(out)]
    assert main(given) == 0
    said = capsys.readouterr().out
    assert f"Decisions of {usual}" in said and "curation-Ann.jsonl" in said
    assert pd.read_csv(out)["accepted"].tolist() == DECIDED
    usual.unlink()
    assert main(given) == 0
    assert "1 decision by Ann" in capsys.readouterr().out
    assert pd.read_csv(out)["accepted"].tolist() == [True, True, False, True, True]


def test_a_table_has_decisions_and_scores(plane, tmp_path, capsys):
    scores = pd.DataFrame({"cell": range(5), "factor": "place", "score": np.arange(5) / 10})
    scores.to_csv(tmp_path / "attribution.csv", index=False)
    out = tmp_path / "out.csv"
    given = [
        "--journal",
        str(plane / "napari-xcebra" / "napari-xcebra-curation.jsonl"),
        "--out",
        str(out),
    ]
    given += ["--scores", str(tmp_path / "attribution.csv"), "--quiet"]
    assert main(["export-decisions", str(plane), "--to", "csv", *given]) == 0
    assert capsys.readouterr().out == ""
    table = pd.read_csv(out)
    assert table["accepted"].tolist() == DECIDED
    assert table["tags"][2] == "place" and table["score_place"][4] == 0.4


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--to", "caiman"], "was opened as suite2p"),
        (["--to", "csv", "--journal", "nowhere.jsonl"], "holds no decisions"),
        (["--to", "csv", "--in-place"], "--in-place goes with --to nwb"),
        (["--to", "csv", "--scores", "nowhere.csv"], "not a table of scores"),
    ],
)
def test_what_cannot_be_written_is_one_sentence(plane, capsys, words, sentence):
    before = sorted(path.name for path in plane.iterdir())
    assert main(["export-decisions", str(plane), *words]) == 2
    assert sentence in capsys.readouterr().err
    assert sorted(path.name for path in plane.iterdir()) == before


def test_nothing_to_restore_is_a_sentence(plane, capsys):
    assert main(["restore", str(plane)]) == 2
    assert "nothing to restore" in capsys.readouterr().err


def test_the_kinds_that_help_lists_are_those_there_are():
    assert KINDS == OUTPUT_KINDS
