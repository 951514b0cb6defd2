"""Sizes and colours of pictures, for the screen and for papers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from napari_xcebra.report.figures.paper import COLUMN, PAGE

if TYPE_CHECKING:
    from matplotlib.colors import Colormap


@dataclass(frozen=True)
class Look:
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


SCREEN = Look((5.2, 10.4, 15.6), 14, 10, 9, 15, numbers=True)
PAPER = Look((COLUMN, PAGE, PAGE), 8, 7, 6, 8, numbers=False)
