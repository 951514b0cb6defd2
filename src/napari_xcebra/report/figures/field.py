"""Draws the painted field of view, its planes beside each other, for the screen and for papers.

It needs neither a window nor the state of pyplot, so it can be drawn anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import Normalize, to_hex, to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from skimage.segmentation import find_boundaries

from napari_xcebra.attribution import Attribution, auroc
from napari_xcebra.attribution.score_map import Latent, ScoreMap
from napari_xcebra.learn.data.factors import TIME
from napari_xcebra.learn.quality.verdict import NOTHING, decoded_of, nats_of
from napari_xcebra.recording.footprints import Footprints
from napari_xcebra.recording.recording import Recording
from napari_xcebra.report.figures.paper import (
    NOT_USED,
    PAPER,
    SCREEN,
    WARNING,
    Colors,
    PictureSizes,
    Where,
    in_picture,
    paper_style,
    save_figure,
    written,
)
from napari_xcebra.text import round_length

if TYPE_CHECKING:
    pass


OUTLINE, MARK = "#FFFFFF", "#FF5CA8"
SHARE, MARGIN = 0.25, 0.04
"""Of the width of the field: the longest bar, and its distance from the edge."""
BEHIND = {"facecolor": "black", "alpha": 0.45, "edgecolor": "none", "pad": 0.6}
"""What white text on an image stands on; text with an outline would be written as curves."""


def painted_field(
    recording: Recording,
    attribution: Attribution,
    path: Where = None,
    truth: Mapping[str, np.ndarray] | None = None,
    threshold: float = 0.0,
    factors: Sequence[str] | None = None,
    look: PictureSizes = SCREEN,
    latent: Latent = None,
    colors: Colors | None = None,
) -> Figure:
    """Cells coloured by their score, a panel a factor, with its planes side by side.

    Cells above threshold are outlined, and cells that were not used are left empty. A factor at
    chance is drawn in grey and says that its map means nothing; one that could not be tested says
    so in its title.

    Parameters
    ----------
    recording : Recording
        Without footprints, cells are shown as discs on a grid, in the order of the recording.
    truth : mapping of str to (cells,) bool, optional
        For simulated recordings: the cells that carry a factor, to be marked.
    threshold : float
        z above which a cell is outlined.
    factors : sequence of str, optional
        Those to draw; all of them if not given.
    look : PictureSizes
        `SCREEN`, or `PAPER` for a figure as wide as a column or a page.
    latent : int, str or None
        One latent of the factors, or "lag", as of `ScoreMap`.
    colors : Colors, optional
        From the lowest score to the 99th percentile if not given.
    """
    factors = attribution.factors if factors is None else factors
    maps = [ScoreMap(attribution, factor, latent) for factor in factors]
    if look is PAPER:
        with paper_style():
            figure = _draw_maps(recording, maps, truth or {}, threshold, look, colors)
        if path is not None:
            save_figure(figure, Path(path))
        return figure
    return written(_draw_maps(recording, maps, truth or {}, threshold, look, colors), path)


def painted_grid(rows: Sequence[tuple[str, Recording, Attribution]], path: Where = None) -> Figure:
    """Painted fields of many recordings: a row for each, a panel for each of its factors.

    Parameters
    ----------
    rows : sequence of (str, Recording, Attribution)
        What each is called, with its fit known to its attribution.
    """
    of_rows = [[name for name in scores.factors if name != TIME] for _, _, scores in rows]
    across = max(1, *map(len, of_rows))
    figure = Figure(figsize=(1.2 + 2.9 * across, 2.7 * len(rows)), dpi=min(110, 6000 / len(rows)))
    figure.set_layout_engine("constrained", w_pad=0.06, h_pad=0.08)
    axes = figure.subplots(len(rows), across, squeeze=False)
    for panels, (title, recording, scores), factors in zip(axes, rows, of_rows, strict=True):
        field = _EnlargedField.of(recording)
        for ax in panels[len(factors) :]:
            ax.set_axis_off()
        for ax, factor in zip(panels, factors, strict=False):
            map_ = ScoreMap(scores, factor)
            field.paint(ax, map_, 0.0, SCREEN, Colors(*map_.limits))
            goodness = None if scores.fit is None else scores.fit.goodness[factor]
            said = "" if goodness is None else f"\n{goodness.in_short.replace('-', '−')}"
            ax.set_title(f"{in_picture(factor)}{said}", fontsize=8)
        panels[0].set_ylabel(in_picture(title), fontsize=10, fontweight="bold")
    return written(figure, path)


def _draw_maps(
    recording: Recording,
    maps: Sequence[ScoreMap],
    truth: Mapping[str, np.ndarray],
    threshold: float,
    look: PictureSizes,
    colors: Colors | None,
) -> Figure:
    factors, attribution = [each.factor for each in maps], maps[0].attribution
    across = min(len(factors), 2 if len(factors) == 4 else 3)
    down = -(-len(factors) // across)
    field = _EnlargedField.of(recording)
    height, width = field.labels.shape
    wide = look.widths[across - 1] / across
    # a field that is much wider than high still needs room for its colour bar
    high = wide * max(0.3, 0.8 * height / width) + 0.06 * look.title
    figure = Figure(figsize=(wide * across, high * down + 0.05 * look.text))
    figure.set_layout_engine("constrained", w_pad=0.12, h_pad=0.08)
    axes = figure.subplots(down, across, squeeze=False).ravel()
    for ax, each in zip(axes, maps, strict=False):
        field.paint(ax, each, threshold, look, colors or Colors(*each.limits))
        _mark(ax, field, truth.get(each.factor))
        _title(ax, each, truth.get(each.factor), look)
    for ax in axes[len(factors) :]:
        ax.set_axis_off()
    marked = any(factor in truth for factor in factors)
    outlined = any(not attribution.at_chance(factor) for factor in factors)
    if key := _key(marked, outlined, attribution, threshold):
        # dark as the panels, so that a white outline is seen here too
        figure.legend(handles=key, loc="outside lower center", ncols=3, facecolor="#303030",
                      labelcolor="white", framealpha=1, fontsize=look.text)  # fmt: skip
    return figure


class _EnlargedField:
    """Labels and background, enlarged so that outlines are thin."""

    def __init__(
        self,
        labels: np.ndarray,
        background: np.ndarray | None = None,
        names: np.ndarray | None = None,
        montage: _Montage | None = None,
        pixel_size: float | None = None,
    ) -> None:
        self.enlarged = max(1, min(4, 2048 // max(labels.shape)))
        self.labels = np.kron(labels, np.ones((self.enlarged, self.enlarged), labels.dtype))
        self.background, self.names, self.montage = background, names, montage
        self.pixel_size = pixel_size
        self.outline = find_boundaries(self.labels, mode="inner")

    @classmethod
    def of(cls, recording: Recording) -> _EnlargedField:
        if recording.footprints is None:
            labels = Footprints.on_a_grid(recording.n_cells).label_image()
            return cls(labels, None, recording.cell_ids if recording.n_cells <= 150 else None)
        labels = recording.footprints.label_image()
        images = [recording.images[n] for n in ("mean", *recording.images) if n in recording.images]
        fitting = [image for image in images if np.shape(image) == labels.shape]
        background = fitting[0] if fitting else None
        if labels.ndim == 2:
            return cls(labels, background, pixel_size=recording.pixel_size)
        montage = _Montage(*labels.shape)
        # without an image the planes are black, and what lies between them is not
        stack = np.zeros(labels.shape) if background is None else np.asarray(background, float)
        tiles = montage.tile(labels), montage.tile(stack, np.nan)
        return cls(*tiles, montage=montage, pixel_size=recording.pixel_size)

    @property
    def extent(self) -> tuple[float, float, float, float]:
        """In pixels of the recording."""
        height, width = np.array(self.labels.shape) / self.enlarged
        return (-0.5, width - 0.5, height - 0.5, -0.5)

    def centres(self) -> np.ndarray:
        """(cells, 2), row and column; NaN for a cell without pixels."""
        labels = self.labels[:: self.enlarged, :: self.enlarged]
        row, column = np.nonzero(labels)
        cell = labels[row, column] - 1
        count = np.bincount(cell).astype(float)
        count[count == 0] = np.nan
        return np.stack([np.bincount(cell, row) / count, np.bincount(cell, column) / count], 1)

    def paint(
        self, ax: Axes, map_: ScoreMap, threshold: float, look: PictureSizes, colors: Colors
    ) -> None:
        """Draw the cells over the background, a scale bar, and the colour bar or the warning."""
        score, at_chance = map_.scores, map_.at_chance
        colours = colormaps["gray"] if at_chance else colors.colormap
        scale = Normalize(colors.low, colors.high)
        ax.set(xticks=[], yticks=[], facecolor="white" if self.montage else "black")
        if self.background is not None:
            low, high = np.nanpercentile(self.background, (1, 99.7))
            # bright somata would outshine the colours
            dimmed = Normalize(low, high + 0.35 * (high - low))
            ax.imshow(self.background, cmap="gray", norm=dimmed, extent=self.extent)
        look_up = colours(scale(np.nan_to_num(score)), 0.35 if at_chance else 0.8, bytes=True)
        look_up[np.isnan(score), 3] = 0
        painted = np.r_[np.zeros((1, 4), np.uint8), look_up][self.labels]
        painted[self._outline_of(np.isnan(score))] = _bytes(NOT_USED)
        if not at_chance:
            painted[self._outline_of(map_.above(threshold))] = _bytes(OUTLINE)
        shown = ax.imshow(painted, extent=self.extent, cmap=colours, norm=scale)
        self._name_cells(ax)
        self._name_planes(ax, look)
        if self.pixel_size is not None:
            width = self.montage.width if self.montage else self.extent[1] + 0.5
            _scale_bar(ax, self.pixel_size, width, look.small)
        if at_chance:
            _warn(ax, look)
        else:
            bar = ax.inset_axes((1.02, 0, 0.04, 1))
            made = ax.figure.colorbar(shown, cax=bar, extend="max")
            what = map_.latent if isinstance(map_.latent, str) else "score"
            made.set_label(f"{what} ({map_.unit})", fontsize=look.text)
            bar.tick_params(labelsize=look.text)

    def _outline_of(self, cells: np.ndarray) -> np.ndarray:
        return np.r_[False, cells][self.labels] & self.outline

    def _name_cells(self, ax: Axes) -> None:
        if self.names is None:
            return
        look: dict[str, Any] = {"fontsize": 5, "ha": "center", "va": "center", "color": "white"}
        around = withStroke(linewidth=1.5, foreground="black")
        for (row, column), name in zip(self.centres(), self.names, strict=True):
            ax.text(column, row, str(name), path_effects=[around], **look)

    def _name_planes(self, ax: Axes, look: PictureSizes) -> None:
        for plane, (row, column) in enumerate(self.montage.corners if self.montage else ()):
            ax.annotate(f"plane {plane}", (column, row), (4, -4), textcoords="offset points",
                        va="top", fontsize=look.small, color="white", bbox=BEHIND)  # fmt: skip


def _scale_bar(ax: Axes, pixel_size: float, width: float, text: float) -> None:
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


def _warn(ax: Axes, look: PictureSizes) -> None:
    ax.text(0.5, 0.5, "at chance:\nthis map means nothing", transform=ax.transAxes,
            ha="center", va="center", fontsize=look.warning, fontweight="bold", color=WARNING,
            bbox={"facecolor": "white", "edgecolor": WARNING, "pad": 8})  # fmt: skip


def _bytes(colour: str) -> np.ndarray:
    return (255 * np.array(to_rgba(colour))).round().astype(np.uint8)


def _mark(ax: Axes, field: _EnlargedField, carries: np.ndarray | None) -> None:
    if carries is not None:
        centres = field.centres()
        row, column = centres[carries[: len(centres)]].T
        ax.plot(column, row, "o", color=MARK, markersize=3.5, markeredgecolor="black",
                markeredgewidth=0.4)  # fmt: skip


def _title(ax: Axes, map_: ScoreMap, carries: np.ndarray | None, look: PictureSizes) -> None:
    attribution, factor = map_.attribution, map_.factor
    doubt = " (not tested)" if attribution.not_tested(factor) else ""
    room = "\n" if look.numbers else ""
    ax.set_title(f"{in_picture(map_.title)}{doubt}{room}", fontsize=look.title, fontweight="bold")
    if not look.numbers:
        return
    line = []
    if attribution.fit is not None:
        goodness = attribution.fit.goodness[factor]
        line.append(f"{nats_of(goodness)} nats")
        own, ridge = decoded_of(goodness)
        if own != NOTHING:
            line.append(own if ridge == NOTHING else f"{own} (ridge {ridge})")
    if carries is not None and 0 < carries.sum() < len(carries):
        line.append(f"auROC {auroc(attribution.score(factor), carries):.3f}")
    told = " · ".join(line).replace("-", "−")
    ax.text(0.5, 1.02, told, transform=ax.transAxes, ha="center", fontsize=look.text)


def _key(marked: bool, outlined: bool, attribution: Attribution, threshold: float) -> list[Line2D]:
    def entry(label: str, face: str, edge: str, size: float = 10) -> Line2D:
        return Line2D([], [], ls="", marker="o", label=label, mfc=face, mec=edge, ms=size)

    above = f"above threshold (z > {threshold:.2g})"
    key = [entry(above, to_hex(colormaps["viridis"](0.9)), OUTLINE)] if outlined else []
    if not attribution.used.all():
        key.append(entry("not used", "none", NOT_USED))
    if marked:
        key.append(entry("carries it (simulated)", MARK, "black", 5))
    return key


@dataclass(frozen=True)
class _Montage:
    """Places planes row by row in an arrangement that is about as wide as high.

    Parameters
    ----------
    planes, height, width : int
        Shape of the stack, in pixels.
    """

    planes: int
    height: int
    width: int

    @property
    def across(self) -> int:
        """Planes beside each other."""
        return int(np.ceil(np.sqrt(self.planes * self.height / self.width)).clip(1, self.planes))

    @property
    def gap(self) -> int:
        """Pixels between two planes."""
        return max(2, max(self.height, self.width) // 40)

    @property
    def corners(self) -> list[tuple[int, int]]:
        """Row and column of the first pixel of each plane."""
        down, right = self.height + self.gap, self.width + self.gap
        places = (divmod(plane, self.across) for plane in range(self.planes))
        return [(row * down, column * right) for row, column in places]

    def tile(self, stack: np.ndarray, between: float = 0) -> np.ndarray:
        """The planes of a (planes, height, width) stack as one image, with a value in the gaps.

        >>> _Montage(2, 1, 1).tile(np.array([[[1]], [[2]]])).tolist()
        [[1, 0, 0, 2]]
        """
        rows, columns = (max(starts) for starts in zip(*self.corners, strict=True))
        tiled = np.full((rows + self.height, columns + self.width), between, stack.dtype)
        for plane, (row, column) in zip(stack, self.corners, strict=True):
            tiled[row : row + self.height, column : column + self.width] = plane
        return tiled
