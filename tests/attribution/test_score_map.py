"""Scores of one factor: ranked, standardised, thresholded."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import spearmanr
from scored import CELLS, METHOD, UNUSED, scored_recording, scored_run

from napari_xcebra.attribution.ranking import Ranking
from napari_xcebra.attribution.ranks import rank_correlation
from napari_xcebra.attribution.score_map import LAG, ScoreMap, attribution_of
from napari_xcebra.widgets.docks.attribution.panels import _factor_choices


@pytest.fixture
def attribution():
    return scored_run().attributions[METHOD]


@pytest.fixture
def place(attribution):
    return ScoreMap(attribution, "place")


def test_a_map_has_the_scores_and_selection_of_its_attribution(place, attribution):
    np.testing.assert_array_equal(place.scores, attribution.score("place").astype(float))
    np.testing.assert_allclose(place.z, attribution.z("place"), rtol=1e-5)
    for threshold in (-1.0, 0.0, 0.8):
        np.testing.assert_array_equal(place.above(threshold), attribution.above("place", threshold))


def test_a_latent_is_standardised_by_itself(attribution):
    latent = ScoreMap(attribution, "place", 1)
    known = latent.scores[latent.known]
    np.testing.assert_array_equal(latent.scores, attribution.latent("place", 1).astype(float))
    assert latent.z[latent.known].mean() == pytest.approx(0, abs=1e-9)
    assert latent.z_of(known.mean() + known.std()) == pytest.approx(1)


def test_z_and_score_are_two_names_of_a_threshold(place):
    assert place.z_of(place.score_of(1.7)) == pytest.approx(1.7)


def test_a_cell_that_was_not_used_has_no_rank_and_is_never_selected(place):
    assert place.ranks[UNUSED] == 0
    assert not place.above(-100)[UNUSED]
    assert sorted(place.ranks) == list(range(CELLS))
    assert place.ranks[np.nanargmax(place.scores)] == 1


def test_one_cell_far_above_all_does_not_take_the_colours_from_the_others(attribution):
    scores = np.repeat(np.linspace(0, 1, 200)[None], 4, 0).astype(np.float32)
    scores[:, -1] = 1000
    wide = ScoreMap(_with_scores(attribution, scores), "place")
    assert wide.limits[1] < 2
    assert wide.span == (0, 1000)


@pytest.mark.parametrize("value", [0.0, 3.0, np.nan])
def test_scores_that_are_all_the_same_have_limits_that_can_be_drawn(attribution, value):
    same = ScoreMap(_with_scores(attribution, np.full((4, 9), value, np.float32)), "place")
    low, high = same.limits
    assert high > low
    assert same.above(0).sum() == 0
    assert np.isfinite(same.score_of(2.0))


def test_cells_within_a_range_come_highest_first(place):
    inside = place.within(0.2, 0.7)
    scores = place.scores[inside]
    assert ((scores >= 0.2) & (scores <= 0.7)).all()
    assert (np.diff(scores) <= 0).all()
    assert len(inside) == np.sum((place.scores >= 0.2) & (place.scores <= 0.7))


def test_scores_for_other_cells_are_no_scores():
    run = scored_run()
    assert attribution_of(run, METHOD, scored_recording()) is run.attributions[METHOD]
    others = scored_recording(cell_ids=np.arange(CELLS))
    assert attribution_of(run, METHOD, others) is None
    assert attribution_of(run, "shapley-zeros", scored_recording()) is None
    assert attribution_of(None, METHOD, scored_recording()) is None


def test_the_rank_correlation_is_spearmans_with_ties_and_gaps():
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 8, 50).astype(float), rng.integers(0, 8, 50).astype(float)
    second += first
    expected = spearmanr(first[3:], second[3:]).statistic
    first[:3] = np.nan
    assert rank_correlation(first, second) == pytest.approx(expected)
    assert np.isnan(rank_correlation(first[:4], second[:4]))
    assert np.isnan(rank_correlation(np.ones(9), np.arange(9.0)))


def _with_scores(attribution, scores):
    return replace(attribution, latent_scores=scores, cell_ids=np.arange(scores.shape[1]))


def test_colours_of_shares_of_variance_begin_at_nothing_explained(attribution):
    scores = np.tile(np.linspace(-0.02, 0.4, CELLS, dtype=np.float32), (len(attribution.parts), 1))
    explained = replace(
        attribution, method="conditional-encoding", latent_scores=None, factor_scores=scores
    )
    assert ScoreMap(explained, "place").limits[0] == 0
    assert ScoreMap(explained, "place").scores.min() < 0


def test_a_map_without_scores_over_time_says_which_method_has_them(place, attribution):
    assert place.why_not_over_time == ""
    agreed = replace(_by_factor(attribution), method=f"consensus-of-{METHOD}")
    assert "choose generative gradient" in ScoreMap(agreed, "place").why_not_over_time


def test_a_map_that_another_method_follows_over_time_says_so(place, attribution):
    assert place.note_over_time == ""
    whole = ScoreMap(replace(_by_factor(attribution), method="conditional-encoding"), "place")
    assert whole.why_not_over_time == ""
    assert whole.note_over_time.startswith("Conditional encoding scores whole traces")
    assert "generative gradient" in whole.note_over_time


def _by_factor(attribution):
    """Scores of factors as a whole, without those of their latents."""
    scores = np.stack([attribution.score(name) for name in attribution.factors])
    return replace(attribution, latent_scores=None, factor_scores=scores)


def test_lags_are_a_map_of_their_own_around_nothing(attribution):
    lags = np.full((len(attribution.factors), CELLS), np.nan, np.float32)
    lags[:, :3] = [-0.2, 0.0, 0.5]
    told = replace(attribution, details={"lag": lags})
    painted = ScoreMap(told, "place", LAG)
    np.testing.assert_array_equal(painted.scores[:3], lags[0, :3].astype(float))
    assert painted.limits == (-0.5, 0.5)
    assert "Lags do not change over time" in painted.why_not_over_time
    np.testing.assert_array_equal(ScoreMap(told, "place").detail("lag"), lags[0])
    assert painted.detail("lag") is None


def test_the_table_has_interval_and_lag_where_the_method_tells(attribution):
    factors = len(attribution.factors)
    details = {
        "low": np.full((factors, CELLS), 0.1, np.float32),
        "high": np.full((factors, CELLS), 0.25, np.float32),
        "lag": np.full((factors, CELLS), -0.3, np.float32),
    }
    table = Ranking.of(
        scored_recording(), ScoreMap(replace(attribution, details=details), "place"), 0.0
    )
    assert table.columns["interval"].text(0) == "0.10 to 0.25"
    assert table.columns["lag (s)"].text(0) == "-0.30"
    assert (
        "interval" not in Ranking.of(scored_recording(), ScoreMap(attribution, "place"), 0).titles
    )


def test_lags_can_be_chosen_below_factors_that_are_tied_to_variables(attribution):
    choices = _factor_choices(attribution.parts, {}, "conditional-encoding", lags=True)
    tied = [part.name for part in attribution.parts if part.variables]
    assert [choice for _, choice in choices if choice[1] == LAG] == [(n, LAG) for n in tied]
