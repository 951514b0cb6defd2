"""The scripts that measure can be run, and what they measured can be found."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
pytestmark = pytest.mark.skipif(not BENCHMARKS.exists(), reason="only in the repository")
ELSEWHERE = {"cebra", "ratinabox"}
"""What is only installed to measure beside it."""
QUICK = (
    "attribution",
    "by_hand",
    "cohorts",
    "decisions",
    "field",
    "lambda_auto",
    "maps",
    "ordinary",
    "settled",
    "simulate_speed",
)
"""Scripts that are run in small, in one process; the others need a window, or minutes."""
RUN = """
import importlib, runpy, sys
from napari_xcebra.learn.settings import FitSettings
folder, names = sys.argv[1], sys.argv[2:]
sys.path.insert(0, folder)
checked = FitSettings.__post_init__
for name in names:
    sys.argv = [name, "--quick"]
    runpy.run_path(f"{folder}/{name}.py", run_name="__main__")
    FitSettings.__post_init__ = checked  # a quick run shortens trainings
    print("ran", name)
"""
IMPORT = """
import importlib, sys
sys.path.insert(0, sys.argv[1])
for name in sys.argv[2:]:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        print(name, "needs", error.name)
"""


def run(program: str, *names: str) -> str:
    """What a program prints that is run on scripts of the folder."""
    done = subprocess.run(
        [sys.executable, "-c", program, str(BENCHMARKS), *names],
        capture_output=True,
        text=True,
        timeout=850,
        env={**os.environ, "OMP_NUM_THREADS": "1", "QT_QPA_PLATFORM": "offscreen"},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_every_script_can_be_imported():
    names = [path.stem for path in sorted(BENCHMARKS.glob("*.py"))]
    names += [f"breaking.{path.stem}" for path in sorted((BENCHMARKS / "breaking").glob("*.py"))]

    missing = dict(line.split(" needs ") for line in run(IMPORT, *names).splitlines())

    assert {name: package for name, package in missing.items() if package not in ELSEWHERE} == {}


@pytest.mark.timeout(900)
def test_scripts_run_in_small():
    printed = run(RUN, *QUICK).splitlines()

    assert [line[4:] for line in printed if line.startswith("ran ")] == list(QUICK)
    assert sum(line.startswith("|") for line in printed) > 3 * len(QUICK)


def test_every_section_says_in_short_what_it_measured_and_is_on_the_page():
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / "headlines.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr.strip() == ""

    page = (BENCHMARKS / "RESULTS.md").read_text("utf-8")
    for path in (BENCHMARKS / "results").glob("*.md"):
        for title in re.findall(r"(?m)^## (.+)$", path.read_text("utf-8")):
            assert f"[{title}](results/{path.name}#" in page, f"run headlines.py: {title}"
