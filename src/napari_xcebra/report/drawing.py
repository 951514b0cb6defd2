"""Figures as pictures of a page."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, Literal

from matplotlib import rc_context
from matplotlib.figure import Figure

from napari_xcebra.report.document import Picture
from napari_xcebra.report.page import data_address

INCH = 96
"""Pixels of a page."""

_KINDS = {"svg": "image/svg+xml", "webp": "image/webp"}
# without a date and with names of its own, the same figure gives the same bytes
_LOOK: Any = {"svg.hashsalt": "napari-xcebra", "font.size": 10, "axes.spines.top": False,
         "axes.spines.right": False}  # fmt: skip


def picture(
    draw: Callable[[], Figure], alt: str, caption: str = "", form: Literal["svg", "webp"] = "svg"
) -> Picture:
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
    return Picture(address, alt, caption, width=round(figure.get_size_inches()[0] * INCH))
