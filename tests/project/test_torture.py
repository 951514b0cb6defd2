"""What the program promises about files holds when everything goes wrong, in small."""

import pickle
import random
import sys
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs fork and /proc")
QUICK_BOMBS = ("npz_to_3_gb", "native_to_3_gb", "deep_json", "npy_header", "circle")


@pytest.fixture
def family(monkeypatch, tmp_path):
    """Runs trials of a module of `breaking/` and gives what was broken in them."""
    if not BENCHMARKS.exists():
        pytest.skip("only in the repository")
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    tally = import_module("breaking.tally").Tally

    def run(name, seconds=0.0, part="family", **more):
        module = import_module(f"breaking.{name}")
        counted = tally(name, time.monotonic() + seconds)
        given = {"rng": random.Random(0)} if part == "family" else {}
        getattr(module, part)(home=tmp_path / name, tally=counted, **given, **more)
        assert counted.trials
        return [*counted.lines()]

    yield run
    for name in [name for name in sys.modules if name.startswith("breaking")]:
        sys.modules.pop(name)


def targets(*names):
    return tuple(each for each in import_module("breaking.targets").TARGETS if each.name in names)


@pytest.mark.parametrize("name", ["os.system", "posix.system", "subprocess", "eval", "exec"])
def test_the_crafted_pickles_do_run_something_where_they_are_believed(family, tmp_path, name):
    crafted = import_module("breaking.pickled").crafted(tmp_path / "canary")
    with suppress(Exception):
        pickle.loads(crafted[name])
    assert (tmp_path / "canary").exists()


def test_no_pickle_runs_anything_or_is_more_than_a_sentence(family):
    assert family("pickled", places={"ops.npy": ()}) == []


def test_a_damaged_file_opens_or_gets_a_sentence(family):
    assert family("damaged", seconds=6, formats=("suite2p", "npz", "csv")) == []


def test_a_file_that_claims_too_much_or_is_too_deep_gets_a_sentence(family):
    bombs = import_module("breaking.bombs")
    assert family("bombs", bombs=[getattr(bombs, name) for name in QUICK_BOMBS]) == []


def test_decisions_and_fits_survive_kill_9(family):
    kept = ("fit", "journal", "suite2p decisions")
    found = family("killed", seconds=4, targets=targets(*kept))
    assert [line for line in found if "left behind" not in line] == []


def test_windows_that_curate_at_once_lose_no_decision(family):
    assert family("raced", targets=targets("journal")) == []


def test_a_journal_survives_every_failing_operation(family):
    assert family("faults", seconds=1, targets=targets("journal")) == []


def test_a_flipped_bit_in_a_journal_is_noticed(family):
    assert family("flipped", step=11) == []


def test_a_hostile_folder_has_nothing_touched_outside(family):
    caiman = import_module("breaking.targets").Caiman()
    assert family("hostile", part="decisions", target=caiman) == []


@pytest.mark.parametrize(
    ("name", "seconds", "more"),
    [("orientation", 8, {"everything": False}), ("clocks", 8, {"everything": False}),
     ("labs", 60, {})],
)  # fmt: skip
def test_files_of_known_truth_are_read_right_or_asked_about(family, name, seconds, more):
    (counts,) = family(name, seconds=seconds, **more)
    assert " right" in counts
