"""Figures on how far to believe a run: goodness beside chance, and how scores are spread."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from napari_xcebra.attribution import Attribution
from napari_xcebra.figures import LINES, NOT_USED, in_picture
from napari_xcebra.learn import Goodness

FOUND, CHANCE, PALE = LINES[0], "#C8CDD3", "#B9C2CC"
Q = 0.1
"""q up to which a cell counts as carrying a factor."""


def goodness_beside_chance(goodness: Mapping[str, Goodness]) -> Figure:
    """A row a factor: goodness with its standard error, over what shifted labels reach."""
    figure = Figure(figsize=(7.5, 0.9 + 0.42 * len(goodness)))
    figure.set_layout_engine("constrained")
    ax = figure.subplots()
    # what lies far off would press together what is to be compared: it is told at the edge
    reach = 1.5 * max(0.1, *(one.goodness + np.nan_to_num(one.error) for one in goodness.values()))
    ax.set_xlim(-reach, reach)
    for row, one in enumerate(goodness.values()):
        _draw_goodness(ax, row, one, reach)
    ax.axvline(0, color="black", lw=0.8)
    ax.set_yticks(range(len(goodness)), [in_picture(name) for name in goodness])
    ax.set_ylim(len(goodness) - 0.4, -0.6)
    ax.set_xlabel("goodness of fit on held-out frames (nats above chance)")
    ax.plot([], [], "o", color=FOUND, label="held-out, ± standard error")
    if any(one.strength == "not tested" for one in goodness.values()):
        ax.plot([], [], "D", mfc="white", mec=FOUND, label="not tested")
    ax.plot([], [], "o", mfc="white", mec=NOT_USED, label="training frames")
    ax.plot([], [], color=CHANCE, lw=8, label="labels shifted in time, 5–95 %")
    figure.legend(loc="outside upper left", ncols=4, frameon=False, fontsize=9, columnspacing=1.2,
                  handletextpad=0.7)  # fmt: skip
    return figure


def _draw_goodness(ax: Axes, row: int, one: Goodness, reach: float) -> None:
    if one.null_high < -reach:
        _tell_at_edge(ax, row, f"◂ {one.null_low:.1f} to {one.null_high:.1f}", left=True)
    elif np.isfinite([one.null_low, one.null_high]).all():
        ax.barh(row, one.null_high - one.null_low, 0.5, one.null_low, color=CHANCE)
    if one.training > reach:
        _tell_at_edge(ax, row, f"training {one.training:.1f} ▸", left=False)
    elif np.isfinite(one.training):
        ax.plot(one.training, row, "o", mfc="white", mec=NOT_USED, ms=6)
    colour = NOT_USED if one.strength == "at chance" else FOUND
    untested = one.strength == "not tested"
    ax.errorbar(one.goodness, row, xerr=np.nan_to_num(one.error), fmt="D" if untested else "o",
                mfc="white" if untested else colour, color=colour, capsize=4, ms=7)  # fmt: skip


def _tell_at_edge(ax: Axes, row: int, text: str, *, left: bool) -> None:
    ax.annotate(text.replace("-", "−"), (0 if left else 1, row), (4 if left else -4, 0),
                ha="left" if left else "right", va="center", fontsize=8, color=NOT_USED,
                xycoords=("axes fraction", "data"), textcoords="offset points")  # fmt: skip


def score_histogram(attribution: Attribution, factor: str, threshold: float = 0.0) -> Figure:
    """How the scores of a factor are spread over the cells, and where the threshold lies."""
    score = attribution.score(factor)
    used = np.isfinite(score)
    known = score[used].astype(float)
    figure = Figure(figsize=(4.2, 3.4))
    figure.set_layout_engine("constrained")
    ax = figure.subplots()
    edges = np.histogram_bin_edges(known, min(40, max(8, len(known) // 6)))
    meaningless, tested = attribution.at_chance(factor), attribution.significance
    significant = np.zeros(len(score), bool) if tested is None else tested.q(factor) <= Q
    several = bool(significant[used].any()) and not meaningless
    parts = [known[significant[used]], known[~significant[used]]] if several else [known]
    colours = [FOUND, PALE] if several else [NOT_USED if meaningless else FOUND]
    labels = [f"q ≤ {Q:g}", "others"] if several else [""]
    ax.hist(parts, edges.tolist(), stacked=True, color=colours, label=labels)
    if not meaningless:
        limit = known.mean() + threshold * known.std()
        ax.axvline(limit, color="black", ls="--", lw=1, label=f"z = {threshold:g}")
        ax.legend(frameon=False, fontsize=9)
    ax.set_xlabel("score")
    ax.set_ylabel("cells")
    return figure
