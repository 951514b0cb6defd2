"""Files, colours and menus, used as a biologist does: mouse and keyboard on a real window."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from mouse import activate, drag, press_key, type_text
from napari._qt.dialogs.qt_reader_dialog import QtReaderDialog
from qtpy.QtCore import QPoint, Qt, QTimer
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication, QDialogButtonBox, QFileDialog, QPushButton, QRadioButton
from superqt import QDoubleRangeSlider

from napari_xcebra.io import open_recording
from napari_xcebra.io.opening import Opening
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.learn import FitSettings, fit
from napari_xcebra.runs import Run, now
from napari_xcebra.text import brief
from napari_xcebra.widgets.app.workspace import open_workspace
from napari_xcebra.widgets.controls.napari_window import canvas_of, full_name, main_window
from napari_xcebra.widgets.docks.recording.panels import NAME, RANGE
from napari_xcebra.widgets.state.state import role_of
from napari_xcebra.widgets.window import services_of

pytestmark = [pytest.mark.gui, pytest.mark.usefixtures("warm_child")]
LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def window(make_napari_viewer):
    """A viewer with all docks, as large as a small screen."""
    viewer = make_napari_viewer(show=True)
    viewer.window.resize(1280, 800)
    open_workspace(viewer)
    activate(viewer)
    yield viewer
    services_of(viewer).close()


def dock_of(viewer, name):
    return viewer.window.dock_widgets[full_name(name)]


def press(widget, at=None):
    QApplication.processEvents()  # what was shown just now is laid out first
    assert widget.isVisible() and widget.isEnabled()
    QTest.mouseClick(widget, LEFT, pos=at or widget.rect().center())


def press_button(parent, text):
    press(next(button for button in parent.findChildren(QPushButton) if button.text() == text))


def choose_in_menu(viewer, *path):
    """Go through the menus of the window with the mouse."""
    menu = main_window(viewer).menuBar()
    for text in path:
        action = next(a for a in menu.actions() if a.text().replace("&", "").startswith(text))
        press(menu, menu.actionGeometry(action).center())
        menu = action.menu()


def drag_upper_limit(viewer, layer, share):
    """Drag the right handle of napari's contrast slider to a share of its length."""
    viewer.layers.selection.active = layer
    QApplication.processEvents()
    sliders = main_window(viewer).findChildren(QDoubleRangeSlider)
    slider = next(found for found in sliders if found.isVisible())
    low, high = slider.minimum(), slider.maximum()
    now = (slider.value()[1] - low) / (high - low)
    middle, places = slider.height() // 2, (now, share)
    begin, end = (QPoint(round(6 + p * (slider.width() - 12)), middle) for p in places)
    QTest.mousePress(slider, LEFT, pos=begin)
    drag(slider, end)
    QTest.mouseRelease(slider, LEFT, pos=end)
    QApplication.processEvents()


def with_speed_at_chance(recording):
    """A short run in which speed is at chance, though with a p that many call significant."""
    quick = FitSettings(steps=5, batch_size=64, time_latents=1, seed=0)
    trained = fit(recording, {"place": ["position"], "speed": ["speed"]}, quick)
    place, speed = (trained.goodness[name] for name in ("place", "speed"))
    known = {
        "place": replace(place, above_chance=True, p=0.001, untested=""),
        "speed": replace(speed, above_chance=False, p=0.04, untested=""),
    }
    return replace(trained, goodness=trained.goodness | known)


@pytest.fixture
def session(tmp_path):
    """Traces, two tables with a column of the same name, and trials with gaps between them."""
    rng = np.random.default_rng(0)
    np.save(tmp_path / "traces.npy", rng.random((900, 6)).astype(np.float32))
    number = np.where(np.arange(900) % 15 < 10, 1 + np.arange(900) // 15, 0)
    side = np.where(number % 2, "left", "right")
    camera = {"speed": rng.random(900), "trial": number, "side": side}
    pd.DataFrame(camera).to_csv(tmp_path / "camera.csv", index=False)
    pd.DataFrame({"speed": rng.random(900)}).to_csv(tmp_path / "wheel.csv", index=False)
    return tmp_path


def test_two_tables_open_with_all_columns_each_trial_once_and_words_as_they_are(
    window, session, qtbot, monkeypatch
):
    dock = dock_of(window, "Recording")
    press(dock.fold.button)
    type_text(dock.form.path.box.lineEdit(), str(session / "traces.npy"))
    rate = dock.form.settings.widget("rate").lineEdit()
    rate.selectAll()
    type_text(rate, "10")
    tables = [str(session / f"{name}.csv") for name in ("camera", "wheel")]
    monkeypatch.setattr(QFileDialog, "getOpenFileNames", lambda *_, **__: (tables, ""))
    press_button(dock.form.behavior, "Add…")
    press(dock.open_button)
    table = dock.found.table
    qtbot.waitUntil(lambda: table.item(0, RANGE) is not None, timeout=20_000)
    rows = range(table.rowCount())
    shown = {table.item(row, NAME).text(): table.item(row, RANGE).text() for row in rows}
    assert {"speed", "speed_wheel"} <= set(shown)
    assert shown["side"] == "left, right"
    assert dock.found.facts.facts["Trials"] == "60, 1 s long; side: left 30×, right 30×"


def test_dock_layer_and_colour_bar_agree_when_the_contrast_slider_is_dragged(
    window, small_field, made_up_scores, qtbot
):
    state, scale = services_of(window).state, services_of(window).color_scale
    state.show(small_field)
    trained, scores = with_speed_at_chance(small_field), made_up_scores(small_field)
    maps = {m: replace(scores, method=m) for m in ("conditional-encoding", "generative-gradient")}
    state.add_run(Run("run 1", now(), {}, trained, maps))
    services_of(window).open_dock("Attribution")
    dock = dock_of(window, "Attribution")
    tabs = dock.scores.tabs
    press(tabs.tabBar(), tabs.tabBar().tabRect(tabs.indexOf(dock.scores.details)).center())
    tick = dock.scores.over_time.follow
    press(tick, QPoint(8, tick.height() // 2))
    painter = services_of(window).time_painter
    qtbot.waitUntil(lambda: painter.layer is not None and painter.status == "", timeout=60_000)
    (layer,) = [x for x in window.layers if role_of(x) == "scores over time" and x.visible]
    before = tuple(layer.contrast_limits)
    drag_upper_limit(window, layer, 0.25)
    qtbot.waitUntil(lambda: layer.contrast_limits[1] < before[1])
    limits = tuple(layer.contrast_limits)
    assert scale.now.limits == pytest.approx(limits)
    boxes = dock.scores.colors.low.value(), dock.scores.colors.high.value()
    assert boxes == pytest.approx(limits, rel=1e-3, abs=1e-4)
    assert not scale.bar.place.isEmpty()
    assert scale.bar.lines[2::2] == tuple(map(brief, limits))


def test_the_verdict_on_a_factor_at_chance_names_the_limit_that_its_p_misses(window, small_field):
    state = services_of(window).state
    state.show(small_field)
    state.add_run(Run("run 1", now(), {}, with_speed_at_chance(small_field), {}))
    services_of(window).open_dock("Train")
    row = dock_of(window, "Train").verdict.rows["speed"]
    press(row.head)
    assert row.sentences.isVisible() and row.head.word.text() == "at chance"
    assert "at chance in these cells (p = 0.04, and only p ≤ 0.005 counts" in row.sentences.text()


def test_naparis_own_menu_opens_tables_and_a_folder_that_was_curated(
    window, session, qtbot, monkeypatch
):
    """Its reader takes all files of a folder for one stack, and would fail on a journal."""
    services, traces = services_of(window), session / "traces.npy"
    services.state.show(
        open_recording(traces, rate=10), Opening(traces, settings=OpenSettings(rate=10))
    )
    files = [str(session / "wheel.csv")]
    monkeypatch.setattr(QFileDialog, "getOpenFileNames", lambda *_, **__: (files, ""))
    choose_in_menu(window, "File", "Open File(s)")
    qtbot.waitUntil(lambda: "speed" in services.state.recording.behavior, timeout=20_000)
    stack = session / "stack"
    stack.mkdir()
    for number in range(3):
        np.save(stack / f"{number}.npy", np.full((4, 5), number))
    opened = services.state.show(open_recording(traces, rate=10), Opening(stack))
    services.open_dock("Curate")
    qtbot.waitUntil(lambda: services.queue.cell is not None)
    press_key(canvas_of(window), Qt.Key.Key_A)
    qtbot.waitUntil(lambda: services.curations.of(opened).status.tolist().count(1) == 1)
    assert list(stack.rglob("*.jsonl")) != []
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_, **__: str(stack))
    QTimer.singleShot(0, lambda: answer_which_reader("napari builtins"))
    choose_in_menu(window, "File", "Open Folder")
    assert window.layers["stack"].data.shape == (3, 4, 5)


def answer_which_reader(name):
    """Choose the reader of a folder, of which napari asks in a dialog, as soon as it does."""
    questions = [w for w in QApplication.topLevelWidgets() if isinstance(w, QtReaderDialog)]
    if not questions:
        QTimer.singleShot(50, lambda: answer_which_reader(name))
        return
    readers = {button.text(): button for button in questions[0].findChildren(QRadioButton)}
    try:
        press(readers[name], QPoint(8, readers[name].height() // 2))
        press(questions[0].findChild(QDialogButtonBox).button(QDialogButtonBox.StandardButton.Ok))
    except Exception:
        questions[0].reject()  # else a failing test would wait for ever
        raise
