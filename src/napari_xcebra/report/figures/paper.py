"""Writes figures for papers: text that stays text, a white background, widths of columns."""

from __future__ import annotations

import io
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from napari_xcebra.errors import InputError
from napari_xcebra.files import whole

if TYPE_CHECKING:
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
