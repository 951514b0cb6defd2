"""Figures of a sweep: what came of it against what was varied, and how far seeds agree."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from napari_xcebra.figures import LINES, NOT_USED, in_picture

OTHERS = {"r2": "ridge_r2", "accuracy": "ridge_accuracy"}
"""What stands beside a measure: that of a ridge regression."""

TITLES = {"goodness": "goodness (nats)", "r2": "R²", "accuracy": "accuracy"}


def against(table: pd.DataFrame, knob: str, title: str, factors: Sequence[str]) -> Figure:
    """Goodness and R² (accuracy if discrete) of every run over the values of a knob.

    A panel a factor; dashed, what a ridge regression on the cells reaches.

    Parameters
    ----------
    table : DataFrame
        As `SweepFolder.summary` gives it, of finished runs.
    knob : str
        Column of what was varied.
    title : str
        What the axis calls it.
    """
    decoded = {f: "accuracy" if _known(table, f"accuracy {f}") else "r2" for f in factors}
    rows: list[dict[str, str]] = [dict.fromkeys(factors, "goodness")]
    if any(_known(table, f"{decoded[f]} {f}") for f in factors):
        rows.append(decoded)
    figure = Figure(figsize=(max(4.2, min(9.6, 2.7 * len(factors) + 0.6)), 2.1 * len(rows) + 0.5))
    figure.set_layout_engine("constrained")
    grid = figure.subplots(len(rows), len(factors), squeeze=False, sharex=True)
    for row, measures in zip(grid, rows, strict=True):
        for ax, (factor, measure) in zip(row, measures.items(), strict=True):
            _draw(ax, table, knob, f"{measure} {factor}", f"{OTHERS.get(measure)} {factor}")
            if measure == "goodness":
                ax.axhline(0, color=NOT_USED, lw=0.8)
            if factor == factors[0] or measure != measures[factors[0]]:
                ax.set_ylabel(TITLES[measure])
    for ax, factor in zip(grid[0], factors, strict=True):
        ax.set_title(in_picture(factor), fontsize=10)
    for ax in grid[-1]:
        ax.set_xlabel(in_picture(title))
    return figure


def _known(table: pd.DataFrame, column: str) -> bool:
    return column in table and bool(table[column].notna().any())


def _draw(ax: Axes, table: pd.DataFrame, knob: str, column: str, beside: str) -> None:
    """A dot a run, and the mean at each value; dashed, the mean of what stands beside it."""
    if not _known(table, column):
        ax.set_axis_off()
        return
    values = list(dict.fromkeys(table[knob]))
    numeric = all(isinstance(v, int | float | np.number) for v in values)
    values = sorted(values) if numeric else values
    place = {value: value if numeric and knob != "seed" else i for i, value in enumerate(values)}
    ax.plot([place[v] for v in table[knob]], table[column], "o", color=LINES[0], alpha=0.45, ms=5,
            mec="none")  # fmt: skip
    mean = [table.loc[table[knob] == value, column].mean() for value in values]
    ax.plot([place[v] for v in values], mean, "_-" if knob != "seed" else "_", color="black", lw=1,
            ms=12)  # fmt: skip
    if _known(table, beside):
        ridge = [table.loc[table[knob] == value, beside].mean() for value in values]
        ax.plot([place[v] for v in values], ridge, "--", color=NOT_USED, lw=1)
    if len(values) <= 8:
        labels = [f"{v:g}" if numeric else in_picture(str(v)) for v in values]
        ax.set_xticks([place[v] for v in values], labels)
    ax.tick_params(labelsize=8)
    ax.margins(0.12)


def agreement_of_seeds(ranks: np.ndarray, seeds: Sequence[int]) -> Figure:
    """Rank correlation of scores between each two seeds.

    Parameters
    ----------
    ranks : (seeds, cells) float
        NaN where a cell was not used.
    """
    used = ranks[:, ~np.isnan(ranks).any(0)]
    values = np.corrcoef(used)
    figure = Figure(figsize=(2.9, 2.6))
    figure.set_layout_engine("constrained")
    ax = figure.subplots()
    shown = ax.imshow(values, cmap="viridis", vmin=0, vmax=1)
    names = [str(seed) for seed in seeds]
    ax.set_xticks(range(len(names)), names, fontsize=8)
    ax.set_yticks(range(len(names)), names, fontsize=8)
    ax.set(xlabel="seed", ylabel="seed")
    if len(names) <= 8:
        for (row, column), value in np.ndenumerate(values):
            colour = "black" if value > 0.6 else "white"
            ax.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=7, color=colour)
    figure.colorbar(shown, ax=ax)
    return figure
