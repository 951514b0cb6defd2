"""The whole way: sample, training, scores, threshold, time, selection, curation, save, reopen."""

from dataclasses import replace

import numpy as np
import pytest

from napari_xcebra.sessions import load_session
from napari_xcebra.widgets.layers import role_of
from napari_xcebra.widgets.score_painter import painter_of
from napari_xcebra.widgets.workspace import full_name, open_workspace

pytestmark = pytest.mark.gui


def dock(viewer, name):
    return viewer.window.dock_widgets[full_name(name)]


def layer(viewer, role):
    # a run that was stopped may have left a layer, which is hidden
    return next(layer for layer in viewer.layers if role_of(layer) == role and layer.visible)


def test_from_a_sample_to_a_saved_session_and_back(make_napari_viewer, qtbot, tmp_path):
    from napari_xcebra.widgets.session import session_of

    viewer = make_napari_viewer()
    session = session_of(viewer)
    open_workspace(viewer)
    viewer.open_sample("napari-xcebra", "navigating_animal")
    assert session.recording is not None
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
        assert session.shown_run is not None
        assert session.shown_run.complete

    qtbot.waitUntil(painted_to_the_end, timeout=120_000)
    scores = session.scores
    painted = layer(viewer, "scores")
    assert len(painted.features) == session.recording.n_cells + 1

    session.shown = replace(session.shown, threshold=1.0, dim=True)
    best = int(np.nanargmax(scores))
    z = (scores - np.nanmean(scores)) / np.nanstd(scores)
    above = np.nan_to_num(z, nan=-np.inf) > 1.0
    np.testing.assert_array_equal(painted.features["selected"][1:].astype(bool), above)

    session.select([best])
    assert (layer(viewer, "selection").data > 0).any()
    session.frame = 123
    assert viewer.dims.current_step[0] == 123

    curate = dock(viewer, "Curate")
    before = session.shown
    curate.deciding.accept_above()
    curate.curations.act(lambda curation: curation.decide(np.flatnonzero(~above), "rejected"))
    name = curate.onwards.train_again()
    qtbot.waitUntil(lambda: painter_of(session).beside is not None, timeout=120_000)
    assert session.shown.run == name
    assert name.endswith(", accepted cells")
    np.testing.assert_array_equal(np.isfinite(session.scores), above)
    assert painter_of(session).beside == (before.run, before.factor)
    painter_of(session).beside = None
    session.shown = before

    session.save(tmp_path / "session")
    saved = load_session(tmp_path / "session")
    session.restore(saved)
    assert len(session.opened) == 2
    assert session.current is saved.opened[0]
    assert session.shown.threshold == 1.0
    np.testing.assert_allclose(session.scores, scores)
    session.close()
