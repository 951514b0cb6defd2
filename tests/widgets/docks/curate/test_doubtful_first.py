"""Curation by exception: the extractor's calls stand, doubtful ones come up with their reason."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from mouse import activate, press_key
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest

from napari_xcebra.io import open_recording
from napari_xcebra.io.opening import Opening
from napari_xcebra.widgets.controls.napari_window import canvas_of
from napari_xcebra.widgets.state.state import role_of
from napari_xcebra.widgets.window import services_of

pytestmark = pytest.mark.gui

REAL = Path(__file__).resolve().parents[4].parent / "shared" / "data" / "suite2p-real-219-cells"
UNDECIDED, ACCEPTED, REJECTED = range(3)
CONTROL = Qt.KeyboardModifier.ControlModifier


@pytest.mark.skipif(not REAL.is_dir(), reason="the recordings of other programs are not at hand")
def test_ten_keys_take_a_real_recording_from_open_to_written(
    make_napari_viewer, curate_dock, qtbot, tmp_path
):
    folder = tmp_path / "plane0"
    folder.mkdir()
    for file in REAL.iterdir():
        shutil.copyfile(file, folder / file.name)
    before = np.load(folder / "iscell.npy")
    viewer = make_napari_viewer(show=True)
    services_of(viewer).state.show(open_recording(folder, rate=30.0), Opening(folder))
    dock = curate_dock(viewer)
    activate(viewer)
    canvas, keys = canvas_of(viewer), []

    def press(key):
        keys.append(key)
        canvas.setFocus()
        press_key(canvas, key)

    qtbot.waitUntil(lambda: dock.queue.doubts is not None)
    press(Qt.Key.Key_E)
    assert not (dock.queue.status == UNDECIDED).any()
    qtbot.waitUntil(lambda: "doubtful" in dock.start.text())
    doubtful = dock.queue.place[1]
    assert 0 < doubtful <= 7
    seen = []
    for _ in range(doubtful):
        cell = dock.queue.cell
        seen.append(cell)
        qtbot.waitUntil(
            lambda cell=cell: dock.card.reason.text() == dock.queue.doubts.reasons[cell]
        )
        press(Qt.Key.Key_Right)
    assert len(set(seen)) == doubtful and all(dock.queue.doubts.reasons[cell] for cell in seen)
    press(Qt.Key.Key_W)
    dialog = dock.finish.dialog
    qtbot.waitUntil(lambda: dialog.isVisible() and dialog.write_button.isEnabled())
    keys.append(Qt.Key.Key_Return)
    press_key(dialog, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: (folder / "iscell.npy.original").exists() or not dialog.isVisible())
    np.testing.assert_array_equal(np.load(folder / "iscell.npy"), before)
    assert len(keys) <= 10
    services_of(viewer).close()


def test_space_flips_and_goes_on_and_everything_is_undone_in_steps(dock_in_front, qtbot):
    dock = dock_in_front
    canvas = canvas_of(dock.state.viewer)
    qtbot.waitUntil(lambda: dock.queue.doubts is not None)
    calls = np.asarray(dock.state.recording.accepted)
    canvas.setFocus()
    press_key(canvas, Qt.Key.Key_E)
    status = dock.queue.status
    np.testing.assert_array_equal(status == ACCEPTED, calls)
    assert dock.queue.choice.order == "doubt" or dock.queue.doubts.count == 0
    dock.queue.choice = type(dock.queue.choice)(order="id")
    dock.queue.go_to(0)
    press_key(canvas, Qt.Key.Key_Space)
    assert dock.queue.status[0] == (REJECTED if calls[0] else ACCEPTED)
    assert dock.curations.current.by(0) == "hand"
    # a button that was clicked is not pressed by the key that flips
    QTest.mouseClick(dock.decide.buttons["next"], Qt.MouseButton.LeftButton)
    cell = dock.queue.cell
    press_key(dock.decide.buttons["next"], Qt.Key.Key_Space)
    assert dock.curations.current.by(cell) == "hand"
    for _ in range(3):
        press_key(canvas, Qt.Key.Key_Z, CONTROL)
    assert not dock.queue.status.any()


def test_a_range_of_a_property_narrows_the_queue_colours_the_field_and_selects(dock, qtbot):
    state, row = dock.state, dock.property_row
    dock.queue_fold.unfolded = True
    qtbot.waitUntil(lambda: row.column.isEnabled())
    names = [row.column.itemData(i) for i in range(row.column.count())]
    assert {"", "x", "y"} <= set(names)
    row.column.setCurrentIndex(names.index("x"))
    row.column.activated.emit(names.index("x"))
    x = dock.queue.properties["x"]
    middle = float(np.median(x))
    row.slider.setValue((middle, row.slider.maximum()))
    np.testing.assert_array_equal(np.sort(dock.queue.queue.cells), np.flatnonzero(x >= middle))
    qtbot.waitUntil(lambda: row.count.text().startswith(f"{(x >= middle).sum()} of {len(x)}"))
    row.select.click()
    np.testing.assert_array_equal(np.sort(state.selection), np.flatnonzero(x >= middle))
    row.paint.click()
    (layer,) = [layer for layer in state.viewer.layers if role_of(layer) == "property"]
    assert layer.name.startswith("x: ")
    colors = np.array([layer.colormap.map(int(i) + 1) for i in np.argsort(x)[[0, -1]]])
    assert not np.allclose(*colors)
    row.paint.click()
    assert not [layer for layer in state.viewer.layers if role_of(layer) == "property"]
    row.column.activated.emit(0)
    assert len(dock.queue.queue) == len(x)


def test_a_proposal_is_shown_with_its_reliability_and_applied_in_one_step(dock_in_front, qtbot):
    dock = dock_in_front
    state, panel = dock.state, dock.proposal
    dock.proposal_fold.unfolded = True
    dock._study()
    qtbot.waitUntil(lambda: "12 decisions" in panel.sentence.text())
    truth = np.asarray(state.recording.accepted)
    for cell in [*range(12), 30, 31, 32]:
        # the junk of this field is rejected, with two of the cells so that it has four of a kind
        said = "accepted" if truth[cell] and cell > 1 else "rejected"
        dock.curations.act(lambda curation, cell=cell, said=said: curation.decide(cell, said))
    dock._study()
    qtbot.waitUntil(lambda: "15 decisions" in panel.sentence.text())
    assert panel.curve._points[:, 2].sum() == 15
    dock.queue.go_to(20)
    qtbot.waitUntil(lambda: "Proposal: " in dock.card.reason.text())
    before = dock.queue.status
    panel.limit.setValue(60)
    changes = [int(side.sum()) for side in dock.services.checks.proposal.sides(0.6, before)]
    assert panel.apply.text() == f"Accept {changes[0]}, reject {changes[1]}" and sum(changes)
    assert not (dock.queue.status != before).any()  # nothing is applied before it is asked for
    panel.apply.click()
    assert (dock.queue.status != before).sum() == sum(changes)
    entry = dock.curations.current.journal
    assert entry.n_steps == 16
    dock.act("undo")
    np.testing.assert_array_equal(dock.queue.status, before)


def test_merged_cells_are_one_cell_until_they_are_taken_apart(dock, qtbot):
    state = dock.state
    plain = state.recording
    state.select([3, 7])
    dock._refresh()
    dock.many_fold.unfolded = True
    assert dock.selection.merge.text().startswith("Merge 2 cells")
    dock.act("merge")
    keeper = int(state.selection[0])
    part = 10 - keeper
    merged = state.recording
    sizes = dock.state.current.shapes.sizes
    assert sizes[keeper] > np.bincount(plain.footprints.cell)[keeper]
    weights = np.bincount(plain.footprints.cell)[[keeper, part]].astype(float)
    mean = np.asarray(plain.traces)[:, [keeper, part]] @ (weights / weights.sum())
    np.testing.assert_allclose(np.asarray(merged.traces)[:, keeper], mean, rtol=1e-4, atol=1e-5)
    others = np.setdiff1d(np.arange(plain.n_cells), [keeper])
    np.testing.assert_array_equal(merged.traces[:, others], plain.traces[:, others])
    accepted = dock.curations.accepted(state.current)
    assert accepted[keeper] and not accepted[part]
    dock._refresh()
    assert f"merged with {plain.cell_ids[part]}" in dock.card.title.text()
    assert dock.selection.merge.text().startswith("Take the merged cell apart")
    dock.act("merge")
    assert state.recording.traces is plain.traces or np.array_equal(
        state.recording.traces, plain.traces
    )
    assert dock.curations.accepted(state.current)[[keeper, part]].all()
    for _ in range(2):
        dock.act("undo")
    np.testing.assert_array_equal(state.recording.traces, plain.traces)
    assert not dock.queue.status.any()
