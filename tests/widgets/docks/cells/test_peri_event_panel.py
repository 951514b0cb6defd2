"""The tab Events of the Cells dock shows cells around what happened in a task."""

from dataclasses import replace

import numpy as np
import pytest
from qtpy.QtCore import QPointF, Qt

from napari_xcebra.recording import Footprints, Origin, Recording, Trials, Variable
from napari_xcebra.widgets.docks.cells.dock import CellsDock
from napari_xcebra.widgets.docks.cells.tuning import NOTHING

pytestmark = pytest.mark.gui
RATE, TRIALS, LENGTH = 10.0, 40, 60


@pytest.fixture(scope="module")
def task() -> Recording:
    """12 cells, each at its own time after the cue; cell 100 answers to cues on the right."""
    rng = np.random.default_rng(0)
    first = np.arange(TRIALS) * LENGTH + 10
    frames = TRIALS * LENGTH + 20
    side, cue = np.arange(TRIALS) % 2, np.zeros(frames)
    cue[first + 5] = 1
    traces = rng.normal(scale=0.1, size=(frames, 12)).astype(np.float32)
    for start, right in zip(first + 5, side, strict=True):
        for cell in range(12):
            traces[start + cell : start + cell + 3, cell] += right if cell == 0 else 1
    masks = np.zeros((12, 64, 64), np.float32)
    for cell, mask in enumerate(masks):
        mask[16 * (cell // 4) + 2 :, 16 * (cell % 4) + 2 :][:10, :10] = 1
    known = np.full(frames, np.nan)
    for start, right in zip(first, side, strict=True):
        known[start : start + 40] = right
    accepted = np.arange(12) != 11
    words = ("left", "<b>R</b>")
    behavior = {
        "cue": Variable("cue", cue, "event", window=(1, 3)),
        "side": Variable("side", known, "discrete", words=words),
    }
    return Recording(
        traces,
        RATE,
        behavior,
        cell_ids=np.arange(12) + 100,
        accepted=accepted,
        footprints=Footprints.from_masks(masks),
        images={"mean": rng.random((64, 64)).astype(np.float32)},
        trials=Trials(first, first + 40, {"side": side}, {"side": words}),
        origin=Origin(signal="dff"),
    )


@pytest.fixture
def dock(viewer):
    dock = CellsDock(viewer)
    viewer.window._qt_window.resize(1300, 700)
    viewer.window._qt_window.show()
    viewer.window.add_dock_widget(dock, name="Cells", area="bottom")
    return dock


@pytest.fixture
def panel(dock):
    return dock.events


@pytest.fixture
def drawn(dock, panel, qtbot):
    """Wait for what is asked for; the answer to a former question is not drawn."""

    def wait(change=lambda: None):
        around, found = panel.plot.around, panel._found
        change()
        qtbot.waitUntil(lambda: not dock._stale, timeout=20_000)
        qtbot.waitUntil(
            lambda: panel.plot.around is not around or panel._found is not found, timeout=20_000
        )

    return wait


@pytest.fixture
def one_cell(state, task, drawn):
    state.show(task)
    drawn(lambda: state.select([0]))


def clicked(plot, item, x, y, modifiers=Qt.KeyboardModifier.NoModifier):
    """A click at values of a plot's axes, as the scene reports it."""

    class Click:
        def button(self):
            return Qt.MouseButton.LeftButton

        def modifiers(self):
            return modifiers

        def scenePos(self):
            return item.vb.mapViewToScene(QPointF(x, y))

    plot.scene().sigMouseClicked.emit(Click())


def test_without_trials_and_events_the_tab_says_what_to_give(
    dock, panel, state, small_field, qtbot
):
    state.show(small_field)
    state.select([1])
    qtbot.waitUntil(lambda: not dock._stale, timeout=20_000)
    assert dock.tabs.currentWidget() is dock.tuning
    dock.tabs.setCurrentWidget(panel)
    assert panel.message == NOTHING
    assert not panel.event_box.isVisible() and not panel.all.isVisible()


def test_a_recording_of_a_task_opens_the_events_and_names_groups_by_their_words(
    dock, panel, one_cell
):
    assert dock.tabs.currentWidget() is panel
    assert [panel.event_box.itemText(i) for i in range(panel.event_box.count())] == [
        "trial start",
        "trial end",
        "cue",
    ]
    # the suggested factors begin with the cue
    assert panel.event_box.currentText() == "cue"
    assert panel.plot.key == ["cell 100", "mean of 40"]
    assert panel.plot.mean.getAxis("left").labelText == "ΔF/F"


def test_the_mean_is_split_and_rows_are_sorted_by_group_then_time(panel, one_cell, drawn, task):
    drawn(lambda: panel.choose("cue", "side"))
    assert panel.plot.key == ["cell 100", "left (20)", "<b>R</b> (20)"]
    around = panel.plot.around
    mean = around.mean()[:, np.searchsorted(around.seconds, 0.1), 0]
    np.testing.assert_allclose(mean, [0, 1], atol=0.1)
    assert around.moments.group[panel.plot.order].tolist() == [0] * 20 + [1] * 20
    assert (np.diff(around.moments.frames[panel.plot.order][:20]) > 0).all()


def test_a_click_in_the_image_moves_the_time_slider_and_the_ring_shows_where_it_is(
    panel, one_cell, drawn, state
):
    drawn(lambda: panel.choose("cue", "side"))
    clicked(panel.plot, panel.plot.rows, 0.5, 30.5)
    moment = panel.plot.around.moments.frames[panel.plot.order[30]]
    assert state.frame == moment + 5
    seconds, row = panel.plot.marked
    assert (seconds, row) == (pytest.approx(0.5), 30)
    state.frame = 0  # before any window
    assert panel.plot.marked is None


def test_dragging_the_axis_and_typing_seconds_set_the_window(panel, one_cell, drawn):
    assert panel.window == (1, 3)
    drawn(lambda: panel.plot.window_dragged.emit(-2.04, 1.5))
    assert panel.window == (2.0, 1.5)
    assert len(panel.plot.around.seconds) == 35
    drawn(lambda: panel.bin.setValue(0.5))
    assert len(panel.plot.around.seconds) == 7
    # each event keeps its own window
    drawn(lambda: panel.choose("trial start"))
    assert panel.window == (1, 4), "a second before, and the whole trial"
    drawn(lambda: panel.choose("cue"))
    assert panel.window == (2.0, 1.5)


def test_of_several_selected_cells_the_first_is_shown_and_said_to_be(panel, one_cell, drawn, state):
    drawn(lambda: state.select([3, 5]))
    assert panel.plot.key[:2] == ["cell 103", "1st of 2 selected"]
    assert panel.plot.around.cell_ids.tolist() == [103]


def test_all_cells_are_sorted_by_peak_and_linked_with_the_selection(panel, one_cell, drawn, state):
    drawn(lambda: panel.choose("cue", "side", all_cells=True))
    order = panel.map.order.tolist()
    assert 11 not in order, "an ROI that is not accepted is no cell"
    peaks = panel._found[2].peak()[order]
    assert (np.diff(peaks) >= 0).all()
    assert panel.map.marked == ["100"]
    row = order.index(7)
    clicked(panel.map, panel.map._plots[1], 1.0, row + 0.5)
    assert state.selection.tolist() == [7]
    clicked(panel.map, panel.map._plots[0], 1.0, order.index(2) + 0.5,
            Qt.KeyboardModifier.ControlModifier)  # fmt: skip
    assert state.selection.tolist() == [7, 2]


def test_too_many_groups_are_explained_in_the_place_of_the_plot(
    panel, one_cell, state, task, qtbot
):
    number = task.trials.number(task.n_frames).astype(float)
    number[number < 0] = np.nan
    state.show(replace(task, behavior={**task.behavior, "n": Variable("n", number, "discrete")}))
    state.select([0])
    qtbot.waitUntil(lambda: panel.by.findData("n") > 0, timeout=20_000)
    panel.choose("cue", "n")
    qtbot.waitUntil(lambda: "40 different values" in panel.message, timeout=20_000)
    assert panel.by.isVisible()
