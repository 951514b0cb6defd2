"""Methods and statistics side by side agree where they should, and say where they do not."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from napari_xcebra.attribution import METHODS, AttributionStopped
from napari_xcebra.attribution.comparison import attribute_all, compare
from napari_xcebra.attribution.methods import EVERY
from napari_xcebra.attribution.ranks import rank_correlation, ranks_of, relative_ranks
from napari_xcebra.attribution.single_cell import cell_statistics
from napari_xcebra.errors import InputError
from napari_xcebra.report.figures.comparisons import methods_side_by_side

NAMES = ["spatial_information", "correlation"]


@pytest.fixture(scope="module")
def attributions(trained, recording):
    return attribute_all(trained, recording)


@pytest.fixture(scope="module")
def comparison(attributions, recording, simulation):
    return compare(attributions, cell_statistics(recording, simulation.factors, NAMES))


def test_every_method_is_computed_the_slow_ones_on_every_tenth_frame(attributions, recording):
    assert tuple(attributions) == tuple(METHODS)
    usable = int((~recording.excluded).sum())
    assert attributions["neuron-gradient"].n_frames == usable
    assert attributions["shapley-zeros"].n_frames == usable // EVERY


def test_computing_all_methods_can_be_stopped(trained, recording):
    with pytest.raises(AttributionStopped):
        attribute_all(trained, recording, stop=lambda: True)


def test_the_table_ranks_every_cell_by_every_method_and_statistic(comparison, attributions, unused):
    table = comparison.table("z2")
    for method in METHODS:
        best = int(np.nanargmax(attributions[method].score("z2")))
        assert table[f"{method} rank"][best] == 1
        assert table.loc[unused, f"{method} rank"].isna().all()
    assert table["correlation rank"].max() == len(table) - len(unused)
    assert table.columns[:2].tolist() == ["cell", "rank_spread"]


def test_correlations_are_those_of_spearman(comparison):
    found = comparison.correlations("z2")
    assert list(found.index) == [*METHODS, *NAMES]
    scores = comparison.of("z2")
    known = np.isfinite(scores["neuron-gradient"]) & np.isfinite(scores["correlation"])
    expected = spearmanr(scores["neuron-gradient"][known], scores["correlation"][known]).statistic
    assert found.loc["neuron-gradient", "correlation"] == pytest.approx(expected)
    np.testing.assert_allclose(np.diag(found), 1)


def test_cells_that_methods_rank_alike_have_no_spread_and_others_do(attributions):
    one = attributions["neuron-gradient"]
    turned = replace(one, method="other", latent_scores=-one.latent_scores)
    alike = compare({"one": one, "same": one})
    opposite = compare({"one": one, "other": turned})
    assert np.nanmax(alike.spread("z2")) == 0
    assert np.nanmax(opposite.spread("z2")) == 1
    assert opposite.correlations("z2").iloc[0, 1] == pytest.approx(-1)


def test_a_statistic_with_a_sign_ranks_by_its_size(recording, simulation, attributions):
    statistics = cell_statistics(recording, simulation.factors, ["correlation"])
    negative = replace(
        statistics, values={f: {n: -x for n, x in v.items()} for f, v in statistics.values.items()}
    )
    one, other = (compare(attributions, s).of("z2") for s in (statistics, negative))
    np.testing.assert_array_equal(one["correlation"], other["correlation"])


def test_attributions_of_other_cells_cannot_be_compared(attributions):
    one = attributions["neuron-gradient"]
    with pytest.raises(InputError, match="not of the same cells"):
        compare({"one": one, "other": replace(one, cell_ids=one.cell_ids + 1)})
    with pytest.raises(InputError, match="no attribution to compare"):
        compare({})


def test_ranks_leave_out_cells_without_a_score():
    scores = np.array([0.2, np.nan, 0.9, 0.2])
    assert ranks_of(scores).tolist() == [2, 0, 1, 3]
    np.testing.assert_array_equal(relative_ranks(scores), [0.25, np.nan, 1, 0.25])
    assert np.isnan(rank_correlation(scores, np.zeros(4)))


def test_the_csv_has_a_row_for_every_cell_and_factor(comparison, tmp_path):
    table = pd.read_csv(comparison.to_csv(tmp_path / "methods.csv"))
    assert len(table) == len(comparison.cell_ids) * len(comparison.factors)
    assert set(table["factor"]) == {"z2", "time"}


def test_the_picture_shows_the_numbers_and_the_ranks_of_the_cells_in_use(comparison, unused):
    figure = methods_side_by_side(replace(comparison, at_chance={"z2": False, "time": True}))
    matrix, ranks = figure.axes[0], figure.axes[1]
    names = comparison.of("z2")
    np.testing.assert_array_equal(matrix.images[0].get_array(), comparison.correlations("z2"))
    assert next(t.get_text() for t in matrix.get_yticklabels()) == "both routes"
    assert ranks.images[0].get_array().shape == (len(names), len(comparison.cell_ids) - len(unused))
    titles = [ax.get_title("right") for ax in figure.axes]
    assert sum("at chance" in title for title in titles) == 1
