"""A cell is stable if every seed puts it on the same side, and in much the same place."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scored import METHOD, scored_run, scored_seeds

from napari_xcebra.attribution import attribute
from napari_xcebra.attribution.stability import Stability, across_seeds
from napari_xcebra.errors import InputError
from napari_xcebra.jobs import tasks
from napari_xcebra.learn import FitSettings
from napari_xcebra.runs import Run

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
        assert "at least two are needed" in found.summary()

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


def test_best_and_worst_place_are_counted_from_the_highest_score():
    places = of_scores([1, np.nan, 3, 5], [1, np.nan, 6, 5]).places("place")
    assert places.tolist() == [[3, 0, 1, 1], [3, 0, 2, 2]]


class TestMoreSeeds:
    def test_further_seeds_come_beside_those_there_are(self):
        found = of_scores([1, 2, 3]).with_more(replace(of_scores([3, 2, 1]), seeds=(7,)))
        assert found.seeds == (0, 7)
        assert found.score("place").tolist() == [[1, 2, 3], [3, 2, 1]]

    def test_a_seed_counts_once(self):
        assert of_scores([1, 2, 3]).with_more(of_scores([3, 2, 1], [1, 2, 3])).seeds == (0, 1)

    def test_other_cells_are_refused(self):
        with pytest.raises(InputError, match="differ in method, factors or cells"):
            of_scores([1, 2, 3]).with_more(of_scores([1, 2]))


class TestKeptWithARun:
    def test_the_consensus_is_a_map_of_its_own(self):
        run = scored_run()
        repeated = run.with_stability(scored_seeds(run))
        by_seed = repeated.attributions[METHOD].stability
        consensus = repeated.attributions["consensus-of-inverted-neuron-gradient"]
        assert by_seed.seeds == consensus.stability.seeds == (0, 1, 2)
        np.testing.assert_allclose(
            consensus.score("place"), by_seed.consensus("place"), rtol=1e-5, atol=1e-6
        )
        np.testing.assert_array_equal(consensus.stability.stable("place"), by_seed.stable("place"))
        assert not consensus.has_latents

    def test_seeds_asked_for_later_are_added(self):
        run = scored_run()
        repeated = run.with_stability(scored_seeds(run)).with_stability(scored_seeds(run, (3,)))
        assert repeated.attributions[METHOD].stability.seeds == (0, 1, 2, 3)

    def test_it_is_saved_and_opened_with_the_run(self, tmp_path):
        run = scored_run()
        saved = run.with_stability(scored_seeds(run))
        opened = Run.load(saved.save(tmp_path / "run"))
        assert opened.attributions.keys() == saved.attributions.keys()
        for method, attribution in opened.attributions.items():
            before = saved.attributions[method].stability
            assert attribution.stability.seeds == before.seeds
            np.testing.assert_array_equal(attribution.stability.scores, before.scores)

    def test_the_table_of_a_map_has_it_beside_the_scores(self, tmp_path):
        run = scored_run()
        attribution = run.with_stability(scored_seeds(run)).attributions[METHOD]
        written = pd.read_csv(attribution.to_csv(tmp_path / "attribution.csv"))
        place = written[written["factor"] == "place"].reset_index()
        by_seed = attribution.stability.table("place")
        np.testing.assert_allclose(place["score_sd"], by_seed["score_sd"], rtol=1e-5, atol=1e-7)
        assert place["stable"].tolist() == by_seed["stable"].tolist()

    def test_seeds_of_another_method_are_refused(self):
        run = scored_run()
        other = replace(scored_seeds(run), method="neuron-gradient")
        with pytest.raises(InputError, match="by neuron-gradient for 12 cells"):
            run.attributions[METHOD].with_stability(other)


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

    def test_a_call_that_is_stopped_keeps_the_seeds_that_are_finished(self, simulation):
        call = tasks.STABILITY(simulation.recording, simulation.factors, SETTINGS, (0, 1, 2))
        found = call.run(Watch(stop_at=3))
        assert found.seeds == (0,)
        assert call.run(Watch(stop_at=1)) is None
