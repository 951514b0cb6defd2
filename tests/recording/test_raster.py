"""All traces at once: means over ever longer blocks, and cells sorted by likeness."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from napari_xcebra.errors import InputError, Stopped
from napari_xcebra.recording import Recording
from napari_xcebra.recording import overview as cell_order
from napari_xcebra.recording.overview import (
    HIGHEST,
    LOWEST,
    by_correlation,
    by_rastermap,
    raster_of,
    z_of,
)
from napari_xcebra.recording.traces import NpyTraces

CODE = (HIGHEST - LOWEST) / 254


def assemblies(rng: np.random.Generator, each: int = 12, groups: int = 5) -> np.ndarray:
    """Noisy cells that are driven together in groups: (cells, blocks)."""
    drive = np.repeat(rng.normal(size=(groups, 80)), 5, axis=1)
    return np.repeat(drive, each, axis=0) + 0.8 * rng.normal(size=(each * groups, 400))


def pieces(group: np.ndarray) -> int:
    return 1 + int((np.diff(group) != 0).sum())


@pytest.fixture
def traces() -> np.ndarray:
    rng = np.random.default_rng(0)
    return (rng.gamma(2, size=(1037, 6)) * [1, 10, 100, 1, 1, 0] + 5).astype(np.float32)


def test_every_level_holds_the_mean_z_of_its_blocks(traces: np.ndarray) -> None:
    excluded = np.arange(1037) < 100
    raster = raster_of(Recording.from_arrays(traces, 10.0, excluded=excluded), most=3200)
    assert raster.step == 2
    with np.errstate(all="ignore"):
        z = (traces - traces[100:].mean(0)) / traces[100:].std(0)
    z[:, 5] = 0  # a trace that never changes
    for level, codes in enumerate(raster.levels):
        size = raster.step << level
        starts = np.arange(0, 1037, size)
        expected = np.stack([z[first : first + size].mean(0) for first in starts], axis=1)
        # all but the last block, which may have been averaged from parts of other lengths
        error = np.abs(z_of(codes) - np.clip(expected, LOWEST, HIGHEST))[:, :-1]
        assert error.max() <= 0.51 * CODE


def test_what_is_drawn_leaves_out_no_frame(traces: np.ndarray) -> None:
    """Where a pixel has many frames, its block has at least as many."""
    raster = raster_of(Recording.from_arrays(traces, 10.0))
    frames = np.arange(0, 1037, 7)
    drawn = raster.at(frames, 7.0, np.array([3, 0]))
    assert drawn.shape == (2, len(frames))
    np.testing.assert_array_equal(drawn, raster.levels[3][[3, 0]][:, frames // 8])
    np.testing.assert_array_equal(
        raster.at(np.array([4, 4, 5]), 0.3, np.array([1])), raster.levels[0][[1]][:, [4, 4, 5]]
    )


def test_traces_on_disk_give_the_same_and_missing_values_do_no_harm(
    traces: np.ndarray, tmp_path: Path
) -> None:
    np.save(tmp_path / "F.npy", traces.T)
    stored = Recording(NpyTraces(tmp_path / "F.npy", cells_first=True), 10.0)
    here = raster_of(Recording.from_arrays(traces, 10.0))
    for one, other in zip(raster_of(stored).levels, here.levels, strict=True):
        np.testing.assert_array_equal(one, other)
    traces[5, 2] = np.nan
    np.save(tmp_path / "G.npy", traces.T)
    broken = raster_of(Recording(NpyTraces(tmp_path / "G.npy", cells_first=True), 10.0))
    assert np.abs(z_of(broken.levels[0][2])).max() <= CODE
    np.testing.assert_array_equal(broken.levels[0][1], here.levels[0][1])


def test_reading_stops_when_nobody_waits(traces: np.ndarray) -> None:
    with pytest.raises(Stopped):
        raster_of(Recording.from_arrays(traces, 10.0), stop=lambda: True)


def test_correlated_cells_become_neighbours_and_always_in_the_same_order() -> None:
    rng = np.random.default_rng(1)
    mixed = rng.permutation(60)
    activity = assemblies(rng)[mixed]
    order = by_correlation(activity)
    np.testing.assert_array_equal(np.sort(order), np.arange(60))
    assert pieces(mixed // 12) > 30
    assert pieces((mixed // 12)[order]) == 5
    np.testing.assert_array_equal(order, by_correlation(activity))


@pytest.mark.parametrize("cells", [1, 2, 3, 60])
def test_cells_that_never_change_are_sorted_as_well(cells: int) -> None:
    np.testing.assert_array_equal(np.sort(by_correlation(np.ones((cells, 50)))), np.arange(cells))


def test_rastermap_sorts_and_is_imported_only_then() -> None:
    rng = np.random.default_rng(1)
    mixed = rng.permutation(60)
    order = by_rastermap(assemblies(rng)[mixed])
    np.testing.assert_array_equal(np.sort(order), np.arange(60))
    assert pieces((mixed // 12)[order]) < 10
    code = "import sys, napari_xcebra.recording.overview as c; c.has_rastermap()"
    subprocess.run(
        [sys.executable, "-c", f"{code}; assert 'rastermap' not in sys.modules"], check=True
    )


def test_without_rastermap_the_sentence_says_how_to_install_it(monkeypatch) -> None:
    monkeypatch.setattr(cell_order, "find_spec", lambda _: None)
    with pytest.raises(InputError, match="pip install"):
        by_rastermap(np.ones((5, 50)))
