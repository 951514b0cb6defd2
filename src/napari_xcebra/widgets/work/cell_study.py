"""Reads in the background what a cell is judged by: clips of its transients, and its neighbours."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from napari_xcebra.errors import InputError, Stopped
from napari_xcebra.recording.cell_shapes import CellShapes, Neighbor, correlation
from napari_xcebra.recording.clips import Clips, read_clips
from napari_xcebra.widgets.state.of_state import OfState
from napari_xcebra.widgets.state.signals import Signal
from napari_xcebra.widgets.work.background import in_background

if TYPE_CHECKING:
    from napari_xcebra.recording import Recording
    from napari_xcebra.widgets.state.state import State

NO_MOVIE = "No movie: there are no clips of its transients."
KEPT = 8
"""Cells whose clips are kept."""


@dataclass(frozen=True, eq=False)
class CellStudy:
    """What was found about a cell.

    Parameters
    ----------
    neighbors : sequence of (Neighbor, float)
        With the correlation of their traces to that of the cell, the most alike first.
    clips : Clips or None
    why_no_clips : str
        In a short sentence; empty if there are some.
    """

    neighbors: tuple[tuple[Neighbor, float], ...]
    clips: Clips | None
    why_no_clips: str = ""


def study(
    recording: Recording, shapes: CellShapes, cell: int, stopped: Callable[[], bool]
) -> CellStudy:
    """Read traces and movie around a cell; `stopped` is asked between two reads."""
    near = shapes.neighbors(cell)
    traces = recording.traces[:, np.array([cell, *(each.cell for each in near)])]
    alike = [
        (each, correlation(traces[:, 0], traces[:, i])) for i, each in enumerate(near, start=1)
    ]
    ranked = sorted(alike, key=lambda found: -np.nan_to_num(found[1], nan=-2))
    try:
        clips = read_clips(recording, shapes, cell, traces[:, 0], stopped)
    except InputError as error:
        return CellStudy(tuple(ranked), None, str(error))
    none = "No clear transients." if recording.movie else NO_MOVIE
    return CellStudy(tuple(ranked), clips, "" if clips else none)


class CellStudies(OfState):
    """Studies the cell that was asked for last, then the one that comes next."""

    ready = Signal(int)
    """The study of this cell is there."""

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self._kept: OrderedDict[int, CellStudy] = OrderedDict()
        self._wanted: tuple[int, ...] = ()
        self._busy = False
        state.recording_changed.connect(self._forget)

    def of(self, cell: int) -> CellStudy | None:
        """What is known of a cell; None before it was studied."""
        return self._kept.get(cell)

    def ask(self, cell: int, following: int | None = None) -> None:
        """Study a cell, and then the following one; what was asked before is dropped."""
        self._wanted = (cell,) if following is None else (cell, following)
        self._go_on()

    def _go_on(self) -> None:
        opened = self.state.current if self.state_open else None
        missing = [cell for cell in self._wanted if cell not in self._kept]
        if self._busy or opened is None or not missing:
            return
        cell, recording, shapes = missing[0], opened.recording, opened.shapes
        self._busy = True

        def stopped() -> bool:
            return cell not in self._wanted

        def done(found: CellStudy | None) -> None:
            self._busy = False
            current = self.state.current if self.state_open else None
            if current is None:
                return
            if found is not None and current.recording is recording:
                self._kept[cell] = found
                while len(self._kept) > KEPT:
                    self._kept.popitem(last=False)
                self.ready.emit(cell)
            self._go_on()

        def failed(sentence: str, _: str) -> None:
            done(CellStudy((), None, sentence))

        def work() -> CellStudy | None:
            try:
                return study(recording, shapes, cell, stopped)
            except Stopped:
                return None

        in_background(work, done, failed)

    def _forget(self) -> None:
        self._kept.clear()
        self._wanted = ()
