"""Painted layers follow what is shown, and leave the user's own alone."""

from dataclasses import replace

import numpy as np
import pytest
from napari.components import ViewerModel
from scored import AT_CHANCE, CELLS, METHOD, UNUSED, scored_recording, scored_run, scored_test

from napari_xcebra.widgets.layers.scores import GREY
from napari_xcebra.widgets.state.shown import shown_map
from napari_xcebra.widgets.state.state import KEY, role_of
from napari_xcebra.widgets.window import services_of


@pytest.fixture
def viewer():
    """A viewer without a window: layers can be removed from it."""
    return ViewerModel()


@pytest.fixture
def state(viewer):
    state = services_of(viewer).state
    state.show(scored_recording())
    assert services_of(state.viewer).painter
    state.add_run(scored_run("run 1"))
    state.add_run(scored_run("run 2", seed=1, created="2026-11-16T10:00:00"))
    show(state, method=METHOD)
    return state


def show(state, **what):
    state.shown = replace(state.shown, **what)


def visible_scores(viewer):
    return [layer.name for layer in viewer.layers if role_of(layer) == "scores" and layer.visible]


def colors(layer):
    """Of the cells, without the background."""
    return np.asarray(layer.colormap.colors)[1:]


def test_a_layer_is_made_when_a_factor_is_first_shown(state, viewer):
    assert visible_scores(viewer) == []
    show(state, run="run 1", factor="place")
    assert visible_scores(viewer) == ["place · inverted neuron gradient · run 1"]
    layer = services_of(state.viewer).painter.layer
    brightest = np.nanargmax(shown_map(state).scores)
    assert colors(layer)[UNUSED, 3] == 0
    (outlines,) = (x for x in viewer.layers if role_of(x) == "outlines")
    assert outlines.metadata[KEY]["cells"] == [UNUSED] and len(outlines.data)
    assert colors(layer)[brightest] == pytest.approx((0.993, 0.906, 0.144, 1), abs=0.01)
    assert not layer.editable


def test_cells_that_are_no_more_than_chance_fade_if_asked_to(state):
    show(state, run="run 1", factor="place", q_only=True, q_limit=0.26)
    layer = services_of(state.viewer).painter.layer
    assert (colors(layer)[:, 3] > 0.5).sum() >= CELLS - 1  # nothing is known of chance yet
    state.replace_run("run 1", state.shown_run.with_significance(scored_test()))
    found = [cell for cell in range(CELLS) if cell != UNUSED and colors(layer)[cell, 3] == 1]
    assert found == [0, 1, 2, 3, 4]
    assert layer.features["q"][3] == pytest.approx(0.1)
    show(state, q_limit=0.06)
    assert (colors(layer)[[0, 1, 2], 3] == 1).tolist() == [True, True, False]
    show(state, blind=True)
    assert layer.features["q"].isna().all()
    show(state, blind=False)
    assert layer.features["q"][3] == pytest.approx(0.1)


def test_switching_hides_our_other_maps_and_never_the_users_layers(state, viewer):
    own = viewer.add_labels(np.ones((10, 72), int), name="my labels")
    hidden = viewer.add_image(np.ones((10, 72)), name="mine, hidden", visible=False)
    show(state, run="run 1", factor="place")
    show(state, factor="time")
    assert visible_scores(viewer) == ["time · inverted neuron gradient · run 1"]
    show(state, run="run 2")
    assert visible_scores(viewer) == ["time · inverted neuron gradient · run 2"]
    assert own.visible and not hidden.visible


def test_coming_back_to_a_factor_makes_no_second_layer(state, viewer):
    show(state, run="run 1", factor="place")
    first, count = services_of(state.viewer).painter.layer, len(viewer.layers)
    show(state, factor="time")
    show(state, factor="place")
    assert services_of(state.viewer).painter.layer is first
    assert len(viewer.layers) == count + 1


def test_random_colours_of_the_cells_do_not_shine_through(state, viewer):
    show(state, run="run 1", factor="place")
    assert not any(layer.visible for layer in viewer.layers if role_of(layer) == "cells")


def test_a_renamed_layer_is_found_again_and_keeps_its_name(state, viewer):
    show(state, run="run 1", factor="place")
    services_of(state.viewer).painter.layer.name = "figure 3b"
    show(state, factor="time")
    show(state, factor="place")
    assert visible_scores(viewer) == ["figure 3b"]


def test_a_deleted_layer_is_made_again(state, viewer):
    show(state, run="run 1", factor="place")
    viewer.layers.remove(services_of(state.viewer).painter.layer)
    show(state, factor="time")
    show(state, factor="place")
    assert visible_scores(viewer) == ["place · inverted neuron gradient · run 1"]


def test_a_factor_at_chance_is_painted_grey_and_says_so(state):
    show(state, run="run 1", factor=AT_CHANCE)
    layer = services_of(state.viewer).painter.layer
    grey = np.tile(GREY, (CELLS, 1))
    grey[UNUSED] = 0
    np.testing.assert_allclose(colors(layer), grey, atol=1e-6)
    assert "at chance" in layer.name
    # not by a threshold or other colours, either
    show(state, dim=True, threshold=0.5, colormap="magma")
    np.testing.assert_allclose(colors(layer), grey, atol=1e-6)


def test_the_threshold_dims_the_others_and_is_in_the_features_table(state):
    show(state, run="run 1", factor="place", threshold=0.5, dim=True)
    layer, selected = services_of(state.viewer).painter.layer, shown_map(state).above(0.5)
    np.testing.assert_array_equal(layer.features["selected"].to_numpy()[1:], selected)
    used = np.arange(CELLS) != UNUSED
    assert (colors(layer)[used & selected, 3] == 1).all()
    assert (colors(layer)[used & ~selected, 3] < 0.5).all()
    show(state, dim=False)
    assert (colors(layer)[used, 3] == 1).all()


def test_the_features_table_follows_latent_and_method_and_keeps_the_users_columns(state):
    show(state, run="run 1", factor="place")
    layer = services_of(state.viewer).painter.layer
    layer.features["note"] = ["seen"] * (CELLS + 1)
    show(state, latent=1)
    scores = shown_map(state).scores
    np.testing.assert_allclose(layer.features["score"].to_numpy()[1:], scores, rtol=1e-6)
    assert list(layer.features["note"]) == ["seen"] * (CELLS + 1)
    assert layer.metadata[KEY]["latent"] == 1


def test_the_features_table_knows_which_cells_are_accepted_now(state):
    show(state, run="run 1", factor="place")
    accepted = np.arange(CELLS) > 3
    state.change_recording(replace(state.recording, accepted=accepted))
    layer = services_of(state.viewer).painter.layer
    np.testing.assert_array_equal(layer.features["accepted"].to_numpy()[1:], accepted)


def test_limits_are_remembered_for_each_map(state):
    painter = services_of(state.viewer).painter
    show(state, run="run 1", factor="place")
    automatic, layer = painter.limits, painter.layer
    before = colors(layer).copy()
    painter.set_limits((0.0, 100.0))
    assert not np.allclose(colors(layer), before)
    show(state, factor="time")
    assert not painter.limits_chosen
    show(state, factor="place")
    assert painter.limits == (0.0, 100.0)
    painter.set_limits(None)
    assert painter.limits == automatic
    np.testing.assert_allclose(colors(layer), before)


def test_what_is_not_computed_is_not_painted(state, viewer):
    show(state, run="run 1", factor="place")
    show(state, method="shapley-zeros")
    assert visible_scores(viewer) == []


def test_scores_that_arrive_later_are_painted(state, viewer):
    run = state.runs[0]
    show(state, run="run 1", factor="place", method="neuron-gradient")
    assert visible_scores(viewer) == []
    other = replace(run.attributions[METHOD], method="neuron-gradient")
    state.replace_run("run 1", run.with_attribution(other))
    assert visible_scores(viewer) == ["place · neuron gradient · run 1"]


def test_a_renamed_run_keeps_its_layers(state, viewer):
    show(state, run="run 1", factor="place")
    layer, run = services_of(state.viewer).painter.layer, state.shown_run
    state.replace_run("run 1", replace(run, name="final"))
    assert services_of(state.viewer).painter.layer is layer
    assert visible_scores(viewer) == ["place · inverted neuron gradient · final"]


def test_removing_a_run_hides_its_map(state, viewer):
    show(state, run="run 1", factor="place")
    state.remove_run("run 1")
    assert visible_scores(viewer) == []


def test_each_recording_has_its_own_maps(state, viewer):
    show(state, run="run 1", factor="place")
    first = state.current
    state.show(scored_recording())
    assert visible_scores(viewer) == []
    state.add_run(scored_run("run 1", seed=3))
    show(state, run="run 1", factor="place", method=METHOD)
    assert len(visible_scores(viewer)) == 1
    other = services_of(state.viewer).painter.layer
    state.current = first
    show(state, run="run 1", factor="place", method=METHOD)
    assert services_of(state.viewer).painter.layer is not other
    assert other not in viewer.layers


def test_a_second_map_gets_a_view_of_its_own(state, viewer):
    grid = viewer.canvas.grid
    painter = services_of(state.viewer).painter
    show(state, run="run 1", factor="place")
    painter.beside = ("run 2", "place")
    assert sorted(visible_scores(viewer)) == [
        "place · inverted neuron gradient · run 1",
        "place · inverted neuron gradient · run 2",
    ]
    assert grid.enabled
    names = [layer.name for layer in viewer.layers]
    right = [names[i] for i in grid.contents_at((0, 1), viewer.layers)]
    left = [names[i] for i in grid.contents_at((0, 0), viewer.layers)]
    assert right == ["background of the second view", "place · inverted neuron gradient · run 2"]
    assert {"mean image", "place · inverted neuron gradient · run 1"} <= set(left)
    painter.beside = None
    assert not grid.enabled
    assert visible_scores(viewer) == ["place · inverted neuron gradient · run 1"]


def test_the_second_view_stays_in_order_when_layers_come_and_go(state, viewer):
    painter, grid = services_of(state.viewer).painter, viewer.canvas.grid
    show(state, run="run 1", factor="place")
    painter.beside = ("run 2", "place")
    own = viewer.add_image(np.ones((10, 72)), name="mine")
    state.select([2])
    show(state, factor="time")
    viewer.layers.remove(own)
    names = [layer.name for layer in viewer.layers]
    right = [names[i] for i in grid.contents_at((0, 1), viewer.layers)]
    assert right == ["background of the second view", "place · inverted neuron gradient · run 2"]


def test_the_same_map_twice_is_no_comparison(state, viewer):
    painter = services_of(state.viewer).painter
    show(state, run="run 1", factor="place")
    painter.beside = ("run 1", "time")
    show(state, factor="time")
    assert painter.beside is None
    assert not viewer.canvas.grid.enabled


def test_a_recording_in_planes_is_painted(viewer):
    flat = scored_recording()
    footprints = replace(
        flat.footprints,
        shape=(2, *flat.footprints.shape),
        plane=(flat.footprints.cell % 2).astype(int),
    )
    state = services_of(viewer).state
    state.show(replace(flat, footprints=footprints, images={}))
    assert services_of(state.viewer).painter
    state.add_run(scored_run())
    show(state, run="run 1", factor="place", method=METHOD)
    assert services_of(state.viewer).painter.layer.data.shape == (2, 10, 72)
