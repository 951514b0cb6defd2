"""Draws a scale bar into an imaged field."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke

from napari_xcebra.text import round_length

SHARE, MARGIN = 0.25, 0.04
"""Of the width of the field: the longest bar, and its distance from the edge."""
BEHIND = {"facecolor": "black", "alpha": 0.45, "edgecolor": "none", "pad": 0.6}
"""What white text on an image stands on; text with an outline would be written as curves."""


def draw_scale_bar(ax: Axes, pixel_size: float, width: float, text: float) -> None:
    """Draw a bar of a round length, with the length above it, into the lower right corner.

    Parameters
    ----------
    ax : Axes
        In pixels, rows downwards.
    pixel_size : float
        Micrometres.
    width : float
        Pixels of the field, or of one of its planes.
    text : float
        Points.
    """
    length = round_length(SHARE * width * pixel_size)
    right = max(ax.get_xlim()) - MARGIN * width
    bottom = max(ax.get_ylim()) - MARGIN * width
    left = right - length / pixel_size
    ax.plot([left, right], [bottom, bottom], color="white", lw=2, solid_capstyle="butt",
            path_effects=[withStroke(linewidth=3, foreground="black")])  # fmt: skip
    ax.annotate(f"{length:g} µm", (right, bottom), (0, 2), ha="right", va="bottom",
                textcoords="offset points", color="white", fontsize=text,
                bbox=BEHIND)  # fmt: skip
