"""The table has room for many cells, shows whole numbers, and nothing moves under the mouse."""

from dataclasses import replace

import numpy as np
import pytest
from mouse import activate, press_key
from qtpy.QtCore import QPoint, Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication
from scored import METHOD, scored_recording, scored_run

from napari_xcebra.attribution.score_map import ScoreMap
from napari_xcebra.recording.variables import Variable
from napari_xcebra.widgets.app.workspace import open_workspace
from napari_xcebra.widgets.controls.napari_window import (
    canvas_of,
    full_name,
    main_window,
    open_dock,
)
from napari_xcebra.widgets.layers.camera import camera_of
from napari_xcebra.widgets.plots.score_plots import ScoreHistogram
from napari_xcebra.widgets.state.shown import shown_map
from napari_xcebra.widgets.window import services_of

pytestmark = pytest.mark.gui


@pytest.fixture
def window(make_napari_viewer, qtbot):
    """The whole workspace, with a map painted."""
    viewer = make_napari_viewer(show=True)
    viewer.window.resize(1600, 1000)
    open_workspace(viewer)
    rng = np.random.default_rng(0)
    behavior = {name: Variable(name, rng.random((200, 1))) for name in "xyv"}
    state = services_of(viewer).state
    state.show(scored_recording(behavior=behavior))
    run = scored_run()
    run.fit.history.update(step=np.arange(3), penalty=np.ones(3))
    state.add_run(run)
    state.shown = replace(state.shown, run="run 1", factor="place", method=METHOD)
    open_dock(viewer, "Attribution")
    activate(viewer)
    qtbot.waitUntil(lambda: rows_in_sight(the_dock(viewer).scores.table.view) >= 15)
    return viewer


def the_dock(viewer):
    return viewer.window.dock_widgets[full_name("Attribution")]


def rows_in_sight(view):
    height = view.verticalHeader().defaultSectionSize()
    seen = view.visibleRegion().boundingRect()
    return min(view.viewport().height(), seen.height()) // height


def test_rows_numbers_and_clicks(window, qtbot):
    dock, state = the_dock(window), services_of(window).state
    table = dock.scores.table
    assert rows_in_sight(table.view) >= 15
    window.window.resize(1280, 800)
    qtbot.waitUntil(lambda: main_window(window).height() <= 800 and rows_in_sight(table.view) < 15)
    assert rows_in_sight(table.view) >= 6
    for part in (dock.scores.significance, dock.scores.stability, dock.export):
        qtbot.waitUntil(lambda p=part: p.visibleRegion().boundingRect().height() == p.height() > 0)

    # no number and no title is cut
    metrics, header = table.view.fontMetrics(), table.view.horizontalHeader()
    for i, title in enumerate(table.model.ranking.titles):
        assert header.sectionSize(i) >= metrics.horizontalAdvance(title)
        for row in range(table.model.rowCount()):
            text = table.model.data(table.model.index(row, i)) or ""
            assert header.sectionSize(i) >= metrics.horizontalAdvance(text) + 6, (title, text)

    # the cell that is clicked in the image is scrolled into view
    cell = int(table.model.cells[int(np.isfinite(shown_map(state).scores).sum()) - 1])
    camera = camera_of(window)
    place = np.argwhere(state.current.labels == cell + 1)
    middle = place[len(place) // 2]
    canvas = canvas_of(window)
    down, right = (middle - np.array(camera.center[-2:])) * camera.zoom
    at = QPoint(round(right + canvas.width() / 2), round(down + canvas.height() / 2))
    qtbot.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=at)
    qtbot.waitUntil(lambda: state.selection.tolist() == [cell])
    row = table.view.visualRect(table.model.index(int(table.model.rows_of([cell])[0]), 0))
    assert table.view.viewport().rect().contains(row.center())

    # copied with its titles
    table.view.setFocus()
    press_key(table.view, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    lines = QApplication.clipboard().text().splitlines()
    assert lines[0].split("\t") == list(table.model.ranking.titles) and len(lines) == 2

    # nothing moves from tab to tab
    tops = [part.mapTo(dock, QPoint(0, 0)) for part in (dock.choice, dock.scores.significance)]
    bar = dock.scores.tabs.tabBar()
    for tab in (1, 2, 0):
        QTest.mouseClick(bar, Qt.MouseButton.LeftButton, pos=bar.tabRect(tab).center())
        qtbot.waitUntil(lambda t=tab: dock.scores.tabs.currentIndex() == t)
        QApplication.processEvents()
        assert tops == [
            part.mapTo(dock, QPoint(0, 0)) for part in (dock.choice, dock.scores.significance)
        ]


def test_few_cells_can_be_seen_beside_a_bar_that_holds_most(qtbot):
    histogram = ScoreHistogram()
    qtbot.addWidget(histogram)
    scores = scored_run().attributions[METHOD]
    even = ScoreMap(scores, "place")
    histogram.show_map(even)
    assert histogram.plot.getAxis("left").labelText == "cells"
    latents = np.full_like(scores.latent_scores, 0.1)
    latents[:, 0] = 1.0
    histogram.show_map(ScoreMap(replace(scores, latent_scores=latents), "place"))
    assert histogram.plot.getAxis("left").labelText == "cells (log scale)"
    assert histogram.heights[-1] > 0.2 * histogram.heights[0]
    np.testing.assert_allclose(10**histogram.heights - 1, histogram._counts, atol=1e-9)
