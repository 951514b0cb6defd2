"""No text that we write runs in a spreadsheet, and all of it comes back as it was."""

import csv
import io
import re
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import napari_xcebra
from napari_xcebra.spreadsheets import csv_text, read_csv

texts = st.text(st.sampled_from("=+-@'\t\r\n\uff1dab1, \";"), max_size=6)


def cells_of(text):
    return list(csv.reader(io.StringIO(text, newline="")))


@pytest.mark.parametrize(
    "formula", ["=1+1", "+1+1", "-cmd|'x'!A0", "@SUM(1)", "\t=1", "\r=1", "-1 ", "\n-1", "-inf"]
)
def test_a_text_that_would_run_is_written_with_an_apostrophe(formula):
    written = cells_of(csv_text(pd.DataFrame({formula: [formula], "b": [1]})))
    assert written == [[f"'{formula}", "b"], [f"'{formula}", "1"]]


def test_numbers_stay_as_they_are():
    table = pd.DataFrame({"z": [-1.5, 2.0], "id": [-3, 4], "text": ["-1.5", "+2"]})
    assert csv_text(table) == "z,id,text\n-1.5,-3,-1.5\n2.0,4,+2\n"


@given(st.lists(texts, min_size=1, max_size=4), texts)
def test_every_text_comes_back(tmp_path_factory, notes, name):
    path = tmp_path_factory.getbasetemp() / "notes.csv"
    table = pd.DataFrame({"cell": -1, f"name {name}": notes, "note": notes})
    written = csv_text(table)
    for cell in (cell for row in cells_of(written) for cell in row[1:]):
        assert not re.match("[=+\\-@\t\r\n\uff1d]", cell) or re.fullmatch(r"[+-]1+", cell), cell
    path.write_text(written, encoding="utf-8", newline="")
    found = read_csv(path, keep_default_na=False, dtype={"note": str, f"name {name}": str})
    pd.testing.assert_frame_equal(found, table, check_dtype=False)


def test_every_table_is_written_that_way():
    folder = Path(napari_xcebra.__file__).parent
    for path in folder.rglob("*.py"):
        if path.name != "spreadsheets.py":
            assert "to_csv(index" not in path.read_text(encoding="utf-8"), path
            assert not re.search(r"\.to_csv\(.*index=", path.read_text(encoding="utf-8")), path
