"""What `make paper` measures is kept fit by fit, and its page is made from what is kept."""

import json
import re
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"

SITTING = """
import sys, time
sys.path.insert(0, {benchmarks!r})
from pathlib import Path
from published.results import Measurement, Results

def measure(number):
    time.sleep(0.05)
    return dict(squared=number**2)

results = Results(Path({folder!r}))
for each in [Measurement("squares", dict(number=n), measure) for n in range({fits})]:
    if not results.has(each):
        results.keep(each, each.measure(**each.key), 0.0)
"""


@pytest.fixture
def published(monkeypatch):
    """Imports a module of the benchmark, and forgets it afterwards."""
    if not BENCHMARKS.exists():
        pytest.skip("only in the repository")
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield lambda name: import_module(name)
    for name in [n for n in sys.modules if n.split(".")[0] in ("published", "paper", "report")]:
        sys.modules.pop(name)


def sitting(folder, fits):
    script = SITTING.format(benchmarks=str(BENCHMARKS), folder=str(folder), fits=fits)
    return [sys.executable, "-c", script]


def test_a_kill_loses_the_fit_it_came_in_and_the_next_sitting_goes_on(published, tmp_path):
    process, file = subprocess.Popen(sitting(tmp_path, 10_000)), tmp_path / "squares.jsonl"
    while not file.exists() or file.read_text().count("\n") < 3:
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = file.read_text()
    done = kept.count("\n")
    file.write_text(kept + kept[: len(kept) // (2 * done)])  # as if it had been writing
    subprocess.run(sitting(tmp_path, done + 3), check=True)
    results = published("published.results").Results(tmp_path)
    assert file.read_text().startswith(kept)
    numbers = [
        json.loads(line)["key"]["number"] for line in file.read_text().splitlines() if whole(line)
    ]
    assert numbers == list(range(done + 3))
    assert [each["result"]["squared"] for each in results.of("squares")] == [n**2 for n in numbers]


def whole(line):
    return line.endswith("}") and line.startswith("{")


def test_every_table_has_a_first_result_before_any_has_its_second_round(published):
    paper = published("paper")
    plan = [*paper.box_plan(100), *paper.arena_plan(100, "own"), *paper.grid_plan(100, "simulated")]
    plan += [*paper.dimension_plan(100), *paper.identifiability_plan(10)]
    ordered = paper.in_turn(plan)
    rounds = [each.round for each in ordered]
    assert rounds == sorted(rounds)
    assert len({each.table for each in ordered[:5]}) == 5
    assert len({(each.table, each.name) for each in ordered}) == len(plan)


def without_the_machine(page):
    """The page but for what depends on today's settings, or takes a package of statistics."""
    page = re.sub(r"## What there is\n.*?(?=\n## )", "", page, flags=re.DOTALL)
    return re.sub(r"## ANOVA.*?(?=\n## )", "", page, flags=re.DOTALL)


def test_the_page_says_what_was_kept(published, monkeypatch):
    page = published("published.page")
    monkeypatch.setattr(page, "anova", lambda lines: "## ANOVA\n")
    made = page.page(published("published.results").Results())
    written = (ROOT / "docs" / "paper.md").read_text("utf-8")
    assert without_the_machine(made) == without_the_machine(written)


def test_one_fit_of_the_box_model_has_every_map(published, monkeypatch):
    fits, results = published("published.fits"), published("published.results")
    make = results.preset_settings
    monkeypatch.setattr(
        fits, "preset_settings", lambda *given, **changes: make(*given, **changes, steps=5)
    )
    found = fits.box_fit("z1", 4, 0, "hybrid", True, "paper", 800)
    assert found["auroc"].keys() == fits.MAPS.keys()
    assert found["recovered"].keys() == {"z1", "z2"}
    assert found["optimum"][fits.INVERTED] == 1.0
