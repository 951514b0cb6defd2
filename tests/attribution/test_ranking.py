"""The table of cells: order, filter, and text."""

import numpy as np
import pytest
from scored import CELLS, METHOD, UNUSED, scored_recording, scored_run, scored_test

from napari_xcebra.attribution.ranking import CellColumn, Ranking, RowFilter
from napari_xcebra.attribution.score_map import ScoreMap

ALL = RowFilter()
NAMES = np.array([f"soma-{chr(97 + i)}" for i in range(CELLS)], object)


@pytest.fixture
def painted():
    return ScoreMap(scored_run().attributions[METHOD], "place")


@pytest.fixture
def ranking(painted):
    return Ranking.of(scored_recording(cells={"name": NAMES}), painted, 0.5)


def test_rows_come_by_rank_with_unused_cells_last(ranking, painted):
    rows = ranking.rows("rank", descending=False, shown=ALL)
    assert rows[0] == np.nanargmax(painted.scores)
    assert rows[-1] == UNUSED
    assert len(rows) == CELLS


@pytest.mark.parametrize("column", ["rank", "cell", "name", "score", "z", "above", "accepted"])
@pytest.mark.parametrize("descending", [False, True])
def test_any_column_orders_the_rows_and_loses_none(ranking, column, descending):
    rows = ranking.rows(column, descending=descending, shown=ALL)
    values = list(ranking.columns[column].values[rows[:-1]])
    assert values == sorted(values, reverse=descending)
    assert sorted(rows) == list(range(CELLS))


def test_filters_keep_what_they_say(ranking, painted):
    accepted = ranking.rows("rank", descending=False, shown=RowFilter(accepted_only=True))
    assert UNUSED not in accepted and len(accepted) == CELLS - 1
    selected = ranking.rows("rank", descending=False, shown=RowFilter(above_only=True))
    assert set(selected) == set(np.flatnonzero(painted.above(0.5)))


def test_cells_that_were_tested_have_a_column_of_q_and_are_filtered_by_it(ranking):
    assert "q" not in ranking.titles
    few = RowFilter(q_limit=0.26)
    assert len(ranking.rows("rank", descending=False, shown=few)) == CELLS  # nothing to go by
    tested = scored_run().with_significance(scored_test()).attributions[METHOD]
    place, time = (
        Ranking.of(scored_recording(), ScoreMap(tested, factor), 0.0)
        for factor in ("place", "time")
    )
    assert place.text("q", 2) == "0.1" and place.text("q", UNUSED) == ""
    assert list(place.rows("q", descending=False, shown=few)) == [0, 1, 2, 3, 4]
    assert "q" not in time.titles  # it could not be tested


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("103", {3}),
        ("10", set(range(10))),
        ("103, 111", {3, 11}),
        ("A-C", {2}),
        ("nobody", set()),
        ("  ", set(range(CELLS))),
    ],
)
def test_cells_are_found_by_the_beginning_of_an_id_or_a_part_of_a_name(ranking, text, found):
    rows = ranking.rows("rank", descending=False, shown=RowFilter(text))
    assert set(rows) == found


def test_a_table_without_names_is_searched_by_id(painted):
    ranking = Ranking.of(scored_recording(), painted, 0.0)
    assert "name" not in ranking.titles
    assert set(ranking.rows("rank", descending=False, shown=RowFilter("104"))) == {4}


def test_copied_rows_can_be_pasted_into_a_spreadsheet(ranking):
    lines = ranking.as_tsv([2, UNUSED]).splitlines()
    assert lines[0].split("\t") == list(ranking.titles)
    first = dict(zip(ranking.titles, lines[1].split("\t"), strict=True))
    assert first["cell"] == "102" and first["name"] == "soma-c"
    assert float(first["score"]) == pytest.approx(ranking.columns["score"].values[2], rel=1e-3)
    unused = dict(zip(ranking.titles, lines[2].split("\t"), strict=True))
    assert (unused["rank"], unused["score"], unused["z"]) == ("", "", "")
    assert (unused["above"], unused["accepted"]) == ("no", "no")


def test_more_columns_stand_beside_the_scores_in_their_own_format(ranking):
    values = np.linspace(0, 0.12345, CELLS)
    values[3] = np.nan
    table = ranking.with_columns([CellColumn("q", values, "q-value", ".3f")])
    assert table.titles == ("rank", "cell", "name", "score", "z", "q", "above", "accepted")
    assert table.text("q", CELLS - 1) == "0.123"
    assert table.text("q", 3) == ""
    assert "\t0.123\t" in table.as_tsv([CELLS - 1]).splitlines()[1]


@pytest.mark.parametrize("descending", [False, True])
def test_cells_without_a_value_come_after_those_with_one_whichever_way_they_are_ordered(
    ranking, descending
):
    values = np.arange(CELLS, dtype=float)
    values[[2, 7]] = np.nan
    table = ranking.with_columns([CellColumn("grid", values)])
    rows = table.rows("grid", descending=descending, shown=ALL)
    assert set(rows[-3:-1]) == {2, 7} and rows[-1] == UNUSED
    known = list(values[rows[:-3]])
    assert known == sorted(known, reverse=descending)
