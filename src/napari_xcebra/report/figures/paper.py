"""What all pictures share: sizes, colours, plain names, and how they are written for papers."""

from __future__ import annotations

import io
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.files import whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure


COLUMN, PAGE = 85 / 25.4, 180 / 25.4
"""Inches: widths of one column and of two, as most journals have them."""
FORMATS = ("pdf", "svg", "png")
DPI = 400
"""Of PNG files, and of images inside the others."""
FONTS = ("Arial", "Helvetica", "DejaVu Sans")
AS_TEXT: dict[Any, Any] = {"svg.fonttype": "none", "pdf.fonttype": 42, "ps.fonttype": 42}
"""Text is written as text, which any drawing program can change."""
STYLE: dict[Any, Any] = {
    **AS_TEXT,
    "font.family": "sans-serif",
    "font.size": 7,
    "axes.titlesize": 8,
    "axes.labelsize": 7,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "figure.labelsize": 7,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "lines.linewidth": 1.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
"""Sizes in points."""


def paper_style() -> AbstractContextManager[None]:
    """Draw and write figures for paper within this."""
    from matplotlib import rc_context

    # a font that is not there is no reason to print a warning for each text
    return rc_context(STYLE | {"font.sans-serif": _fonts()})


def _fonts() -> list[str]:
    from matplotlib.font_manager import fontManager

    there = {font.name for font in fontManager.ttflist}
    return [name for name in FONTS if name in there] or ["DejaVu Sans"]


def figure_bytes(figure: Figure, format: str) -> bytes:
    """A figure as the contents of a file of a format, cut to what is drawn."""
    contents = io.BytesIO()
    with paper_style():
        figure.savefig(
            contents, format=format, dpi=DPI, bbox_inches="tight", pad_inches=0.02,
            facecolor="white",
        )  # fmt: skip
    return contents.getvalue()


def save_figure(figure: Figure, path: Path) -> Path:
    """Write a figure, whole or not at all; the ending of the path is the format."""
    format = path.suffix.lower().removeprefix(".")
    if format not in FORMATS:
        raise InputError(
            f"{path} could not be written: a figure for a paper ends in "
            f"{', '.join(f'.{each}' for each in FORMATS)}."
        )
    contents = figure_bytes(figure, format)
    with whole(path) as file:
        file.write_bytes(contents)
    return path


# Okabe and Ito: told apart with any colour vision.
LINES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
NOT_USED, WARNING = "#808080", "#B03000"
SCREEN_DPI = 150


Where = str | PathLike[str] | None
"""File to write a picture to, whose ending says the format; None to only draw it."""


def in_picture(name: str) -> str:
    """A name as plain text: matplotlib reads a formula between dollar signs."""
    return name.replace("$", r"\$")


def written(figure: Figure, path: Where) -> Figure:
    """The figure, after writing it if there is a path; its ending says the format."""
    if path is not None:
        from matplotlib import rc_context

        with whole(path) as file, rc_context(AS_TEXT):
            figure.savefig(file, dpi=SCREEN_DPI)
    return figure


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


@dataclass(frozen=True)
class PictureSizes:
    """Sizes of a picture: widths in inches, text in points.

    Parameters
    ----------
    widths : tuple of float
        Of a picture with one panel, with two and with three beside each other.
    title, text, small, warning : float
    numbers : bool
        Whether the panels say how well their factor was found; in a paper the legend does.
    """

    widths: tuple[float, float, float]
    title: float
    text: float
    small: float
    warning: float
    numbers: bool


@dataclass(frozen=True, eq=False)
class Colors:
    """Colours of scores from low to high.

    Parameters
    ----------
    low, high : float
    table : (levels, 4) float, optional
        Viridis if not given.
    """

    low: float
    high: float
    table: np.ndarray | None = None

    @property
    def colormap(self) -> Colormap:
        """For matplotlib, which is imported when there is something to draw."""
        from matplotlib import colormaps
        from matplotlib.colors import ListedColormap

        return colormaps["viridis"] if self.table is None else ListedColormap(self.table)


SCREEN = PictureSizes((5.2, 10.4, 15.6), 14, 10, 9, 15, numbers=True)
PAPER = PictureSizes((COLUMN, PAGE, PAGE), 8, 7, 6, 8, numbers=False)
