"""Background work of a window: one call at a time, known by its key, or only the latest."""

from queue import SimpleQueue

import pytest
from napari.utils import progress

from napari_xcebra.jobs import Advanced, Cancelled, Failed, Finished, Started
from napari_xcebra.widgets.work.activity import Activity
from napari_xcebra.widgets.work.job_queue import JobQueue, Work

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
        self.activity = Activity()

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
