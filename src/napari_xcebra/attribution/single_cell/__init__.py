"""Computes common single-cell statistics for the same variables, to compare with an attribution.

Each statistic is a function (activity, columns, used) → one number a cell; `STATISTICS` lists them,
`cell_statistics` computes them for a recording. None of them needs torch.
"""

from napari_xcebra.attribution.single_cell.statistics import (
    STATISTICS,
    CellStatistics,
    applicable,
    cell_statistics,
)

__all__ = ["STATISTICS", "CellStatistics", "applicable", "cell_statistics"]
