"""Another day shows the same cells: the same tuning, another path, other brightness."""

import numpy as np
import pytest

from napari_xcebra.errors import InputError
from napari_xcebra.simulate import arena, drifted, field

CELLS = {"place": 6, "grid": 3, "direction": 6, "speed": 3, "mixed": 3, "untuned": 2}


def tuning(simulation):
    """Mean rate of every cell in bins of direction: (bins, cells)."""
    turn = simulation.recording.variable("direction").values[:, 0]
    bins = (turn / (2 * np.pi) * 12).astype(int) % 12
    return np.stack([simulation.rates[bins == b].mean(0) for b in range(12)])


def test_another_day_has_the_same_cells_on_another_path():
    first, second = (arena(**CELLS, frames=4000, day=day) for day in (0, 1))
    place = [s.recording.variable("position").values for s in (first, second)]
    assert np.abs(place[0] - place[1]).mean() > 0.1
    assert second.recording.source == "simulated arena, seed 0, day 1"
    np.testing.assert_array_equal(first.cell_kinds, second.cell_kinds)
    direction = first.cell_kinds == "direction"
    agree = np.corrcoef(tuning(first)[:, direction].ravel(), tuning(second)[:, direction].ravel())
    assert agree[0, 1] > 0.99


def test_cells_that_remap_have_another_tuning_and_the_rest_keep_theirs():
    cells = {"place": 0, "grid": 0, "direction": 20, "speed": 0, "frames": 4000}
    before, after = tuning(arena(**cells)), tuning(arena(**cells, day=1, remapped=0.5))
    agree = np.array([np.corrcoef(a, b)[0, 1] for a, b in zip(before.T, after.T, strict=True)])
    assert (agree > 0.97).sum() >= 10
    assert (agree < 0.97).sum() >= 5


def test_cells_get_brighter_or_darker_and_some_are_lost():
    simulation = arena(**CELLS, frames=500, noise=0.2)
    day = drifted(simulation, gain=0.5, baseline=1.0, lost=0.2, seed=3)
    kept = np.asarray(day.recording.cell_ids)
    assert len(kept) == round(0.8 * simulation.recording.n_cells)
    before = simulation.recording.traces[:, kept]
    scale = day.recording.traces.std(0) / before.std(0)
    assert 0.2 < np.log(scale).std() < 1
    standardised = [(t - t.mean(0)) / t.std(0) for t in (before, day.recording.traces)]
    np.testing.assert_allclose(*standardised, atol=1e-3)
    for factor, carries in simulation.truth.items():
        np.testing.assert_array_equal(day.truth[factor], carries[kept])


def test_footprints_stay_with_the_cells_that_are_found():
    simulation = field(cells=10, frames=200, shape=(96, 96))
    day = drifted(simulation, lost=0.3)
    before, after = simulation.recording.footprints, day.recording.footprints
    for position, cell in enumerate(np.asarray(day.recording.cell_ids)):
        np.testing.assert_array_equal(
            after.row[after.cell == position], before.row[before.cell == cell]
        )


def test_nonsense_is_refused():
    simulation = arena(place=3, grid=0, direction=0, speed=0, frames=50)
    with pytest.raises(InputError, match="lost is 2"):
        drifted(simulation, lost=2)
    with pytest.raises(InputError, match="day is -1"):
        arena(day=-1, frames=50)
