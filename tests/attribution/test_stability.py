"""A cell is stable if every seed puts it on the same side, and in much the same place."""

import numpy as np
import pandas as pd
import pytest

from napari_xcebra.attribution import attribute
from napari_xcebra.attribution.stability import Stability, across_seeds
from napari_xcebra.jobs import StabilityTask
from napari_xcebra.learn import FitSettings
from napari_xcebra.recording import InputError

SETTINGS = FitSettings(
    steps=20, time_latents=2, batch_size=64, hidden_units=32, smoothing=0, lambda_=0.05
)


def of_scores(*scores):
    """Stability of one factor, from the scores by each seed."""
    array = np.array(scores, np.float32)[:, None]
    return Stability("m", ("place",), np.arange(array.shape[2]), array, tuple(range(len(scores))))


class Watch:
    """Counts reports, and asks to stop at one of them."""

    def __init__(self, stop_at=None):
        self.reports, self.stop_at = [], stop_at

    def __call__(self, *advanced):
        self.reports.append(advanced)

    def stop(self):
        return self.stop_at is not None and len(self.reports) >= self.stop_at


class TestStable:
    def test_cells_that_keep_their_place_are_stable(self):
        found = of_scores([1, 2, 8, 9], [2, 4, 18, 16], [1, 3, 9, 10])
        assert found.stable("place").tolist() == [True, True, False, False]
        # scores of 8 and 9 change places: a third of all cells is more than a quarter

    def test_a_cell_selected_by_some_seeds_only_is_not(self):
        scores = np.r_[np.linspace(0, 1, 20), 5, 5, 5, 5]
        other = scores.copy()
        other[19] = 4.5
        found = of_scores(scores, other)
        assert (found.z("place")[:, 19] > 0).tolist() == [False, True]
        assert found.stable("place").tolist() == [True] * 19 + [False] + [True] * 4

    def test_one_fit_says_nothing_about_stability(self):
        found = of_scores([1, 2, 3, 4])
        assert not found.stable("place").any()
        assert np.isnan(found.agreement("place"))
        assert "two or more are needed" in found.summary()

    def test_a_cell_without_scores_stays_without(self):
        found = of_scores([1, np.nan, 2, 3], [1, np.nan, 2, 3])
        assert found.stable("place").tolist() == [True, False, True, True]
        table = found.table("place")
        assert table.loc[1, ["score", "z", "rank"]].isna().all()
        assert table["rank"].tolist()[2:] == [0.5, 1.0]


def test_the_consensus_does_not_depend_on_the_units_of_a_fit():
    one, two = np.array([1.0, 2, 5]), np.array([1.0, 3, 4])
    scaled = of_scores(one, 1000 * two).consensus("place")
    np.testing.assert_allclose(scaled, of_scores(one, two).consensus("place"), atol=1e-5)


def test_the_table_has_the_spread_over_seeds():
    table = of_scores([1, 2, 3], [3, 2, 1]).table("place")
    assert table["score"].tolist() == [2, 2, 2]
    assert table["score_sd"].tolist() == pytest.approx([2**0.5, 0, 2**0.5])
    assert table["rank_low"].tolist() == [0, 0.5, 0]
    assert table["rank_high"].tolist() == [1, 0.5, 1]
    assert of_scores([1, 2, 3], [3, 2, 1]).agreement("place") == pytest.approx(-1)


def test_attributions_that_cannot_be_compared_are_refused(trained, recording):
    few = slice(0, 50)
    one, other = (
        attribute(trained, recording, method, frames=few)
        for method in ("neuron-gradient", "inverted-neuron-gradient")
    )
    with pytest.raises(InputError, match="differ in method, factors or cells"):
        Stability.of([one, other])


class TestAcrossSeeds:
    def test_every_seed_is_trained_and_counted(self, simulation, tmp_path):
        watch = Watch()
        found = across_seeds(
            simulation.recording,
            simulation.factors,
            SETTINGS,
            (3, 4),
            frames=slice(0, 200),
            on_progress=watch,
        )
        assert found.seeds == (3, 4)
        assert [fit.settings.seed for fit in found.fits] == [3, 4]
        assert watch.reports == [(10, 40), (20, 40), (30, 40), (40, 40)]
        assert not np.allclose(*found.score("z2"), equal_nan=True)
        written = pd.read_csv(found.to_csv(tmp_path / "stability.csv"))
        assert list(written["factor"].unique()) == ["z2", "time"]
        assert len(written) == 2 * simulation.recording.n_cells

    def test_a_task_that_is_stopped_keeps_the_seeds_that_are_finished(self, simulation):
        task = StabilityTask(simulation.recording, simulation.factors, SETTINGS, (0, 1, 2))
        found = task.run(Watch(stop_at=3))
        assert found.seeds == (0,)
        assert task.run(Watch(stop_at=1)) is None
