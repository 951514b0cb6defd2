"""Reads traces of single cells, in the background where they are on disk, and keeps them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.recording import Recording
from napari_xcebra.recording.traces import LazyTraces
from napari_xcebra.widgets.work.background import in_background

MOST_BYTES = 128 * 2**20
"""Traces that are kept."""


class ColumnReader:
    """Traces by cell.

    `ready` is called in the window's thread when missing traces have been read, or cannot be.
    """

    def __init__(self, ready: Callable[[], object]) -> None:
        self._ready = ready
        self._traces: np.ndarray | LazyTraces | None = None
        self._kept: OrderedDict[int, np.ndarray] = OrderedDict()
        self._asked: set[int] = set()
        self._problems: dict[int, str] = {}
        self._closed = False

    def columns(self, recording: Recording, cells: Sequence[int]) -> dict[int, np.ndarray]:
        """Traces, (frames,) float32 each, that are at hand; the others are fetched."""
        if recording.traces is not self._traces:
            self._traces = recording.traces
            self._kept.clear()
            self._asked, self._problems = set(), {}
        missing = [cell for cell in cells if cell not in self._kept]
        if missing and isinstance(recording.traces, LazyTraces):
            self._fetch(recording.traces, [cell for cell in missing if cell not in self._asked])
        else:
            # rows of a large array lie far apart: a column is copied once
            self._keep({c: np.ascontiguousarray(recording.traces[:, c]) for c in missing}, cells)
        return {cell: self._kept[cell] for cell in cells if cell in self._kept}

    def problem(self, cells: Sequence[int]) -> str:
        """Why some of these cells cannot be read, in a sentence; empty if all can."""
        return next((self._problems[cell] for cell in cells if cell in self._problems), "")

    def close(self) -> None:
        """Stop calling back."""
        self._closed = True

    def _fetch(self, traces: LazyTraces, cells: list[int]) -> None:
        if not cells:
            return
        self._asked.update(cells)

        def read() -> tuple[dict[int, np.ndarray], dict[int, str]]:
            columns, problems = {}, {}
            for cell in cells:
                try:
                    columns[cell] = np.ascontiguousarray(traces[:, cell])
                except InputError as error:
                    problems[cell] = str(error)
            return columns, problems

        def done(read: tuple[dict[int, np.ndarray], dict[int, str]]) -> None:
            if self._traces is traces and not self._closed:
                columns, problems = read
                # cells that failed count as asked for: they would fail again at every refresh
                self._asked.difference_update(columns)
                self._problems |= problems
                self._keep(columns, list(columns))
                self._ready()

        def failed(sentence: str, _: str) -> None:
            done(({}, dict.fromkeys(cells, sentence)))

        in_background(read, done, failed)

    def _keep(self, columns: dict[int, np.ndarray], wanted: Sequence[int]) -> None:
        self._kept.update(columns)
        for cell in wanted:
            if cell in self._kept:
                self._kept.move_to_end(cell)
        size = sum(column.nbytes for column in self._kept.values())
        while size > MOST_BYTES and len(self._kept) > len(wanted):
            size -= self._kept.popitem(last=False)[1].nbytes
