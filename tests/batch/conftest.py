"""One small recording, settings of a short run, and one pool for most tests."""

import pytest
from made_runs import made

from napari_xcebra.batch import Sweep
from napari_xcebra.jobs.pool import ProcessPool
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.simulate import box


@pytest.fixture(scope="session")
def simulation():
    return box(frames=2500, cells=(8, 8))


@pytest.fixture(scope="session")
def quick():
    """Settings of a run of less than a second."""
    return FitSettings(
        steps=12, batch_size=64, time_latents=1, hidden_units=16, smoothing=0, lambda_=0.05
    )


@pytest.fixture(scope="session")
def two_seeds(simulation, quick):
    return Sweep(
        {"box": simulation.recording},
        simulation.factors,
        quick,
        grid={"seed": [0, 1]},
        truth={"box": simulation.truth},
    )


@pytest.fixture(scope="session")
def pool():
    with ProcessPool(2) as pool:
        yield pool


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
