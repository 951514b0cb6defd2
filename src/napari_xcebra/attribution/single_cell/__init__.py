"""What labs compute of single cells, for the same variables: to be held beside an attribution.

Each statistic is a function (activity, columns, used) → one number a cell; `STATISTICS` lists them,
`cell_statistics` computes them for a recording. None of them needs torch.
"""

from napari_xcebra.attribution.single_cell.grid import grid_score
from napari_xcebra.attribution.single_cell.information import (
    information_rate,
    mutual_information,
    spatial_information,
)
from napari_xcebra.attribution.single_cell.linear import (
    correlation,
    decoder_weight,
    rank_correlation,
)
from napari_xcebra.attribution.single_cell.registry import STATISTICS, Statistic
from napari_xcebra.attribution.single_cell.result import (
    CellStatistics,
    StatisticsStopped,
    cell_statistics,
)

__all__ = [
    "STATISTICS",
    "CellStatistics",
    "Statistic",
    "StatisticsStopped",
    "cell_statistics",
    "correlation",
    "decoder_weight",
    "grid_score",
    "information_rate",
    "mutual_information",
    "rank_correlation",
    "spatial_information",
]
