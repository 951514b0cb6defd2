"""Judges what files say about the size of a pixel: units, defaults nobody chose, and nonsense."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

LEAST, MOST = 0.01, 100.0
"""Micrometres that a pixel of a microscope may have; 72 dots per inch, say, are 353 of them."""
SQUARE = 0.02
"""Share by which height and width may differ before it is told."""

_MICROMETRES = {
    **dict.fromkeys(("µm", "μm", "um", r"\u00b5m", "micron", "microns"), 1.0),
    **dict.fromkeys(("micrometer", "micrometers", "micrometre", "micrometres"), 1.0),
    **dict.fromkeys(("nm", "nanometer", "nanometers", "nanometre", "nanometres"), 1e-3),
    **dict.fromkeys(("mm", "millimeter", "millimeters", "millimetre", "millimetres"), 1e3),
    **dict.fromkeys(("cm", "centimeter", "centimeters"), 1e4),
    **dict.fromkeys(("m", "meter", "meters", "metre", "metres"), 1e6),
    **dict.fromkeys(("inch", "inches", "in"), 25_400.0),
}


def micrometres(unit: Any) -> float | None:
    """Micrometres in a unit of length; None if it is none.

    >>> micrometres("microns"), micrometres("meters"), micrometres("pixels")
    (1.0, 1000000.0, None)
    """
    return _MICROMETRES.get(str(unit).strip().lower())


def judged(width: Any, height: Any = None) -> tuple[float | None, tuple[str, ...]]:
    """Micrometres per pixel, and notes; None if it cannot be true.

    Parameters
    ----------
    width, height : number
        Of a pixel, in micrometres; the height is the same if it is not given.

    >>> judged(0.8, 0.8), judged(352.8)
    ((0.8, ()), (None, ()))
    """
    try:
        across, down = float(width), float(width if height is None else height)
    except (TypeError, ValueError, OverflowError):
        return None, ()
    if not (LEAST <= across <= MOST and LEAST <= down <= MOST):
        return None, ()
    if abs(across - down) <= SQUARE * across:
        return across, ()
    note = (
        f"Pixels are {across:.3g} µm wide and {down:.3g} µm high, but are drawn as squares: the "
        "scale bar is for the width."
    )
    return across, (note,)


def pair(value: Any) -> tuple[float, float] | None:
    """The first two of one to three numbers, or one of them twice; None of anything else."""
    try:
        numbers = np.asarray(value, np.float64).reshape(-1)
    except (TypeError, ValueError, OverflowError):
        return None
    if len(numbers) not in (1, 2, 3) or not np.isfinite(numbers).all():
        return None
    return float(numbers[0]), float(numbers[min(1, len(numbers) - 1)])


def of_description(text: str, resolution: tuple[float, float] | None, unit: int) -> float | None:
    """Micrometres per pixel that a TIFF tells: to OME, to ImageJ, or in its own tags.

    Parameters
    ----------
    text : str
        Its description.
    resolution : (across, down) or None
        Pixels per unit.
    unit : int
        2: inches, 3: centimetres, 1: none.
    """
    if (said := re.search(r'\bPhysicalSizeX="([^"]{1,40})"', text)) is not None:
        named = re.search(r'\bPhysicalSizeXUnit="([^"]{1,20})"', text)
        scale = micrometres(named[1]) if named else 1.0
        try:
            return judged(float(said[1]) * scale)[0] if scale else None
        except ValueError:
            return None
    if resolution is None or not all(0 < number < np.inf for number in resolution):
        return None
    scale = {2: 25_400.0, 3: 1e4}.get(unit)
    if text.startswith("ImageJ="):
        named = re.search(r"^unit=(.{1,20})$", text, re.MULTILINE)
        scale = micrometres(named[1]) if named else None
    return judged(*(scale / number for number in resolution))[0] if scale else None
