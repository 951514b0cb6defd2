"""Holds decisions on cells, with undo and redo, follows a journal, and compares two judges.

Every action starts as an entry (a plain mapping that names cells by their ids). It is written to
the journal first and then applied, by the same code that applies it when the journal is read again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from psygnal import Signal

from napari_xcebra.curation.changes import (
    ACCEPTED,
    BY,
    HAND,
    REJECTED,
    STATUSES,
    TAG,
    THRESHOLD,
    UNDECIDED,
    Cells,
    Change,
    History,
    Status,
    now,
)
from napari_xcebra.curation.journal import Journal
from napari_xcebra.errors import InputError
from napari_xcebra.text import percent

if TYPE_CHECKING:
    import pandas as pd


class Curation:
    """Decisions on the cells of one recording, with undo and redo without limit.

    Parameters
    ----------
    cell_ids : (cells,) int64
        As in the recording; positions in it are what all methods take and give.
    journal : Journal, optional
        What is in it is carried out first; everything from then on is written to it.
    curator : str
        Who decides; that of the journal if not given.

    Signals
    -------
    changed(cells)
        (n,) int64 positions of the cells that changed.

    Examples
    --------
    >>> curation = Curation([10, 11, 12])
    >>> curation.decide([0, 2], "accepted").sentence
    'Accepted 2 cells.'
    >>> curation.decide_above([True, True, False]).sentence
    'Accepted 1 cell above the threshold.'
    >>> [STATUSES[status] for status in curation.status]
    ['accepted', 'accepted', 'accepted']
    >>> _ = curation.undo()
    >>> [STATUSES[status] for status in curation.status]
    ['accepted', 'undecided', 'accepted']
    """

    changed = Signal(object)

    def __init__(self, cell_ids: Any, *, journal: Journal | None = None, curator: str = "") -> None:
        self._cells = Cells(cell_ids)
        self.journal = journal
        self.curator = curator or (journal.curator if journal else "")
        self._history = History(self._cells)
        for entry in journal.entries if journal else ():
            self._history.replay(entry)

    # ------------------------------------------------------------ what was decided

    @property
    def n_cells(self) -> int:
        """Number of cells, decided or not."""
        return len(self._cells)

    @property
    def cell_ids(self) -> np.ndarray:
        """(cells,) int64, as in the recording."""
        return self._cells.ids

    @property
    def _columns(self) -> dict[str, np.ndarray]:
        return self._cells.columns

    @property
    def status(self) -> np.ndarray:
        """(cells,) int8, numbers into `STATUSES`: UNDECIDED, ACCEPTED, REJECTED."""
        return self._columns["status"].copy()

    @property
    def by_hand(self) -> np.ndarray:
        """(cells,) bool, decided by a person; a threshold never changes these."""
        return self._columns["by"] == HAND

    @property
    def by_threshold(self) -> np.ndarray:
        """(cells,) bool, accepted because a score is above a threshold."""
        return self._columns["by"] == THRESHOLD

    def by(self, cell: int) -> str:
        """Who decided on a cell: "hand", "threshold", "extractor", "proposal", or nobody: ""."""
        return BY[self._columns["by"][cell]]

    def status_of(self, cell: int) -> Status:
        """Status of one cell, as a word."""
        return STATUSES[self._columns["status"][cell]]

    def accepted(self, default: np.ndarray) -> np.ndarray:
        """(cells,) bool: the decision where there is one, else the default.

        Parameters
        ----------
        default : (cells,) bool
            Such as `recording.accepted`.
        """
        status = self._columns["status"]
        accepted = np.where(status == UNDECIDED, np.asarray(default, bool), status == ACCEPTED)
        return accepted & ~self.parts

    @property
    def parts(self) -> np.ndarray:
        """(cells,) bool, cells that were merged into another one, and no longer count."""
        into = self._columns["merged"]
        return (into >= 0) & (into != self.cell_ids)

    @property
    def merged(self) -> dict[int, np.ndarray]:
        """Positions of all that was merged into a cell, itself included, by its position."""
        into = self._columns["merged"]
        return {
            int(cell): np.flatnonzero(into == into[cell])
            for cell in np.flatnonzero((into >= 0) & (into == self.cell_ids))
        }

    @property
    def summed(self) -> np.ndarray:
        """(cells,) bool, cells whose parts are summed rather than averaged."""
        return self._columns["summed"].copy()

    @property
    def all_tags(self) -> tuple[str, ...]:
        """Tags that some cell has, in the order of their first use."""
        tags = {name: column for name, column in self._columns.items() if name.startswith(TAG)}
        return tuple(name.removeprefix(TAG) for name, column in tags.items() if column.any())

    def tags(self, cell: int) -> frozenset[str]:
        """Tags of one cell."""
        return frozenset(tag for tag in self.all_tags if self._columns[TAG + tag][cell])

    def tagged(self, tag: str) -> np.ndarray:
        """(cells,) bool, which have the tag."""
        column = self._columns.get(TAG + tag)
        return np.zeros(self.n_cells, bool) if column is None else column.copy()

    def note(self, cell: int) -> str:
        """Note on one cell; empty if there is none."""
        return str(self._columns["note"][cell])

    def table(self) -> pd.DataFrame:
        """One row per cell: cell, status, by, tags, note, curator, time, and what was merged."""
        import pandas as pd

        tags: list[list[str]] = [[] for _ in range(self.n_cells)]
        for tag in sorted(self.all_tags):
            for cell in np.flatnonzero(self._columns[TAG + tag]):
                tags[cell].append(tag)
        columns = self._columns
        into, merged = columns["merged"], {}
        if (into >= 0).any():
            keeper = self._cells.positions_of(np.where(into < 0, self.cell_ids, into))
            how = np.where(columns["summed"][keeper], "sum", "mean")
            merged = {
                "merged_into": np.where(into < 0, "", into.astype(str)),
                "merged_how": np.where(into < 0, "", how),
            }
        return pd.DataFrame(
            {
                "cell": self.cell_ids,
                "status": np.array(STATUSES, object)[columns["status"]],
                "by": np.array(BY, object)[columns["by"]],
                "tags": [";".join(each) for each in tags],
                "note": columns["note"].copy(),
                "curator": columns["curator"].copy(),
                "time": columns["time"].copy(),
                **merged,
            }
        )

    # ------------------------------------------------------------ deciding

    def decide(self, cells: Any, status: Status) -> Change | None:
        """Decide by hand, on one cell or many in one step; "undecided" takes a decision back.

        Parameters
        ----------
        cells : int, (n,) int or (cells,) bool
            Positions.
        status : {"accepted", "rejected", "undecided"}

        Returns
        -------
        Change or None
            None if nothing was to change, so that there is nothing to undo.
        """
        if status not in STATUSES:
            raise InputError(
                f"{status!r} is not a decision: one of {', '.join(STATUSES)} is needed."
            )
        return self._do({"do": "decide", "cells": self._cells.ids_of(cells), "status": status})

    def decide_above(
        self, above: Any, factor: str = "", threshold: float | None = None
    ) -> Change | None:
        """Accept all undecided cells above a threshold; no decision is taken back.

        Parameters
        ----------
        above : (cells,) bool
            Which cells lie above it.
        factor, threshold
            Whose score, and where the threshold was; kept in the journal.
        """
        chosen = np.asarray(above)
        if chosen.shape != (self.n_cells,) or chosen.dtype != bool:
            # NaN, a cell without a score, would count as true
            raise InputError(
                f"above has shape {chosen.shape} and type {chosen.dtype}: True or False for "
                f"each of {self.n_cells} cells is needed."
            )
        undecided = self._columns["status"] == UNDECIDED
        return self._do(
            {
                "do": "threshold",
                "factor": factor,
                "threshold": None if threshold is None else float(threshold),
                "accepted": self.cell_ids[undecided & chosen].tolist(),
                "undecided": [],  # earlier versions took decisions by threshold back
            }
        )

    def adopt(
        self,
        accepted: np.ndarray,
        rejected: np.ndarray,
        of: Literal["extractor", "proposal"],
        about: Mapping[str, Any] | None = None,
    ) -> Change | None:
        """Take over what somebody else says, in one step; decisions by hand stay as they are.

        Parameters
        ----------
        accepted, rejected : (cells,) bool
            The extractor speaks for undecided cells alone; a proposal may also contradict it.
        of : {"extractor", "proposal"}
            Who says so.
        about : mapping, optional
            Plain values on how that came about, which the journal keeps.
        """
        status = self._columns["status"]
        free = status == UNDECIDED if of == "extractor" else ~self.by_hand
        sides = {"accepted": accepted & (status != ACCEPTED),
                 "rejected": rejected & (status != REJECTED)}  # fmt: skip
        ids = {name: self._cells.ids_of(side & free) for name, side in sides.items()}
        return self._do({"do": "adopt", "of": of, **ids, "about": dict(about or {})})

    def merge(
        self, cells: Any, into: int | None = None, how: Literal["mean", "sum"] = "mean"
    ) -> Change | None:
        """Make one cell of several, which keeps the id of one of them; the others are rejected.

        Parameters
        ----------
        cells : (n,) int or (cells,) bool
            Positions; what was merged into one of them before comes along.
        into : int, optional
            Position of the cell that stays; the first if not given.
        how : {"mean", "sum"}
            Whether traces are averaged by the size of the footprints, or summed.
        """
        given = self._cells.positions_of(self._cells.ids_of(cells))
        wanted = {int(p) for cell in given for p in self.merged.get(int(cell), [cell])}
        if len(wanted) < 2:
            raise InputError("Two cells or more are needed to merge them.")
        if any(self.parts[cell] for cell in given):
            raise InputError("A cell that is merged into another one cannot be merged again.")
        ids = self.cell_ids[sorted(wanted)].tolist()
        keeper = int(self.cell_ids[int(given[0]) if into is None else into])
        return self._do({"do": "merge", "cells": ids, "into": keeper, "how": how})

    def split(self, cell: int) -> Change | None:
        """Take a merged cell apart; all of its parts count as accepted cells again."""
        into = self._columns["merged"][cell]
        these = np.flatnonzero((self._columns["merged"] == into) & (into >= 0))
        return self._do({"do": "split", "cells": self.cell_ids[these].tolist()})

    def tag(self, cells: Any, tag: str, on: bool | None = None) -> Change | None:
        """Give cells a tag or take it away.

        Parameters
        ----------
        cells : int, (n,) int or (cells,) bool
            Positions.
        tag : str
        on : bool, optional
            Without it, all cells are given the tag, unless all have it: then it is taken away.
        """
        tag = tag.strip()
        if not tag or ";" in tag:
            raise InputError(f"{tag!r} cannot be a tag: a word without ; is needed.")
        ids = self._cells.ids_of(cells)
        if on is None:
            on = not self.tagged(tag)[self._cells.positions_of(ids)].all()
        return self._do({"do": "tag", "cells": ids, "tag": tag, "on": bool(on)})

    def write_note(self, cell: int, text: str) -> Change | None:
        """Put a note on a cell, replacing any earlier one; an empty text removes it."""
        return self._do({"do": "note", "cells": self._cells.ids_of(cell), "text": str(text)})

    # ------------------------------------------------------------ undo and redo

    @property
    def can_undo(self) -> bool:
        """Whether there is a step to undo, also of an earlier session."""
        return self._history.last is not None

    @property
    def can_redo(self) -> bool:
        """Whether a step was undone, and none taken since."""
        return self._history.undone is not None

    def undo(self) -> Change | None:
        """Undo the last step; returns it, or None if there is none."""
        last = self._history.last
        if last is None:
            return None
        self._write({"do": "undo", "of": last.step})
        return self._tell(self._history.back())

    def redo(self) -> Change | None:
        """Do the step again that was undone last; returns it, or None if there is none."""
        undone = self._history.undone
        if undone is None:
            return None
        self._write({"do": "redo", "of": undone.step})
        return self._tell(self._history.forth())

    @property
    def unknown_ids(self) -> frozenset[int]:
        """Ids in the journal that the recording does not have."""
        return frozenset(self._cells.unknown)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know about the journal, a sentence each."""
        return tuple(self.journal.notes) if self.journal else ()

    def close(self) -> None:
        """Release the journal, so that another window can continue it."""
        if self.journal is not None:
            self.journal.close()

    def __enter__(self) -> Curation:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------ entries

    def _do(self, action: dict[str, Any]) -> Change | None:
        last = self._history.last
        steps = {"step": self._history.next_step, "after": last.step if last else 0}
        entry = self._stamped({**action, **steps})
        change = self._cells.change(entry)
        if not len(change.cells):
            return None
        if self.journal is not None:
            self.journal.append(entry)
        self._history.take(change)
        return self._tell(change)

    def _write(self, action: dict[str, Any]) -> None:
        if self.journal is not None:
            self.journal.append(self._stamped(action))

    def _stamped(self, action: dict[str, Any]) -> dict[str, Any]:
        return {**action, "curator": self.curator, "time": now()}

    def _tell(self, change: Change) -> Change:
        self.changed.emit(change.cells)
        return change


RESAMPLES = 2000
_CLASSES = ("accepted", "rejected")


@dataclass(frozen=True, eq=False)
class Agreement:
    """Cohen's κ and the table it is computed from.

    Parameters
    ----------
    table : DataFrame
        Counts; rows by the first, columns by the second: accepted, rejected.
    names : (str, str)
        Of the two.
    kappa : float
        0 by chance, 1 for full agreement; NaN where it says nothing.
    low, high : float
        95 % interval of κ, by resampling cells.
    why : str
        Why there is no κ; empty where there is one.
    """

    table: pd.DataFrame
    names: tuple[str, str]
    kappa: float
    low: float
    high: float
    why: str = ""

    @property
    def n_cells(self) -> int:
        """Cells on which both decided."""
        return int(self.table.to_numpy().sum())

    @property
    def agreed(self) -> float:
        """Share of these on which they agree; NaN without any."""
        return float(np.trace(self.table.to_numpy()) / self.n_cells) if self.n_cells else np.nan

    @property
    def sentence(self) -> str:
        """The result in words."""
        first, second = self.names
        if not self.n_cells:
            return self.why
        said = f"{first} and {second} agree on {percent(self.agreed)} of {self.n_cells} cells"
        if self.why:
            return f"{said}. {self.why}"
        return f"{said}: κ = {self.kappa:.2f} (95 % interval {self.low:.2f} to {self.high:.2f})."


def agreement(
    first: np.ndarray,
    second: np.ndarray,
    names: tuple[str, str] = ("the curator", "the model"),
    *,
    seed: int = 0,
) -> Agreement:
    """Compare two sets of decisions on the same cells.

    Parameters
    ----------
    first, second : (cells,) bool or float
        True or 1 for accepted, False or 0 for rejected; NaN for a cell that does not count.
    names : (str, str)
        Who decided.
    seed : int
        Of the resampling that gives the interval.

    Examples
    --------
    >>> result = agreement([1, 1, 0, 0, np.nan], [1, 0, 0, 0, 1], ("Ann", "Ben"))
    >>> result.n_cells, round(result.kappa, 3)
    (4, 0.5)
    """
    import pandas as pd

    a, b = np.asarray(first, np.float64), np.asarray(second, np.float64)
    if a.shape != b.shape or a.ndim != 1:
        raise InputError(
            f"Decisions of shape {a.shape} and {b.shape} cannot be compared: one per cell is "
            "needed."
        )
    both = ~np.isnan(a) & ~np.isnan(b)
    rejected = a[both] == 0, b[both] == 0
    counts = np.zeros((2, 2), np.int64)
    np.add.at(counts, tuple(each.astype(int) for each in rejected), 1)
    table = pd.DataFrame(
        counts,
        index=pd.Index(_CLASSES, name=names[0]),
        columns=pd.Index(_CLASSES, name=names[1]),
    )
    why = _why_none(counts, names)
    if why:
        return Agreement(table, names, np.nan, np.nan, np.nan, why)
    low, high = _interval(counts, seed)
    return Agreement(table, names, float(_kappa(counts.ravel() / counts.sum())), low, high)


def with_model(curation: Curation, above: np.ndarray, factor: str = "") -> Agreement:
    """Compare decisions by hand with which cells score above threshold.

    Parameters
    ----------
    curation : Curation
        Decisions by threshold are the model's own, and do not count.
    above : (cells,) bool or float
        NaN for cells without a score, which do not count.
    factor : str
        Whose scores.
    """
    model = f"the model ({factor})" if factor else "the model"
    return agreement(_by_hand(curation), above, (curation.curator or "the curator", model))


def between(first: Curation, second: Curation, names: tuple[str, str] | None = None) -> Agreement:
    """Compare the decisions by hand of two curations, cell by cell id."""
    _, in_first, in_second = np.intersect1d(
        first.cell_ids, second.cell_ids, assume_unique=True, return_indices=True
    )
    if names is None:
        a, b = first.curator or "the first", second.curator or "the second"
        names = (a, b) if a != b else (f"{a} (first)", f"{b} (second)")
    return agreement(_by_hand(first)[in_first], _by_hand(second)[in_second], names)


def _by_hand(curation: Curation) -> np.ndarray:
    """(cells,) float: 1 accepted, 0 rejected, NaN where nobody decided by hand."""
    status = curation.status
    decided = curation.by_hand & (status != UNDECIDED)
    return np.where(decided, (status == ACCEPTED).astype(np.float64), np.nan)


def _why_none(counts: np.ndarray, names: tuple[str, str]) -> str:
    if not counts.sum():
        return f"There are no cells on which both {names[0]} and {names[1]} decided."
    for name, totals in zip(names, (counts.sum(axis=1), counts.sum(axis=0)), strict=True):
        if not totals.all():
            did = _CLASSES[int(np.argmax(totals))]
            return f"κ is not defined here, because {name} {did} all of these {counts.sum()} cells."
    return ""


def _interval(counts: np.ndarray, seed: int) -> tuple[float, float]:
    """95 % of κ over resampled cells; for a 2 × 2 table, draws of the table itself."""
    n = counts.sum()
    drawn = np.random.default_rng(seed).multinomial(n, counts.ravel() / n, RESAMPLES) / n
    low, high = np.nanpercentile(_kappa(drawn), [2.5, 97.5])
    return float(low), float(high)


def _kappa(shares: np.ndarray) -> np.ndarray:
    """Cohen's κ of (..., 4) shares of 2 × 2 tables, row by row; NaN where nobody varies."""
    both, first, second, neither = np.moveaxis(shares, -1, 0)
    rows, columns = both + first, both + second
    expected = rows * columns + (1 - rows) * (1 - columns)
    varied = expected < 1 - 1e-12
    beyond = both + neither - expected
    return np.divide(beyond, 1 - expected, out=np.full_like(expected, np.nan), where=varied)
