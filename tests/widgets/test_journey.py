"""The whole way: sample, training, scores, threshold, time, selection, curation, save, reopen."""

from dataclasses import replace

import numpy as np
import pytest

from napari_xcebra.widgets.app.workspace import open_workspace
from napari_xcebra.widgets.controls.napari_window import full_name
from napari_xcebra.widgets.state.state import role_of
from napari_xcebra.widgets.window import services_of
from napari_xcebra.workspace_file import load_workspace, save_workspace

pytestmark = pytest.mark.gui


def dock(viewer, name):
    return viewer.window.dock_widgets[full_name(name)]


def layer(viewer, role):
    # a run that was stopped may have left a layer, which is hidden
    return next(layer for layer in viewer.layers if role_of(layer) == role and layer.visible)


def test_from_a_sample_to_a_saved_session_and_back(make_napari_viewer, qtbot, tmp_path):

    viewer = make_napari_viewer()
    state = services_of(viewer).state
    open_workspace(viewer)
    viewer.open_sample("napari-xcebra", "navigating_animal")
    assert state.recording is not None
    train = dock(viewer, "Train")
    assert train.train_button.isEnabled()

    train.form.value = replace(train.form.value, steps=100_000)
    train.train()
    qtbot.waitUntil(lambda: train.progress.value() > 0, timeout=120_000)
    train.cancel()
    qtbot.waitUntil(lambda: not train.busy, timeout=30_000)

    train.form.value = replace(train.form.value, steps=40)
    train.train()

    def painted_to_the_end():
        assert not train.busy
        assert state.shown_run is not None
        assert state.shown_run.complete

    qtbot.waitUntil(painted_to_the_end, timeout=120_000)
    scores = state.scores
    painted = layer(viewer, "scores")
    assert len(painted.features) == state.recording.n_cells + 1

    state.shown = replace(state.shown, threshold=1.0, dim=True)
    best = int(np.nanargmax(scores))
    z = (scores - np.nanmean(scores)) / np.nanstd(scores)
    above = np.nan_to_num(z, nan=-np.inf) > 1.0
    np.testing.assert_array_equal(painted.features["selected"][1:].astype(bool), above)

    state.select([best])
    assert len(layer(viewer, "selection").data) > 0
    state.frame = 123
    assert viewer.dims.current_step[0] == 123

    curate = dock(viewer, "Curate")
    before = state.shown
    curate.deciding.accept_above()
    curate.curations.act(lambda curation: curation.decide(np.flatnonzero(~above), "rejected"))
    name = curate.finish.train_again()
    qtbot.waitUntil(lambda: services_of(state.viewer).painter.beside is not None, timeout=120_000)
    assert state.shown.run == name
    assert name.endswith(", accepted cells")
    np.testing.assert_array_equal(np.isfinite(state.scores), above)
    assert services_of(state.viewer).painter.beside == (before.run, before.factor)
    services_of(state.viewer).painter.beside = None
    state.shown = before

    save_workspace(state.as_file(), tmp_path / "session")
    saved = load_workspace(tmp_path / "session")
    state.restore(saved)
    assert len(state.opened) == 2
    assert state.current is saved.opened[0]
    assert state.shown.threshold == 1.0
    np.testing.assert_allclose(state.scores, scores)
    services_of(state.viewer).close()
