"""A picture of all methods side by side: how far they agree, and about which cells they do not."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from napari_xcebra.attribution.comparison import Comparison, short_number, title_of
from napari_xcebra.figures import WARNING, Where, in_picture, written
from napari_xcebra.ranks import relative_ranks

ROW = 0.3
"""Height of a method, in inches."""
NOTHING = "#D9D9D9"


def methods_side_by_side(comparison: Comparison, path: Where = None) -> Figure:
    """For every factor the rank correlations of all methods, and the rank of every cell by each.

    On the left Spearman's ρ between each two methods or statistics. On the right a column a cell,
    from the highest mean rank over the methods to the lowest: a row in which bright and dark are
    mixed ranks the cells differently.

    Parameters
    ----------
    comparison : Comparison
    path : path, optional
        Where to write the picture; its ending says the format.
    """
    heights = [ROW * len(comparison.of(factor)) + 0.9 for factor in comparison.factors]
    longest = max(len(comparison.of(factor)) for factor in comparison.factors)
    width = ROW * 1.35 * longest
    figure = Figure(figsize=(width + 7.5, sum(heights) + 0.4))
    figure.set_layout_engine("constrained", h_pad=0.1)
    grid = figure.subplots(
        len(heights), 2, squeeze=False, width_ratios=(width, 5.5), height_ratios=heights
    )
    for (left, right), factor in zip(grid, comparison.factors, strict=True):
        _draw_correlations(left, comparison, factor)
        places = _draw_ranks(right, comparison, factor)
        _draw_title(left, right, comparison, factor)
        bar = figure.colorbar(places, ax=right, label="rank", pad=0.02, aspect=30)
        bar.set_ticks([0, 1], labels=["last", "first"])
    return written(figure, path)


def _draw_correlations(ax: Axes, comparison: Comparison, factor: str) -> None:
    names = list(comparison.of(factor))
    values = comparison.correlations(factor).to_numpy()
    ax.imshow(values, cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto")
    for row, line in enumerate(values):
        for column, value in enumerate(line):
            if np.isfinite(value):
                text = short_number(value)
                colour = "white" if abs(value) > 0.6 else "black"
                ax.text(column, row, text, ha="center", va="center", fontsize=7, color=colour)
    titles = [title_of(name) for name in names]
    ax.set_xticks(range(len(names)), titles, rotation=40, ha="right", fontsize=8)
    ax.set_yticks(range(len(names)), titles, fontsize=8)
    _part_methods(ax, comparison, factor, both=True)


def _draw_ranks(ax: Axes, comparison: Comparison, factor: str) -> AxesImage:
    """A row a method or statistic, a column a cell."""
    scores = comparison.of(factor)
    places = np.stack([relative_ranks(values) for values in scores.values()])
    methods = places[: len(comparison.methods(factor))]
    known = np.flatnonzero(np.isfinite(methods).any(axis=0))
    order = known[np.argsort(-np.nanmean(methods[:, known], axis=0), kind="stable")]
    ax.set_facecolor(NOTHING)
    image = ax.imshow(places[:, order], cmap="viridis", vmin=0, vmax=1, aspect="auto",
                      interpolation="nearest")  # fmt: skip
    ax.set_yticks(range(len(scores)), [])  # the rows are those of the matrix
    ax.set_xlabel("cells, by their mean rank over the methods", fontsize=9)
    _part_methods(ax, comparison, factor, both=False)
    return image


def _part_methods(ax: Axes, comparison: Comparison, factor: str, *, both: bool) -> None:
    """A line between methods of attribution and single-cell statistics."""
    edge = len(comparison.methods(factor)) - 0.5
    if len(comparison.methods(factor)) < len(comparison.of(factor)):
        ax.axhline(edge, color="white", lw=3)
        if both:
            ax.axvline(edge, color="white", lw=3)


def _draw_title(left: Axes, right: Axes, comparison: Comparison, factor: str) -> None:
    left.set_title(in_picture(factor), fontsize=13, fontweight="bold", loc="left")
    left.set_title("Spearman's ρ", fontsize=10, loc="right")
    right.set_title("rank of every cell", fontsize=10, loc="left")
    if comparison.at_chance[factor]:
        right.set_title("at chance: no ranking by a method means anything", fontsize=10,
                        loc="right", color=WARNING)  # fmt: skip
