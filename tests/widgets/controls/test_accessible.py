"""Every control of every dock has a name; tooltips wrap; the keyboard's place can be seen."""

from dataclasses import replace

import numpy as np
import pytest
from qtpy.QtCore import QEvent, QPoint, Qt
from qtpy.QtGui import QHelpEvent
from qtpy.QtWidgets import (
    QApplication,
    QFocusFrame,
    QLineEdit,
    QTableWidget,
    QTableWidgetItem,
    QToolTip,
    QVBoxLayout,
    QWidget,
)
from scored import scored_recording, scored_run

from napari_xcebra.widgets.app.workspace import open_workspace
from napari_xcebra.widgets.controls.accessible import _is_control, _make_accessible, _text_on
from napari_xcebra.widgets.controls.boxes import plain
from napari_xcebra.widgets.controls.napari_window import DOCKS, docked_widget
from napari_xcebra.widgets.window import services_of

pytestmark = pytest.mark.gui


def spoken_name(widget):
    """What a screen reader calls a control: its own name, or the text on it."""
    return widget.accessibleName() or _text_on(widget)


def nameless(root):
    return [
        f"{type(each).__name__} in {type(each.parent()).__name__}"
        for each in root.findChildren(QWidget)
        if _is_control(each) and not each.isHidden() and not spoken_name(each)
    ]


@pytest.mark.usefixtures("warm_child")
def test_every_control_of_every_dock_has_a_name(make_napari_viewer, qtbot):
    viewer = make_napari_viewer()
    state = services_of(viewer).state
    state.show(scored_recording())
    open_workspace(viewer)
    run = scored_run("run 1")
    history = {name: np.ones(2) for name in ("step", "penalty", "place")}
    state.add_run(replace(run, fit=replace(run.fit, history=history)))
    state.shown = replace(state.shown, run="run 1", factor="place")
    found = {name: nameless(docked_widget(viewer, name).widget()) for name in DOCKS}
    assert found == {name: [] for name in DOCKS}
    services_of(viewer).close()


def tip(widget, at):
    QToolTip.hideText()
    event = QHelpEvent(QEvent.Type.ToolTip, at, widget.mapToGlobal(at))
    QApplication.sendEvent(widget, event)
    return QToolTip.text()


def test_tooltips_of_controls_items_and_new_ones_wrap_and_files_are_never_markup(qtbot):
    root, long = QWidget(), "a word " * 40
    qtbot.addWidget(root)
    column = QVBoxLayout(root)
    table = QTableWidget(1, 1)
    table.setItem(0, 0, QTableWidgetItem("item"))
    table.item(0, 0).setToolTip(long)
    table.setHorizontalHeaderItem(0, QTableWidgetItem("heading"))
    table.horizontalHeaderItem(0).setToolTip(long)
    column.addWidget(table)
    _make_accessible(root)
    root.show()
    later = QLineEdit()
    later.setToolTip(long)
    column.addWidget(later)
    qtbot.waitUntil(lambda: later.isVisible())
    inside = table.visualItemRect(table.item(0, 0)).center()
    heading = table.horizontalHeader().viewport()
    for widget, at in ((table.viewport(), inside), (later, QPoint(3, 3)), (heading, QPoint(5, 5))):
        lines = tip(widget, at).split("\n")
        assert len(lines) > 3 and max(map(len, lines)) <= 60
        assert "".join(lines).replace(" ", "") == long.replace(" ", "")
    later.setToolTip(plain('<img src="x">' + long))
    assert "&lt;img" in tip(later, QPoint(3, 3))
    assert spoken_name(later) == ""  # markup is not read out
    later.setToolTip("Where it lies. More about it.")
    assert spoken_name(later) == "Where it lies"
    QToolTip.hideText()


def test_the_control_that_the_tab_key_reaches_is_framed_but_not_one_that_is_clicked(qtbot):
    root = QWidget()
    qtbot.addWidget(root)
    column, (first, second) = QVBoxLayout(root), (QLineEdit(), QLineEdit())
    for each in (first, second):
        column.addWidget(each)
    _make_accessible(root)
    with qtbot.waitActive(root):
        root.show()
        root.activateWindow()
    qtbot.mouseClick(first, Qt.MouseButton.LeftButton)
    assert not [frame for frame in root.findChildren(QFocusFrame) if frame.isVisible()]
    qtbot.keyClick(first, Qt.Key.Key_Tab)
    (frame,) = root.findChildren(QFocusFrame)
    qtbot.waitUntil(lambda: frame.isVisible() and frame.widget() is second)
    qtbot.mouseClick(first, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: not frame.isVisible())
