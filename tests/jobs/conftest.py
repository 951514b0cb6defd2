"""One worker for most tests: its child takes seconds to import torch."""

import pytest

from napari_xcebra.jobs import Worker
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.simulate import box


@pytest.fixture(scope="session")
def worker():
    with Worker() as worker:
        yield worker


@pytest.fixture
def no_torch(tmp_path, monkeypatch):
    """Children find no torch, and so start quickly: for tests that end them."""
    (tmp_path / "torch.py").write_text("raise ImportError('no torch in this test')")
    monkeypatch.syspath_prepend(tmp_path)


@pytest.fixture
def light_worker(no_torch):
    with Worker() as worker:
        yield worker


@pytest.fixture(scope="session")
def simulation():
    return box(frames=2500, cells=(12, 12))


@pytest.fixture(scope="session")
def recording(simulation):
    return simulation.recording


@pytest.fixture(scope="session")
def quick():
    """Settings of a short run."""
    return FitSettings(
        steps=40, batch_size=128, time_latents=2, hidden_units=32, smoothing=0, lambda_=0.05
    )
