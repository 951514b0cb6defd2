"""The window is told often enough, and not more often."""

from napari_xcebra.jobs import Advanced
from napari_xcebra.jobs.child import Reporter
from napari_xcebra.jobs.tasks.task import Pace


class Window:
    def __init__(self):
        self.told = []

    def tell(self, event):
        self.told.append(event)


def test_of_many_reports_the_first_the_last_and_changes_of_phase_come_through():
    window = Window()
    report = Reporter(window)
    for step in range(1, 1001):
        report(Advanced(step, 1000, "step", phase="settling" if step < 500 else "holding"))
    steps = [event.done for event in window.told]
    assert {1, 500, 1000} <= set(steps)
    assert len(steps) < 100


def test_the_time_left_follows_the_pace_since_the_first_report(monkeypatch):
    clock = iter([10.0, 12.0])
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    pace = Pace()
    assert pace.seconds_left(500, 1000) != pace.seconds_left(500, 1000)  # NaN


def test_a_resumed_run_is_timed_from_where_it_went_on(monkeypatch):
    clock = iter([10.0, 12.0])
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    pace = Pace()
    pace.seconds_left(500, 1000)
    assert pace.seconds_left(600, 1000) == 8.0
