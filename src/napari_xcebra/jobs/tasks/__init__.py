"""Tasks for the child process: plain values that know how to run themselves.

The window makes them without torch, which `run` imports in the child.
"""

from __future__ import annotations

from napari_xcebra.jobs.tasks.cells import (
    AroundTask,
    AttributeTask,
    EmbedTask,
    OverTimeTask,
    RastermapTask,
    SignificanceTask,
    StatisticsTask,
)
from napari_xcebra.jobs.tasks.task import Report, Task
from napari_xcebra.jobs.tasks.training import (
    AdaptTask,
    DeviceTask,
    DimensionTask,
    FitTask,
    JointTask,
    StabilityTask,
)
from napari_xcebra.jobs.tasks.writing import CohortTask, NwbTask, ReportTask

__all__ = [
    "AdaptTask",
    "AroundTask",
    "AttributeTask",
    "CohortTask",
    "DeviceTask",
    "DimensionTask",
    "EmbedTask",
    "FitTask",
    "JointTask",
    "NwbTask",
    "OverTimeTask",
    "RastermapTask",
    "Report",
    "ReportTask",
    "SignificanceTask",
    "StabilityTask",
    "StatisticsTask",
    "Task",
]
