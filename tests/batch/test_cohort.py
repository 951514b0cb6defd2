"""Runs of many animals and days become tidy tables, by a table or by their paths."""

import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from made_runs import FIRST, made

import napari_xcebra as xc
from napari_xcebra.cli import main
from napari_xcebra.errors import InputError

PATTERN = "{animal}/day{day}"


def test_animals_and_days_come_from_the_path_and_conditions_from_a_table(runs, table):
    found = xc.cohort(runs, table, PATTERN)
    assert found.conditions == ("drug", "saline")  # as the table lists them
    assert found.days == ("2", "10")
    assert found.factors == ("place", "speed")
    assert len(found.runs) == 16 * 2
    assert len(found.cells) == 16 * 2 * 11
    first = found.runs.iloc[0]
    assert (first["animal"], first["day"], first["condition"], first["sex"]) == (
        "m1", "2", "drug", "f"
    )  # fmt: skip
    assert (first["tested"], first["found"], first["share"]) == (11, 4, pytest.approx(4 / 11))
    assert first["verdict"] == "clear"
    cells = found.cells.query("animal == 'm1' and day == '2' and factor == 'place'")
    np.testing.assert_allclose(cells["score"].mean(), first["score"], rtol=1e-5)
    assert cells["found"].sum() == 4


def test_days_are_averaged_so_that_an_animal_counts_once(runs, table):
    found = xc.cohort(runs, table, PATTERN)
    own = found.by_animal("place", "share")
    assert own.loc["m1", "drug"] == pytest.approx((4 / 11 + 5 / 11) / 2)
    assert np.isnan(own.loc["m1", "saline"])
    test = found.test("place")
    assert (test.animals, test.within, test.p) == ((4, 4), False, pytest.approx(2 / 70))
    assert found.test("speed").p == 1
    assert len(found.tests) == 4
    assert "place, share of cells at q ≤ 0.1: drug 0.409, saline 0.25" in found.summary()


def test_a_condition_by_day_is_compared_within_animals(runs):
    found = xc.cohort(runs, pattern="{animal}/day{condition}")
    test = found.test("place")
    assert (test.within, test.animals) == (True, (8, 8))
    assert test.p == pytest.approx(2 / 2**8)
    assert test.conditions == ("2", "10")


def test_rows_name_runs_by_path_and_what_is_missing_is_told(runs, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("run,animal,condition\nruns/m1/day2,a,x\nm2/day2,b,y\nruns/m9/day2,c,y\n")
    found = xc.cohort(runs, path)
    assert found.runs["animal"].unique().tolist() == ["a", "b"]
    assert any("14 runs are left out, not being in the table" in note for note in found.notes)
    assert "1 row of the table has no run: runs/m9/day2." in found.notes
    assert "Too few animals to tell" in found.summary()


@pytest.mark.parametrize(
    ("text", "pattern", "why"),
    [
        ("mouse,group\nm1,a\n", None, "has the columns mouse, group: `animal` is needed"),
        ("animal,condition\nm1,a\n", None, "no column `run`"),
        ("animal,condition\nm1,a\nm1,b\n", PATTERN, "several rows for"),
        ("run,animal\nelsewhere,a\n", None, "fits none of the runs"),
        (None, "{mouse}/day{day}", r"use \{animal\}, \{day\}, \{condition\}, each once"),
        (None, "{animal}/week{day}", "does not match"),
    ],
)
def test_what_cannot_be_matched_gets_a_sentence(runs, tmp_path, text, pattern, why):
    path = None
    if text is not None:
        path = tmp_path / "table.csv"
        path.write_text(text)
    with pytest.raises(InputError, match=why):
        xc.cohort(runs, path, pattern)


def test_a_map_that_was_not_tested_has_no_share_and_is_not_zero(tmp_path):
    made(0).save(tmp_path / "m1")
    made(1, tested=False).save(tmp_path / "m2")
    found = xc.cohort(tmp_path)
    shares = found.runs.query("factor == 'place'").set_index("animal")["share"]
    assert shares.notna().tolist() == [True, False]
    assert "2 maps could not be tested" in found.summary()


def test_runs_of_one_session_are_averaged_and_others_left_out_are_named(tmp_path):
    made(0, found=2).save(tmp_path / "m1" / "a")
    made(1, found=4).save(tmp_path / "m1" / "b")
    other = made(2)
    (map_,) = other.attributions.values()
    name = "neuron-gradient"
    replace(other, attributions={name: replace(map_, method=name)}).save(tmp_path / "m1" / "c")
    found = xc.cohort(tmp_path, pattern="{animal}/*")
    assert found.by_animal("place", "share").loc["m1", "all"] == pytest.approx(3 / 11)
    assert "Up to 2 runs of one session were averaged." in found.notes
    assert any("has neuron gradient and not both routes" in n for n in found.notes)


def test_the_command_writes_tidy_tables_and_a_figure_a_question(runs, table, tmp_path, capsys):
    # one as `napari-xcebra run` writes it
    run, one = made(7, found=4), runs / "m7" / "day2"
    shutil.rmtree(one)
    run.fit.save(one / "fit")
    run.attributions[FIRST].to_npz(one / "attribution.npz")

    out = tmp_path / "out"
    command = ["cohort", str(runs), "--table", str(table), "--pattern", PATTERN, "--out", str(out)]
    assert main(command) == 0
    said = capsys.readouterr().out
    assert "8 animals, 16 sessions, 16 runs." in said
    assert "p = 0.029" in said
    cells = pd.read_csv(out / "cohort-cells.csv")
    assert list(cells.columns[:6]) == ["animal", "day", "condition", "sex", "run", "factor"]
    assert len(cells) == 16 * 2 * 11
    tests = pd.read_csv(out / "cohort-tests.csv").set_index(["factor", "measure"])
    assert tests.loc[("place", "share"), "p"] == pytest.approx(2 / 70)
    assert tests.loc[("place", "share"), "design"] == "between animals"
    for name in ("share", "scores"):
        assert (out / f"cohort-{name}.png").read_bytes()[:4] == b"\x89PNG"
