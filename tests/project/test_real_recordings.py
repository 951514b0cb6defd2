"""The pages on real recordings type what the benchmark measures; the data are not needed here."""

import ast
import re
import shlex
import sys
from pathlib import Path

import pytest

from napari_xcebra.cli.commands import make_parser

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "docs" / name for name in ("real-recordings.md", "how-to/lab-files.md")]


@pytest.fixture(scope="module")
def cases():
    sys.path.insert(0, str(ROOT / "benchmarks"))
    from real import CASES

    return CASES


def shown():
    """Words of every command on the pages."""
    for page in PAGES:
        for block in re.findall(r"^```sh\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.M):
            for line in block.replace("\\\n", " ").splitlines():
                yield shlex.split(line)


def test_every_command_on_the_pages_can_be_typed():
    for program, *words in shown():
        assert program == "napari-xcebra"
        make_parser().parse_args(words)


def test_the_pages_show_the_commands_that_are_measured(cases):
    typed = [words[1 : words.index("--out")] for words in shown() if "--out" in words]
    for name, case in cases.items():
        assert shlex.split(case.command) in typed, name


def test_the_recording_of_a_lab_takes_ten_lines_beside_imports():
    (code,) = re.findall(r"^```py\n(.*?)^```", PAGES[1].read_text("utf-8"), re.DOTALL | re.M)
    statements = [n for n in ast.walk(ast.parse(code)) if isinstance(n, ast.stmt)]
    own = [n for n in statements if not isinstance(n, ast.Import | ast.ImportFrom)]
    assert len(own) <= 10
