"""The notebook runs from top to bottom, and is committed without what it printed."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

NOTEBOOK = Path(__file__).parents[2] / "docs" / "notebook.ipynb"


def code_cells() -> list[dict]:
    cells = json.loads(NOTEBOOK.read_text("utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def script() -> str:
    """The cells one after the other; what ends one is shown, as Jupyter does."""
    shown = []
    for cell in code_cells():
        tree = ast.parse("".join(cell["source"]))
        if isinstance(last := tree.body[-1], ast.Expr):
            show = f"__import__('sys').displayhook({ast.unparse(last.value)})"
            tree.body[-1] = ast.parse(show).body[0]
        shown.append(ast.unparse(tree))
    return "\n".join(shown)


def test_the_notebook_runs_and_finds_the_cells(tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", script()],
        capture_output=True, text=True, timeout=250, cwd=tmp_path,
        env={**os.environ, "NAPARI_XCEBRA_DATA": str(tmp_path / "data")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert "These cells encode" in done.stdout
    assert "cells carry place" in done.stdout
    assert (tmp_path / "painted.png").stat().st_size > 10_000


def test_the_notebook_holds_no_output():
    for cell in code_cells():
        assert cell["outputs"] == []
        assert cell["execution_count"] is None
