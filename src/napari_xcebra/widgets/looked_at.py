"""What the Cells dock looks at, gathered from the session in one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from napari_xcebra.learn.suggestions import suggested_factors
from napari_xcebra.recording import Recording
from napari_xcebra.runs import Run
from napari_xcebra.widgets.plot_style import PlotStyle
from napari_xcebra.widgets.session import Session
from napari_xcebra.widgets.shown import Shown

MOST_CELLS = 10
"""Cells that are drawn at once."""


@dataclass(frozen=True, eq=False)
class LookedAt:
    """A recording, and the cells and the run to show of it.

    Parameters
    ----------
    recording : Recording
    cells : tuple of int
        Positions of the selected cells, as many as are drawn.
    selected : int
        How many are selected in all.
    activity : mapping of int to (frames,) float32
        Traces of those cells that have been read.
    problem : str
        Why others cannot be read; empty if they can.
    run : Run or None
        The run that is painted.
    shown : Shown
    factors : mapping of str to tuple of str
        Variables of each factor of the run; without a run, of those the recording suggests.
    style : PlotStyle
    """

    recording: Recording
    cells: tuple[int, ...]
    selected: int
    activity: Mapping[int, np.ndarray]
    problem: str
    run: Run | None
    shown: Shown
    factors: Mapping[str, tuple[str, ...]]
    style: PlotStyle

    @property
    def factor(self) -> str:
        """The factor that is painted, else the first."""
        if self.shown.factor in self.factors:
            return self.shown.factor
        return next(iter(self.factors), "")

    @property
    def variables(self) -> tuple[str, ...]:
        """Variables of that factor; of the time factor, those of the first one."""
        return self.factors.get(self.factor) or next(iter(self.factors.values()), ())

    def name(self, cell: int) -> str:
        """What a cell is called, by the id that the source gave it."""
        return f"cell {np.asarray(self.recording.cell_ids)[cell]}"


def factors_of(recording: Recording, run: Run | None) -> dict[str, tuple[str, ...]]:
    """Variables of each factor, those that the recording (still) has."""
    if run is None:
        suggested = suggested_factors(recording)
        return {name: tuple(factor.variables) for name, factor in suggested.items()}
    return {
        part.name: tuple(name for name in part.variables if name in recording.behavior)
        for part in run.fit.parts
    }


def selected_cells(session: Session, recording: Recording) -> list[int]:
    """Selected cells that the recording has."""
    return [int(cell) for cell in session.selection if 0 <= cell < recording.n_cells]
