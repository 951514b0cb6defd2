"""Draws the painted field of view and the course of learning.

They need neither a window nor the state of pyplot, so they can be drawn anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import Normalize, to_hex, to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from skimage.segmentation import find_boundaries

from napari_xcebra.attribution import Attribution, auroc
from napari_xcebra.attribution.score_map import color_limits
from napari_xcebra.files import whole
from napari_xcebra.learn import Fit
from napari_xcebra.learn.quality.verdict import NOTHING, decoded_of, nats_of
from napari_xcebra.recording import Footprints, Recording


@dataclass(frozen=True)
class Montage:
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

        >>> Montage(2, 1, 1).tile(np.array([[[1]], [[2]]])).tolist()
        [[1, 0, 0, 2]]
        """
        rows, columns = (max(starts) for starts in zip(*self.corners, strict=True))
        tiled = np.full((rows + self.height, columns + self.width), between, stack.dtype)
        for plane, (row, column) in zip(stack, self.corners, strict=True):
            tiled[row : row + self.height, column : column + self.width] = plane
        return tiled


# Okabe and Ito: told apart with any colour vision.
LINES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
OUTLINE, NOT_USED, WARNING = "#FFFFFF", "#808080", "#B03000"
MARK = "#FF5CA8"
DPI = 150

Where = str | PathLike[str] | None
"""File to write a picture to, whose ending says the format; None to only draw it."""


def painted_field(
    recording: Recording,
    attribution: Attribution,
    path: Where = None,
    truth: Mapping[str, np.ndarray] | None = None,
    threshold: float = 0.0,
    factors: Sequence[str] | None = None,
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
    """
    truth = truth or {}
    factors = attribution.factors if factors is None else factors
    across = min(len(factors), 2 if len(factors) == 4 else 3)
    down = -(-len(factors) // across)
    field = _Field.of(recording)
    height, width = field.labels.shape
    # a field that is much wider than high still needs room for its colour bar
    panel = max(1.5, 4.2 * height / width) + 0.8
    figure = Figure(figsize=(5.2 * across, panel * down + 0.5))
    figure.set_layout_engine("constrained", w_pad=0.12, h_pad=0.08)
    axes = figure.subplots(down, across, squeeze=False).ravel()
    for ax, factor in zip(axes, factors, strict=False):
        field.paint(ax, attribution, factor, threshold)
        _mark(ax, field, truth.get(factor))
        _title(ax, attribution, factor, truth.get(factor))
    for ax in axes[len(factors) :]:
        ax.set_axis_off()
    marked = any(factor in truth for factor in factors)
    outlined = any(not attribution.at_chance(factor) for factor in factors)
    if key := _key(marked, outlined, attribution, threshold):
        # dark as the panels, so that a white outline is seen here too
        figure.legend(handles=key, loc="outside lower center", ncols=3, facecolor="#303030",
                      labelcolor="white", framealpha=1)  # fmt: skip
    return written(figure, path)


class _Field:
    """Labels and background, enlarged so that outlines are thin."""

    def __init__(
        self,
        labels: np.ndarray,
        background: np.ndarray | None = None,
        names: np.ndarray | None = None,
        montage: Montage | None = None,
    ) -> None:
        self.enlarged = max(1, min(4, 2048 // max(labels.shape)))
        self.labels = np.kron(labels, np.ones((self.enlarged, self.enlarged), labels.dtype))
        self.background, self.names, self.montage = background, names, montage
        self.outline = find_boundaries(self.labels, mode="inner")

    @classmethod
    def of(cls, recording: Recording) -> _Field:
        if recording.footprints is None:
            labels = Footprints.on_a_grid(recording.n_cells).label_image()
            return cls(labels, None, recording.cell_ids if recording.n_cells <= 150 else None)
        labels = recording.footprints.label_image()
        images = [recording.images[n] for n in ("mean", *recording.images) if n in recording.images]
        fitting = [image for image in images if np.shape(image) == labels.shape]
        background = fitting[0] if fitting else None
        if labels.ndim == 2:
            return cls(labels, background)
        montage = Montage(*labels.shape)
        # without an image the planes are black, and what lies between them is not
        stack = np.zeros(labels.shape) if background is None else np.asarray(background, float)
        return cls(montage.tile(labels), montage.tile(stack, np.nan), montage=montage)

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

    def paint(self, ax: Axes, attribution: Attribution, factor: str, threshold: float) -> None:
        """Draw the cells over the background, and the colour bar or the warning."""
        score, at_chance = attribution.score(factor), attribution.at_chance(factor)
        colours = colormaps["gray" if at_chance else "viridis"]
        scale = Normalize(*color_limits(score, attribution.method))
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
            painted[self._outline_of(attribution.above(factor, threshold))] = _bytes(OUTLINE)
        shown = ax.imshow(painted, extent=self.extent, cmap=colours, norm=scale)
        self._name_cells(ax)
        self._name_planes(ax)
        if at_chance:
            _warn(ax)
        else:
            bar = ax.inset_axes((1.02, 0, 0.04, 1))
            ax.figure.colorbar(shown, cax=bar, extend="max", label="score")

    def _outline_of(self, cells: np.ndarray) -> np.ndarray:
        return np.r_[False, cells][self.labels] & self.outline

    def _name_cells(self, ax: Axes) -> None:
        if self.names is None:
            return
        look: dict[str, Any] = {"fontsize": 5, "ha": "center", "va": "center", "color": "white"}
        around = withStroke(linewidth=1.5, foreground="black")
        for (row, column), name in zip(self.centres(), self.names, strict=True):
            ax.text(column, row, str(name), path_effects=[around], **look)

    def _name_planes(self, ax: Axes) -> None:
        around = [withStroke(linewidth=2, foreground="black")]
        for plane, (row, column) in enumerate(self.montage.corners if self.montage else ()):
            ax.annotate(f"plane {plane}", (column, row), (4, -4), textcoords="offset points",
                        va="top", fontsize=9, color="white", path_effects=around)  # fmt: skip


def _warn(ax: Axes) -> None:
    ax.text(0.5, 0.5, "at chance:\nthis map means nothing", transform=ax.transAxes,
            ha="center", va="center", fontsize=15, fontweight="bold", color=WARNING,
            bbox={"facecolor": "white", "edgecolor": WARNING, "pad": 8})  # fmt: skip


def _bytes(colour: str) -> np.ndarray:
    return (255 * np.array(to_rgba(colour))).round().astype(np.uint8)


def _mark(ax: Axes, field: _Field, carries: np.ndarray | None) -> None:
    if carries is not None:
        centres = field.centres()
        row, column = centres[carries[: len(centres)]].T
        ax.plot(column, row, "o", color=MARK, markersize=3.5, markeredgecolor="black",
                markeredgewidth=0.4)  # fmt: skip


def _title(ax: Axes, attribution: Attribution, factor: str, carries: np.ndarray | None) -> None:
    doubt = " (not tested)" if attribution.not_tested(factor) else ""
    ax.set_title(f"{in_picture(factor)}{doubt}\n", fontsize=14, fontweight="bold")
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
    ax.text(0.5, 1.02, told, transform=ax.transAxes, ha="center", fontsize=10)


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


def learning_curves(fit: Fit, path: Where = None) -> Figure:
    """Loss of every factor with its chance level, and the penalty with λ, over the steps."""
    figure = Figure(figsize=(7.5, 6))
    figure.set_layout_engine("constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    _draw_losses(above, fit)
    _draw_penalty(below, fit)
    _shade_phases(above, below, fit)
    return written(figure, path)


def _draw_losses(ax: Axes, fit: Fit) -> None:
    supervised = fit.settings.mode == "supervised"
    chance = 1.0 if supervised else float(np.log(fit.settings.negatives))
    step = fit.history["step"]
    for number, factor in enumerate(fit.factors):
        colour = LINES[number % len(LINES)]
        ax.plot(step, fit.history[factor], color=colour, label=in_picture(factor))
        if not supervised:
            # chance differs with the number of negatives; the distance to it does not
            ax.plot(step[-1:], chance - fit.goodness[factor].goodness, "o", mfc="white",
                    mec=colour, clip_on=False, zorder=5)  # fmt: skip
    ax.axhline(chance, color="black", ls="--", lw=1, label="chance")
    if not supervised:
        ax.plot([], [], "o", mfc="white", mec="black", label="on held-out frames")
    ax.set_ylabel("mean squared error" if supervised else "InfoNCE (nats)")
    ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.01, 0.5))


def _draw_penalty(ax: Axes, fit: Fit) -> None:
    step, penalty = fit.history["step"], fit.history["penalty"]
    ax.plot(step, penalty, color=LINES[0])
    ax.set_ylabel("penalty ‖J‖²", color=LINES[0])
    low, high = np.nanmin(penalty, initial=np.inf), np.nanmax(penalty, initial=-np.inf)
    if 0 < 10 * low < high < np.inf:
        ax.set_yscale("log")
    else:
        ax.set_ylim(bottom=0)
    weight = ax.twinx()
    weight.plot(step, fit.history["lambda"], color=LINES[1])
    weight.set_ylabel("largest λ" if lambdas_differ(fit) else "λ", color=LINES[1])
    weight.set_ylim(bottom=0)
    ax.set_xlabel("step")


def _shade_phases(above: Axes, below: Axes, fit: Fit) -> None:
    """Where λ is zero, raised and held."""
    steps, settle = fit.settings.steps, fit.settings.settle
    edges = [0, settle * steps, _held_from(fit), steps]
    phases = (("settling (λ = 0)", 0.0), ("raising λ", 0.06), ("holding λ", 0.0))
    for (name, shade), left, right in zip(phases, edges[:-1], edges[1:], strict=True):
        if left >= fit.steps or right <= left:
            continue
        right = min(right, fit.steps)
        for ax in (above, below):
            ax.axvspan(left, right, color="black", alpha=shade, lw=0)
        above.text((left + right) / 2, 1.02, name, ha="center", fontsize=9,
                   transform=above.get_xaxis_transform())  # fmt: skip
    above.set_xlim(0, fit.steps)


def _held_from(fit: Fit) -> float:
    """Step from which λ is held."""
    if fit.settings.lambda_ != "auto":
        return (fit.settings.settle + fit.settings.ramp) * fit.settings.steps
    moving = fit.history["step"][fit.history["lambda"] != fit.lambda_]
    return float(moving.max(initial=fit.settings.settle * fit.settings.steps))


def lambdas_differ(fit: Fit) -> bool:
    """Whether the parts of the embedding ended with different λ."""
    return len({part.lambda_ for part in fit.parts if not np.isnan(part.lambda_)}) > 1


def in_picture(name: str) -> str:
    """A name as plain text: matplotlib reads a formula between dollar signs."""
    return name.replace("$", r"\$")


def written(figure: Figure, path: Where) -> Figure:
    """The figure, after writing it if there is a path; its ending says the format."""
    if path is not None:
        with whole(path) as file:
            figure.savefig(file, dpi=DPI)
    return figure
