"""Decisions come back from the table that was written, also onto ROIs that were found anew."""

import csv
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from napari_xcebra.cli import main
from napari_xcebra.curation import Curation
from napari_xcebra.errors import InputError
from napari_xcebra.io import open_recording
from napari_xcebra.io.decisions.outputs import plan_output
from napari_xcebra.io.decisions.restoring import FARTHEST, recall
from napari_xcebra.io.formats.suite2p.writing import write_suite2p
from napari_xcebra.recording import Footprints, Recording

CELLS = 12
RECORDING = Recording(
    np.random.default_rng(0).random((30, CELLS)) + 1, 10.0, footprints=Footprints.on_a_grid(CELLS)
)
ACCEPTED = np.random.default_rng(1).random(CELLS) > 0.5


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.csv"
    notes = pd.DataFrame({"cell": np.arange(CELLS), "tags": [f"tag {i}" for i in range(CELLS)]})
    plan_output("csv", RECORDING, None, ACCEPTED, notes, destination=path).write()
    return path


def found_anew(order, shift=0):
    """The cells under other numbers, each moved by some pixels; positions not in order are lost."""
    footprints = RECORDING.footprints
    new = {old: i for i, old in enumerate(order)}
    kept = np.isin(footprints.cell, order)
    moved = Footprints(
        (footprints.shape[0] + 9, footprints.shape[1] + 9),
        np.array([new[cell] for cell in footprints.cell[kept]]),
        footprints.row[kept] + shift,
        footprints.column[kept],
        footprints.weight[kept],
    )
    return replace(
        RECORDING, traces=RECORDING.traces[:, order], footprints=moved, cell_ids=None, accepted=None
    )


def test_the_same_cells_are_found_by_their_ids(table):
    found = recall(table, RECORDING)
    assert not found.by_place
    np.testing.assert_array_equal(found.accepted(~ACCEPTED), ACCEPTED)


@pytest.mark.parametrize("shift", [0, 2])
def test_cells_with_other_numbers_are_found_by_their_place(table, shift):
    order = np.random.default_rng(2).permutation(CELLS)[:-3]
    recording = found_anew(order, shift)
    found = recall(table, recording)
    assert found.by_place and found.known.all()
    np.testing.assert_array_equal(found.accepted(np.zeros(9, bool)), ACCEPTED[order])
    said = found.decisions(recording.cell_ids)
    assert said["tags"].tolist() == [f"tag {i}" for i in order]
    assert said["cell"].tolist() == list(range(9))


def test_a_cell_that_is_elsewhere_is_as_the_extractor_says(table):
    recording = found_anew(np.arange(CELLS), int(FARTHEST) + 2)
    found = recall(table, recording)
    assert not found.known.any()
    np.testing.assert_array_equal(found.accepted(~ACCEPTED), ~ACCEPTED)


def test_cells_do_not_change_planes(tmp_path):
    planes = np.arange(CELLS) % 2
    recording = replace(RECORDING, cells={"plane": planes})
    path = tmp_path / "planes.csv"
    plan_output("csv", recording, None, ACCEPTED, destination=path).write()
    swapped = replace(recording, cells={"plane": 1 - planes})
    assert not recall(path, swapped).known.any()


def test_decisions_come_back_after_suite2p_was_run_again(tmp_path, capsys):
    folder = write_suite2p(RECORDING, tmp_path / "plane0")
    plan_output("suite2p", open_recording(folder), folder, ACCEPTED).write()
    order = np.random.default_rng(3).permutation(CELLS)
    write_suite2p(found_anew(order), folder)
    words = ["--to", "suite2p", "--table", str(folder / "napari-xcebra-decisions.csv")]
    assert main(["export-decisions", str(folder), *words]) == 0
    assert "12 of 12 cells were matched by position" in capsys.readouterr().out
    np.testing.assert_array_equal(open_recording(folder).accepted, ACCEPTED[order])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a,b\n1,2\n", "no column 'cell'"),
        ("cell,accepted\n1,maybe\n", "True or False in every row"),
        ("cell,accepted\n1,True\n1,False\n", "two rows for cell 1"),
        ("cell,accepted\n1,True\n", "other ids than the 12"),
        ("", "not a table of decisions"),
    ],
)
def test_another_table_is_refused(tmp_path, text, sentence):
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=sentence):
        recall(path, RECORDING)


class TestOntoCells:
    """Decisions of a table become decisions of a curation."""

    @pytest.fixture
    def decided(self, tmp_path):
        """Two decisions by hand, one by threshold, a tag and a note, as a table."""
        before = Curation(RECORDING.cell_ids)
        before.decide([0], "rejected")
        before.decide([1], "accepted")
        before.decide_above(np.arange(CELLS) == 2)
        before.tag([1], "place")
        before.write_note(3, "dim")
        path = tmp_path / "table.csv"
        accepted = before.accepted(np.zeros(CELLS, bool))
        plan_output("csv", RECORDING, None, accepted, before.table(), destination=path).write()
        return path

    def test_they_follow_their_cells(self, decided):
        order = [5, 3, 2, 1, 0]
        curation = Curation(np.arange(5))
        assert recall(decided, found_anew(order)).onto(curation) == 3
        assert [curation.status_of(i) for i in range(5)] == [
            "undecided",
            "undecided",
            "accepted",
            "accepted",
            "rejected",
        ]
        assert curation.by_threshold.tolist() == [False, False, True, False, False]
        assert curation.tags(3) == {"place"} and curation.note(1) == "dim"

    def test_words_that_a_spreadsheet_would_run_are_written_harmlessly_and_come_back(
        self, tmp_path
    ):
        before, path = Curation(RECORDING.cell_ids, curator="+Ann"), tmp_path / "table.csv"
        for cell in range(CELLS):
            before.tag([cell], "=HYPERLINK(A1)")
            before.write_note(cell, "-007" if cell else "@SUM(A1)\r+1")
        none = np.zeros(CELLS, bool)
        plan_output("csv", RECORDING, None, none, before.table(), destination=path).write()
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        assert rows[0]["tags"] == "'=HYPERLINK(A1)"
        assert rows[0]["note"].startswith("'@SUM")
        after = Curation(RECORDING.cell_ids)
        recall(path, RECORDING).onto(after)
        assert after.tags(0) == {"=HYPERLINK(A1)"}
        assert after.note(0) == "@SUM(A1)\r+1"
        assert after.note(1) == "-007"

    def test_what_was_decided_by_hand_since_stays(self, decided):
        curation = Curation(np.arange(CELLS))
        curation.decide([0], "accepted")
        assert recall(decided, RECORDING).onto(curation) == 2
        assert curation.status_of(0) == "accepted"
