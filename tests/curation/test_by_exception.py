"""Doubts, proposals and what is adopted: what the extractor knows of a cell is used."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from napari_xcebra.attribution.ranks import auroc
from napari_xcebra.curation import (
    Curation,
    Journal,
    merge_cells,
    open_curation,
    ordered,
    read_curation,
)
from napari_xcebra.curation.evidence import learn, measure, propose
from napari_xcebra.curation.order import find_doubts, properties_of
from napari_xcebra.errors import InputError
from napari_xcebra.io.decisions.restoring import recall
from napari_xcebra.recording import Footprints, Recording
from napari_xcebra.recording.traces import NpyTraces

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
UNDECIDED, ACCEPTED, REJECTED = range(3)


@pytest.fixture(scope="module")
def artefacts():
    """A simulated field of which a third is no cell, what is a cell, and its evidence."""
    if not BENCHMARKS.exists():
        pytest.skip("only in the repository")
    sys.path.insert(0, str(BENCHMARKS))
    try:
        from proposing import field_with_artefacts, judged
    finally:
        sys.path.remove(str(BENCHMARKS))
    recording, is_cell = field_with_artefacts(200, cells=80, each=8, frames=1500)
    return recording, is_cell, measure(recording), judged


def test_thirty_decisions_tell_cells_from_artefacts_with_probabilities_that_hold(artefacts):
    _, is_cell, evidence, judged = artefacts
    area, error = judged(evidence, is_cell, 30, 200)
    assert area >= 0.95
    assert error <= 0.05


def test_a_held_out_probability_does_not_know_the_decision_itself(artefacts):
    _, is_cell, evidence, _ = artefacts
    decided = np.random.default_rng(1).permutation(len(is_cell))[:40]
    chance = np.random.default_rng(2).random(40) < 0.5
    areas = [learn(evidence, decided, np.roll(chance, i)).area for i in range(8)]
    # decisions that mean nothing are not predicted, however well they could be learned by heart
    assert abs(np.mean(areas) - 0.5) < 0.15
    found = learn(evidence, decided, is_cell[decided])
    assert found.area > 0.9
    assert found.reliability()[:, 2].sum() == 40
    assert auroc(found.probability, is_cell) > 0.95


def test_a_proposal_says_why_in_a_sentence_that_names_decisions(artefacts):
    _, is_cell, evidence, _ = artefacts
    decided = np.random.default_rng(3).permutation(len(is_cell))[:40]
    found = learn(evidence, decided, is_cell[decided])
    worst, best = int(np.argmin(found.probability)), int(np.argmax(found.probability))
    assert found.sentence(worst).startswith("Proposal: reject")
    assert "you rejected: " in found.sentence(worst)
    assert found.sentence(best).startswith("Proposal: accept")
    assert json.loads(json.dumps(found.provenance()))["decisions"] == 40


def test_too_few_decisions_and_corrections_alone_teach_nothing(artefacts):
    _, is_cell, evidence, _ = artefacts
    status = np.zeros(len(is_cell), np.int8)
    status[:11] = ACCEPTED
    with pytest.raises(InputError, match="12 decisions by hand"):
        propose(evidence, status, status > 0)
    status[-20:] = REJECTED
    assert propose(evidence, status, status > 0, is_cell).area > 0.5
    with pytest.raises(InputError, match="contradict the extractor"):
        propose(evidence, status, status > 0, ~is_cell)


def test_what_was_made_wrong_is_doubted_with_its_reason(artefacts):
    recording, is_cell, evidence, _ = artefacts
    calls = is_cell.copy()
    wrong = [0, 5, 80, 81, 82]  # two cells, and neuropil, motion and a vessel
    calls[wrong] = ~calls[wrong]
    doubts = find_doubts(recording, evidence, calls)
    assert (doubts.degree[wrong[2:]] > 0).all()
    assert (doubts.degree > 0).mean() < 0.3
    assert all(bool(reason) == (d > 0) for reason, d in zip(doubts.reasons, doubts.degree,
                                                            strict=True))  # fmt: skip
    order = ordered("doubt", np.asarray(recording.cell_ids), doubt=doubts.degree)
    assert (np.diff(doubts.degree[order]) <= 0).all()


def test_a_cell_in_two_pieces_is_doubted_once():
    rng = np.random.default_rng(0)
    traces = rng.normal(size=(2000, 12)).astype(np.float32)
    for cell in range(12):
        traces[rng.integers(0, 2000, 30), cell] += 12
    traces[:, 7] = traces[:, 3] + 0.2 * rng.normal(size=2000)
    spots = Footprints.on_a_grid(12)
    third, seventh = (np.flatnonzero(spots.cell == cell) for cell in (3, 7))
    row, column = spots.row.copy(), spots.column.copy()
    row[seventh], column[seventh] = row[third] + 3, column[third] + 3
    moved = Footprints((60, 60), spots.cell, row, column, spots.weight)
    recording = Recording(traces, 10.0, footprints=moved)
    found = measure(recording)
    assert found.twin[[3, 7]].tolist() == [7, 3]
    reasons = find_doubts(recording, found, np.ones(12, bool)).reasons
    assert sum("same cell" in reason for reason in reasons) == 1
    # a piece that is no cell by the extractor is no question
    reasons = find_doubts(recording, found, np.arange(12) != 7).reasons
    assert not any("same cell" in reason for reason in reasons)


def test_flat_silent_and_dipping_traces_are_doubted_in_words():
    rng = np.random.default_rng(0)
    traces = rng.normal(size=(3000, 6)).astype(np.float32)
    for cell in range(6):
        traces[rng.integers(0, 3000, 60), cell] += 15
    traces[:, 0] = 3
    traces[:, 1] = rng.normal(size=3000)
    traces[:, 2] *= -1
    recording = Recording(traces, 10.0)
    reasons = find_doubts(recording, measure(recording), np.ones(6, bool)).reasons
    assert "constant" in reasons[0] and "noise" in reasons[1] and "dips" in reasons[2]
    assert reasons[3:] == ("", "", "")


def test_a_probability_that_the_calls_do_not_follow_says_nothing():
    rng = np.random.default_rng(0)
    traces = rng.normal(size=(400, 40)).astype(np.float32)
    probability = np.linspace(0.1, 0.9, 40)
    recording = Recording(traces, 10.0, cells={"probability": probability})

    def unsure(calls):
        found = find_doubts(recording, measure(recording), calls)
        return ["unsure" in reason for reason in found.reasons]

    followed = unsure(probability > 0.6)
    assert 1 <= sum(followed) <= 4
    assert followed[int(np.argmin(np.abs(probability - 0.6)))]
    assert not any(unsure(rng.random(40) < 0.5))


def test_what_is_adopted_is_one_step_that_keeps_hand_made_decisions_and_survives(tmp_path):
    ids, calls = np.arange(10) + 5, np.arange(10) < 6
    path = tmp_path / "a.jsonl"
    curation = Curation(ids, journal=Journal(path, curator="Ann"))
    curation.decide(0, "rejected")
    change = curation.adopt(calls, ~calls, "extractor")
    assert change.sentence == "Accepted 5 ROIs and rejected 4, as the extractor has them."
    assert curation.status.tolist() == [2, 1, 1, 1, 1, 1, 2, 2, 2, 2]
    assert curation.by(0) == "hand" and curation.by(1) == "extractor"
    about = {"threshold": 0.95, "decisions": 30}
    none = np.zeros(10, bool)
    assert curation.adopt(none, calls, "proposal", about) is not None
    assert curation.status.tolist() == [2] * 10
    # as the system does when the process is killed
    curation.journal._release()
    again = Curation(ids, journal=Journal(path))
    assert again.status.tolist() == [2] * 10
    assert again.by(0) == "hand" and again.by(1) == "proposal" and again.by(9) == "extractor"
    assert [e["about"] for e in again.journal.entries if e["do"] == "adopt"][-1] == about
    again.undo()
    assert again.status.tolist() == [2, 1, 1, 1, 1, 1, 2, 2, 2, 2]
    again.undo()
    assert again.status.tolist() == [2] + [0] * 9
    again.close()
    assert read_curation(path).n_cells == 10


def test_a_table_of_decisions_remembers_who_made_them(make_recording, tmp_path):
    recording = make_recording(6)
    with open_curation(recording) as curation:
        curation.decide(0, "accepted")
        curation.adopt(np.arange(6) < 3, np.arange(6) >= 3, "extractor")
        table = curation.table().assign(accepted=curation.accepted(recording.accepted))
        table.to_csv(tmp_path / "a.csv", index=False)
    other = Curation(recording.cell_ids)
    recall(tmp_path / "a.csv", recording).onto(other)
    assert other.table()["by"].tolist() == ["hand", *["extractor"] * 5]
    assert other.status.tolist() == [1, 1, 1, 2, 2, 2]


def test_properties_are_what_the_file_says_and_where_a_cell_lies():
    cells = {"depth": np.array([100.0, 200.0]), "region": np.array(["V1", "LM"])}
    recording = Recording(np.zeros((5, 2)), 1.0, footprints=Footprints.on_a_grid(2), cells=cells)
    found = properties_of(recording)
    assert list(found) == ["x", "y", "depth", "region"]
    assert ordered("property", recording.cell_ids, value=found["depth"]).tolist() == [1, 0]
    assert ordered("property", recording.cell_ids, value=found["region"]).tolist() == [1, 0]


def test_merged_cells_keep_all_that_they_are_made_of_through_a_kill_and_undo(make_recording):
    recording = make_recording(6, ids=np.arange(6) + 20)
    curation = open_curation(recording)
    change = curation.merge([1, 4, 2], into=4)
    assert change.sentence == "Merged 3 cells into cell 24, traces averaged by size."
    assert curation.accepted(np.ones(6, bool)).tolist() == [True, False, False, True, True, True]
    curation.merge([4, 5], into=5, how="sum")
    assert {k: v.tolist() for k, v in curation.merged.items()} == {5: [1, 2, 4, 5]}
    # as the system does when the process is killed
    curation.journal._release()
    again = open_curation(recording)
    merged = merge_cells(recording, again)
    np.testing.assert_allclose(
        merged.traces[:, 5], recording.traces[:, [1, 2, 4, 5]].sum(axis=1), rtol=1e-5
    )
    np.testing.assert_array_equal(merged.traces[:, :5], recording.traces[:, :5])
    assert np.bincount(merged.footprints.cell).tolist() == [3, 3, 3, 3, 3, 12]
    assert again.table()["merged_into"].tolist() == ["", "25", "25", "", "25", "25"]
    with pytest.raises(InputError, match="cannot be merged again"):
        again.merge([0, 1])
    again.undo()
    assert again.merged.keys() == {4}
    assert again.split(4).sentence == "Took 3 cells apart again."
    assert merge_cells(recording, again) is recording
    again.undo()
    again.undo()
    assert not again.status.any() and not again.merged
    again.close()


def test_traces_on_disk_are_merged_as_they_are_read(make_recording, tmp_path):
    recording = make_recording(6, frames=50)
    np.save(tmp_path / "a.npy", np.asarray(recording.traces))
    on_disk = replace(recording, traces=NpyTraces(tmp_path / "a.npy", cells_first=False))
    curation = Curation(recording.cell_ids)
    curation.merge([0, 3])
    np.testing.assert_allclose(
        merge_cells(on_disk, curation).traces[:, :],
        merge_cells(recording, curation).traces,
        rtol=1e-6,
    )
