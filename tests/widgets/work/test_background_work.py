"""Threads of the window let go of what they needed, although napari remembers them."""

import gc
import sys
from weakref import ref

import pytest
from qtpy import PYSIDE6
from qtpy.QtWidgets import QWidget

from napari_xcebra.widgets.work.background import in_background, listen, while_exists

pytestmark = pytest.mark.gui


class Large:
    """Stands for a recording."""


def is_let_go(what: ref) -> bool:
    gc.collect()
    return what() is None


def is_held_by_pyside_alone(what: ref) -> bool:
    """PySide may itself keep a worker that has ended: beside `there` and the question for it."""
    there = what()
    return PYSIDE6 and sys.getrefcount(there) == 3


def test_what_a_finished_thread_worked_on_is_let_go(viewer, qtbot):
    large, heard = Large(), []
    there = ref(large)

    in_background(lambda large=large: type(large), heard.append, lambda *_: None)
    del large

    qtbot.waitUntil(lambda: heard == [Large], timeout=20_000)
    qtbot.waitUntil(lambda: is_let_go(there), timeout=20_000)


def test_napari_does_not_remember_short_work_that_has_finished(viewer, qtbot):
    heard = []
    worker = in_background(lambda: 1, heard.append, lambda *_: None)
    there = ref(worker)
    del worker

    qtbot.waitUntil(lambda: heard == [1], timeout=20_000)
    qtbot.waitUntil(lambda: is_let_go(there) or is_held_by_pyside_alone(there), timeout=20_000)


def test_who_listened_to_a_job_that_has_ended_is_let_go(viewer, qtbot):
    heard = []

    class Listener(Large):
        def hear(self, event):
            heard.append(event)

    listener = Listener()
    there = ref(listener)
    listen(iter([1, 2, 3]), listener.hear)
    del listener

    qtbot.waitUntil(lambda: heard == [1, 2, 3], timeout=20_000)
    qtbot.waitUntil(lambda: is_let_go(there), timeout=20_000)


def test_a_failure_is_told_as_a_sentence(viewer, qtbot):
    told = []

    in_background(lambda: 1 / 0, lambda _: None, lambda *what: told.append(what))

    qtbot.waitUntil(lambda: bool(told), timeout=20_000)
    assert "ZeroDivisionError" in told[0][0]
    assert "Traceback" in told[0][1]


def test_a_widget_that_was_deleted_does_not_exist_any_more(viewer, qtbot):
    widget = QWidget()
    exists = while_exists(widget)
    assert exists()

    widget.deleteLater()

    qtbot.waitUntil(lambda: not exists(), timeout=20_000)
