"""Draws a few outlines into a small picture, as fine as the screen shows it.

A layer of shapes would take several times as long to change, and lines in an image of the whole
field are as coarse as its pixels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from qtpy.QtCore import QPointF, QRectF, Qt
from qtpy.QtGui import QColor, QFont, QImage, QPainter, QPen, QPolygonF
from superqt.utils import qimage_to_array

MARGIN = 2.0
"""Pixels of the field around the outlines."""
FINEST, MOST = 8.0, 1600
"""Points of the picture to a pixel of the field, and along its longer side, at most."""
LABEL = 8
"""Size of the labels."""


class Outline(NamedTuple):
    """Lines around a cell, (points, 2) float each, and how they are drawn.

    `width` is in pixels of the screen; `label` is written in its middle.
    """

    lines: Sequence[np.ndarray]
    color: str
    width: float
    label: str = ""


class Patch(NamedTuple):
    """A picture, (height, width, 4) uint8, the place of its first pixel, and pixels per pixel."""

    picture: np.ndarray
    corner: np.ndarray
    fineness: float


def patch_of(outlines: Sequence[Outline], fineness: float) -> Patch | None:
    """Draw outlines, `fineness` points of the screen to a pixel of the field; None without any."""
    lines = [line for outline in outlines for line in outline.lines]
    if not lines:
        return None
    points = np.concatenate(lines)
    first, last = points.min(axis=0) - MARGIN, points.max(axis=0) + MARGIN
    fineness = min(fineness, FINEST, MOST / float((last - first).max()))
    height, width = np.ceil((last - first) * fineness).astype(int)
    image = QImage(int(width), int(height), QImage.Format.Format_ARGB32)
    image.fill(0)
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    for outline in outlines:
        _draw(painter, outline, first, fineness)
    painter.end()
    return Patch(qimage_to_array(image).copy(), first + 0.5 / fineness, fineness)


def _draw(painter: QPainter, outline: Outline, first: np.ndarray, fineness: float) -> None:
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(QColor(outline.color), outline.width))
    for line in outline.lines:
        places = (line - first) * fineness
        painter.drawPolygon(QPolygonF([QPointF(x, y) for y, x in places.tolist()]))
    if outline.label:
        low, left = ((outline.lines[0].min(axis=0) - first) * fineness).tolist()
        high, right = ((outline.lines[0].max(axis=0) - first) * fineness).tolist()
        painter.setFont(QFont(painter.font().family(), LABEL))
        box = QRectF(left, low, right - left, high - low)
        painter.drawText(box, Qt.AlignmentFlag.AlignCenter, outline.label)
