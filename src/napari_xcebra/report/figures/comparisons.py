"""Draws the course of learning, and comparisons of methods, latents, sessions and sweeps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from napari_xcebra.attribution.comparison import Comparison, MatchedScores, short_number, title_of
from napari_xcebra.attribution.ranks import relative_ranks
from napari_xcebra.report.figures.paper import (
    LINES,
    NOT_USED,
    WARNING,
    Where,
    in_picture,
    written,
)
from napari_xcebra.text import two

if TYPE_CHECKING:
    from napari_xcebra.batch.hypotheses import Hypotheses, Hypothesis
    from napari_xcebra.learn import Fit
    from napari_xcebra.learn.joint.consistency import SessionConsistency
    from napari_xcebra.learn.quality.consistency import Dimensions


def consistency_by_dimension(dimensions: Dimensions, path: Where = None) -> Figure:
    """Consistency R² over numbers of latents, a line for each number of those of the factors.

    Every point is a number of latents with its standard error over pairs of seeds; the ring marks
    the one that is suggested.
    """
    figure = Figure(figsize=(6, 4))
    figure.set_layout_engine("constrained")
    ax = figure.subplots()
    for number, (name, line) in enumerate(dimensions.lines.items()):
        ax.errorbar(
            [dimensions.place(d) for d in line],
            [d.mean for d in line],
            [d.error for d in line],
            marker="o",
            capsize=3,
            color=LINES[number % len(LINES)],
            label=name,
        )
    chosen = dimensions.suggested
    place = (dimensions.place(chosen), chosen.mean)
    ax.plot(*place, "o", ms=14, mfc="none", mec="black", mew=1.5)
    ax.annotate(f"suggested: {chosen.words}", place, textcoords="offset points",
                xytext=(0, -22), ha="center")  # fmt: skip
    ax.set_xticks(sorted({dimensions.place(d) for d in dimensions.tried}))
    ax.set_xlabel(dimensions.axis)
    ax.set_ylabel("consistency R² between seeds")
    ax.margins(x=0.1, y=0.15)
    if len(dimensions.lines) > 1:
        ax.legend(frameon=False, title="latents")
    return written(figure, path)


ROW = 0.3
"""Height of a method, in inches."""
NOTHING = "#D9D9D9"


def hypotheses_side_by_side(found: Hypotheses, path: Where = None) -> Figure:
    """A row a hypothesis: nats and R² of each seed beside those of shuffled labels; consistency."""
    rows = found.ranked[::-1]
    figure = Figure(figsize=(9, 1.6 + 0.4 * len(rows)))
    figure.set_layout_engine("constrained")
    panels: tuple[tuple[str, Callable[[Hypothesis], Sequence[float]], str], ...] = (
        ("goodness (nats above chance)", lambda h: h.goodness, "shuffled_goodness"),
        ("R² of decoding, held out", lambda h: h.r2, "shuffled_r2"),
        ("consistency R² between seeds", lambda h: (h.consistency,), ""),
    )
    for ax, (title, values, null) in zip(figure.subplots(1, 3, sharey=True), panels, strict=True):
        for place, each in enumerate(rows):
            for number, value in enumerate(values(each)):
                label = "trained on the labels" if not (place or number) else None
                ax.plot(value, place, "o", color=LINES[0], label=label)
            for number, value in enumerate(getattr(each, null) if null else ()):
                label = "on shuffled labels" if not (place or number) else None
                ax.plot(value, place, "o", mfc="none", color=NOT_USED, label=label)
        ax.set_xlabel(title)
        ax.margins(x=0.1, y=0.15)
        if null:
            ax.axvline(0, color=NOT_USED, lw=0.8)
    first = figure.axes[0]
    first.set_yticks(range(len(rows)), [in_picture(each.name) for each in rows])
    figure.legend(
        *first.get_legend_handles_labels(), loc="outside upper center", ncols=2, frameon=False
    )
    return written(figure, path)


def methods_side_by_side(comparison: Comparison, path: Where = None) -> Figure:
    """For every factor the rank correlations of all methods, and the rank of every cell by each.

    On the left Spearman's ρ between each two methods or statistics. On the right a column a cell,
    from the highest mean rank over the methods to the lowest: a row in which bright and dark are
    mixed ranks the cells differently.
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
    image = ax.imshow(values, cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto")
    _write_numbers(ax, image, values, short_number, 7)
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


CELL = 0.55
"""Side of a pair of sessions in a matrix, in inches."""


def consistency_between_sessions(found: SessionConsistency, path: Where = None) -> Figure:
    """R² between each two sessions after alignment, a matrix a factor."""
    side = max(2.2, CELL * len(found.sessions)) + 1.3
    across = len(found.r2)
    figure = Figure(figsize=(side * across + 0.9, side + 0.6))
    figure.set_layout_engine("constrained")
    axes = figure.subplots(1, across, squeeze=False)[0]
    for number, (ax, (factor, r2)) in enumerate(zip(axes, found.r2.items(), strict=True)):
        image = _draw_matrix(ax, r2, found.sessions, "viridis", (0.0, 1.0))
        ax.set_title(factor, fontsize=13, fontweight="bold", loc="left")
        ax.set_xlabel(f"explained (chance: {found.chance[factor]:.2f})", fontsize=9)
        if number == 0:
            ax.set_ylabel("explains", fontsize=9)
    figure.colorbar(image, ax=axes, label="consistency R² after alignment", shrink=0.8, aspect=25)
    return written(figure, path)


def matched_cells(matched: MatchedScores, path: Where = None) -> Figure:
    """Matched cells day by day: correlation of their scores, and the rank of every cell.

    On the left Spearman's ρ of the scores between each two sessions; on the right a row a session
    and a column a cell, from the highest mean rank to the lowest. Grey where a cell was not found.
    """
    side, down = max(1.6, CELL * len(matched.sessions)), len(matched.factors)
    figure = Figure(figsize=(side + 7.8, (side + 1.0) * down + 0.3))
    figure.set_layout_engine("constrained", h_pad=0.1)
    grid = figure.subplots(down, 2, squeeze=False, width_ratios=(side, 6.0))
    for (left, right), factor in zip(grid, matched.factors, strict=True):
        rho = matched.correlations(factor).to_numpy()
        _draw_matrix(left, rho, matched.sessions, "RdBu_r", (-1.0, 1.0))
        left.set_title(factor, fontsize=13, fontweight="bold", loc="left")
        left.set_xlabel("Spearman's ρ", fontsize=9)
        shares = matched.shares[factor]
        order = np.argsort(-np.nan_to_num(np.nanmean(shares, axis=1), nan=-1), kind="stable")
        right.set_facecolor(NOTHING)
        image = right.imshow(shares[order].T, cmap="viridis", vmin=0, vmax=1, aspect="auto",
                             interpolation="nearest")  # fmt: skip
        right.set_yticks(range(len(matched.sessions)), matched.sessions, fontsize=8)
        right.set_xlabel(f"{len(order)} matched cells, by their mean rank", fontsize=9)
        right.set_title("rank among all cells of the session", fontsize=10, loc="left")
        if doubtful := matched.where_at_chance(factor):
            where = ", ".join(doubtful) if len(doubtful) < 3 else f"{len(doubtful)} sessions"
            right.set_title(f"at chance in {where}", fontsize=10, loc="right", color=WARNING)
        bar = figure.colorbar(image, ax=right, label="rank", pad=0.02, aspect=20)
        bar.set_ticks([0, 1], labels=["last", "first"])
    return written(figure, path)


def _draw_matrix(
    ax: Axes,
    values: np.ndarray,
    names: Sequence[str],
    colours: str,
    limits: tuple[float, float],
) -> AxesImage:
    """A square of numbers between sessions; grey where there is none."""
    ax.set_facecolor(NOTHING)
    image = ax.imshow(values, cmap=colours, vmin=limits[0], vmax=limits[1])
    _write_numbers(ax, image, values)
    ax.set_xticks(range(len(names)), names, rotation=40, ha="right", fontsize=8)
    ax.set_yticks(range(len(names)), names, fontsize=8)
    return image


def _write_numbers(
    ax: Axes,
    image: AxesImage,
    values: np.ndarray,
    form: Callable[[float], str] = two,
    size: float = 8,
) -> None:
    """Write each number into its square, in white where the square is dark."""
    for (row, column), value in np.ndenumerate(values):
        if np.isfinite(value):
            shade = image.cmap(image.norm(value))
            dark = np.dot(shade[:3], (0.299, 0.587, 0.114)) < 0.5
            ax.text(column, row, form(value), ha="center", va="center", fontsize=size,
                    color="white" if dark else "black")  # fmt: skip


OTHERS = {"r2": "ridge_r2", "accuracy": "ridge_accuracy"}
"""The ridge regression that a measure is compared with."""

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
    decoded = {f: "accuracy" if _has_values(table, f"accuracy {f}") else "r2" for f in factors}
    rows: list[dict[str, str]] = [dict.fromkeys(factors, "goodness")]
    if any(_has_values(table, f"{decoded[f]} {f}") for f in factors):
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


def _has_values(table: pd.DataFrame, column: str) -> bool:
    return column in table and bool(table[column].notna().any())


def _draw(ax: Axes, table: pd.DataFrame, knob: str, column: str, beside: str) -> None:
    """A dot for each run, and the mean at each value; dashed, the mean of the comparison."""
    if not _has_values(table, column):
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
    if _has_values(table, beside):
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
        _write_numbers(ax, shown, values, size=7)
    figure.colorbar(shown, ax=ax)
    return figure


def learning_curves(fit: Fit, path: Where = None) -> Figure:
    """Loss of every factor with its chance level, and the penalty with λ, over the steps."""
    figure = Figure(figsize=(7.5, 6))
    figure.set_layout_engine("constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    _draw_losses(above, fit)
    _draw_penalty(below, fit)
    _shade_phases(above, below, fit)
    return written(figure, path)


def _draw_losses(ax: Axes, fit: Fit) -> None:
    supervised = fit.settings.mode == "supervised"
    chance = 1.0 if supervised else float(np.log(fit.settings.negatives))
    step = fit.history["step"]
    for number, factor in enumerate(fit.factors):
        colour = LINES[number % len(LINES)]
        ax.plot(step, fit.history[factor], color=colour, label=in_picture(factor))
        if not supervised:
            # chance differs with the number of negatives; the distance to it does not
            ax.plot(step[-1:], chance - fit.goodness[factor].goodness, "o", mfc="white",
                    mec=colour, clip_on=False, zorder=5)  # fmt: skip
    ax.axhline(chance, color="black", ls="--", lw=1, label="chance")
    if not supervised:
        ax.plot([], [], "o", mfc="white", mec="black", label="on held-out frames")
    ax.set_ylabel("mean squared error" if supervised else "InfoNCE (nats)")
    ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.01, 0.5))


def _draw_penalty(ax: Axes, fit: Fit) -> None:
    step, penalty = fit.history["step"], fit.history["penalty"]
    ax.plot(step, penalty, color=LINES[0])
    ax.set_ylabel("penalty ‖J‖²", color=LINES[0])
    low, high = np.nanmin(penalty, initial=np.inf), np.nanmax(penalty, initial=-np.inf)
    if 0 < 10 * low < high < np.inf:
        ax.set_yscale("log")
    else:
        ax.set_ylim(bottom=0)
    weight = ax.twinx()
    weight.plot(step, fit.history["lambda"], color=LINES[1])
    weight.set_ylabel("largest λ" if lambdas_differ(fit) else "λ", color=LINES[1])
    weight.set_ylim(bottom=0)
    ax.set_xlabel("step")


def _shade_phases(above: Axes, below: Axes, fit: Fit) -> None:
    """Where λ is zero, raised and held."""
    steps, settle = fit.settings.steps, fit.settings.settle
    edges = [0, settle * steps, _find_held_step(fit), steps]
    phases = (("settling (λ = 0)", 0.0), ("raising λ", 0.06), ("holding λ", 0.0))
    for (name, shade), left, right in zip(phases, edges[:-1], edges[1:], strict=True):
        if left >= fit.steps or right <= left:
            continue
        right = min(right, fit.steps)
        for ax in (above, below):
            ax.axvspan(left, right, color="black", alpha=shade, lw=0)
        above.text((left + right) / 2, 1.02, name, ha="center", fontsize=9,
                   transform=above.get_xaxis_transform())  # fmt: skip
    above.set_xlim(0, fit.steps)


def _find_held_step(fit: Fit) -> float:
    """Step from which λ is held."""
    if fit.settings.lambda_ != "auto":
        return (fit.settings.settle + fit.settings.ramp) * fit.settings.steps
    moving = fit.history["step"][fit.history["lambda"] != fit.lambda_]
    return float(moving.max(initial=fit.settings.settle * fit.settings.steps))


def lambdas_differ(fit: Fit) -> bool:
    """Whether the parts of the embedding ended with different λ."""
    return len({part.lambda_ for part in fit.parts if not np.isnan(part.lambda_)}) > 1
