"""Draws the responses of cells around an event, split by what is known of each trial."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from napari_xcebra.recording import Recording
from napari_xcebra.recording.around_events import PeriEvent, peri_event
from napari_xcebra.recording.moments import usual_view
from napari_xcebra.report.document import Picture
from napari_xcebra.report.figures.picture import LINES, in_picture
from napari_xcebra.report.figures.run import CELLS_ACROSS, picture


def responses_in_words(
    recording: Recording, factor: str, variables: Sequence[str], cells: np.ndarray
) -> Picture | None:
    """Responses of a factor's best cells, with a caption; None if it is no event or trial variable.

    Parameters
    ----------
    cells : (n,) int
        Positions in the recording, the best first.
    """
    view = usual_view(recording, variables)
    if view is None:
        return None
    event, by = view
    split = f", by {by}" if by else ""
    names = ", ".join(str(np.asarray(recording.cell_ids)[cell]) for cell in cells)
    return picture(
        lambda: responses_of_cells(recording, event, by, cells),
        f"Responses of the cells {names} around {event}{split}, for {factor}",
        f"The {len(cells)} cells with the highest score around {event}{split}: mean, and its "
        "standard error over single times.",
    )


def responses_of_cells(
    recording: Recording, event: str, by: str | None, cells: np.ndarray
) -> Figure:
    """Mean and standard error of some cells around an event, a line for each group."""
    ids = np.asarray(recording.cell_ids)[cells]
    around = peri_event(recording, event, by=by, cells=ids.tolist())
    figure = Figure(figsize=(9.4, 2.1))
    figure.set_layout_engine("constrained", w_pad=0.05)
    grid = figure.subplots(1, CELLS_ACROSS, squeeze=False)[0]
    colors = _colors(len(around.groups))
    for number, ax in enumerate(grid):
        if number >= len(cells):
            ax.set_axis_off()
            continue
        _draw(ax, around, number, colors)
        ax.set_title(f"cell {ids[number]}", fontsize=10)
    grid[0].set_xlabel(in_picture(f"s from {event}"), fontsize=8)
    grid[0].set_ylabel(recording.origin.axis, fontsize=8)
    if by:
        _add_key(figure, grid[0], around, by)
    return figure


def _colors(groups: int) -> list[str]:
    """Distinct colours, or from low to high if there are many groups."""
    if groups <= len(LINES):
        return list(LINES[:groups])
    table = colormaps["viridis"](np.linspace(0, 0.9, groups))
    return ["#" + "".join(f"{round(255 * part):02x}" for part in color[:3]) for color in table]


def _draw(ax: Axes, around: PeriEvent, cell: int, colors: list[str]) -> None:
    mean, error = around.mean()[..., cell], np.nan_to_num(around.sem()[..., cell])
    ax.axvline(0, color="black", ls="--", lw=0.8)
    for m, e, color in zip(mean, error, colors, strict=True):
        ax.fill_between(around.seconds, m - e, m + e, color=color, alpha=0.25, lw=0)
        ax.plot(around.seconds, m, color=color, lw=1.2)
    ax.tick_params(labelsize=7)
    ax.margins(x=0)


def _add_key(figure: Figure, ax: Axes, around: PeriEvent, by: str) -> None:
    """Groups beside the cells, with the number of moments of each."""
    group = around.moments.group
    counts = np.bincount(group[group >= 0], minlength=len(around.groups))
    lines = ax.get_lines()[1:]  # the first is the event
    # a name that begins with "_" would be left out: a space comes first
    labels = [f" {in_picture(name)} ({count})"
              for name, count in zip(around.groups, counts, strict=True)]  # fmt: skip
    figure.legend(lines, labels, loc="outside right upper", title=in_picture(by), frameon=False,
                  fontsize=8, title_fontsize=8)  # fmt: skip
