"""A factor is painted by the time from an event, wherever the slider meets one."""

import numpy as np
import pytest

from napari_xcebra.attribution import attribute
from napari_xcebra.learn import FitSettings, fit
from napari_xcebra.recording.events import window_of
from napari_xcebra.runs import Run, now
from napari_xcebra.simulate import task
from napari_xcebra.widgets.docks.attribution.dock import AttributionDock
from napari_xcebra.widgets.layers.scores_over_time import _ByMoment, _events_to_score
from napari_xcebra.widgets.state.shown import Shown
from napari_xcebra.widgets.window import services_of

METHOD = "conditional-encoding"


def test_every_frame_has_the_scores_of_its_time_from_the_event():
    scores = np.array([[1, 2], [3, 4]], np.float32)
    by = _ByMoment(np.array([-0.5, 0.5]), scores, np.array([-1, 0, 1, -1]))
    assert by.shape == (4, 2)
    np.testing.assert_array_equal([by[1], by[2]], scores)
    assert np.isnan(by[0]).all() and np.isnan(by[3]).all()


@pytest.mark.gui
def test_the_movie_follows_the_slider_and_its_name_says_how_far_from_the_event(
    viewer, state, warm_child, qtbot
):
    cells = {"stimulus": 4, "choice": 6, "outcome": 0, "running": 2, "phase": 2, "untuned": 2}
    recording = task(frames=3000, seed=0, **cells).recording
    factors = {"choice": ["choice"]}
    trained = fit(recording, factors, FitSettings(steps=20, batch_size=64, blocks=4))
    scores = attribute(trained, recording, METHOD)
    dock = AttributionDock(viewer)
    viewer.window.add_dock_widget(dock, name="Attribution")
    state.show(recording)
    state.add_run(Run("run 1", now(), factors, trained, {METHOD: scores}))
    state.shown = Shown(run="run 1", factor="choice", method=METHOD)
    titles = [action.text() for action in dock.scores.over_time.events.actions()]
    assert titles == [title for title, _ in _events_to_score(recording)]
    assert "decision" in titles and "when choice is known" in titles
    painter = services_of(viewer).around_event
    dock.scores.over_time.event_chosen.emit("decision")
    qtbot.waitUntil(lambda: painter.layer is not None, timeout=120_000)
    layer = painter.layer
    moment = int(np.flatnonzero(recording.behavior["decision"].values[:, 0])[3])
    state.frame = moment
    assert layer.name == "choice from decision: +0.12 s"
    assert np.isfinite(np.asarray(layer.data[moment])).any()
    far = int(np.flatnonzero(layer.data.values.place < 0)[0])
    state.frame = far
    assert layer.name == "choice from decision: none near"
    assert np.isnan(np.asarray(layer.data[far])).all()
    before = max(1.0, window_of(recording, "decision")[0])
    assert layer.data.values.seconds[0] == pytest.approx(-before + 0.125)
    # scores are hidden where cells are judged blind
    state.shown = Shown(run="run 1", factor="choice", method=METHOD, blind=True)
    assert not layer.visible
