"""Scores are painted on the cells, and a map that means nothing does not look like one."""

from dataclasses import replace

import numpy as np
import pytest

import napari_xcebra as xc
from napari_xcebra.runs import Run
from napari_xcebra.widgets.layers.scores import DIMMED, GREY, _repaint, colors_of, score_layer
from napari_xcebra.widgets.state.shown import Shown
from napari_xcebra.widgets.state.state import KEY, role_of
from napari_xcebra.widgets.window import services_of

pytestmark = pytest.mark.gui


def test_colours_run_from_the_lowest_to_the_highest_score_and_spare_the_rest():
    colors = colors_of(np.array([0.0, 1.0, np.nan, 0.5]), "gray")
    np.testing.assert_array_equal(colors[0], 0)
    np.testing.assert_allclose(colors[[1, 2], 0], [0, 1], atol=0.01)
    np.testing.assert_array_equal(colors[3], 0)  # its outline is drawn elsewhere
    np.testing.assert_allclose(colors[4, 0], 0.5, atol=0.01)


def test_limits_and_dimming_are_kept_to():
    scores = np.array([0.0, 1.0, 2.0])
    colors = colors_of(scores, "gray", limits=(1.0, 3.0), bright=scores > 0.5)
    np.testing.assert_allclose(colors[1:, 0], [0, 0, 0.5], atol=0.01)
    np.testing.assert_allclose(colors[1:, 3], [DIMMED, 1, 1])


def test_scores_that_are_all_alike_or_missing_are_painted_too():
    assert np.isfinite(colors_of(np.ones(3))).all()
    assert not colors_of(np.full(3, np.nan)).any()


def test_a_layer_has_a_row_for_each_label_and_says_where_its_scores_come_from(
    small_field, made_up_scores
):
    layer = score_layer(small_field, made_up_scores(small_field), "place", token="abc")
    assert len(layer.features) == small_field.n_cells + 1
    assert layer.features["cell"][5] == 4
    assert layer.features["score"][5] == pytest.approx(4 / 32)
    assert np.isnan(layer.features["score"][33])
    about = layer.metadata[KEY]
    assert about["role"] == "scores"
    assert about["token"] == "abc"
    assert about["verdict"] == "Place is in these cells."
    assert layer.get_color(33)[3] == 0


def test_a_factor_at_chance_is_grey_and_says_so_in_its_name(small_field, made_up_scores):
    layer = score_layer(small_field, made_up_scores(small_field), "speed")
    assert layer.name == "speed · both-routes (at chance)"
    colors = np.asarray(layer.colormap.colors)[1:]
    accepted = np.asarray(small_field.accepted)
    np.testing.assert_allclose(colors[accepted], np.tile(GREY, (30, 1)), atol=0.01)
    np.testing.assert_array_equal(colors[~accepted], 0)


def test_what_explains_nothing_has_the_colour_of_nothing_wherever_it_is_painted(
    small_field, made_up_scores
):
    shares = np.linspace(-0.1, 0.9, small_field.n_cells, dtype=np.float32)
    explained = replace(
        made_up_scores(small_field),
        method="both-routes",
        factor_scores=np.stack([shares, shares]),
    )
    colors = score_layer(small_field, explained, "place").colormap.colors[1:]
    assert (colors[shares < 0] == colors[0]).all()
    assert not (colors[shares > 0.1] == colors[0]).all(1).any()


def test_painting_other_scores_touches_no_pixel(small_field, made_up_scores):
    layer = score_layer(small_field, made_up_scores(small_field), "place")
    pixels = layer.data
    before = layer.get_color(1).copy()
    _repaint(layer, np.arange(33.0)[::-1], colormap="magma")
    assert layer.data is pixels
    assert not np.allclose(layer.get_color(1), before)


def test_paint_adds_the_recording_and_a_layer_a_factor(viewer, small_field, made_up_scores):
    layers = xc.paint(viewer, small_field, made_up_scores(small_field))
    assert [layer.visible for layer in layers] == [True, False]
    assert [layer.name for layer in viewer.layers][:6] == [
        "mean image",
        "maximum projection",
        "movie",
        "activity",
        "other ROIs",
        "cells",
    ]
    again = xc.paint(viewer, small_field, made_up_scores(small_field), factors=["place"])
    assert len(again) == 1
    assert [layer.name for layer in viewer.layers].count("cells") == 1


def test_the_layer_of_a_deleted_run_is_taken_over_by_the_next(
    viewer, state, small_field, made_up_scores
):
    """A Labels layer costs napari more than 10 MB, which it does not give back."""
    opened = state.show(small_field)
    painter = services_of(state.viewer).painter
    scores = made_up_scores(small_field)
    names = []
    for second, name in enumerate(("first", "second", "third")):
        made = f"2026-11-16T09:30:0{second}"
        run = state.add_run(Run(name, made, {}, None, {scores.method: scores}))
        state.shown = Shown(run=name, factor="place", method=scores.method)
        names.append(painter.layer.name)
        assert painter.layer.visible
        assert painter.layer.metadata[KEY]["run"] == run.name
        state.remove_run(name)

    assert names == [f"place · both routes · {name}" for name in ("first", "second", "third")]
    assert sum(role_of(layer) == "scores" for layer in state.layers.of(opened)) == 1
