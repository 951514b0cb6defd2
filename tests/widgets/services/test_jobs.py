"""Background work of a window: one call at a time, known by its key, or only the latest."""

import gc
import sys
from queue import SimpleQueue
from weakref import ref

import pytest
from napari.utils import progress
from qtpy import PYSIDE6
from qtpy.QtWidgets import QWidget

from napari_xcebra.jobs import Advanced, Cancelled, Failed, Finished, Started
from napari_xcebra.widgets.services.jobs import (
    JobQueue,
    Work,
    _Activity,
    _listen,
    in_background,
    while_exists,
)

pytestmark = pytest.mark.gui


class Job:
    """A job whose events are those that a test puts in."""

    def __init__(self, call):
        self.call, self.told, self.grace = call, SimpleQueue(), None

    def events(self):
        yield from iter(self.told.get, None)

    def tell(self, *events):
        for event in events:
            self.told.put(event)
        if isinstance(events[-1], Finished | Failed | Cancelled):
            self.told.put(None)

    def cancel(self, grace):
        self.grace = grace
        self.tell(Cancelled(None))


class Processes:
    """Stand-ins for both processes, which keep the jobs they were given."""

    def __init__(self):
        self.jobs, self.closed = [], False
        self.worker = self.second_worker = self
        self.activity = _Activity()

    def submit(self, call):
        self.jobs.append(Job(call))
        return self.jobs[-1]

    def ready(self, which):
        return which == "worker"


class Number(int):
    doing = "Counting"


def work(title, number, *more, **named):
    return Work(title, Number(number), *more, **named)


@pytest.fixture
def processes(qapp):
    made = Processes()
    yield made
    for job in made.jobs:  # so that no thread waits for it
        job.told.put(None)


def test_calls_run_one_after_the_other_and_are_known_by_their_keys(processes, qtbot):
    queue, kept = JobQueue(processes), []
    queue.ask(*(work(f"call {n}", n, kept.append, ("test", n), at_stake=f"{n}!") for n in (1, 2)))
    assert [job.call for job in processes.jobs] == [1]
    assert queue.busy and queue.waiting == 1
    assert queue.awaits(("test", 1)) and queue.awaits(("test", 2)) and not queue.awaits(("test", 3))
    assert queue.runs("test") and not queue.runs("repeat")
    assert queue.waits_for == "waiting for its turn"
    processes.jobs[0].tell(Started(), Advanced(1, 2, "step"))
    qtbot.waitUntil(lambda: queue.progress is not None)
    assert (queue.title, queue.at_stake, queue.started) == ("call 1", "1!", True)
    processes.jobs[0].tell(Finished("one"))
    qtbot.waitUntil(lambda: len(processes.jobs) == 2)
    assert kept == ["one"] and queue.progress is None
    assert not queue.awaits(("test", 1)) and queue.awaits(("test", 2))
    processes.jobs[1].tell(Finished("two"))
    qtbot.waitUntil(lambda: not queue.busy)
    assert kept == ["one", "two"] and queue.at_stake == ""


def test_what_goes_wrong_or_is_stopped_is_said_and_what_waits_goes_on(processes, qtbot):
    queue, said = JobQueue(processes), []
    queue.said.connect(lambda *told: said.append(told))
    queue.ask(work("one", 1), work("two", 2, grace=7.0), work("three", 3))
    processes.jobs[0].tell(Failed("It failed.", "line 1"))
    qtbot.waitUntil(lambda: queue.title == "two")
    assert said == [("It failed.", "problem", "line 1")]
    queue.cancel()
    qtbot.waitUntil(lambda: not queue.busy)
    assert processes.jobs[1].grace == 7.0
    assert said[1:] == [("Stopped two: nothing was kept.", "plain", "")]
    assert len(processes.jobs) == 2


def test_of_several_requests_only_the_latest_is_run_next(processes, qtbot):
    queue, kept, said = JobQueue(processes, latest=True), [], []
    for n in (1, 2, 3):
        queue.ask(work("", n, kept.append, say=lambda *told: said.append(told)))
    processes.jobs[0].tell(Failed("Nobody wants it any more."))
    qtbot.waitUntil(lambda: len(processes.jobs) == 2)
    assert processes.jobs[1].call == 3 and said == []
    processes.jobs[1].tell(Finished("three"))
    qtbot.waitUntil(lambda: not queue.busy)
    assert kept == ["three"]
    queue.ask(work("", 4, kept.append, say=lambda *told: said.append(told)))
    processes.jobs[2].tell(Failed("It failed."))
    qtbot.waitUntil(lambda: not queue.busy)
    assert said == [("It failed.", "problem", "")]


def test_a_queue_that_is_closed_calls_nobody(processes, qtbot):
    queue, kept = JobQueue(processes, latest=True), []
    queue.ask(work("", 1, kept.append))
    processes.jobs[0].tell(Finished("one"))
    queue.close()
    qtbot.wait(100)
    assert kept == []
    assert queue.ask(work("", 2, kept.append)) is None and len(processes.jobs) == 1


def bars():
    """What napari's activity dock shows: words, done, total."""
    return [(each.desc.rstrip(": "), each.n, each.total) for each in progress._all_instances]


def test_work_is_in_naparis_activity_dock_until_it_ends_or_the_window_closes(
    processes, qtbot, capfd
):
    queue = JobQueue(processes)
    for number, outcome in enumerate((Finished("one"), Failed("It failed."), Cancelled(None))):
        queue.ask(work("", number))
        assert bars() == [("Counting", 0, 0)]
        processes.jobs[-1].tell(Started(), Advanced(30, 200, "step"))
        qtbot.waitUntil(lambda: bars() == [("Counting", 30, 200)])
        processes.jobs[-1].tell(outcome)
        qtbot.waitUntil(lambda: not queue.busy)
        assert bars() == []
    queue.ask(work("", 4))
    processes.activity.close()
    assert bars() == []
    processes.jobs[-1].tell(Advanced(30, 200, "step"), Finished("four"))
    qtbot.waitUntil(lambda: not queue.busy)
    JobQueue(processes, latest=True).ask(work("", 5))
    assert bars() == []  # it may be asked for at every move of the mouse
    assert capfd.readouterr().err == ""  # nor is anything printed where there is no window


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
    _listen(iter([1, 2, 3]), listener.hear)
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
