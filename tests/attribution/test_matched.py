"""Matched cells are compared day by day, by score and by rank."""

import numpy as np
import pytest

from napari_xcebra.attribution import Attribution
from napari_xcebra.attribution.comparison import matched_scores
from napari_xcebra.errors import InputError
from napari_xcebra.learn.data.factors import Part
from napari_xcebra.learn.joint.consistency import SessionConsistency
from napari_xcebra.recording.matching import Matching
from napari_xcebra.report.figures.comparisons import consistency_between_sessions, matched_cells

PART = Part("place", ("position",), 0, 1, "euclidean", 1.0)


def scored(ids, scores, above_chance=True, method="neuron-gradient"):
    return Attribution(
        method=method,
        aggregate="mean",
        parts=(PART,),
        cell_ids=np.array(ids),
        latent_scores=np.array([scores], np.float32),
        n_frames=10,
        strengths={"place": "weak" if above_chance else "at chance"},
        verdicts={"place": ""},
    )


@pytest.fixture
def attributions():
    """Cells 0 to 5 on Monday are 10 to 15 on Tuesday, in the same order of scores but one."""
    return {
        "mon": scored([0, 1, 2, 3, 4, 5, 6], [6, 5, 4, 3, 2, 1, np.nan]),
        "tue": scored([15, 14, 13, 12, 11, 10], [1, 2, 3, 4, 6, 5], above_chance=False),
    }


@pytest.fixture
def matching():
    ids = [[i, 10 + i] for i in range(6)] + [[6, -1]]
    return Matching(("mon", "tue"), np.array(ids))


def test_a_cell_keeps_its_row_whatever_its_id_and_place(attributions, matching):
    found = matched_scores(attributions, matching)
    table = found.table("place").set_index(["match", "session"])
    assert len(table) == 12
    assert table.loc[(0, "mon"), "rank"] == 1
    assert table.loc[(0, "tue"), "cell"] == 10
    assert table.loc[(0, "tue"), "score"] == 5
    assert table.loc[(0, "tue"), "rank"] == 2
    assert table.loc[(5, "tue"), "z"] < 0 < table.loc[(0, "tue"), "z"]
    assert table.loc[(0, "tue"), "at_chance"]


def test_days_are_compared_by_rank_correlation(attributions, matching):
    found = matched_scores(attributions, matching)
    assert found.correlations("place").loc["mon", "tue"] == pytest.approx(1 - 6 * 2 / (6 * 35))
    assert "correlate between sessions by 0.94" in found.summary()
    assert "at chance in tue, where the map means nothing" in found.summary()


def test_too_few_cells_are_not_compared(attributions, matching):
    few = Matching(matching.sessions, matching.ids[:3])
    found = matched_scores(attributions, few)
    assert np.isnan(found.correlations("place").loc["mon", "tue"])
    assert "too few cells" in found.summary()


def test_what_cannot_be_compared_is_said(attributions, matching):
    with pytest.raises(InputError, match="No cell is matched in two"):
        matched_scores(attributions, Matching(matching.sessions, np.array([[0, -1], [-1, 11]])))
    with pytest.raises(InputError, match=r"use `Matching\.of`"):
        matched_scores(attributions, Matching(("a", "b"), matching.ids))
    other = {**attributions, "tue": scored([10], [1.0], method="feature-ablation")}
    with pytest.raises(InputError, match="'tue' was scored by other factors or another method"):
        matched_scores(other, matching)


def test_the_table_and_the_picture_are_written(attributions, matching, tmp_path):
    found = matched_scores(attributions, matching)
    lines = found.to_csv(tmp_path / "matched.csv").read_text().splitlines()
    assert lines[0] == "match,factor,session,cell,score,z,rank,at_chance"
    figure = matched_cells(found, tmp_path / "matched.png")
    assert (tmp_path / "matched.png").stat().st_size > 5000
    texts = [text.get_text() for ax in figure.axes for text in ax.texts]
    assert texts.count("0.94") == 2


def test_the_matrix_says_what_it_shows_and_leaves_gaps_grey(tmp_path):
    r2 = np.array([[1, 0.9, np.nan], [0.8, 1, 0.7], [np.nan, 0.6, 1]])
    found = SessionConsistency(("a", "b", "c"), {"place": r2}, {"place": r2}, {"place": 0.1})
    figure = consistency_between_sessions(found, tmp_path / "consistency.png")
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert sorted(texts) == ["0.60", "0.70", "0.80", "0.90", "1.00", "1.00", "1.00"]
    assert figure.axes[0].get_xlabel() == "explained (chance: 0.10)"
