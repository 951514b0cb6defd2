"""A cohort on disk, and the small table that a lab has of it."""

import pytest
from made_runs import made


@pytest.fixture
def runs(tmp_path):
    """Eight animals in two groups, two days each; on drug twice as many cells."""
    for number in range(8):
        for day in (2, 10):
            folder = tmp_path / "runs" / f"m{number}" / f"day{day}"
            more = 2 * (number % 2)
            made(number, found=2 + more + (day == 10) + (number == 0)).save(folder)
    return tmp_path / "runs"


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "animals.csv"
    rows = [f"m{n};{'drug' if n % 2 else 'saline'};{'f' if n < 4 else 'm'}" for n in range(8)]
    path.write_text("\n".join(["Animal;Condition;sex", *reversed(rows)]))
    return path
