"""The Recording dock opens in the background and says what it found."""

import os
import signal
import threading
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import h5py
import numpy as np
import pandas as pd
import psutil
import pytest
import tifffile
from mouse import activate, press_key, type_text
from napari._qt.qt_viewer import QtViewer
from qtpy.QtCore import QMimeData, QPoint, QPointF, Qt, QTimer, QUrl
from qtpy.QtGui import QDragEnterEvent, QDropEvent, QWheelEvent
from qtpy.QtTest import QTest
from qtpy.QtWidgets import (
    QApplication,
    QFileDialog,
    QMessageBox,
    QProgressDialog,
    QPushButton,
)

from napari_xcebra.errors import InputError
from napari_xcebra.io import save_recording
from napari_xcebra.jobs import limits
from napari_xcebra.readers import get_reader, read
from napari_xcebra.widgets.controls.napari_window import docked_widget
from napari_xcebra.widgets.docks.recording import opener
from napari_xcebra.widgets.docks.recording.dock import RecordingDock
from napari_xcebra.widgets.docks.recording.panels import KNOWN, RANGE
from napari_xcebra.widgets.services.reading import close_reader, reader_of
from napari_xcebra.widgets.state.preferences import recent_paths
from napari_xcebra.widgets.state.state import role_of
from napari_xcebra.widgets.window import services_of

pytestmark = [pytest.mark.gui, pytest.mark.usefixtures("warm_child")]


@pytest.fixture
def dock(viewer) -> RecordingDock:
    dock = RecordingDock(viewer)
    viewer.window.add_dock_widget(dock, name="Recording")
    return dock


@pytest.fixture
def saved(small_field, tmp_path):
    return save_recording(small_field, tmp_path / "mouse 7.npz")


@pytest.fixture
def arrays(tmp_path):
    """Traces and a behaviour table at 20 samples per second, heading as a plain number."""
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "traces.npz", traces=rng.random((300, 8)), rate=10.0)
    times = np.arange(600) / 20
    pd.DataFrame({"time": times, "way": (40 * times) % 360, "speed_cm_s": rng.random(600)}).to_csv(
        tmp_path / "behaviour.csv", index=False
    )
    return tmp_path


def wait_until_read(dock, qtbot):
    qtbot.waitUntil(lambda: not dock.is_busy, timeout=20_000)


def open_path(dock, qtbot, path, *behavior):
    dock.form.path.path = path
    dock.form.behavior.paths = behavior
    dock.open()
    if not dock.question.isHidden():
        dock.question.add.click()
    wait_until_read(dock, qtbot)


def drop(widget, *paths, holding=Qt.KeyboardModifier.NoModifier):
    """What Qt does when files are let go over a widget."""
    files = QMimeData()
    files.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    how = (Qt.DropAction.CopyAction, files, Qt.MouseButton.LeftButton, holding)
    # Qt lets go over the widget that has welcomed the files
    QApplication.sendEvent(widget, QDragEnterEvent(QPoint(5, 5), *how))
    QApplication.sendEvent(widget, QDropEvent(QPointF(5, 5), *how))


def test_at_first_it_says_what_to_do_and_why_open_is_off(dock):
    assert "drop a recording, or open a sample" in dock.next.sentence.text()
    assert not dock.empty.isHidden() and dock.top.isHidden()
    assert not dock.fold.unfolded and dock.fold.title == "Choose files and settings"
    assert not dock.open_button.isEnabled()
    assert dock.open_button.toolTip() == "Choose a recording first."
    assert dock.found.isHidden()
    assert dock.next.button.isHidden()


def test_opening_shows_layers_facts_variables_and_the_next_step(dock, qtbot, saved):
    open_path(dock, qtbot, saved)
    roles = {role_of(layer) for layer in dock.state.viewer.layers}
    assert roles == {"image", "movie", "activity", "cells", "outlines"}
    assert dock.state.current.opening.path == saved
    assert dock.found.facts.facts["Cells"].startswith("30 accepted of 33")
    assert dock.found.facts.facts["Duration"] == "1 min"
    assert dock.found.table.rowCount() == 3
    assert "• Imaged as ΔF/F" in dock.found.notes.text()
    assert not dock.fold.unfolded and dock.empty.isHidden()
    assert dock.next.sentence.text() == "Next: choose variables in Train."
    assert not dock.next.button.isHidden()
    qtbot.waitUntil(lambda: dock.found.table.item(0, KNOWN) is not None, timeout=10_000)
    assert dock.found.table.item(0, KNOWN).text() == "100 %"
    assert dock.found.table.item(1, RANGE).text() == "0.01 … 6.26 rad"


def test_reading_does_not_hold_up_the_window(dock, qtbot, saved, monkeypatch):
    go, seen = threading.Event(), []
    reads = opener.read

    def slow(job, opening):
        seen.append(threading.current_thread() is threading.main_thread())
        assert go.wait(120)
        return reads(job, opening)

    monkeypatch.setattr(opener, "read", slow)
    dock.form.path.path = saved
    dock.open()
    assert dock.is_busy
    assert not dock.busy.isHidden()
    assert not dock.open_button.isEnabled()
    go.set()
    wait_until_read(dock, qtbot)
    assert seen == [False]
    assert dock.state.recording is not None
    assert dock.busy.isHidden()


def test_what_is_read_after_cancelling_is_thrown_away(dock, qtbot, saved, monkeypatch):
    go, done = threading.Event(), threading.Event()
    reads = opener.read

    def slow(job, opening):
        assert go.wait(120)
        done.set()
        return reads(job, opening)

    monkeypatch.setattr(opener, "read", slow)
    dock.form.path.path = saved
    dock.open()
    qtbot.mouseClick(dock.cancel_button, Qt.MouseButton.LeftButton)
    assert not dock.is_busy
    assert dock.open_button.isEnabled()
    go.set()
    qtbot.waitUntil(done.is_set, timeout=20_000)
    qtbot.wait(100)
    assert dock.state.opened == []


def test_a_file_that_cannot_be_used_gives_its_sentence_and_nothing_else(dock, qtbot, tmp_path):
    (tmp_path / "damaged.npz").write_bytes(b"PK\x03\x04 not an archive")
    open_path(dock, qtbot, tmp_path / "damaged.npz")
    assert "damaged.npz" in dock.notice.text
    assert "Traceback" not in dock.notice.text
    assert dock.state.opened == []
    assert dock.fold.unfolded


def test_a_path_that_is_not_there_is_told(dock, qtbot, tmp_path):
    open_path(dock, qtbot, tmp_path / "nowhere")
    assert "There is no recording" in dock.notice.text


def test_a_recording_without_behaviour_asks_for_it_and_takes_it_in_place(dock, qtbot, arrays):
    open_path(dock, qtbot, arrays / "traces.npz")
    first = dock.state.current
    assert "add a behaviour file" in dock.next.sentence.text()
    assert dock.fold.unfolded  # where it is added
    assert dock.open_button.text() == "Open again"
    open_path(dock, qtbot, arrays / "traces.npz", arrays / "behaviour.csv")
    assert dock.state.opened == [first]
    assert set(first.recording.behavior) == {"way", "speed_cm_s"}
    assert "Train" in dock.next.sentence.text()
    assert not dock.fold.unfolded
    assert len([x for x in dock.state.viewer.layers if role_of(x) == "cells"]) == 1


def test_behaviour_that_is_added_while_the_recording_is_read_stays_chosen(dock, qtbot, arrays):
    dock.form.path.path = arrays / "traces.npz"
    dock.open()
    dock.form.behavior.add([arrays / "behaviour.csv"])
    qtbot.waitUntil(lambda: not dock.is_busy, timeout=20_000)
    assert dock.form.behavior.paths == (arrays / "behaviour.csv",)


def test_a_table_is_read_as_trials_if_the_user_says_so(dock, qtbot, arrays):
    table = pd.DataFrame({"onset": [1.0, 4.0, 7.0], "side": ["left", "right", "left"]})
    table.to_csv(arrays / "session.csv", index=False)
    files = dock.form.behavior
    files.paths = [arrays / "session.csv"]
    files.list.item(0).setSelected(True)
    read_as = next(b for b in files.findChildren(QPushButton) if b.text() == "Read as")
    next(a for a in read_as.menu().actions() if a.text().startswith("Trials")).trigger()
    assert files.list.item(0).text() == "session.csv (trials)"
    dock.form.path.path = arrays / "traces.npz"
    dock.open()
    wait_until_read(dock, qtbot)
    assert len(dock.state.current.recording.trials) == 3
    assert dock.state.current.opening.trials == (arrays / "session.csv",)


def test_a_table_that_is_dropped_alone_may_be_behaviour(dock, arrays):
    dock.form.take([str(arrays / "behaviour.csv")])
    assert dock.form.path.path == arrays / "behaviour.csv"
    assert "If it is behaviour" in dock.notice.text
    dock.form.take([str(arrays)])
    assert dock.form.path.path == arrays
    assert dock.form.behavior.paths == (arrays / "behaviour.csv",)


def test_a_recording_and_its_behaviour_are_told_apart_in_any_order(dock, arrays, tmp_path):
    dock.form.take([str(arrays / "behaviour.csv"), str(tmp_path)])
    assert dock.form.path.path == tmp_path
    assert dock.form.behavior.paths == (arrays / "behaviour.csv",)


def test_another_kind_of_traces_takes_the_place_of_the_first_with_its_own_contrast(
    dock, qtbot, arrays
):
    open_path(dock, qtbot, arrays / "traces.npz")
    (activity,) = (x for x in dock.state.viewer.layers if role_of(x) == "activity")
    dock.form.settings.value = dock.form.settings.value.__class__(traces="zscored")
    open_path(dock, qtbot, arrays / "traces.npz")
    assert len(dock.state.opened) == 1
    assert activity.contrast_limits[1] > 1.3
    np.testing.assert_allclose(np.asarray(dock.state.recording.traces).std(0), 1, atol=1e-3)


def test_choosing_a_kind_changes_the_recording_and_reads_angles_anew(dock, qtbot, arrays):
    open_path(dock, qtbot, arrays / "traces.npz", arrays / "behaviour.csv")
    assert dock.state.recording.behavior["way"].kind == "continuous"
    changes = []
    dock.state.recording_changed.connect(lambda: changes.append(1))
    dock.found.table.kind_box("way").textActivated.emit("circular")
    assert dock.state.recording.behavior["way"].kind == "circular"
    assert dock.state.current.opening.kinds == {"way": "circular"}
    assert changes
    # the mean of 358° and 2° is 0°, not 180°
    qtbot.waitUntil(lambda: len(changes) == 2, timeout=20_000)
    way = np.deg2rad(dock.state.recording.behavior["way"].values[:, 0])
    turns = np.rad2deg(np.angle(np.exp(1j * np.diff(way))))
    assert np.nanmax(np.abs(turns - 4)) < 1
    assert dock.found.table.kind_box("way").currentText() == "circular"


def test_recordings_are_switched_and_only_one_is_in_view(dock, qtbot, saved, arrays):
    open_path(dock, qtbot, saved)
    open_path(dock, qtbot, arrays / "traces.npz")
    assert [dock.opened_box.itemText(i) for i in range(2)] == ["mouse 7.npz", "traces.npz"]
    first, second = dock.state.opened
    layers = dock.state.viewer.layers
    assert not any(layer in layers for layer in dock.state.layers.of(first))
    dock.opened_box.activated.emit(0)
    assert dock.state.current is first
    in_view = [layer.name for layer in dock.state.layers.of(first) if layer.visible]
    assert in_view == ["mean image", "movie", "other ROIs", "cells"]
    assert not any(layer in layers for layer in dock.state.layers.of(second))
    assert dock.form.path.path == saved


def test_closing_asks_only_if_runs_would_be_lost(dock, qtbot, state, small_field, monkeypatch):
    asked = []

    def question(*_):
        asked.append(1)
        return QMessageBox.StandardButton.No

    monkeypatch.setattr(QMessageBox, "question", question)
    forgotten = []
    monkeypatch.setattr(state, "forget", forgotten.append)
    opened = state.show(small_field)
    dock.close_recording()
    assert forgotten == [opened]
    assert not asked
    opened.runs.append(SimpleNamespace(name="run 1", fit=object()))
    dock.close_recording()
    assert asked
    assert forgotten == [opened]


def test_layers_that_were_removed_can_be_shown_again(dock, state, small_field):
    opened = state.show(small_field)
    assert dock.layers_button.isHidden()
    (cells,) = (x for x in state.viewer.layers if role_of(x) == "cells")
    state.viewer.layers.remove(cells)
    assert not dock.layers_button.isHidden()
    dock.layers_button.click()
    assert dock.layers_button.isHidden()
    names = {layer.name for layer in state.layers.of(opened)}
    assert names == {
        "activity", "cells", "maximum projection", "mean image", "movie", "other ROIs"
    }  # fmt: skip


def test_a_sample_opens_without_any_file(dock, qtbot, small_field, monkeypatch):
    sample = opener.SAMPLES["navigating_animal"]
    quick = sample.__class__(sample.title, sample.help, lambda: small_field)
    monkeypatch.setitem(opener.SAMPLES, "navigating_animal", quick)
    dock.empty.sample.menu().actions()[0].trigger()
    wait_until_read(dock, qtbot)
    assert dock.state.recording is small_field


def test_what_was_opened_last_is_offered_first(dock, qtbot, viewer, saved, arrays):
    open_path(dock, qtbot, arrays / "traces.npz")
    open_path(dock, qtbot, saved)
    assert recent_paths() == [str(saved), str(arrays / "traces.npz")]
    another = RecordingDock(viewer)
    viewer.window.add_dock_widget(another, name="Another")
    assert another.form.path.box.itemText(0) == str(saved)


def test_a_recording_that_is_dropped_or_browsed_for_opens_at_once(
    dock, qtbot, saved, arrays, monkeypatch
):
    drop(dock.empty, saved)
    wait_until_read(dock, qtbot)
    assert dock.state.current.opening.path == saved
    dock.close_recording()
    assert not dock.empty.isHidden()
    chosen = str(arrays / "traces.npz")
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (chosen, ""))
    dock.empty._menu.actions()[1].trigger()
    wait_until_read(dock, qtbot)
    assert str(dock.state.current.opening.path) == chosen
    dock.close_recording()
    dock.empty._list_choices()
    names = [action.text() for action in dock.empty._menu.actions()]
    assert names == ["Folder…", "File…", "", *(each[-61:] for each in names[3:])]
    assert names[3].endswith("traces.npz") and len(names) == 5


def test_dropped_files_find_their_place(dock, qtbot, saved, arrays):
    drop(dock, saved, arrays / "behaviour.csv")
    assert dock.form.path.path == saved
    assert dock.form.behavior.paths == (arrays / "behaviour.csv",)
    wait_until_read(dock, qtbot)
    drop(dock.form.path, arrays / "traces.npz")
    assert dock.form.path.path == arrays / "traces.npz"


@pytest.fixture
def left_to_napari(monkeypatch):
    """Files that were dropped on the image and not taken by the dock."""
    files = []
    monkeypatch.setattr(QtViewer, "_qt_open", lambda self, paths, **_: files.extend(paths))
    return files


def image(viewer):
    """Where napari shows layers; a fixture would keep it beyond the end of the test."""
    return viewer.window._qt_viewer


def test_behaviour_dropped_on_the_image_becomes_that_of_the_open_recording(
    dock, qtbot, arrays, viewer, left_to_napari
):
    open_path(dock, qtbot, arrays / "traces.npz")
    opened = dock.state.current
    assert not dock.state.recording.behavior
    drop(image(viewer), arrays / "behaviour.csv")
    wait_until_read(dock, qtbot)
    assert dock.state.opened == [opened]
    assert set(dock.state.recording.behavior) == {"way", "speed_cm_s"}
    assert dock.notice.text.startswith("Added behaviour.csv to this recording.")
    assert left_to_napari == []


def test_a_movie_dropped_on_the_image_becomes_that_of_the_open_recording(
    dock, qtbot, saved, tmp_path, small_field, viewer, left_to_napari
):
    open_path(dock, qtbot, saved)
    opened = dock.state.current
    frames = [small_field.movie.frame(n) for n in range(small_field.n_frames)]
    (tmp_path / "elsewhere").mkdir()
    movie, picture = tmp_path / "elsewhere" / "movie.tif", tmp_path / "elsewhere" / "picture.tif"
    tifffile.imwrite(movie, np.stack(frames))
    tifffile.imwrite(picture, frames[0])
    drop(image(viewer), picture)
    assert left_to_napari == [str(picture)]
    drop(image(viewer), movie)
    wait_until_read(dock, qtbot)
    assert dock.state.opened == [opened] and dock.form.behavior.paths == ()
    assert dock.state.current.opening.movie == movie
    assert dock.notice.text.startswith("Added movie.tif to this recording.")
    assert dock.found.facts.facts["Movie"].startswith("movie.tif, 96 × 96")
    dock.state.frame = 30
    (layer,) = (x for x in viewer.layers if role_of(x) == "movie")
    qtbot.waitUntil(lambda: np.array_equal(layer._slice.image.raw, frames[30]))
    tifffile.imwrite(movie, np.stack(frames)[:, :50])
    dock.open()
    wait_until_read(dock, qtbot)
    assert "frames of 50 × 96 pixels, but the field of view" in dock.notice.text


def test_a_recording_dropped_on_the_image_is_opened_without_the_behaviour_of_another(
    dock, qtbot, arrays, viewer, left_to_napari, saved
):
    open_path(dock, qtbot, arrays / "traces.npz", arrays / "behaviour.csv")
    drop(image(viewer), saved)
    assert "Replace it with mouse 7.npz" in dock.question.sentence.text()
    dock.question.add.click()
    wait_until_read(dock, qtbot)
    assert [opened.name for opened in dock.state.opened] == [
        "traces.npz",
        "mouse 7.npz",
    ]
    assert dock.form.behavior.paths == ()
    assert "way" not in dock.state.recording.behavior


def test_a_table_dropped_on_the_image_before_any_recording_says_where_it_belongs(
    dock, arrays, viewer, left_to_napari
):
    drop(image(viewer)._welcome_widget, arrays / "behaviour.csv")
    assert "If it is behaviour, drop the recording as well" in dock.notice.text
    assert dock.state.opened == []


def test_pictures_and_tables_of_napari_are_left_to_it(dock, qtbot, arrays, viewer, left_to_napari):
    open_path(dock, qtbot, arrays / "traces.npz")
    points, picture, odd = (arrays / name for name in ("points.csv", "picture.npy", "plain"))
    points.write_text("index,axis-0,axis-1\n0,3,4\n")
    np.save(picture, np.zeros((64, 64)))
    odd.mkdir()
    for path in (points, picture, odd):
        drop(image(viewer), path)
    drop(image(viewer), arrays / "behaviour.csv", picture)
    drop(image(viewer), arrays / "behaviour.csv", holding=Qt.KeyboardModifier.AltModifier)
    names = [path.rsplit("/", 1)[-1] for path in left_to_napari]
    assert names == [
        *("points.csv", "picture.npy", "plain"),
        *("behaviour.csv", "picture.npy", "behaviour.csv"),
    ]
    values_a_frame = arrays / "licks.npy"
    np.save(values_a_frame, np.arange(300) % 7 == 0)
    drop(image(viewer), values_a_frame)
    wait_until_read(dock, qtbot)
    assert set(dock.state.recording.behavior) == {"licks"}


def test_without_the_dock_everything_is_left_to_napari(dock, qtbot, arrays, viewer, left_to_napari):
    gone = []
    dock.destroyed.connect(lambda: gone.append(1))
    viewer.window.remove_dock_widget(dock)
    qtbot.waitUntil(lambda: bool(gone), timeout=5000)
    drop(image(viewer), arrays / "behaviour.csv")
    assert len(left_to_napari) == 1


def test_scrolling_over_a_box_does_not_change_it(dock, qtbot):
    box = dock.form.settings.widget("traces")
    turn = QWheelEvent(
        QPointF(5, 5),
        QPointF(5, 5),
        dock.pos(),
        dock.pos().__class__(0, -120),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(box, turn)
    assert dock.form.settings.value.traces == "auto"


def test_a_closed_dock_is_not_called_any_more(dock, qtbot, viewer, state, small_field):
    calls = []
    dock._show_recording = lambda: calls.append(1)
    gone = []
    dock.destroyed.connect(lambda: gone.append(1))
    viewer.window.remove_dock_widget(dock)
    qtbot.waitUntil(lambda: bool(gone), timeout=5000)
    state.show(small_field)
    assert calls == []


def test_closing_the_dock_while_it_reads_drops_what_is_read(
    dock, qtbot, viewer, state, saved, monkeypatch
):
    go, done = threading.Event(), threading.Event()
    reads = opener.read

    def slow(job, opening):
        assert go.wait(120)
        try:
            return reads(job, opening)
        finally:
            done.set()

    monkeypatch.setattr(opener, "read", slow)
    dock.form.path.path = saved
    dock.open()
    gone = []
    dock.destroyed.connect(lambda: gone.append(1))
    viewer.window.remove_dock_widget(dock)
    qtbot.waitUntil(lambda: bool(gone), timeout=5000)
    go.set()
    qtbot.waitUntil(done.is_set, timeout=20_000)
    qtbot.wait(100)
    assert state.opened == []


def test_what_a_dropped_recording_lacks_is_asked_for_in_the_dock(
    make_napari_viewer, qtbot, tmp_path
):
    viewer = make_napari_viewer(show=True)
    folder = tmp_path / "plane0"
    folder.mkdir()
    for name in ("F", "Fneu", "spks"):
        np.save(folder / f"{name}.npy", np.random.default_rng(0).random((5, 200)))
    pixels = np.arange(4)
    stat = [{"ypix": 9 * i + pixels, "xpix": pixels, "lam": np.ones(4)} for i in range(5)]
    np.save(folder / "stat.npy", np.array(stat, object), allow_pickle=True)
    np.save(folder / "iscell.npy", np.ones((5, 2)))
    with pytest.raises(InputError, match="does not give the frame rate"):
        viewer.open(str(folder), plugin="napari-xcebra")
    dock = docked_widget(viewer, "Recording").widget()
    assert "set “Frame rate (Hz)”, in frames per second, such as 30" in dock.notice.text
    assert dock.empty.isHidden() and dock.focusWidget() is dock.form.settings.widget("rate")
    assert dock.form.path.path == folder
    activate(viewer)
    rate = dock.form.settings.widget("rate")
    type_text(rate, "15")
    press_key(rate, Qt.Key.Key_Return)
    wait_until_read(dock, qtbot)
    assert dock.state.recording.rate == 15.0
    services_of(viewer).close()


def test_whether_to_replace_is_asked_once_though_the_frame_rate_is_missing(dock, qtbot, saved):
    open_path(dock, qtbot, saved)
    bare = saved.with_name("bare.npy")
    np.save(bare, np.random.default_rng(0).random((200, 5)))
    dock.form.path.path = bare
    dock.open()
    dock.question.replace.click()
    wait_until_read(dock, qtbot)
    assert "“Frame rate (Hz)”" in dock.notice.text
    rate = dock.form.settings.widget("rate")
    QTest.keyClicks(rate, "15")
    QTest.keyClick(rate, Qt.Key.Key_Return)
    assert dock.question.isHidden()
    wait_until_read(dock, qtbot)
    assert [opened.name for opened in dock.state.opened] == ["bare.npy"]


def test_a_tick_has_its_title_once(dock):
    assert dock.form.settings.widget("swap_axes").text() == ""


@pytest.fixture
def endless(tmp_path):
    """An NWB file over which libhdf5 loops for ever, holding Python's lock."""
    path = tmp_path / "damaged.nwb"
    with h5py.File(path, "w") as file:
        file.attrs["nwb_version"] = "2.7.0"
    content = bytearray(path.read_bytes())
    heap = content.index(b"GCOL")
    content[heap + 16 : heap + 32] = bytes(16)
    path.write_bytes(content)
    return path


def begun(dock, qtbot):
    """Wait until the file that hangs is being read; returns the process that reads it."""
    reader = reader_of(dock.state.viewer)
    qtbot.waitUntil(lambda: reader.pid is not None, timeout=20_000)
    spent = partial(_computing, reader)
    before = spent()
    qtbot.waitUntil(lambda: spent() > before + 0.5, timeout=20_000)
    return reader.pid


def _computing(reader):
    try:
        return psutil.Process(reader.pid).cpu_times().user
    except (psutil.Error, TypeError):
        return 0.0


def test_a_file_that_would_hang_napari_is_cancelled_and_the_next_one_opens(
    dock, qtbot, endless, saved
):
    dock.form.path.path = endless
    dock.open()
    begun(dock, qtbot)
    assert not dock.cancel_button.isHidden()
    qtbot.mouseClick(dock.cancel_button, Qt.MouseButton.LeftButton)
    assert not dock.is_busy
    assert dock.notice.text == "Stopped."
    open_path(dock, qtbot, saved)
    assert dock.state.current.opening.path == saved


def test_a_process_that_is_killed_while_it_reads_is_told_with_its_file(dock, qtbot, endless, saved):
    dock.form.path.path = endless
    dock.open()
    os.kill(begun(dock, qtbot), signal.SIGKILL)
    wait_until_read(dock, qtbot)
    assert f"Reading {endless} was killed" in dock.notice.text
    open_path(dock, qtbot, saved)
    assert dock.state.current.opening.path == saved


def test_a_file_that_hangs_is_given_up_by_itself(dock, qtbot, endless, monkeypatch):
    monkeypatch.setattr(limits, "COMPUTING", 2.0)
    dock.form.path.path = endless
    dock.open()
    qtbot.waitUntil(lambda: not dock.is_busy, timeout=60_000)
    assert "could not be read within 2 s" in dock.notice.text


def test_a_file_that_hangs_is_cancelled_where_napari_waits_for_it(
    make_napari_viewer, qtbot, endless
):
    viewer = make_napari_viewer(show=True)
    pressed = []

    def press():
        shown = [w for w in QApplication.topLevelWidgets() if isinstance(w, QProgressDialog)]
        for dialog in shown:
            if dialog.isVisible():
                pressed.append(dialog.labelText())
                dialog.findChild(QPushButton).click()

    timer = QTimer()
    timer.timeout.connect(press)
    timer.start(200)
    with pytest.raises(InputError, match="was cancelled"):
        read(str(endless))
    timer.stop()
    assert pressed and "damaged.nwb" in pressed[0]
    assert len(viewer.layers) == 0
    close_reader(viewer)


def test_a_pipe_that_is_dropped_is_left_alone(dock, viewer, tmp_path, left_to_napari):
    os.mkfifo(tmp_path / "pipe.nwb")
    assert get_reader(str(tmp_path / "pipe.nwb")) is None
    drop(viewer.window._qt_viewer, tmp_path / "pipe.nwb")
    assert dock.form.path.path is None


def test_a_pixel_size_that_is_typed_in_gives_a_scale_bar_and_is_remembered(
    dock, qtbot, small_field, tmp_path
):
    path = save_recording(replace(small_field, pixel_size=None), tmp_path / "mouse 8.npz")
    open_path(dock, qtbot, path)
    box, ruler = dock.found.facts.pixel_size, dock.services.scale_bar
    assert box.text() == "unknown" and ruler.place.isEmpty()
    box.selectAll()
    qtbot.keyClicks(box, "0.8")
    assert dock.state.recording.pixel_size is None  # half typed
    qtbot.keyClick(box, Qt.Key.Key_Return)
    assert dock.state.recording.pixel_size == 0.8 and not ruler.place.isEmpty()
    assert dock.found.facts.facts["Field of view"] == "96 × 96 pixels (76.8 × 76.8 µm)"
    dock.state.forget(dock.state.current)
    dock.form.settings.value = replace(dock.form.settings.value, pixel_size=0.0)
    open_path(dock, qtbot, path)
    assert dock.state.recording.pixel_size == 0.8 and box.text() == "0.8 µm"
    # emptied in the form, it is forgotten
    dock.form.settings.value = replace(dock.form.settings.value, pixel_size=0.0)
    open_path(dock, qtbot, path)
    assert dock.state.recording.pixel_size is None and box.text() == "unknown"
