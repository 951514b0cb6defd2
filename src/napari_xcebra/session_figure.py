"""Pictures of several sessions: how far their embeddings agree, and their matched cells."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from napari_xcebra.attribution.matched import MatchedScores
from napari_xcebra.figures import WARNING, Where, written
from napari_xcebra.learn.joint.consistency import SessionConsistency

CELL = 0.55
"""Side of a pair of sessions in a matrix, in inches."""
NOTHING = "#D9D9D9"


def consistency_between_sessions(found: SessionConsistency, path: Where = None) -> Figure:
    """R² between each two sessions after alignment, a matrix a factor.

    Parameters
    ----------
    found : SessionConsistency
    path : path, optional
        Where to write the picture; its ending says the format.
    """
    side = max(2.2, CELL * len(found.sessions)) + 1.3
    across = len(found.r2)
    figure = Figure(figsize=(side * across + 0.9, side + 0.6))
    figure.set_layout_engine("constrained")
    axes = figure.subplots(1, across, squeeze=False)[0]
    for number, (ax, (factor, r2)) in enumerate(zip(axes, found.r2.items(), strict=True)):
        image = draw_matrix(ax, r2, found.sessions, "viridis", (0.0, 1.0))
        ax.set_title(factor, fontsize=13, fontweight="bold", loc="left")
        ax.set_xlabel(f"explained (chance: {found.chance[factor]:.2f})", fontsize=9)
        if number == 0:
            ax.set_ylabel("explains", fontsize=9)
    figure.colorbar(image, ax=axes, label="consistency R² after alignment", shrink=0.8, aspect=25)
    return written(figure, path)


def matched_cells(matched: MatchedScores, path: Where = None) -> Figure:
    """Matched cells day by day: correlation of their scores, and the rank of every cell.

    On the left Spearman's ρ of the scores between each two sessions; on the right a row a session
    and a column a cell, from the highest mean rank to the lowest. Grey where a cell was not found.

    Parameters
    ----------
    matched : MatchedScores
    path : path, optional
        Where to write the picture; its ending says the format.
    """
    side, down = max(1.6, CELL * len(matched.sessions)), len(matched.factors)
    figure = Figure(figsize=(side + 7.8, (side + 1.0) * down + 0.3))
    figure.set_layout_engine("constrained", h_pad=0.1)
    grid = figure.subplots(down, 2, squeeze=False, width_ratios=(side, 6.0))
    for (left, right), factor in zip(grid, matched.factors, strict=True):
        rho = matched.correlations(factor).to_numpy()
        draw_matrix(left, rho, matched.sessions, "RdBu_r", (-1.0, 1.0))
        left.set_title(factor, fontsize=13, fontweight="bold", loc="left")
        left.set_xlabel("Spearman's ρ", fontsize=9)
        shares = matched.shares[factor]
        order = np.argsort(-np.nan_to_num(np.nanmean(shares, axis=1), nan=-1), kind="stable")
        right.set_facecolor(NOTHING)
        image = right.imshow(shares[order].T, cmap="viridis", vmin=0, vmax=1, aspect="auto",
                             interpolation="nearest")  # fmt: skip
        right.set_yticks(range(len(matched.sessions)), matched.sessions, fontsize=8)
        right.set_xlabel(f"{len(order)} matched cells, by their mean rank", fontsize=9)
        right.set_title("rank among all cells of the session", fontsize=10, loc="left")
        if doubtful := matched.where_at_chance(factor):
            where = ", ".join(doubtful) if len(doubtful) < 3 else f"{len(doubtful)} sessions"
            right.set_title(f"at chance in {where}", fontsize=10, loc="right", color=WARNING)
        bar = figure.colorbar(image, ax=right, label="rank", pad=0.02, aspect=20)
        bar.set_ticks([0, 1], labels=["last", "first"])
    return written(figure, path)


def draw_matrix(
    ax: Axes,
    values: np.ndarray,
    names: Sequence[str],
    colours: str,
    limits: tuple[float, float],
) -> AxesImage:
    """A square of numbers between sessions; grey where there is none."""
    ax.set_facecolor(NOTHING)
    image = ax.imshow(values, cmap=colours, vmin=limits[0], vmax=limits[1])
    for row, line in enumerate(values):
        for column, value in enumerate(line):
            if np.isfinite(value):
                shade = image.cmap(image.norm(value))
                dark = np.dot(shade[:3], (0.299, 0.587, 0.114)) < 0.5
                ax.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=8,
                        color="white" if dark else "black")  # fmt: skip
    ax.set_xticks(range(len(names)), names, rotation=40, ha="right", fontsize=8)
    ax.set_yticks(range(len(names)), names, fontsize=8)
    return image
