"""A picture of the consistency between seeds over numbers of latents (paper Fig. 6)."""

from __future__ import annotations

from matplotlib.figure import Figure

from napari_xcebra.figures import LINES, Where, written
from napari_xcebra.learn.consistency import Dimensions


def consistency_by_dimension(dimensions: Dimensions, path: Where = None) -> Figure:
    """Consistency R² over numbers of latents, a line for each number of those of the factors.

    Every point is a number of latents with its standard error over pairs of seeds; the ring marks
    the one that is suggested.

    Parameters
    ----------
    dimensions : Dimensions
    path : path, optional
        Where to write the picture; its ending says the format.
    """
    figure = Figure(figsize=(6, 4))
    figure.set_layout_engine("constrained")
    ax = figure.subplots()
    for number, (name, line) in enumerate(dimensions.lines.items()):
        ax.errorbar(
            [dimensions.place(d) for d in line],
            [d.mean for d in line],
            [d.error for d in line],
            marker="o",
            capsize=3,
            color=LINES[number % len(LINES)],
            label=name,
        )
    chosen = dimensions.suggested
    place = (dimensions.place(chosen), chosen.mean)
    ax.plot(*place, "o", ms=14, mfc="none", mec="black", mew=1.5)
    ax.annotate(f"suggested: {chosen.words}", place, textcoords="offset points",
                xytext=(0, -22), ha="center")  # fmt: skip
    ax.set_xticks(sorted({dimensions.place(d) for d in dimensions.tried}))
    ax.set_xlabel(dimensions.axis)
    ax.set_ylabel("consistency R² between seeds")
    ax.margins(x=0.1, y=0.15)
    if len(dimensions.lines) > 1:
        ax.legend(frameon=False, title="latents")
    return written(figure, path)
