"""A table that a lab keeps in Excel is behaviour like any other."""

import sys

import numpy as np
import pandas as pd
import pytest

from napari_xcebra.errors import InputError
from napari_xcebra.io import open_recording


def opened(folder, table):
    np.save(folder / "traces.npy", np.random.default_rng(0).random((50, 4), np.float32))
    return open_recording(folder / "traces.npy", table, rate=10, guarded=False)


def test_columns_of_a_sheet_are_variables(tmp_path):
    pytest.importorskip("openpyxl")
    table = pd.DataFrame({"time_s": np.arange(50) / 10, "x_cm": np.linspace(0, 90, 50),
                          "context": ["A", "B"] * 25})  # fmt: skip
    table.to_excel(tmp_path / "behaviour.xlsx", index=False)
    behavior = opened(tmp_path, tmp_path / "behaviour.xlsx").behavior
    np.testing.assert_allclose(behavior["x_cm"].values[:, 0], table["x_cm"])
    assert behavior["context"].words == ("A", "B")
    with pd.ExcelWriter(tmp_path / "two.xlsx") as file:
        table.to_excel(file, sheet_name="monday")
        table.to_excel(file, sheet_name="tuesday")
    with pytest.raises(InputError, match="several sheets \\(monday, tuesday\\)"):
        opened(tmp_path, tmp_path / "two.xlsx")


def test_without_the_library_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    (tmp_path / "behaviour.xlsx").write_bytes(b"PK\x03\x04")
    with pytest.raises(InputError, match=r"napari-xcebra\[excel\]"):
        opened(tmp_path, tmp_path / "behaviour.xlsx")
