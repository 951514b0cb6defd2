"""A window that is at work is not closed unasked."""

from dataclasses import replace

import pytest
from qtpy.QtCore import QTimer
from qtpy.QtGui import QCloseEvent
from qtpy.QtWidgets import QApplication, QMessageBox

from napari_xcebra.learn import FitSettings, fit
from napari_xcebra.runs import Run
from napari_xcebra.widgets.docks.train.dock import TrainDock
from napari_xcebra.widgets.services.jobs import _listen
from napari_xcebra.widgets.services.training import Trainer
from napari_xcebra.widgets.window import _AskBeforeClosing, services_of

pytestmark = [pytest.mark.gui, pytest.mark.usefixtures("warm_child")]


def train(viewer, qtbot, recording) -> Trainer:
    """A training that is not over soon."""
    services_of(viewer).state.show(recording)
    dock = TrainDock(viewer)
    viewer.window.add_dock_widget(dock, name="Train")
    form = dock.choice.form
    form.value = replace(form.value, steps=100_000, batch_size=64, stop_when_settled=False)
    dock.train()
    qtbot.waitUntil(lambda: dock.training.progress is not None, timeout=60_000)
    return dock.training


def answer(button: str, asked: list[str]) -> None:
    """Press a button of the question that comes next."""

    def press() -> None:
        (box,) = [w for w in QApplication.topLevelWidgets() if isinstance(w, QMessageBox)]
        asked.append(box.text())
        next(each for each in box.buttons() if each.text() == button).click()

    QTimer.singleShot(200, press)


def would_close(viewer) -> bool:
    """Whether a window would close as by Ctrl+W; it is not, as napari's fixture does so."""
    window = viewer.window._qt_window
    return not window.findChild(_AskBeforeClosing).eventFilter(window, QCloseEvent())


def test_one_question_in_words_comes_before_a_training_is_lost(
    make_napari_viewer, qtbot, small_field
):
    viewer = make_napari_viewer(show=True)
    training = train(viewer, qtbot, small_field)
    asked: list[str] = []
    answer("Keep it open", asked)
    assert not would_close(viewer)
    assert training.busy
    assert len(asked) == 1
    assert asked[0].startswith("A run is still being trained (step ")
    answer("Close", asked)
    assert would_close(viewer)
    assert len(asked) == 2
    assert would_close(viewer)  # asked once is enough
    services_of(viewer).close()


def test_a_script_that_closes_its_viewer_is_not_asked(
    make_napari_viewer, qtbot, small_field, monkeypatch
):
    viewer = make_napari_viewer(show=True)
    train(viewer, qtbot, small_field)
    state = services_of(viewer).state
    monkeypatch.setattr(QMessageBox, "exec", lambda self: pytest.fail("asked"))
    viewer.close()
    services_of(state.viewer).close()


def test_a_window_that_does_nothing_is_closed_without_a_word_of_ours(
    make_napari_viewer, small_field, monkeypatch
):
    viewer = make_napari_viewer(show=True)
    state = services_of(viewer).state
    state.show(small_field)
    monkeypatch.setattr(QMessageBox, "exec", lambda self: pytest.fail("asked"))
    assert would_close(viewer)
    services_of(state.viewer).close()


def test_runs_that_are_not_saved_are_asked_about_by_name(
    make_napari_viewer, qtbot, small_field, tmp_path
):
    viewer = make_napari_viewer(show=True)
    state = services_of(viewer).state
    opened = state.show(small_field)
    trained = fit(small_field, {"place": ["position"]}, FitSettings(steps=2, batch_size=32))
    state.add_run(Run("run 1", "2026-11-16T09:30:00", {}, trained))
    asked: list[str] = []
    answer("Keep it open", asked)
    assert not would_close(viewer)
    assert asked[0].startswith(f"run 1 of {opened.name} is not saved (Save in ")
    dock = TrainDock(viewer)
    viewer.window.add_dock_widget(dock, name="Train")
    state.replace_run("run 1", replace(opened.runs[0], name="renamed"))
    state.shown = replace(state.shown, run="renamed")
    with qtbot.waitSignal(dock.runs.said, timeout=20_000):
        dock.runs.save(tmp_path / "renamed")
    assert would_close(viewer)
    services_of(state.viewer).close()


def test_napari_is_not_told_of_work_that_it_would_ask_about_in_names_of_functions(viewer, qtbot):
    heard = []
    _listen(iter([1, 2]), heard.append)
    assert viewer.window._task_status_manager.get_status() == []
    qtbot.waitUntil(lambda: heard == [1, 2], timeout=20_000)
