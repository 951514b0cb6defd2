"""Background work: training and attribution in a process of their own, without Qt.

A `Worker` keeps one child process warm and runs tasks in it, one after the other. Whatever
happens there (an error, a crash, the end of memory), this process only reads about it.

Examples
--------
>>> from napari_xcebra.learn import FitSettings
>>> from napari_xcebra.simulate import box
>>> simulation = box(frames=3000)
>>> task = FitTask(simulation.recording, simulation.factors, FitSettings(steps=20))
>>> with Worker() as worker:
...     job = worker.submit(task)
...     names = [type(event).__name__ for event in job.events()]
>>> names[0], names[-1], job.outcome.result.steps
('Started', 'Finished', 20)
"""

from __future__ import annotations

from napari_xcebra.jobs.events import (
    Advanced,
    Cancelled,
    Event,
    Failed,
    Finished,
    Sketched,
    Started,
)
from napari_xcebra.jobs.job import Job, JobFailed
from napari_xcebra.jobs.tasks import (
    AdaptTask,
    AroundTask,
    AttributeTask,
    DeviceTask,
    DimensionTask,
    EmbedTask,
    FitTask,
    JointTask,
    NwbTask,
    OverTimeTask,
    RastermapTask,
    ReportTask,
    SignificanceTask,
    StabilityTask,
    StatisticsTask,
    Task,
)
from napari_xcebra.jobs.worker import Worker

__all__ = [
    "AdaptTask",
    "Advanced",
    "AroundTask",
    "AttributeTask",
    "Cancelled",
    "DeviceTask",
    "DimensionTask",
    "EmbedTask",
    "Event",
    "Failed",
    "Finished",
    "FitTask",
    "Job",
    "JobFailed",
    "JointTask",
    "NwbTask",
    "OverTimeTask",
    "RastermapTask",
    "ReportTask",
    "SignificanceTask",
    "Sketched",
    "StabilityTask",
    "Started",
    "StatisticsTask",
    "Task",
    "Worker",
]
