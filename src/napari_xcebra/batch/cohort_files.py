"""Writes the tables and figures of a cohort, from the command line, Python or the window."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from napari_xcebra.attribution.methods import title_of_method
from napari_xcebra.batch.cohorts import Cohort, cohort
from napari_xcebra.files import in_a_sentence, whole
from napari_xcebra.report.figures.paper import (
    LINES,
    NOT_USED,
    WARNING,
    Where,
    in_picture,
    written,
)
from napari_xcebra.spreadsheets import write_csv

TABLES = ("cells", "runs", "animals", "tests")


def compare_runs(folder: Path, table: Path | None = None, pattern: str = "") -> str:
    """Make the cohort of the runs in a folder, write it there, and return what it says."""
    found = cohort(folder, table, pattern or None)
    write_cohort(found, folder)
    return found.summary()


def write_cohort(found: Cohort, folder: Path) -> list[Path]:
    """Write tidy tables and a figure a question; each file whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name in TABLES:
        path = folder / f"cohort-{name}.csv"
        table = getattr(found, name)
        with in_a_sentence(path):
            if not len(table):  # of an earlier time, when there was something to compare
                path.unlink(missing_ok=True)
                continue
            with whole(path) as file:
                write_csv(table, file)
        written.append(path)
    figures = {"share": _share_by_condition, "scores": _scores_by_condition}
    for name, draw in figures.items():
        draw(found, folder / f"cohort-{name}.png")
        written.append(folder / f"cohort-{name}.png")
    return written


SPREAD = 0.25
"""Half of the width over which the days of a condition are spread."""
BESIDE = 0.16
"""Width over which animals are spread, so that those with the same share can be seen."""
ACROSS = 3
"""Panels beside each other."""


def _share_by_condition(cohort: Cohort, path: Where = None) -> Figure:
    """Share of cells found, a panel a factor: a large dot an animal, its days small and joined.

    Bars are means over animals. With one condition, days take its place.
    """
    return _panels(cohort, lambda ax, factor: _draw_shares(ax, cohort, factor), path)


def _scores_by_condition(cohort: Cohort, path: Where = None) -> Figure:
    """Distribution of the cells' scores, a panel a factor: thin an animal, thick their mean."""
    return _panels(cohort, lambda ax, factor: _draw_scores(ax, cohort, factor), path)


def _panels(cohort: Cohort, draw: Callable[[Axes, str], None], path: Where) -> Figure:
    factors = cohort.factors
    across = min(ACROSS, len(factors))
    down = -(-len(factors) // across)
    figure = Figure(figsize=(3.6 * across + 0.4, 3.5 * down + 0.2))
    figure.set_layout_engine("constrained", h_pad=0.1)
    axes = figure.subplots(down, across, squeeze=False).ravel()
    for ax, factor in zip(axes, factors, strict=False):
        draw(ax, factor)
        ax.set_title(in_picture(factor), fontsize=12, fontweight="bold", loc="left")
        ax.spines[["top", "right"]].set_visible(False)
    for ax in axes[len(factors) :]:
        ax.set_axis_off()
    return written(figure, path)


def _draw_shares(ax: Axes, cohort: Cohort, factor: str) -> None:
    rows = cohort.sessions[cohort.sessions["factor"] == factor]
    by_day = len(cohort.conditions) == 1 and len(cohort.days) > 1
    groups = cohort.days if by_day else cohort.conditions
    column = "day" if by_day else "condition"
    rows = rows.assign(x=_places(rows, cohort, groups, by_day))
    animals = list(dict.fromkeys(rows["animal"]))
    for number, animal in enumerate(animals):
        own = rows[rows["animal"] == animal].sort_values("x")
        own = own.assign(x=own["x"] + BESIDE * (number / max(1, len(animals) - 1) - 0.5))
        color = LINES[number % len(LINES)]
        ax.plot(own["x"], own["share"], "-", color=color, lw=0.8, alpha=0.6)
        if not by_day:
            ax.plot(own["x"], own["share"], "o", color=color, ms=3, alpha=0.6, mec="none")
        means = own.groupby(column, sort=False)[["x", "share"]].mean()
        ax.plot(means["x"], means["share"], "o", color=color, ms=7, mec="white", zorder=3)
    for place, group in enumerate(groups):
        means = rows[rows[column] == group].groupby("animal")["share"].mean()
        ax.plot([place - 0.32, place + 0.32], [means.mean()] * 2, color="black", lw=1.5)
    names = [_counted(rows, column, group) for group in groups]
    ax.set_xticks(range(len(groups)), names, fontsize=9)
    ax.set_xlim(-0.6, len(groups) - 0.4)
    top = max(0.1, 1.08 * rows["share"].max()) if rows["share"].notna().any() else 1.0
    ax.set_ylim(-0.03 * top, top)
    ax.spines["left"].set_bounds(0, top)
    ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0 if top > 0.1 else None))
    ax.set_ylabel(cohort.called("share"))
    if by_day:
        ax.set_xlabel("day")
    _say_test(ax, cohort, factor, "share")


def _places(
    rows: pd.DataFrame, cohort: Cohort, groups: tuple[str, ...], by_day: bool
) -> list[float]:
    """Where each session is drawn: at its condition, days in their order within it."""
    if by_day:
        return [groups.index(day) for day in rows["day"]]
    days = {
        condition: [d for d in cohort.days if d in set(own["day"])]
        for condition, own in cohort.sessions.groupby("condition", sort=False)
    }
    placed = []
    for condition, day in zip(rows["condition"], rows["day"], strict=True):
        there = days[condition]
        share = there.index(day) / (len(there) - 1) - 0.5 if len(there) > 1 else 0.0
        placed.append(groups.index(condition) + 2 * SPREAD * share)
    return placed


def _counted(rows: pd.DataFrame, column: str, group: str) -> str:
    animals = rows.loc[(rows[column] == group) & rows["share"].notna(), "animal"].nunique()
    return f"{in_picture(group)}\n{animals} animal{'s' * (animals != 1)}"


def _draw_scores(ax: Axes, cohort: Cohort, factor: str) -> None:
    cells = cohort.cells[cohort.cells["factor"] == factor]
    low, high = np.nanquantile(cells["score"], [0.005, 0.995])
    grid = np.linspace(min(low, 0.0), high if high > low else low + 1, 200)
    for number, condition in enumerate(cohort.conditions):
        color = LINES[number % len(LINES)]
        own = cells[cells["condition"] == condition]
        curves = [_cumulative(each["score"], grid) for _, each in own.groupby("animal")]
        for curve in curves:
            ax.plot(grid, curve, color=color, lw=0.6, alpha=0.5)
        if curves:
            label = in_picture(condition) if len(cohort.conditions) > 1 else None
            ax.plot(grid, np.mean(curves, axis=0), color=color, lw=2.5, label=label)
    ax.set_xlabel(f"score ({title_of_method(cohort.method)})")
    ax.set_ylabel("share of cells below")
    ax.set_ylim(0, 1.01)
    if len(cohort.conditions) > 1:
        ax.legend(frameon=False, fontsize=9, loc="lower right")
    _say_test(ax, cohort, factor, "score")


def _cumulative(scores: pd.Series, grid: np.ndarray) -> np.ndarray:
    """Share of the scores up to each place of a grid."""
    return np.searchsorted(np.sort(scores.to_numpy()), grid, side="right") / len(scores)


def _say_test(ax: Axes, cohort: Cohort, factor: str, measure: str) -> None:
    if len(cohort.conditions) < 2:
        return
    test = cohort.test(factor, measure)
    if np.isnan(test.p) or test.too_few:
        ax.set_title("too few animals to compare", fontsize=9, loc="right", color=WARNING)
    else:
        ax.set_title(f"p = {test.p:.2g}, {test.design}", fontsize=9, loc="right", color=NOT_USED)
