"""What the child can be asked to do: plain values that say how to run themselves.

They are made in the window, which does without torch; it is imported inside `run`, in the child.
"""

from __future__ import annotations

from napari_xcebra.jobs.tasks.frames import EmbedTask, OverTimeTask
from napari_xcebra.jobs.tasks.report import ReportTask
from napari_xcebra.jobs.tasks.scores import AttributeTask, SignificanceTask, StatisticsTask
from napari_xcebra.jobs.tasks.sessions import AdaptTask, JointTask
from napari_xcebra.jobs.tasks.task import Report, Task
from napari_xcebra.jobs.tasks.training import DeviceTask, DimensionTask, FitTask, StabilityTask

__all__ = [
    "AdaptTask",
    "AttributeTask",
    "DeviceTask",
    "DimensionTask",
    "EmbedTask",
    "FitTask",
    "JointTask",
    "OverTimeTask",
    "Report",
    "ReportTask",
    "SignificanceTask",
    "StabilityTask",
    "StatisticsTask",
    "Task",
]
