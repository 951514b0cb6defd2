"""Holds which cells of several sessions are the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.recording.recording import Recording

MISSING = -1
"""In place of a cell that was not found in a session."""


@dataclass(frozen=True)
class Matching:
    """Cells matched across sessions: a row per cell, a column per session.

    Parameters
    ----------
    sessions : tuple of str
    ids : (cells, sessions) int64
        Id of the cell in each session, −1 where it was not found.
    positions : bool
        Whether `ids` count the ROIs of a session from 0 on, as programs that match cells do,
        instead of being the ids of the recording.
    source : str
        Where it came from.
    """

    sessions: tuple[str, ...]
    ids: np.ndarray
    positions: bool = False
    source: str = ""

    def __post_init__(self) -> None:
        where = self.source or "The matching of cells"
        if self.ids.ndim != 2 or self.ids.shape[1] != len(self.sessions):
            raise InputError(
                f"{where} has shape {self.ids.shape}: a column for each of "
                f"{len(self.sessions)} sessions is needed."
            )
        for name, column in zip(self.sessions, self.ids.T, strict=True):
            cells, counts = np.unique(column[column != MISSING], return_counts=True)
            if (counts > 1).any():
                raise InputError(
                    f"{where} has cell {cells[counts > 1][0]} of session {name!r} in "
                    f"{counts.max()} rows: a cell can be matched only once."
                )

    def of(self, recordings: Mapping[str, Recording]) -> Matching:
        """The same for these sessions, by the ids of their recordings.

        Sessions are found by name; if none of the names is known, they are in the order given.
        """
        columns = self._columns(tuple(recordings))
        ids = self.ids[:, columns].copy()
        for column, (name, recording) in enumerate(recordings.items()):
            known = np.asarray(recording.cell_ids)
            found = ids[:, column] != MISSING
            cells = ids[found, column]
            wrong = cells >= len(known) if self.positions else ~np.isin(cells, known)
            if wrong.any():
                raise InputError(
                    f"{self.source or 'The matching'} names cell {cells[wrong][0]} of session "
                    f"{name!r}, which has {len(known)} ROIs but no such cell: does the file belong "
                    "to this session?"
                )
            if self.positions:
                ids[found, column] = known[cells]
        return Matching(tuple(recordings), ids, False, self.source)

    def _columns(self, sessions: Sequence[str]) -> list[int]:
        if set(sessions) <= set(self.sessions):
            return [self.sessions.index(name) for name in sessions]
        if len(sessions) == len(self.sessions) and not set(sessions) & set(self.sessions):
            return list(range(len(sessions)))
        raise InputError(
            f"{self.source or 'The matching'} is for the sessions {', '.join(self.sessions)}, but "
            f"these are {', '.join(sessions)}: the same names are needed, or as many sessions in "
            "the same order."
        )

    def between(self, one: str, other: str) -> dict[int, int]:
        """Ids of one session to ids of another, of the cells found in both."""
        pairs = self.ids[:, [self.sessions.index(one), self.sessions.index(other)]]
        return {int(a): int(b) for a, b in pairs if MISSING not in (a, b)}

    def repeated(self) -> Matching:
        """Only cells that were found in two sessions or more."""
        return replace(self, ids=self.ids[(self.ids != MISSING).sum(1) >= 2])
