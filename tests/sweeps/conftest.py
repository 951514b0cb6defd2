"""One small recording, settings of a short run, and one pool for most tests."""

import pytest

from napari_xcebra.jobs.pool import ProcessPool
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.simulate import box
from napari_xcebra.sweeps import Sweep


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
