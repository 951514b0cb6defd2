"""Background work: training and attribution in a process of their own, without Qt.

A `Worker` keeps one child process warm and runs one `Call` after the other in it. Whatever
happens there (an error, a crash, the end of memory), this process only reads about it.

Examples
--------
>>> from napari_xcebra.jobs import tasks
>>> from napari_xcebra.learn import FitSettings
>>> from napari_xcebra.simulate import box
>>> simulation = box(frames=3000)
>>> call = tasks.FIT(simulation.recording, simulation.factors, FitSettings(steps=20))
>>> with Worker() as worker:
...     job = worker.submit(call)
...     names = [type(event).__name__ for event in job.events()]
>>> names[0], names[-1], job.outcome.result.steps
('Started', 'Finished', 20)
"""

from __future__ import annotations

from napari_xcebra.jobs.calls import Call, CallFailed
from napari_xcebra.jobs.events import (
    Advanced,
    Cancelled,
    Event,
    Failed,
    Finished,
    Sketched,
    Started,
)
from napari_xcebra.jobs.worker import Job, Worker

__all__ = [
    "Advanced",
    "Call",
    "CallFailed",
    "Cancelled",
    "Event",
    "Failed",
    "Finished",
    "Job",
    "Sketched",
    "Started",
    "Worker",
]
