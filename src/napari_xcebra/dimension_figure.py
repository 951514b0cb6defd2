"""A picture of the consistency between seeds over numbers of latents (paper Fig. 6)."""

from __future__ import annotations

from matplotlib.figure import Figure

from napari_xcebra.figures import LINES, Where, written
from napari_xcebra.learn.consistency import Dimensions


def consistency_by_dimension(dimensions: Dimensions, path: Where = None) -> Figure:
    """Consistency R² over time latents, a line for each number of latents of the factor.

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
    sizes = sorted({d.factor_latents for d in dimensions.tried})
    for number, size in enumerate(sizes):
        line = [d for d in dimensions.tried if d.factor_latents == size]
        ax.errorbar(
            [d.time_latents for d in line],
            [d.mean for d in line],
            [d.error for d in line],
            marker="o",
            capsize=3,
            color=LINES[number % len(LINES)],
            label=f"{size} for the factors" if size else "time only",
        )
    chosen = dimensions.suggested
    ax.plot(chosen.time_latents, chosen.mean, "o", ms=14, mfc="none", mec="black", mew=1.5)
    ax.annotate(f"suggested: {chosen.words}", (chosen.time_latents, chosen.mean),
                textcoords="offset points", xytext=(0, -22), ha="center")  # fmt: skip
    ax.set_xticks(sorted({d.time_latents for d in dimensions.tried}))
    ax.set_xlabel("time latents")
    ax.set_ylabel("consistency R² between seeds")
    ax.margins(x=0.1, y=0.15)
    if len(sizes) > 1:
        ax.legend(frameon=False, title="latents")
    return written(figure, path)
