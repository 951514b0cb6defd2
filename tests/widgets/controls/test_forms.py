"""Controls of all docks: each says what it does, and the keyboard goes through them in order."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from qtpy.QtCore import QPoint, Qt
from qtpy.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSlider,
    QAbstractSpinBox,
    QComboBox,
    QGraphicsView,
    QHeaderView,
    QLabel,
    QLineEdit,
    QMenu,
    QPlainTextEdit,
    QProgressBar,
    QScrollArea,
    QScrollBar,
    QWidget,
)
from scored import METHOD, scored_recording, scored_run

from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.recording import Variable
from napari_xcebra.widgets.app.workspace import open_workspace
from napari_xcebra.widgets.controls.forms import SettingsForm
from napari_xcebra.widgets.controls.napari_window import DOCKS, open_dock
from napari_xcebra.widgets.controls.notice import Notice
from napari_xcebra.widgets.window import services_of

pytestmark = [pytest.mark.gui, pytest.mark.usefixtures("warm_child")]

CONTROLS = (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSlider,
    QAbstractSpinBox,
    QComboBox,
    QGraphicsView,
    QLineEdit,
    QPlainTextEdit,
    QProgressBar,
)
SAME_ROW = 12
"""Pixels by which the tops of controls in one row differ at most."""


@pytest.fixture
def docks(make_napari_viewer, qtbot):
    """All docks, with a recording and two runs in them."""
    viewer = make_napari_viewer(show=True)
    state = services_of(viewer).state
    rng = np.random.default_rng(0)
    behavior = {name: Variable(name, rng.random((200, 1))) for name in ("x", "y", "v")}
    state.show(scored_recording(behavior=behavior))
    open_workspace(viewer)
    history = {"step": np.arange(3), "penalty": np.ones(3)}
    for name in ("run 1", "run 2"):
        run = scored_run(name)
        state.add_run(replace(run, fit=replace(run.fit, history=history)))
    state.shown = replace(state.shown, run="run 2", factor="place", method=METHOD)
    yield {name: open_dock(viewer, name) for name in DOCKS}
    services_of(state.viewer).close()


def controls_of(dock: QWidget) -> list[QWidget]:
    return [
        widget
        for widget in dock.findChildren(QWidget)
        if isinstance(widget, CONTROLS)
        and not isinstance(widget, QScrollBar | QHeaderView)
        and not is_kept_for_later(widget)
    ]


def is_kept_for_later(widget: QWidget) -> bool:
    """Whether it is a button that has nothing to offer yet, such as that of a tag without name."""
    return isinstance(widget, QAbstractButton) and widget.isHidden() and not widget.text()


def up_to(dock: QWidget, widget: QWidget) -> list[QWidget]:
    """The widget and those it lies in, within the dock."""
    line = [widget]
    while line[-1] is not dock and line[-1].parentWidget() is not None:
        line.append(line[-1].parentWidget())
    return line


def test_every_control_says_what_it_does(docks):
    silent = []
    for name, dock in docks.items():
        controls = controls_of(dock.widget())
        assert controls, name
        for control in controls:
            line = up_to(dock.widget(), control)
            # Qt shows the tooltip of what a widget lies in where it has none itself
            told = any(widget.toolTip() for widget in line[:-1])
            if not told and not any(isinstance(widget, QMenu) for widget in line):
                silent.append(f"{name}: {' < '.join(type(widget).__name__ for widget in line)}")
    assert silent == []


def tab_order(dock: QWidget) -> list[QWidget]:
    """Controls in the order in which the tab key reaches them."""
    reached, widget = [], dock.nextInFocusChain()
    while dock.isAncestorOf(widget):  # beyond it PySide6 would keep the whole window alive
        takes = bool(widget.focusPolicy() & Qt.FocusPolicy.TabFocus) and widget.isEnabled()
        # the field inside a number box is reached as the box
        inside = isinstance(widget.parentWidget(), QAbstractSpinBox | QComboBox)
        if takes and not inside and isinstance(widget, CONTROLS):
            reached.append(widget)
        widget = widget.nextInFocusChain()
    return [widget for widget in reached if widget.isVisibleTo(dock)]


def place(widget: QWidget, other: QWidget, dock: QWidget) -> QPoint:
    """Where a control is; what scrolls while the other stands still is where it scrolls."""
    area = next((w for w in up_to(dock, widget) if isinstance(w, QScrollArea)), None)
    apart = area is not None and not area.isAncestorOf(other)
    return (area if apart else widget).mapTo(dock, QPoint(0, 0))


def test_the_tab_key_goes_down_a_dock_row_by_row(docks):
    for name in ("Recording", "Train", "Attribution", "Curate"):
        docks[name].raise_()
        dock = docks[name].widget()
        reached = tab_order(dock)
        assert len(reached) > 3, name
        for one, other in pairwise(reached):
            before, after = place(one, other, dock), place(other, one, dock)
            below = after.y() > before.y() + SAME_ROW
            beside = abs(after.y() - before.y()) <= SAME_ROW and after.x() > before.x()
            assert below or beside, (name, before, after)


def test_markup_in_a_sentence_is_shown_and_not_obeyed(qtbot):
    notice = Notice()
    qtbot.addWidget(notice)
    notice.say('iscell.npy names <img src="file:///etc/passwd">.', "problem")
    label = notice.findChild(QLabel)
    assert label.textFormat() == Qt.TextFormat.PlainText
    assert "<img" in label.text()


@pytest.fixture
def form(qtbot):
    made = SettingsForm(FitSettings(lambda_="auto"))
    qtbot.addWidget(made)
    return made


def test_a_number_that_may_be_found_has_a_box_to_tick_and_a_number_beside_it(form, qtbot):
    row = form.widget("lambda_")
    assert row.tick.isChecked()
    assert row.number.native.isHidden()
    with qtbot.waitSignal(form.changed):
        row.tick.click()
    assert not row.number.native.isHidden()
    assert form.value.lambda_ == 1.0
    row.number.value = 0.25
    assert form.value.lambda_ == 0.25
    row.tick.click()
    assert form.value.lambda_ == "auto"


@pytest.mark.parametrize("lambda_", ["auto", 0.0, 0.003, 100.0])
def test_the_form_shows_the_settings_it_is_given(form, lambda_):
    settings = replace(form.value, lambda_=lambda_)
    form.value = settings
    assert form.value == settings


@pytest.mark.parametrize(
    ("typed", "rate"),
    [("7,5", 7.5), ("7.5", 7.5), ("1,234", 30.0), ("7,5x", 30.0), ("1.234,5", 1234.5)],
)
def test_a_decimal_comma_is_taken_or_the_number_before_stays(qtbot, typed, rate):
    form = SettingsForm(OpenSettings(rate=30))
    qtbot.addWidget(form)
    form.show()
    box = form.widget("rate")
    box.setFocus()
    box.selectAll()
    qtbot.keyClicks(box, typed)
    qtbot.keyClick(box, Qt.Key.Key_Return)
    assert form.value.rate == rate
