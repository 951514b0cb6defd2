"""What all pictures share: colours of lines, names as plain text, and how they are written."""

from __future__ import annotations

from os import PathLike

from matplotlib import rc_context
from matplotlib.figure import Figure

from napari_xcebra.files import whole
from napari_xcebra.report.figures.paper import AS_TEXT

# Okabe and Ito: told apart with any colour vision.
LINES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
NOT_USED, WARNING = "#808080", "#B03000"
DPI = 150


Where = str | PathLike[str] | None
"""File to write a picture to, whose ending says the format; None to only draw it."""


def in_picture(name: str) -> str:
    """A name as plain text: matplotlib reads a formula between dollar signs."""
    return name.replace("$", r"\$")


def written(figure: Figure, path: Where) -> Figure:
    """The figure, after writing it if there is a path; its ending says the format."""
    if path is not None:
        with whole(path) as file, rc_context(AS_TEXT):
            figure.savefig(file, dpi=DPI)
    return figure
