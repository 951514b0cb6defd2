"""`make bench-quick` says so when something has become slower."""

import json
import sys
from importlib import import_module
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
COSTS = {"training step": 6.0, "attribution of 1,000 frames": 7.0}


@pytest.fixture
def quick(monkeypatch):
    """The script, with what it measures given: times are not for a test."""
    if not BENCHMARKS.exists():
        pytest.skip("only in the repository")
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    script = import_module("quick")
    monkeypatch.setattr(script, "measure", lambda: COSTS)
    monkeypatch.setattr(script, "import_seconds", lambda: 0.05)
    yield script
    for name in ("quick", "report"):
        sys.modules.pop(name, None)


def checked(quick, tmp_path, **doctored):
    """Exit code, compared with a baseline in which some costs are other."""
    file = tmp_path / "quick.json"
    file.write_text(json.dumps({**COSTS, **doctored}))
    return quick.main(["--baseline", str(file)])


def test_a_step_that_takes_a_quarter_longer_is_flagged(quick, tmp_path, capsys):
    assert checked(quick, tmp_path, **{"training step": 4.8}) == 1
    flagged = [line for line in capsys.readouterr().out.splitlines() if "SLOWER" in line]
    assert len(flagged) == 1
    assert "training step" in flagged[0]


def test_a_tenth_longer_is_borne_and_so_is_what_is_new(quick, tmp_path, capsys):
    assert checked(quick, tmp_path, **{"training step": 5.4}) == 0
    file = tmp_path / "empty.json"
    file.write_text("{}")
    assert quick.main(["--baseline", str(file)]) == 0
    assert "SLOWER" not in capsys.readouterr().out


def test_a_stored_baseline_is_the_one_compared_with(quick, tmp_path, monkeypatch):
    file = tmp_path / "stored.json"
    assert quick.main(["--store", "--baseline", str(file)]) == 0
    assert json.loads(file.read_text()) == COSTS
    monkeypatch.setattr(quick, "measure", lambda: {n: 2 * cost for n, cost in COSTS.items()})
    assert quick.main(["--baseline", str(file)]) == 1


def test_the_repository_has_a_baseline_of_everything_that_is_timed(quick):
    stored = json.loads((BENCHMARKS / "quick.json").read_text())
    assert stored.keys() == quick.works().keys()
