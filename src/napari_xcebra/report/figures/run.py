"""Draws the figures of a run's report: evidence, cells, responses to events, and embedding."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from matplotlib import colormaps, rc_context
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.projections.polar import PolarAxes

from napari_xcebra.attribution import Attribution
from napari_xcebra.attribution.single_cell.tuning import (
    Bins,
    Column,
    TuningCurve,
    TuningMap,
    columns_of,
    tuning_to,
)
from napari_xcebra.learn import Goodness
from napari_xcebra.learn.data.factors import Part
from napari_xcebra.recording.events import PeriEvent, peri_event, usual_view
from napari_xcebra.recording.recording import Recording
from napari_xcebra.report.document import PagePicture, data_address
from napari_xcebra.report.figures.paper import LINES, NOT_USED, in_picture

INCH = 96
"""Pixels of a page."""

_KINDS = {"svg": "image/svg+xml", "webp": "image/webp"}
# without a date and with names of its own, the same figure gives the same bytes
_LOOK: Any = {"svg.hashsalt": "napari-xcebra", "font.size": 10, "axes.spines.top": False,
         "axes.spines.right": False}  # fmt: skip


def picture(
    draw: Callable[[], Figure], alt: str, caption: str = "", form: Literal["svg", "webp"] = "svg"
) -> PagePicture:
    """Draw a figure and put it into a page.

    Parameters
    ----------
    draw : callable
        Makes the figure.
    alt, caption : str
    form : {"svg", "webp"}
        Lines stay sharp as svg; images of a field, noise and all, are smaller as webp.
    """
    how: dict[str, Any] = {"metadata": {"Date": None}}
    if form == "webp":
        how = {"dpi": 150, "pil_kwargs": {"quality": 82}}
    with rc_context(_LOOK), io.BytesIO() as content:
        figure = draw()
        figure.savefig(content, format=form, **how)
        address = data_address(content.getvalue(), _KINDS[form])
    return PagePicture(address, alt, caption, width=round(figure.get_size_inches()[0] * INCH))


FOUND, CHANCE, PALE = LINES[0], "#C8CDD3", "#B9C2CC"
Q = 0.1
"""q up to which a cell counts as carrying a factor."""


def goodness_beside_chance(goodness: Mapping[str, Goodness]) -> Figure:
    """A row a factor: goodness with its standard error, over what shifted labels reach."""
    figure = Figure(figsize=(7.5, 0.9 + 0.42 * len(goodness)))
    figure.set_layout_engine("constrained")
    ax = figure.subplots()
    # outliers would squeeze the rest together: they are written at the edge
    reach = 1.5 * max(0.1, *(one.goodness + np.nan_to_num(one.error) for one in goodness.values()))
    ax.set_xlim(-reach, reach)
    for row, one in enumerate(goodness.values()):
        _draw_goodness(ax, row, one, reach)
    ax.axvline(0, color="black", lw=0.8)
    ax.set_yticks(range(len(goodness)), [in_picture(name) for name in goodness])
    ax.set_ylim(len(goodness) - 0.4, -0.6)
    ax.set_xlabel("goodness of fit on held-out frames (nats above chance)")
    ax.plot([], [], "o", color=FOUND, label="held-out, ± standard error")
    if any(one.strength == "not tested" for one in goodness.values()):
        ax.plot([], [], "D", mfc="white", mec=FOUND, label="not tested")
    ax.plot([], [], "o", mfc="white", mec=NOT_USED, label="training frames")
    ax.plot([], [], color=CHANCE, lw=8, label="labels shifted in time, 5–95 %")
    figure.legend(loc="outside upper left", ncols=4, frameon=False, fontsize=9, columnspacing=1.2,
                  handletextpad=0.7)  # fmt: skip
    return figure


def _draw_goodness(ax: Axes, row: int, one: Goodness, reach: float) -> None:
    if one.null_high < -reach:
        _tell_at_edge(ax, row, f"◂ {one.null_low:.1f} to {one.null_high:.1f}", left=True)
    elif np.isfinite([one.null_low, one.null_high]).all():
        ax.barh(row, one.null_high - one.null_low, 0.5, one.null_low, color=CHANCE)
    if one.training > reach:
        _tell_at_edge(ax, row, f"training {one.training:.1f} ▸", left=False)
    elif np.isfinite(one.training):
        ax.plot(one.training, row, "o", mfc="white", mec=NOT_USED, ms=6)
    colour = NOT_USED if one.strength == "at chance" else FOUND
    untested = one.strength == "not tested"
    ax.errorbar(one.goodness, row, xerr=np.nan_to_num(one.error), fmt="D" if untested else "o",
                mfc="white" if untested else colour, color=colour, capsize=4, ms=7)  # fmt: skip


def _tell_at_edge(ax: Axes, row: int, text: str, *, left: bool) -> None:
    ax.annotate(text.replace("-", "−"), (0 if left else 1, row), (4 if left else -4, 0),
                ha="left" if left else "right", va="center", fontsize=8, color=NOT_USED,
                xycoords=("axes fraction", "data"), textcoords="offset points")  # fmt: skip


def score_histogram(attribution: Attribution, factor: str) -> Figure:
    """Histogram of a factor's scores over the cells, with the threshold z = 0."""
    score = attribution.score(factor)
    used = np.isfinite(score)
    known = score[used].astype(float)
    figure = Figure(figsize=(4.2, 3.4))
    figure.set_layout_engine("constrained")
    ax = figure.subplots()
    edges = np.histogram_bin_edges(known, min(40, max(8, len(known) // 6)))
    meaningless, tested = attribution.at_chance(factor), attribution.significance
    significant = np.zeros(len(score), bool) if tested is None else tested.q(factor) <= Q
    several = bool(significant[used].any()) and not meaningless
    parts = [known[significant[used]], known[~significant[used]]] if several else [known]
    colours = [FOUND, PALE] if several else [NOT_USED if meaningless else FOUND]
    labels = [f"q ≤ {Q:g}", "others"] if several else [""]
    ax.hist(parts, edges.tolist(), stacked=True, color=colours, label=labels)
    if not meaningless:
        ax.axvline(known.mean(), color="black", ls="--", lw=1, label="z = 0")
        ax.legend(frameon=False, fontsize=9)
    ax.set_xlabel("score")
    ax.set_ylabel("cells")
    return figure


CELLS_ACROSS = 6
MOST_POINTS = 3000
"""Most frames drawn of an embedding, evenly spaced."""


def tuning_in_words(
    recording: Recording, factor: str, variables: Sequence[str], cells: np.ndarray
) -> PagePicture:
    """Tuning of a factor's best cells, with a caption; `cells` as of `tuning_of_cells`."""
    columns = len(columns_of(recording, variables))
    what = "Mean activity over the variable, with its standard error over blocks of time"
    if columns > 1:
        what = "Mean activity, each map from its lowest (dark) to its highest value"
        what += f"; the first 2 of {columns} columns" if columns > 2 else ""
    names = ", ".join(str(np.asarray(recording.cell_ids)[cell]) for cell in cells)
    return picture(
        lambda: tuning_of_cells(recording, variables, cells),
        f"Tuning of the cells {names} to {factor}",
        f"The {len(cells)} cells with the highest score. {what}.",
    )


def tuning_of_cells(recording: Recording, variables: Sequence[str], cells: np.ndarray) -> Figure:
    """Tuning of some cells to a factor's variables, the first two columns if there are more.

    Parameters
    ----------
    cells : (n,) int
        Positions in the recording, the best first.
    """
    columns = columns_of(recording, variables)[:2]
    used = ~np.asarray(recording.excluded)
    tuning = tuning_to(columns, np.asarray(recording.traces[:, cells]), used)
    around = isinstance(tuning, TuningCurve) and tuning.bins.column.kind == "circular"
    figure = Figure(figsize=(9.4, 2.1))
    figure.set_layout_engine("constrained", w_pad=0.05)
    grid = figure.subplots(
        1, CELLS_ACROSS, squeeze=False, subplot_kw={"projection": "polar"} if around else {}
    )[0]
    names = np.asarray(recording.cell_ids)[cells]
    for number, ax in enumerate(grid):
        if number >= len(cells):
            ax.set_axis_off()
            continue
        if isinstance(tuning, TuningMap):
            _draw_map(ax, tuning, number)
        elif isinstance(ax, PolarAxes):
            _draw_around(ax, tuning, number)
        else:
            _draw_curve(ax, tuning, number)
        ax.set_title(f"cell {names[number]}", fontsize=10)
    _label(grid[0], tuning)
    return figure


def _draw_map(ax: Axes, tuning: TuningMap, cell: int) -> None:
    across, up = tuning.across, tuning.up
    ax.pcolormesh(across.edges, up.edges, tuning.mean[..., cell], cmap="viridis", rasterized=True)
    same = across.column.unit == up.column.unit
    ax.set_aspect("equal" if same and across.column.kind == up.column.kind else "auto")
    ax.set(xticks=[], yticks=[])


def _draw_curve(ax: Axes, curve: TuningCurve, cell: int) -> None:
    mean, error = curve.mean[:, cell], np.nan_to_num(curve.error[:, cell])
    if curve.bins.column.kind == "discrete":
        ax.bar(range(len(mean)), mean, 0.8, yerr=error, color=LINES[0], error_kw={"lw": 1})
        ax.set_xticks(range(len(mean)), [*map(curve.bins.column.called, curve.bins.values)])
    else:
        ax.fill_between(curve.bins.values, mean - error, mean + error, color=LINES[0], alpha=0.25,
                        lw=0)  # fmt: skip
        ax.plot(curve.bins.values, mean, color=LINES[0], marker=".", ms=3, lw=1.2)
    ax.tick_params(labelsize=7)
    ax.margins(x=0.02)


def _draw_around(ax: PolarAxes, curve: TuningCurve, cell: int) -> None:
    closed = np.append(np.arange(len(curve.bins)), 0)
    angle = curve.bins.values[closed] * (2 * np.pi / curve.bins.column.period)
    mean, error = curve.mean[closed, cell], np.nan_to_num(curve.error[closed, cell])
    low = min(0.0, float(np.nanmin(mean - error, initial=0)))
    ax.fill_between(angle, np.maximum(mean - error, low), mean + error, color=LINES[0], alpha=0.25)
    ax.plot(angle, mean, color=LINES[0], lw=1.2)
    ax.set_rlim(low, None)
    ax.set_xticks(np.arange(4) * np.pi / 2, [_turned(curve.bins.column, q) for q in range(4)])
    ax.set_yticklabels([])
    ax.tick_params(labelsize=6, pad=-3)
    ax.grid(lw=0.4)


def _turned(column: Column, quarter: int) -> str:
    """A quarter turn in the column's own unit, radians as degrees."""
    if np.isclose(column.period, 2 * np.pi) or np.isclose(column.period, 360):
        return f"{90 * quarter}°"
    return f"{column.period * quarter / 4:.3g}"


def _label(ax: Axes, tuning: TuningCurve | TuningMap) -> None:
    if isinstance(tuning, TuningMap):
        ax.set_xlabel(_ends(tuning.across), fontsize=8)
        ax.set_ylabel(_ends(tuning.up), fontsize=8)
    elif not isinstance(ax, PolarAxes):
        ax.set_xlabel(in_picture(tuning.bins.column.title), fontsize=8)
        ax.set_ylabel("mean activity", fontsize=8)


def _ends(bins: Bins) -> str:
    low, high, unit = bins.edges[0], bins.edges[-1], bins.column.unit
    return in_picture(f"{bins.column.name}\n{low:.3g} to {high:.3g} {unit}".rstrip())


def embedding_by_variable(
    latents: np.ndarray, frames: np.ndarray, recording: Recording, part: Part
) -> Figure:
    """Embedding of a factor at some frames, a panel for each of its variables' columns.

    One latent is drawn against the variable, two against each other, and of more their first two
    principal components.

    Parameters
    ----------
    latents : (n, latents) float
        Those of the factor, at `frames`.
    frames : (n,) int
    """
    columns = columns_of(recording, part.variables) or [
        Column("time", np.asarray(recording.times), unit="s")
    ]
    columns = columns[:3]
    figure = Figure(figsize=(3.6 * len(columns) + 0.2, 3.1))
    figure.set_layout_engine("constrained")
    for ax, column in zip(figure.subplots(1, len(columns), squeeze=False)[0], columns, strict=True):
        _draw_cloud(ax, latents, frames, column)
    return figure


def _draw_cloud(ax: Axes, latents: np.ndarray, frames: np.ndarray, column: Column) -> None:
    values = column.values[frames]
    there = np.isfinite(values) & np.isfinite(latents).all(1)
    points, values = latents[there], values[there]
    look: dict[str, Any] = {"s": 5, "lw": 0, "rasterized": True}
    title = in_picture(column.title)
    if points.shape[1] == 1:
        ax.scatter(values, points[:, 0], color=LINES[0], alpha=0.4, **look)
        ax.set(xlabel=title, ylabel="latent")
        return
    flat = _principal(points) if points.shape[1] > 2 else points
    circular = column.kind == "circular"
    if circular:
        values, limits = values % column.period, (0.0, column.period)
    else:
        limits = tuple(np.percentile(values, (1, 99))) if len(values) else (0.0, 1.0)
    shown = ax.scatter(flat[:, 0], flat[:, 1], c=values, cmap="twilight" if circular else "viridis",
                       norm=Normalize(*limits), **look)  # fmt: skip
    ax.figure.colorbar(shown, ax=ax, label=title, aspect=30)
    names = ("component", "component") if points.shape[1] > 2 else ("latent", "latent")
    ax.set(xlabel=f"{names[0]} 1", ylabel=f"{names[1]} 2")


def _principal(points: np.ndarray) -> np.ndarray:
    """First two principal components: (n, 2)."""
    centred = points - points.mean(0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    flat: np.ndarray = centred @ axes[:2].T
    return flat


def responses_in_words(
    recording: Recording, factor: str, variables: Sequence[str], cells: np.ndarray
) -> PagePicture | None:
    """Responses of a factor's best cells, with a caption; None if it is no event or trial variable.

    Parameters
    ----------
    cells : (n,) int
        Positions in the recording, the best first.
    """
    view = usual_view(recording, variables)
    if view is None:
        return None
    event, by = view
    split = f", by {by}" if by else ""
    names = ", ".join(str(np.asarray(recording.cell_ids)[cell]) for cell in cells)
    return picture(
        lambda: _responses_of_cells(recording, event, by, cells),
        f"Responses of the cells {names} around {event}{split}, for {factor}",
        f"The {len(cells)} cells with the highest score around {event}{split}: mean, and its "
        "standard error over single times.",
    )


def _responses_of_cells(
    recording: Recording, event: str, by: str | None, cells: np.ndarray
) -> Figure:
    """Mean and standard error of some cells around an event, a line for each group."""
    ids = np.asarray(recording.cell_ids)[cells]
    around = peri_event(recording, event, by=by, cells=ids.tolist())
    figure = Figure(figsize=(9.4, 2.1))
    figure.set_layout_engine("constrained", w_pad=0.05)
    grid = figure.subplots(1, CELLS_ACROSS, squeeze=False)[0]
    colors = _colors(len(around.groups))
    for number, ax in enumerate(grid):
        if number >= len(cells):
            ax.set_axis_off()
            continue
        _draw(ax, around, number, colors)
        ax.set_title(f"cell {ids[number]}", fontsize=10)
    grid[0].set_xlabel(in_picture(f"s from {event}"), fontsize=8)
    grid[0].set_ylabel(recording.origin.axis, fontsize=8)
    if by:
        _add_key(figure, grid[0], around, by)
    return figure


def _colors(groups: int) -> list[str]:
    """Distinct colours, or from low to high if there are many groups."""
    if groups <= len(LINES):
        return list(LINES[:groups])
    table = colormaps["viridis"](np.linspace(0, 0.9, groups))
    return ["#" + "".join(f"{round(255 * part):02x}" for part in color[:3]) for color in table]


def _draw(ax: Axes, around: PeriEvent, cell: int, colors: list[str]) -> None:
    mean, error = around.mean()[..., cell], np.nan_to_num(around.sem()[..., cell])
    ax.axvline(0, color="black", ls="--", lw=0.8)
    for m, e, color in zip(mean, error, colors, strict=True):
        ax.fill_between(around.seconds, m - e, m + e, color=color, alpha=0.25, lw=0)
        ax.plot(around.seconds, m, color=color, lw=1.2)
    ax.tick_params(labelsize=7)
    ax.margins(x=0)


def _add_key(figure: Figure, ax: Axes, around: PeriEvent, by: str) -> None:
    """Groups beside the cells, with the number of moments of each."""
    group = around.moments.group
    counts = np.bincount(group[group >= 0], minlength=len(around.groups))
    lines = ax.get_lines()[1:]  # the first is the event
    # a name that begins with "_" would be left out: a space comes first
    labels = [f" {in_picture(name)} ({count})"
              for name, count in zip(around.groups, counts, strict=True)]  # fmt: skip
    figure.legend(lines, labels, loc="outside right upper", title=in_picture(by), frameon=False,
                  fontsize=8, title_fontsize=8)  # fmt: skip
