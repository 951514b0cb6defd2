"""Deciding on cells by hand: keys, many at once, blind, journals, and nothing left behind."""

from dataclasses import replace

import numpy as np
import pytest
from mouse import event, press_key, type_text
from napari.utils.colormaps.standardize_color import transform_color
from napari.utils.interactions import (
    mouse_move_callbacks,
    mouse_press_callbacks,
    mouse_release_callbacks,
)
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import (
    QApplication,
    QMessageBox,
    QShortcut,
)
from scored import METHOD, scored_recording, scored_run

from napari_xcebra.curation import Curation, journals_of
from napari_xcebra.io.decisions.outputs import plan_output
from napari_xcebra.io.formats.suite2p.writing import write_suite2p
from napari_xcebra.io.opening import Opening
from napari_xcebra.widgets.controls.napari_window import (
    canvas_of,
    docked_widget,
    full_name,
    open_dock,
)
from napari_xcebra.widgets.docks.curate.dock import _facts_of
from napari_xcebra.widgets.docks.curate.keys import _chosen_keys
from napari_xcebra.widgets.layers.camera import camera_of
from napari_xcebra.widgets.layers.layers import REJECTED as RED
from napari_xcebra.widgets.state.shown import Shown, chosen_map
from napari_xcebra.widgets.state.state import role_of
from napari_xcebra.widgets.window import services_of

pytestmark = pytest.mark.gui

UNDECIDED, ACCEPTED, REJECTED = range(3)
CONTROL, SHIFT = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier


def status(dock):
    return dock.curations.current.status


def test_keys_decide_and_bring_up_the_next_cell_until_the_dock_is_closed(dock_in_front, qtbot):
    dock = dock_in_front
    state, viewer = dock.state, dock.state.viewer
    canvas = canvas_of(viewer)
    viewer.layers.selection.active = viewer.layers["cells"]
    first, second, third = dock.queue.queue.cells[:3].tolist()
    assert state.selection.tolist() == [first]
    canvas.setFocus()
    press_key(canvas, Qt.Key.Key_1)
    assert dock.curations.current.tags(first) == {"place"}
    press_key(canvas, Qt.Key.Key_A)
    assert state.selection.tolist() == [second]
    # a button of the dock has the focus
    dock.decide.buttons["accept"].setFocus()
    press_key(dock.decide.buttons["accept"], Qt.Key.Key_R)
    assert status(dock)[[first, second, third]].tolist() == [ACCEPTED, REJECTED, UNDECIDED]
    press_key(canvas, Qt.Key.Key_Left)
    assert state.selection.tolist() == [second]
    # up and down step as well where no list wants them
    layers = viewer.window._qt_viewer.layers
    layers.setFocus()
    press_key(layers, Qt.Key.Key_Down)
    assert viewer.layers.selection.active is not viewer.layers["cells"]
    viewer.layers.selection.active = viewer.layers["cells"]
    assert state.selection.tolist() == [second]
    canvas.setFocus()
    press_key(canvas, Qt.Key.Key_Down)
    assert state.selection.tolist() == [third]
    press_key(canvas, Qt.Key.Key_Up)
    assert state.selection.tolist() == [second]
    press_key(canvas, Qt.Key.Key_Z, CONTROL)
    assert status(dock)[second] == UNDECIDED
    press_key(canvas, Qt.Key.Key_Z, CONTROL | SHIFT)
    assert status(dock)[second] == REJECTED
    # in a field of text, letters are letters
    before = status(dock).tolist()
    dock.words.note.setFocus()
    type_text(dock.words.note, "a 1 r")
    press_key(dock.words.note, Qt.Key.Key_Return)
    assert dock.curations.current.note(second) == "a 1 r"
    assert status(dock).tolist() == before
    # behind another tab or closed, all keys are napari's again
    step = viewer.dims.current_step[0]
    open_dock(viewer, "Recording")
    qtbot.waitUntil(lambda: not dock.presence.now, timeout=5_000)
    press_key(canvas, Qt.Key.Key_R)
    open_dock(viewer, "Curate")
    qtbot.waitUntil(lambda: dock.presence.now, timeout=5_000)
    docked_widget(viewer, "Curate").close()
    viewer.layers["cells"].visible = True
    canvas.setFocus()
    press_key(canvas, Qt.Key.Key_Right)
    press_key(canvas, Qt.Key.Key_1)
    press_key(canvas, Qt.Key.Key_A)
    assert viewer.dims.current_step[0] == step + 1
    assert viewer.layers["cells"].mode == "erase"
    assert status(dock).tolist() == before


def drag(viewer, places, modifiers=()):
    """Draw through places in the world; on the canvas, a pixel is ten points."""

    def at(kind, place):
        return event(kind, (0.0, *map(float, place)), 10 * np.array(place[::-1]), modifiers)

    mouse_press_callbacks(viewer, at("mouse_press", places[0]))
    for place in places[1:]:
        mouse_move_callbacks(viewer, at("mouse_move", place))
    mouse_release_callbacks(viewer, at("mouse_release", places[-1]))


def test_cells_drawn_around_are_decided_on_and_undone_together(dock):
    state, area = dock.state, services_of(dock.state.viewer).lasso
    centers = state.current.centers
    camera = camera_of(state.viewer)
    dock.act("rectangle")
    assert not camera.mouse_pan
    drag(state.viewer, [(0, 0), (20, 20), (48, 96)])
    upper = np.flatnonzero(centers[:, 0] < 48)
    assert sorted(state.selection) == upper.tolist()
    assert area.form is None and camera.mouse_pan
    dock.act("lasso")
    drag(state.viewer, [(49, 0), (49, 96), (96, 96), (96, 0)], ("Shift",))
    around = np.flatnonzero((centers[:, 0] < 48) | (centers[:, 0] > 49))
    assert sorted(state.selection) == around.tolist()
    state.select(upper)
    dock.act("reject")
    assert np.flatnonzero(status(dock) == REJECTED).tolist() == upper.tolist()
    layer = state.layers.one(state.current, "decisions")
    lines, red = layer.data, transform_color(RED)[0]
    np.testing.assert_allclose(layer.edge_color, np.tile(red, (len(lines), 1)), atol=0.01)
    apart = np.linalg.norm(lines[:, None, 0] - centers[None], axis=2)
    assert set(apart.argmin(axis=1)) <= set(upper)
    # smooth: the borders of pixels run along rows and columns
    assert (np.abs(lines[:, 1]).min(axis=1) > 0.05).mean() > 0.3
    dock.act("undo")
    assert not status(dock).any()


def test_the_table_of_the_attribution_dock_follows_decisions(viewer, state, curate_dock):
    state.show(scored_recording())
    state.add_run(scored_run("run 1"))
    state.shown = Shown(run="run 1", factor="place", method=METHOD)
    dock = curate_dock(viewer)
    open_dock(viewer, "Attribution")
    table = viewer.window.dock_widgets[full_name("Attribution")].scores.table
    cell = int(np.flatnonzero(state.recording.accepted)[0])
    dock.curations.act(lambda curation: curation.decide([cell], "rejected"))
    table.accepted_only.setChecked(True)
    assert cell not in table.model.cells
    dock.act("undo")
    assert cell in table.model.cells


def test_blind_judging_leaves_no_score_to_be_seen_until_it_is_revealed(dock, qtbot):
    state, viewer = dock.state, dock.state.viewer
    layer = next(x for x in viewer.layers if role_of(x) == "scores")
    dock.queue.choice = replace(dock.queue.choice, order="score")
    colors = layer.colormap.colors.copy()
    dock.deciding.accept_above()
    dock.judge_blind(True)
    qtbot.waitUntil(lambda: dock.card.scores.text == "Scores are hidden", timeout=5_000)
    assert dock.queue.choice.order == "random"
    assert state.scores is None
    assert not layer.visible
    lines = state.layers.one(state.current, "decisions")
    lines.visible = True
    assert not len(lines.data)  # who was accepted by threshold is above it
    assert "0 accepted" in dock.tally.counts.text()
    assert layer.features["score"].isna().all()
    assert len(np.unique(layer.colormap.colors[1:], axis=0)) == 1
    assert not dock.selection.accept_above.isEnabled()
    viewer.mouse_over_canvas = True
    viewer.cursor.position = (0.0, *state.current.centers[3])
    for active in viewer.layers:
        viewer.layers.selection.active = active
        viewer.status = viewer._calc_status_from_cursor()[0]
        assert "0.09" not in viewer.status["coordinates"]  # the score of cell 3
        assert "score" not in viewer.status["coordinates"]
    selected = chosen_map(state).above(0.0)
    for cells, decision in ((selected, "accepted"), (~selected, "rejected")):
        dock.curations.act(lambda c, cells=cells, d=decision: c.decide(np.flatnonzero(cells), d))
    assert "κ" not in dock.agreement.sentence.text()
    dock.judge_blind(False)
    qtbot.waitUntil(lambda: "κ = 1.00" in dock.agreement.sentence.text(), timeout=5_000)
    dock.act("close up")  # and back to the whole field
    assert layer.visible
    np.testing.assert_allclose(layer.colormap.colors, colors)


def test_a_second_window_is_told_and_may_look_or_keep_its_own(
    dock, make_napari_viewer, scored, small_field, qtbot, curate_dock
):
    dock.act("accept")
    other = make_napari_viewer()
    state = services_of(other).state
    scored(state)
    second = curate_dock(other)
    assert "1 decision by" in second.journal.offer.text
    second.act("reject")  # before anything was chosen
    assert not status(second).any()
    second.journal.go_on.click()
    qtbot.waitUntil(lambda: "another window" in second.journal.offer.text, timeout=5_000)
    second.journal.look.click()
    assert status(second).sum() == 1
    second.act("reject")
    assert "no decision can be made" in second.notice.text
    second.curations.curator = "Ben"
    second.curations.keep_own()
    second.act("reject")
    assert sorted(np.unique(status(second))) == [UNDECIDED, REJECTED]
    assert len(journals_of(small_field)) == 2
    path = str(dock.curations.current.journal.path)
    second.agreement.compared.emit(path)
    assert "agree on 0 % of 1 cells" in second.agreement.other.text
    services_of(state.viewer).close()


def test_decisions_are_there_again_after_the_recording_was_closed(dock, scored, qtbot):
    state, cell = dock.state, dock.queue.cell
    dock.act("accept")
    state.forget(state.current)
    scored(state)
    qtbot.waitUntil(lambda: dock.journal.go_on.isVisibleTo(dock), timeout=5_000)
    assert "1 decision" in dock.journal.offer.text
    (before,) = journals_of(state.recording)
    dock.journal.anew.click()
    assert not status(dock).any()
    dock.queue.step_on()
    dock.act("reject")
    assert len(journals_of(state.recording)) == 2
    dock.curations.go_on(before)
    assert np.flatnonzero(status(dock)).tolist() == [cell]


def test_decisions_are_previewed_written_to_suite2p_and_restored(
    viewer, state, small_field, tmp_path, qtbot, curate_dock
):
    folder = write_suite2p(small_field, tmp_path / "suite2p" / "plane0")
    opening = Opening(folder)
    state.show(opening.open(), opening)
    dock = curate_dock(viewer)
    cell = dock.queue.cell
    dock.act("reject")
    assert (folder / "napari-xcebra" / "napari-xcebra-curation.jsonl").exists()
    before = np.load(folder / "iscell.npy")
    dialog = dock.finish.open_dialog()
    assert dialog.kinds == ["suite2p"]
    assert "not" in dialog.boxes["nwb"].toolTip() and not dialog.boxes["nwb"].isEnabled()
    qtbot.waitUntil(dialog.write_button.isEnabled, timeout=10_000)
    assert str(folder / "iscell.npy") in dialog.preview.toPlainText()
    np.testing.assert_array_equal(np.load(folder / "iscell.npy"), before)
    dialog.write()
    qtbot.waitUntil(lambda: dock.finish.undo.isVisibleTo(dock), timeout=10_000)
    written = np.load(folder / "iscell.npy")
    assert np.flatnonzero(written[:, 0] != before[:, 0]).tolist() == [cell]
    dock.finish.restore()
    qtbot.waitUntil(lambda: "Restored" in dock.notice.text, timeout=10_000)
    np.testing.assert_array_equal(np.load(folder / "iscell.npy"), before)
    dock.finish.add_layer()
    labels = viewer.layers[-2] if role_of(viewer.layers[-1]) else viewer.layers[-1]
    assert cell + 1 not in labels.data


def test_what_was_written_long_ago_is_put_back_only_once_the_user_says_so(
    viewer, state, small_field, tmp_path, qtbot, curate_dock
):
    folder = write_suite2p(small_field, tmp_path / "suite2p" / "plane0")
    before = np.load(folder / "iscell.npy")
    recording = Opening(folder).open()
    decided = Curation(recording.cell_ids)
    decided.decide([4], "rejected")
    after = decided.accepted(np.asarray(recording.accepted))
    plan_output("suite2p", recording, folder, after, decided.table()).write()
    opening = Opening(folder)
    state.show(opening.open(), opening)
    dock = curate_dock(viewer)
    put_back = next(a for a in dock.finish.save.menu().actions() if "Restore" in a.text())
    for answer, expected in (("Cancel", before[4, 0] - 1), ("Put back", before[4, 0])):
        put_back.trigger()
        (question,) = (q for q in dock.finish.findChildren(QMessageBox) if q.isVisible())
        button = next(b for b in question.buttons() if b.text() == answer)
        qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
        if answer == "Put back":
            qtbot.waitUntil(lambda: "Restored" in dock.notice.text)
        assert np.load(folder / "iscell.npy")[4, 0] == expected


def test_decisions_of_an_earlier_extraction_are_offered_and_taken_over(
    viewer, state, small_field, tmp_path, qtbot, curate_dock
):
    folder = write_suite2p(small_field, tmp_path / "suite2p" / "plane0")
    recording = Opening(folder).open()
    before = Curation(recording.cell_ids)
    before.decide([4], "rejected")
    after = before.accepted(np.asarray(recording.accepted))
    plan_output("suite2p", recording, folder, after, before.table()).write()
    # opened anew, the file says what we wrote
    opening = Opening(folder)
    opened = state.show(opening.open(), opening)
    dock = curate_dock(viewer)
    assert not np.asarray(opened.recording.accepted)[4] and dock.curations.extractor(opened)[4]
    assert "Extractor: a cell" in _facts_of(state, dock.curations, np.array([4])).extractor
    assert dock.curations.accepted(opened)[4]  # undecided cells are as the extractor says
    qtbot.waitUntil(lambda: dock.journal.recall.isVisibleTo(dock), timeout=5_000)
    assert "napari-xcebra-decisions.csv" in dock.journal.offer.text
    dock.journal.recall.click()
    assert np.flatnonzero(status(dock)).tolist() == [4]
    assert "Carried over 1 decision." in dock.notice.text
    dock._refresh()
    assert not dock.journal.recall.isVisibleTo(dock)


def test_outputs_that_are_ticked_together_are_written_together_or_not_at_all(
    viewer, state, small_field, tmp_path, qtbot, curate_dock
):
    folder = write_suite2p(small_field, tmp_path / "suite2p" / "plane0")
    opening = Opening(folder)
    state.show(opening.open(), opening)
    dock = curate_dock(viewer)
    dock.act("reject")
    before = np.load(folder / "iscell.npy")
    dialog = dock.finish.open_dialog()
    dialog.boxes["csv"].click()
    qtbot.waitUntil(lambda: len(dialog._plans) == 2, timeout=10_000)
    (table,) = (change.path for change in dialog._plans[1].files)
    table.write_text("of another program\n")  # since the preview
    dialog.write()
    qtbot.waitUntil(lambda: "changed by another program" in dialog.notice.text, timeout=10_000)
    np.testing.assert_array_equal(np.load(folder / "iscell.npy"), before)
    dialog.show_preview()
    qtbot.waitUntil(dialog.write_button.isEnabled, timeout=10_000)
    dialog.write()
    qtbot.waitUntil(lambda: dock.finish.undo.isVisibleTo(dock), timeout=10_000)
    assert not np.array_equal(np.load(folder / "iscell.npy"), before)
    dock.finish.restore()
    qtbot.waitUntil(lambda: "Restored" in dock.notice.text, timeout=10_000)
    np.testing.assert_array_equal(np.load(folder / "iscell.npy"), before)
    assert table.read_text() == "of another program\n"


def test_keys_are_changed_in_the_dock_conflicts_are_refused_and_kept(dock, viewer, curate_dock):
    keys = dock.keys.list
    keys.buttons["accept"].click()
    QTest.keyClick(keys.buttons["accept"], Qt.Key.Key_R)
    assert "already means “Reject" in keys.notice.text
    keys.buttons["accept"].click()
    QTest.keyClick(keys.buttons["accept"], Qt.Key.Key_Y)
    assert _chosen_keys()["accept"] == "Y"
    assert "Y" in dock.decide.buttons["accept"].text()
    dock.keys.tags.setText("interneuron, place, place")
    dock.keys.tags.editingFinished.emit()
    viewer.window.remove_dock_widget(dock)
    QApplication.sendPostedEvents(None, 52)  # deferred deletion
    again = curate_dock(viewer)
    assert again is not dock
    assert "Y" in again.decide.buttons["accept"].text()
    assert again.keys.tag_names == ("interneuron", "place")
    # those of the dock that was removed went with it
    shortcuts = viewer.window._qt_window.findChildren(QShortcut)
    assert [s.key().toString() for s in shortcuts].count("Y") == 1
    again.keys.list.defaults.click()
    assert _chosen_keys()["accept"] == "A"
