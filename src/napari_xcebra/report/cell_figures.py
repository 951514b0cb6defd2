"""Figures of single cells and frames: tuning of the best cells, and the embedding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.projections.polar import PolarAxes

from napari_xcebra.figures import LINES, in_picture
from napari_xcebra.learn.parts import Part
from napari_xcebra.recording import Recording
from napari_xcebra.tuning import Bins, Column, TuningCurve, TuningMap, columns_of, tuning_to

CELLS_ACROSS = 6
MOST_POINTS = 3000
"""Frames that are drawn of an embedding; of a longer recording some, evenly spaced."""


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
        ax.set_xticks(range(len(mean)), [f"{value:g}" for value in curve.bins.values])
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
    """What a quarter turn is called in the column's own unit, radians as degrees."""
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
