"""What is said of real recordings, where they are at hand; the pages type what is measured."""

import ast
import re
import shlex
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from napari_xcebra.attribution import attribute, significance
from napari_xcebra.cli.commands import make_parser
from napari_xcebra.learn import FitSettings, fit

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "docs" / name for name in ("real-recordings.md", "how-to/lab-files.md")]


@pytest.fixture(scope="module")
def cases():
    sys.path.insert(0, str(ROOT / "benchmarks"))
    from real import CASES

    return CASES


@pytest.fixture(scope="module", params=["CA1 events, active cells", "V1 gratings"])
def real(request):
    sys.path.insert(0, str(ROOT / "benchmarks"))
    from real_recordings import at_hand

    found = at_hand()
    if request.param not in found:
        pytest.skip("The recordings are not at hand.")
    return found[request.param]()


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


def test_labels_that_are_not_theirs_select_no_cell_in_any_column(real):
    recording, factors = real.recording, real.factors
    changed = {n: replace(v, values=v.values[::-1].copy()) for n, v in recording.behavior.items()}
    recording = replace(recording, behavior=changed)
    trained = fit(recording, factors, FitSettings(seed=31))
    scores = attribute(trained, recording).with_significance(significance(trained, recording))
    for factor in factors:
        assert not trained.goodness[factor].above_chance
        table = scores.table(factor)
        assert not table["selected"].any()
        assert not (table[["q", "q_beside_variables"]] <= 0.1).any(axis=None)
        assert table[["lag", "sign"]].isna().all(axis=None)
    assert not [note for note in scores.notes if "follow" in note]


def test_an_encoder_that_tells_more_than_a_regression_learned_something(real):
    (factor,) = real.factors
    found = fit(real.recording, real.factors, FitSettings(seed=32)).goodness[factor]
    assert found.r2 > found.ridge_r2
    assert found.learned
    assert "did not learn it" not in found.verdict


def test_the_recording_of_a_lab_takes_ten_lines_beside_imports():
    (code,) = re.findall(r"^```py\n(.*?)^```", PAGES[1].read_text("utf-8"), re.DOTALL | re.M)
    statements = [n for n in ast.walk(ast.parse(code)) if isinstance(n, ast.stmt)]
    own = [n for n in statements if not isinstance(n, ast.Import | ast.ImportFrom)]
    assert len(own) <= 10
