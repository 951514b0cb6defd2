"""Which cell is up, and which comes next."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from psygnal import Signal

from napari_xcebra.curation import STATUSES, UNDECIDED, Curation, Filter, Queue, Status, ordered
from napari_xcebra.widgets.camera import bring_into_view, zoom_to_cells
from napari_xcebra.widgets.curations import curations_of
from napari_xcebra.widgets.per_session import OfSession, one_per_session
from napari_xcebra.widgets.score_map import ScoreMap, chosen_map

if TYPE_CHECKING:
    from napari_xcebra.sessions import Opened
    from napari_xcebra.widgets.session import Session

BLIND_ORDERS = ("random", "position", "id")
"""Those that say nothing of the scores."""
EMPTY = "No cell is what is chosen beside “Show”: choose others there."


@dataclass(frozen=True)
class QueueChoice:
    """Which cells come up, in which order.

    Parameters
    ----------
    order : str
        One of `napari_xcebra.curation.ORDERS`.
    status : {"any", "undecided", "accepted", "rejected"}
    selected : bool or None
        Above the threshold or not; None for both.
    tag : str
        Empty for any.
    """

    order: str = "score"
    status: Literal["any"] | Status = "any"
    selected: bool | None = None
    tag: str = ""

    @property
    def filter(self) -> Filter:
        """As the queue takes it."""
        statuses = STATUSES if self.status == "any" else (self.status,)
        return Filter(statuses, self.selected, self.tag)


class Walk(OfSession):
    """Goes from cell to cell of the current recording.

    Parameters
    ----------
    session : Session
    """

    moved = Signal()
    """Another cell is up, or the queue is another."""
    said = Signal(str, str, str)
    """A sentence for a notice, its tone, and details."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.curations = curations_of(session)
        self.centering = True
        self._fresh = True
        self._choice = QueueChoice()
        self._cell: int | None = None
        self._order: tuple[tuple[Any, ...], np.ndarray] | None = None
        self._queue: Queue | None = None
        session.selection_changed.connect(self._follow_selection)
        session.recording_changed.connect(self._start_over)
        session.shown_changed.connect(self._forget_queue)
        session.runs_changed.connect(self._forget_queue)
        self.curations.changed.connect(self._forget_queue)
        self._follow_selection()

    # ------------------------------------------------------------ the queue

    @property
    def choice(self) -> QueueChoice:
        """Order and filter, as far as they are possible now."""
        choice = self._choice
        if self.session.shown.blind:
            order = choice.order if choice.order in BLIND_ORDERS else "random"
            return replace(choice, order=order, selected=None)
        if choice.order not in self.orders:
            return replace(choice, order="position", selected=None)
        return choice

    @choice.setter
    def choice(self, choice: QueueChoice) -> None:
        self._choice = choice
        self._forget_queue()

    @property
    def orders(self) -> tuple[str, ...]:
        """Orders that are possible now."""
        if self.session.shown.blind:
            return BLIND_ORDERS
        painted = chosen_map(self.session)
        if painted is None:
            return ("position", "random", "id")
        known = ["q-value"] if painted.q is not None else []
        known += ["instability"] if painted.places is not None else []
        return ("score", *known, "disagreement", "position", "random", "id")

    @property
    def queue(self) -> Queue | None:
        """The cells that come up; None without a recording."""
        opened, curation = self.session.current, self.curations.current
        if opened is None or curation is None:
            return None
        if self._queue is None:
            choice = self.choice
            order = self._ordered(opened, choice.order, chosen_map(self.session))
            self._queue = Queue(order, self._kept(choice, curation))
        return self._queue

    def _ordered(self, opened: Opened, order: str, painted: ScoreMap | None) -> np.ndarray:
        map_key = (painted.attribution, painted.factor, painted.latent) if painted else ()
        key = (opened.recording, order, *map_key)
        if self._order is None or not _same(self._order[0], key):
            recording = opened.recording
            found = ordered(
                order,
                np.asarray(recording.cell_ids),
                score=painted.scores if painted else None,
                q=painted.q if painted else None,
                spread=_spread(painted),
                extractor=recording.cells.get("probability", recording.accepted),
                centroids=opened.centers if order == "position" else None,
            )
            self._order = (key, found)
        return self._order[1]

    @property
    def progress(self) -> tuple[int, int]:
        """How many cells are decided and how many there are, whichever status is looked at."""
        queue, curation = self.queue, self.curations.current
        if queue is None or curation is None:
            return 0, 0
        keep = self._kept(replace(self.choice, status="any"), curation)
        return int((self.status[keep] != UNDECIDED).sum()), int(keep.sum())

    @property
    def place(self) -> tuple[int, int]:
        """Number of the cell that is up, 0 if the queue leaves it out, and cells in the queue."""
        queue, cell = self.queue, self.cell
        if queue is None:
            return 0, 0
        if cell is None or not queue.keep[cell]:
            return 0, len(queue)
        return queue.number(cell) + 1, len(queue)

    @property
    def status(self) -> np.ndarray:
        """(cells,) int8, decisions on the current recording that may be seen."""
        opened = self.session.current
        return np.zeros(0, np.int8) if opened is None else self.curations.status(opened)

    def _kept(self, choice: QueueChoice, curation: Curation) -> np.ndarray:
        painted = chosen_map(self.session)
        return choice.filter.keep(
            self.status,
            None if painted is None else painted.selected(self.session.shown.threshold),
            curation.tagged(choice.tag) if choice.tag else None,
        )

    def _forget_queue(self) -> None:
        self._queue = None
        self.moved.emit()

    # ------------------------------------------------------------ the cell that is up

    @property
    def cell(self) -> int | None:
        """Position of the cell that is up."""
        recording = self.session.recording
        known = recording is not None and self._cell is not None and self._cell < recording.n_cells
        return self._cell if known else None

    @property
    def meant(self) -> np.ndarray:
        """Positions of the cells that a decision is about: all that are selected, or the one up."""
        selection = self.session.selection
        if len(selection):
            return selection
        return np.array([] if self.cell is None else [self.cell], np.int64)

    def go_to(self, cell: int | None) -> None:
        """Bring a cell up: selected, so that all docks show it, and in the middle of the image."""
        if cell is None:
            return
        self._cell = cell
        if self.session.selection.tolist() != [cell]:
            self.session.select([cell])
        else:
            self.moved.emit()
        if self.centering and self._fresh:
            zoom_to_cells(self.session)
        self._fresh = False
        bring_into_view(self.session, cell, always=self.centering)

    def begin(self) -> None:
        """Bring up the first undecided cell of the queue, or its first."""
        queue = self.queue
        if queue is not None:
            undecided = queue.with_keep(queue.keep & (self.status == UNDECIDED))
            first = undecided.next()
            self.go_to(queue.next() if first is None else first)

    def step(self, by: Literal[-1, 1]) -> None:
        """Go to the next cell of the queue or the one before."""
        queue = self.queue
        if queue is None:
            return
        found = queue.next(self.cell) if by > 0 else queue.previous(self.cell)
        if found is None:
            end = "last" if by > 0 else "first"
            said = f"That is the {end} cell of the queue." if len(queue) else EMPTY
            self.said.emit(said, "plain", "")
        self.go_to(found)

    def step_on(self) -> None:
        """Go to the next cell to decide on: an undecided one, if these are in the queue."""
        queue = self.queue
        if queue is None:
            return
        if not len(queue):
            self.said.emit(EMPTY, "plain", "")
            return
        if "undecided" in self.choice.filter.statuses:
            queue = queue.with_keep(queue.keep & (self.status == UNDECIDED))
        found = queue.next(self.cell)
        if found is None:
            found = queue.next() if queue.next() != self.cell else None
            left = len(queue)
            self.said.emit(
                f"End of the queue; from its beginning: {left} cell{'s' * (left != 1)} left."
                if found is not None
                else "End of the queue: no other cell in it is left to decide on.",
                "plain" if found is not None else "good",
                "",
            )
        self.go_to(found)

    def _follow_selection(self) -> None:
        if len(self.session.selection) == 1:
            self._cell = int(self.session.selection[0])
        self.moved.emit()

    def _start_over(self) -> None:
        self._cell, self._fresh = None, True
        self._forget_queue()


walk_of = one_per_session(Walk)
"""The walk of a session."""


def _spread(painted: ScoreMap | None) -> np.ndarray | None:
    """(cells,) float, how far the ranks by several seeds are apart; NaN where a cell has none."""
    if painted is None or painted.places is None:
        return None
    return np.where(painted.known, np.diff(painted.places, axis=0)[0], np.nan)


def _same(first: tuple[Any, ...], second: tuple[Any, ...]) -> bool:
    return len(first) == len(second) and all(
        a is b or (isinstance(a, str | int) and a == b) for a, b in zip(first, second, strict=True)
    )
