"""Draws the embedding as it was turned on screen, for a paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from napari_xcebra.report.figures.paper import COLUMN, paper_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Key:
    """What the colours of points mean.

    Parameters
    ----------
    title : str
        The variable, with its unit.
    colors : (levels, 3) uint8
        From the lowest to the highest value.
    labels : sequence of str
        Of the two ends, of what lies between them, or one for each colour.
    """

    title: str
    colors: np.ndarray
    labels: Sequence[str]


def cloud_figure(
    places: np.ndarray,
    colors: np.ndarray,
    shape: tuple[int, int],
    names: Sequence[str],
    turn: np.ndarray,
    key: Key | None,
) -> Figure:
    """Points as they lie on screen.

    Parameters
    ----------
    places : (points, 2) float
        Pixels from the upper left corner.
    colors : (points, 3) uint8
    shape : (int, int)
        Width and height of the widget in pixels.
    names : sequence of str
        Of the two or three axes.
    turn : (3, 3) float
        Columns are where the axes point, right and up, if there are three.
    key : Key or None
    """
    from matplotlib.figure import Figure

    width, height = shape
    with paper_style():
        figure = Figure(figsize=(COLUMN, COLUMN * height / width + 0.4))
        ax = figure.add_axes((0, 0.12, 1, 0.88))
        ax.set_axis_off()
        ax.set(xlim=(0, width), ylim=(height, 0), aspect="equal")
        # an image: thousands of points would stop a drawing program
        x, y = places.T
        ax.scatter(x, y, s=1.5, c=colors / 255, linewidths=0, rasterized=True)
        if len(names) == 3:
            _draw_triad(ax, names, turn, height)
        else:
            ax.text(1, 0, f"{names[0]} →", transform=ax.transAxes, ha="right", va="bottom")
            ax.text(0, 1, f"↑ {names[1]}", transform=ax.transAxes, va="top")
        if key is not None and len(key.colors):
            draw_key(figure.add_axes((0.2, 0.07, 0.6, 0.025)), key)
    return figure


def _draw_triad(ax: Axes, names: Sequence[str], turn: np.ndarray, height: int) -> None:
    corner = np.array([34.0, height - 34.0])
    for name, axis in zip(names, turn.T, strict=True):
        end = corner + 24 * np.array([axis[0], -axis[1]])
        ax.plot(*np.stack([corner, end]).T, color="black", lw=0.8)
        ax.annotate(name, end, (2, 0), textcoords="offset points")


def draw_key(ax: Axes, key: Key) -> None:
    """A strip with the labels below it, and the variable with its unit."""
    ax.imshow(key.colors[None], aspect="auto", extent=(0, 1, 0, 1))
    count = len(key.labels)
    each = count == len(key.colors)
    at = (np.arange(count) + 0.5) / count if each else np.linspace(0, 1, count)
    ax.set_xticks(at, key.labels)
    ax.set(yticks=[], xlabel="" if key.title in key.labels else key.title)
    ax.tick_params(length=0, pad=2)
    ax.spines[:].set_visible(False)
