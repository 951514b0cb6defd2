"""The tab All cells of the Cells dock shows every trace, sorted, and selects by a click."""

from dataclasses import replace

import numpy as np
import pytest
from qtpy.QtCore import QPoint, QPointF, Qt
from qtpy.QtGui import QWheelEvent
from qtpy.QtWidgets import QApplication

from napari_xcebra.attribution.single_cell.tuning import columns_of, preferred_values
from napari_xcebra.recording import Recording
from napari_xcebra.recording.traces import NpyTraces
from napari_xcebra.widgets.docks.cells import dock as cells_dock
from napari_xcebra.widgets.docks.cells.dock import CellsDock
from napari_xcebra.widgets.plots.plot_style import style_of

pytestmark = pytest.mark.gui
LEFT, CTRL = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.ControlModifier
FRAMES, CELLS = 3000, 24


@pytest.fixture(scope="module")
def along() -> Recording:
    """Cells that prefer places along a track, in a mixed order; the last one is not accepted."""
    rng = np.random.default_rng(0)
    place = np.abs(np.arange(FRAMES) % 200 - 100).astype(float)
    centre = rng.permutation(CELLS) * 100 / CELLS
    traces = np.exp(-np.square((place[:, None] - centre) / 12)) + 0.1 * rng.normal(
        size=(FRAMES, CELLS)
    )
    ids, accepted = np.arange(CELLS) + 100, np.arange(CELLS) < CELLS - 1
    behavior = {"place": place}
    return Recording.from_arrays(traces, 10.0, behavior, cell_ids=ids, accepted=accepted)


@pytest.fixture
def dock(viewer):
    dock = CellsDock(viewer)
    viewer.window._qt_window.resize(1200, 760)
    viewer.window._qt_window.show()
    viewer.window.add_dock_widget(dock, name="Cells", area="bottom")
    return dock


@pytest.fixture
def drawn(dock, state, along, qtbot):
    state.show(along)
    dock.over_time.setCurrentWidget(dock.raster)
    qtbot.waitUntil(lambda: len(dock.raster.plot.order) == CELLS - 1, timeout=10_000)
    return dock.raster


def choose(panel, by: str) -> None:
    panel.sort.setCurrentIndex(panel.sort.findData(by))
    panel.sort.activated.emit(panel.sort.currentIndex())


def click(panel, row: int, seconds: float, qtbot, *held) -> None:
    plot = panel.plot
    at = plot.getViewBox().mapViewToScene(QPointF(seconds, plot._height_of(row + 0.5)))
    qtbot.mouseClick(plot.viewport(), LEFT, *held, pos=plot.mapFromScene(at))
    QApplication.processEvents()


def test_all_accepted_cells_are_drawn_and_a_click_selects_one_and_goes_there(
    dock, state, drawn, along, qtbot
):
    plot = drawn.plot
    assert drawn.message == ""
    assert CELLS - 1 not in plot.order  # not accepted
    assert [lane.lane.title for lane in plot._lanes] == ["place"]

    click(drawn, 5, 42.0, qtbot)
    assert state.selection.tolist() == [plot.order[5]]
    assert state.frame == pytest.approx(420, abs=3)
    assert plot.frame == state.frame
    frame = state.frame
    click(drawn, 9, 12.0, qtbot, CTRL)
    assert state.selection.tolist() == [plot.order[5], plot.order[9]]
    assert state.frame == frame
    qtbot.waitUntil(lambda: len(plot._marks) == 2)
    style = style_of(state.viewer.theme)
    assert [plot._marks[cell] for cell in state.selection.tolist()] == [
        (str(100 + plot.order[5]), style.line(0)),
        (str(100 + plot.order[9]), style.line(1)),
    ]

    # what is in view is shared with the traces, and stays when the tab is changed
    drawn.time.spans["10 s"].click()
    assert dock.traces.plot.seconds == pytest.approx(plot.seconds)
    assert np.diff(plot.seconds)[0] == pytest.approx(10)
    dock.over_time.setCurrentWidget(dock.traces)
    dock.traces.time.spans["All"].click()
    dock.over_time.setCurrentWidget(drawn)
    assert plot.frames == (0, FRAMES)
    assert plot._image.image.shape[1] == pytest.approx(plot.getViewBox().width(), abs=1)

    # a rejected cell leaves the picture
    state.change_recording(replace(along, accepted=np.arange(CELLS) < 10))
    qtbot.waitUntil(lambda: len(plot.order) == 10)
    assert plot.frames == (0, FRAMES)


def test_cells_are_sorted_as_chosen_and_rastermap_only_where_installed(
    dock, state, drawn, along, qtbot, monkeypatch
):
    plot = drawn.plot
    accepted = np.asarray(along.accepted)
    (column,) = columns_of(along, ["place"])
    by_place = np.argsort(preferred_values(along, column), kind="stable")
    by_place = by_place[accepted[by_place]]
    assert drawn.sort.currentData() == "correlation"  # as long as there are no scores
    rank = {cell: rank for rank, cell in enumerate(by_place.tolist())}
    apart = np.abs(np.diff([rank[cell] for cell in plot.order.tolist()]))
    assert np.median(apart) <= 2  # neighbours prefer neighbouring places

    choose(drawn, "peak place")
    qtbot.waitUntil(lambda: np.array_equal(plot.order, by_place), timeout=5000)
    choose(drawn, "file")
    np.testing.assert_array_equal(plot.order, np.flatnonzero(accepted))

    assert drawn.sort.findData("rastermap") >= 0
    monkeypatch.setattr(cells_dock, "has_rastermap", lambda: False)
    state.select([3])
    qtbot.waitUntil(lambda: drawn.sort.findData("rastermap") < 0)
    assert 'pip install "napari-xcebra[rastermap]"' in drawn.sort.toolTip()
    assert drawn.sort.currentData() == "file"  # what was chosen stays


def test_ctrl_and_the_wheel_zoom_the_cells(drawn, qtbot):
    plot = drawn.plot
    at = plot.getViewBox().mapViewToScene(QPointF(10.0, plot._height_of(0.5)))
    place = QPointF(plot.mapFromScene(at))
    where = QPointF(plot.viewport().mapToGlobal(place.toPoint()))
    seconds = plot.seconds
    turn = (QPoint(), QPoint(0, 480), Qt.MouseButton.NoButton)
    wheel = QWheelEvent(place, where, *turn, CTRL, Qt.ScrollPhase.NoScrollPhase, False)
    QApplication.sendEvent(plot.viewport(), wheel)
    first, last = plot.rows
    assert first == 0 and 5 <= last < CELLS - 1
    assert plot.seconds == seconds
    plot.show_rows(20, 40)
    assert plot.rows == (CELLS - 1 - 20, CELLS - 1)


def test_traces_on_disk_are_averaged_in_the_background(dock, state, along, qtbot, tmp_path):
    np.save(tmp_path / "F.npy", np.asarray(along.traces).T)
    stored = NpyTraces(tmp_path / "F.npy", cells_first=True)
    dock.over_time.setCurrentWidget(dock.raster)
    state.show(replace(along, traces=stored))
    qtbot.waitUntil(lambda: "Averaging" in dock.raster.message, timeout=5000)
    qtbot.waitUntil(lambda: len(dock.raster.plot.order) == CELLS - 1, timeout=10_000)
    assert dock.raster.message == ""
