"""A small box model."""

import pytest

from napari_xcebra.simulate import box


@pytest.fixture(scope="session")
def simulation():
    return box(frames=2500, cells=(12, 12))


@pytest.fixture(scope="session")
def recording(simulation):
    return simulation.recording
