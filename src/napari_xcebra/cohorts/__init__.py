"""Puts the runs of many animals and days side by side, with the animal as the unit of the test.

    folders ──finished_runs──▶ FinishedRun ──labels_of──▶ animal, day, condition ──▶ Cohort

Neither torch nor Qt is imported here.
"""

from __future__ import annotations

from napari_xcebra.cohorts.comparison import Cohort, cohort

__all__ = ["Cohort", "cohort"]
