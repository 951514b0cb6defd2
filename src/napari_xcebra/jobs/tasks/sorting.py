"""A task that sorts cells by rastermap, whose compiler would hold up the window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from napari_xcebra.jobs.tasks.task import Report
from napari_xcebra.recording.cell_order import by_rastermap


@dataclass(frozen=True, eq=False)
class RastermapTask:
    """Sort cells by rastermap; the result is their order, (cells,) int64."""

    doing: ClassVar[str] = "Sorting by rastermap"
    sparing: ClassVar[str] = "sort by correlation"

    activity: np.ndarray

    def run(self, report: Report) -> np.ndarray:
        """Sort (cells, blocks) traces."""
        return by_rastermap(self.activity)
