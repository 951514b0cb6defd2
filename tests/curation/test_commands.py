import numpy as np
import pytest

from napari_xcebra.cli import main
from napari_xcebra.curation import open_curation
from napari_xcebra.curation.journal import own_path


@pytest.fixture
def recording_file(tmp_path, make_recording):
    return make_recording().save(tmp_path / "mouse.npz")


def test_curation_says_who_decided_what_and_when(recording_file, make_recording, capsys):
    with open_curation(make_recording(), recording_file, curator="Ann") as curation:
        curation.decide([0, 1], "accepted")
        curation.decide(2, "rejected")
        curation.decide_above(np.arange(6) > 3)
        curation.tag([0, 2], "place")
        curation.write_note(2, "blurred")
    assert main(["curation", str(recording_file)]) == 0
    said = capsys.readouterr().out
    assert "5 decisions by Ann, last on" in said
    assert [line.split() for line in said.splitlines() if "ted  " in line] == [
        ["accepted", "2", "2"],
        ["rejected", "1", "0"],
    ]
    assert "place 2" in said and "notes  1" in said
    assert main(["curation", str(recording_file) + ".curation.jsonl"]) == 0
    assert capsys.readouterr().out == said


def test_curation_finds_decisions_in_the_data_directory(recording_file, make_recording, capsys):
    recording = make_recording()
    own = own_path(recording, recording_file)
    own.parent.mkdir(parents=True)
    with open_curation(recording, recording_file, journal=own, curator="Ann") as curation:
        curation.decide(0, "accepted")
    assert main(["curation", str(recording_file)]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"{own}\n1 decision by Ann")


def test_where_nothing_was_decided_a_sentence_says_so(recording_file, capsys):
    assert main(["curation", str(recording_file)]) == 2
    assert "There are no decisions" in capsys.readouterr().err


def test_agreement_prints_kappa_and_the_table(recording_file, make_recording, tmp_path, capsys):
    """One cell of four differs: κ = 0.5."""
    verdicts = {"Ann": ([0, 1], [2, 3]), "Ben": ([0], [1, 2, 3])}
    for curator, (accepted, rejected) in verdicts.items():
        journal = tmp_path / f"{curator}.jsonl"
        with open_curation(make_recording(), journal=journal, curator=curator) as curation:
            curation.decide(accepted, "accepted")
            curation.decide(rejected, "rejected")
    files = [str(tmp_path / f"{curator}.jsonl") for curator in verdicts]
    assert main(["agreement", *files]) == 0
    said = capsys.readouterr().out
    assert "Ann and Ben agree on 75 % of 4 cells: κ = 0.50" in said
    assert [line.split() for line in said.splitlines()[2:4]] == [
        ["accepted", "1", "1"],
        ["rejected", "0", "2"],
    ]
    assert "different extractions" not in said


def test_agreement_warns_where_the_cells_are_not_the_same(make_recording, tmp_path, capsys):
    for name, n_cells in (("a", 6), ("b", 7)):
        with open_curation(make_recording(n_cells), journal=tmp_path / f"{name}.jsonl") as curation:
            curation.decide([0, 1], "accepted")
    assert main(["agreement", str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl")]) == 0
    said = capsys.readouterr().out
    assert "different extractions (6 and 7 cells)" in said
    assert "κ is not defined here" in said


def test_a_file_that_is_not_there_is_told_in_a_sentence(tmp_path, capsys):
    missing = str(tmp_path / "none.jsonl")
    assert main(["agreement", missing, missing]) == 2
    assert "none.jsonl cannot be read: No such file" in capsys.readouterr().err
