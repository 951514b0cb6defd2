import numpy as np
import pytest

from napari_xcebra.recording import Recording
from napari_xcebra.recording.footprints import Footprints


@pytest.fixture(autouse=True)
def data_directory(tmp_path, monkeypatch):
    """The user's own data directory is left alone."""
    monkeypatch.setenv("NAPARI_XCEBRA_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture
def make_recording():
    """Recordings that differ in what is asked for and in nothing else."""

    def make(n_cells=6, *, seed=0, scale=1.0, pixels=3, source="", ids=None, frames=20):
        traces = scale * np.random.default_rng(seed).random((frames, n_cells))
        cell = np.repeat(np.arange(n_cells), pixels)
        weight = np.ones(len(cell), np.float32)
        shape = (n_cells, max(pixels, 1))
        row, column = cell, np.tile(np.arange(pixels), n_cells)
        footprints = Footprints(shape, cell, row, column, weight) if pixels else None
        return Recording.from_arrays(
            traces, rate=10.0, source=str(source), footprints=footprints, cell_ids=ids
        )

    return make
