"""Queues cells for review, and takes the decisions about them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from napari_xcebra.attribution.score_map import ScoreMap
from napari_xcebra.curation import (
    STATUSES,
    UNDECIDED,
    CellFilter,
    Change,
    Curation,
    Queue,
    Status,
    ordered,
)
from napari_xcebra.curation.evidence import Proposal
from napari_xcebra.curation.order import Doubts, properties_of
from napari_xcebra.errors import InputError
from napari_xcebra.io.decisions.restoring import recall
from napari_xcebra.io.formats.suite2p.writing import table_beside
from napari_xcebra.text import counted
from napari_xcebra.widgets.state.shown import chosen_map, shown_map
from napari_xcebra.widgets.state.signals import OfState, Signal

if TYPE_CHECKING:
    from napari_xcebra.recording import Recording
    from napari_xcebra.widgets.state.curations import Curations
    from napari_xcebra.widgets.state.state import State
    from napari_xcebra.workspace_file import Opened


BLIND_ORDERS = ("random", "position", "id")
"""Orders that say nothing about the scores."""
EMPTY = "No cells match the filter."
MEASURING = " Doubtful ones come up once all are measured."
NO_DOUBT = "No ROI is doubtful: save the decisions, or choose another order of the queue."


@dataclass(frozen=True)
class QueueChoice:
    """Which cells are in the queue, in which order.

    Parameters
    ----------
    order : str
        One of `napari_xcebra.curation.ORDERS`.
    status : {"any", "undecided", "accepted", "rejected"}
    above : bool or None
        Above the threshold or not; None for both.
    tag : str
        Empty for any.
    column : str
        Name of a property of the cells; empty for none.
    low, high : float
        Range of its values, both included.
    word : str
        Its value, where values are words; empty for any.
    """

    order: str = "score"
    status: Literal["any"] | Status = "any"
    above: bool | None = None
    tag: str = ""
    column: str = ""
    low: float = -np.inf
    high: float = np.inf
    word: str = ""

    @property
    def filter(self) -> CellFilter:
        """The filter that the queue takes."""
        statuses = STATUSES if self.status == "any" else (self.status,)
        return CellFilter(statuses, self.above, self.tag)


class CellQueue(OfState):
    """Goes from cell to cell of the current recording."""

    moved = Signal()
    """The current cell or the queue has changed."""
    came_up = Signal(int)
    """This cell became the current one, and should be in view."""
    said = Signal(str, str, str)
    """A sentence for a notice, its tone, and details."""

    def __init__(self, state: State, curations: Curations) -> None:
        super().__init__(state)
        self.curations = curations
        self._choice = QueueChoice()
        self._doubts: Doubts | None = None
        self._properties: tuple[Recording, dict[str, np.ndarray]] | None = None
        self.measured: dict[str, np.ndarray] = {}
        """What was measured of the cells in front, beside what their file says."""
        self._passed: set[int] = set()
        self._opened: Opened | None = state.current
        self._cell: int | None = None
        self._order: tuple[tuple[Any, ...], np.ndarray] | None = None
        self._queue: Queue | None = None
        state.selection_changed.connect(self._follow_selection)
        state.recording_changed.connect(self._start_over)
        state.shown_changed.connect(self._forget_queue)
        state.runs_changed.connect(self._forget_queue)
        self.curations.changed.connect(self._forget_queue)
        self._follow_selection()

    # ------------------------------------------------------------ the queue

    @property
    def choice(self) -> QueueChoice:
        """Order and filter, or the nearest that are possible now."""
        choice = self._choice
        if self.state.shown.blind:
            order = choice.order if choice.order in BLIND_ORDERS else "random"
            return replace(choice, order=order, above=None)
        if choice.order not in self.orders:
            return replace(choice, order="position", above=None)
        return choice

    @choice.setter
    def choice(self, choice: QueueChoice) -> None:
        self._choice = choice
        self._forget_queue()

    @property
    def properties(self) -> dict[str, np.ndarray]:
        """(cells,) array of each property of the cells, by name."""
        recording = self.state.recording
        if recording is None:
            return {}
        if self._properties is None or self._properties[0] is not recording:
            known = properties_of(recording)
            for name, values in known.items():
                if values.dtype.kind == "b":
                    known[name] = np.where(values, "yes", "no")
            self._properties = recording, known
        return {**self._properties[1], **self.measured}

    def in_range(self) -> np.ndarray:
        """Positions of the cells in the chosen range of the chosen property."""
        return np.flatnonzero(self._in_range)

    @property
    def _in_range(self) -> np.ndarray:
        choice, values = self._choice, self.properties.get(self._choice.column)
        recording = self.state.recording
        if values is None:
            return np.ones(0 if recording is None else recording.n_cells, bool)
        if values.dtype.kind not in "biuf":
            return (values.astype(str) == choice.word) | (choice.word == "")
        numbers = values.astype(np.float64)
        inside: np.ndarray = (numbers >= choice.low) & (numbers <= choice.high)
        return inside | (choice.low == -np.inf) & (choice.high == np.inf)

    @property
    def doubts(self) -> Doubts | None:
        """Which of the extractor's calls are doubtful; None before that was found out."""
        recording, doubts = self.state.recording, self._doubts
        if recording is None or doubts is None or len(doubts.degree) != recording.n_cells:
            return None
        return doubts

    @doubts.setter
    def doubts(self, doubts: Doubts | None) -> None:
        self._doubts, self._order = doubts, None
        self._forget_queue()
        if doubts is not None and self.by_doubt:  # as was asked for before they were known
            self.begin()

    @property
    def by_doubt(self) -> bool:
        """Whether only doubtful cells come up."""
        return self.choice.order == "doubt"

    @property
    def orders(self) -> tuple[str, ...]:
        """Orders that are possible now."""
        if self.state.shown.blind:
            return BLIND_ORDERS
        doubt = () if self.doubts is None else ("doubt",)
        by_value = ("property",) if self._choice.column in self.properties else ()
        painted = chosen_map(self.state)
        if painted is None:
            return (*doubt, "position", *by_value, "random", "id")
        known = ["q-value"] if painted.q is not None else []
        known += ["instability"] if painted.places is not None else []
        return (*doubt, "score", *known, "disagreement", "position", *by_value, "random", "id")

    @property
    def queue(self) -> Queue | None:
        """The queue of cells; None without a recording."""
        opened, curation = self.state.current, self.curations.current
        if opened is None or curation is None:
            return None
        if self._queue is None:
            choice = self.choice
            order = self._ordered(opened, choice.order, chosen_map(self.state))
            self._queue = Queue(order, self._pass_filter(choice, curation))
        return self._queue

    def _ordered(self, opened: Opened, order: str, painted: ScoreMap | None) -> np.ndarray:
        value = self.properties.get(self._choice.column)
        if order == "property":
            return ordered(order, np.asarray(opened.recording.cell_ids), value=value)
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
                doubt=None if self.doubts is None else self.doubts.degree,
            )
            self._order = (key, found)
        return self._order[1]

    @property
    def progress(self) -> tuple[int, int]:
        """How many cells are decided, and how many there are, of any status."""
        queue, curation = self.queue, self.curations.current
        if queue is None or curation is None:
            return 0, 0
        keep = self._pass_filter(replace(self.choice, status="any"), curation)
        return int((keep & ~self._open).sum()), int(keep.sum())

    @property
    def place(self) -> tuple[int, int]:
        """Number of the current cell in the queue, 0 if it is not in it, and cells in the queue."""
        queue, cell = self.queue, self.cell
        if queue is None:
            return 0, 0
        if cell is None or not queue.keep[cell]:
            return 0, len(queue)
        return queue.number(cell) + 1, len(queue)

    @property
    def status(self) -> np.ndarray:
        """(cells,) int8, decisions on the current recording that may be seen."""
        opened = self.state.current
        return np.zeros(0, np.int8) if opened is None else self.curations.status(opened)

    @property
    def _open(self) -> np.ndarray:
        """(cells,) bool, cells that wait for a decision; of doubtful ones, for a look at least."""
        curation = self.curations.current
        if not self.by_doubt or curation is None:
            return self.status == UNDECIDED
        waiting = ~curation.by_hand
        waiting[list(self._passed)] = False
        return waiting

    def _pass_filter(self, choice: QueueChoice, curation: Curation) -> np.ndarray:
        painted = chosen_map(self.state)
        keep = choice.filter.keep(
            self.status,
            None if painted is None else painted.above(self.state.shown.threshold),
            curation.tagged(choice.tag) if choice.tag else None,
        )
        if choice.order == "doubt" and (doubts := self.doubts) is not None:
            keep &= doubts.degree > 0
        return keep & self._in_range

    def _forget_queue(self) -> None:
        self._queue = None
        self.moved.emit()

    # ------------------------------------------------------------ the current cell

    @property
    def cell(self) -> int | None:
        """Position of the current cell in the recording."""
        recording = self.state.recording
        known = recording is not None and self._cell is not None and self._cell < recording.n_cells
        return self._cell if known else None

    def go_to(self, cell: int | None) -> None:
        """Make a cell the current one: selected, so that all docks show it, and in view."""
        if cell is None:
            return
        self._cell = cell
        if self.state.selection.tolist() != [cell]:
            self.state.select([cell])
        else:
            self.moved.emit()
        self.came_up.emit(cell)

    def begin(self) -> None:
        """Go to the first undecided cell of the queue, or to its first cell."""
        queue = self.queue
        if queue is not None:
            first = queue.with_keep(queue.keep & self._open).next()
            self.go_to(queue.next() if first is None else first)

    def step(self, by: Literal[-1, 1]) -> None:
        """Go to the next cell of the queue or the one before."""
        queue = self.queue
        if queue is None:
            return
        if self.by_doubt and by > 0 and self.cell is not None:
            self._passed.add(self.cell)
        found = queue.next(self.cell) if by > 0 else queue.previous(self.cell)
        if found is None and self.by_doubt and by > 0:
            self.said.emit(self._seen_all, "good", "")
            self.moved.emit()
        elif found is None:
            end = "last" if by > 0 else "first"
            said = f"This is the {end} cell of the queue." if len(queue) else EMPTY
            self.said.emit(said, "plain", "")
        self.go_to(found)

    def step_on(self) -> None:
        """Go to the next cell to decide on: an undecided one, if these are in the queue."""
        queue = self.queue
        if queue is None:
            return
        if not len(queue):
            self.said.emit(NO_DOUBT if self.by_doubt else EMPTY, "plain", "")
            return
        if self.by_doubt or "undecided" in self.choice.filter.statuses:
            queue = queue.with_keep(queue.keep & self._open)
        found = queue.next(self.cell)
        if found is None:
            found = queue.next() if queue.next() != self.cell else None
            left = len(queue)
            self.said.emit(
                f"End of the queue. Starting over: {left} cell{'s' * (left != 1)} left."
                if found is not None
                else self._seen_all
                if self.by_doubt
                else "End of the queue: every other cell in it is decided.",
                "plain" if found is not None else "good",
                "",
            )
        self.go_to(found)

    @property
    def _seen_all(self) -> str:
        return NO_DOUBT.replace("No ROI is doubtful", "No doubtful ROI is left")

    def _follow_selection(self) -> None:
        if len(self.state.selection) == 1:
            self._cell = int(self.state.selection[0])
        self.moved.emit()

    def _start_over(self) -> None:
        if self.state.current is not self._opened:  # rather than the same one, changed
            self._opened = self.state.current
            self._cell = None
            self._passed.clear()
        self._forget_queue()


def _spread(painted: ScoreMap | None) -> np.ndarray | None:
    """(cells,) float, how far the ranks by several seeds are apart; NaN where a cell has none."""
    if painted is None or painted.places is None:
        return None
    return np.where(painted.known, np.diff(painted.places, axis=0)[0], np.nan)


def _same(first: tuple[Any, ...], second: tuple[Any, ...]) -> bool:
    return len(first) == len(second) and all(
        a is b or (isinstance(a, str | int) and a == b) for a, b in zip(first, second, strict=True)
    )


class Deciding(OfState):
    """Acts on the selected cells, which are outlined in the image."""

    said = Signal(str, str, str)
    """A sentence for a notice, its tone, and details."""

    def __init__(self, state: State, curations: Curations, queue: CellQueue) -> None:
        super().__init__(state)
        self.curations = curations
        self.queue = queue

    def decide(self, status: Status, *, step_on: bool = True) -> None:
        """Decide on the selected cells, and go on to the next one unless told not to.

        Where none is selected, nothing is decided and the next one comes up.
        """
        cells = self.state.selection
        if not len(cells):
            self.said.emit("No cell was selected. Decide on this one.", "plain", "")
            self.queue.step_on()
            return
        change = self.curations.act(lambda curation: curation.decide(cells, status))
        if self.curations.refused:
            return
        if len(cells) > 1 and change is not None:
            self.said.emit(change.sentence, "good", "")
        if step_on:
            self.queue.step_on()

    def flip(self) -> None:
        """Reject the selected cells if all are accepted, by the extractor or since; else accept."""
        opened, cells = self.state.current, self.state.selection
        if opened is not None:
            accepted = self.curations.accepted(opened)[cells].all()
            self.decide("rejected" if accepted else "accepted")

    def start_from_extractor(self) -> None:
        """Take over the extractor's calls on all undecided ROIs, then show the doubtful ones."""
        opened = self.state.current
        if opened is None:
            return
        calls = self.curations.extractor(opened)
        change = self.curations.act(lambda curation: curation.adopt(calls, ~calls, "extractor"))
        if self.curations.refused:
            return
        said = change.sentence if change is not None else ""
        if not self.state.shown.blind:
            self.queue.choice = replace(self.queue.choice, order="doubt", status="any", above=None)
            doubts = self.queue.doubts
            said += f" Doubtful: {counted(doubts.count, 'call')}." if doubts else MEASURING
            self.queue.begin()
        self.said.emit(said.strip(), "good", "")

    @property
    def to_merge(self) -> np.ndarray:
        """Positions of the selected cells, or of one and the other that it may be a part of."""
        cells, doubts = self.state.selection, self.queue.doubts
        if len(cells) == 1 and doubts is not None and doubts.twin[cells[0]] >= 0:
            return np.array([cells[0], doubts.twin[cells[0]]])
        return cells if len(cells) > 1 else cells[:0]

    @property
    def is_merged(self) -> bool:
        """Whether the selected cell is one that was merged."""
        cells, curation = self.state.selection, self.curations.current
        return len(cells) == 1 and curation is not None and int(cells[0]) in curation.merged

    def merge(self, how: Literal["mean", "sum"] = "mean") -> None:
        """Make one cell of several, under the id of the largest; take a merged one apart."""
        opened, cells, apart = self.state.current, self.to_merge, self.is_merged
        if opened is None or not (apart or len(cells)):
            self.said.emit("Select two cells or more to merge them.", "plain", "")
            return
        keeper = int(self.state.selection[0])
        if not apart:
            keeper = int(cells[np.argmax(opened.shapes.sizes[cells])])

        def step(curation: Curation) -> Change | None:
            return curation.split(keeper) if apart else curation.merge(cells, keeper, how)

        change = self.curations.act(step)
        if change is not None:
            self.queue.go_to(keeper)
            self.said.emit(change.sentence, "good", "")

    def apply_proposal(self, proposal: Proposal, threshold: float) -> Change | None:
        """Accept and reject as proposed, from a probability on, in one undo step."""
        curation = self.curations.current
        if curation is None:
            return None
        sides = proposal.sides(threshold, curation.status)
        about = {"threshold": float(threshold), **proposal.provenance()}
        change = self.curations.act(lambda each: each.adopt(*sides, "proposal", about))
        if change is not None:
            self.said.emit(change.sentence, "good", "")
        return change

    def tag(self, name: str) -> None:
        """Add a tag, or remove it."""
        cells = self.state.selection
        if len(cells):
            self.curations.act(lambda curation: curation.tag(cells, name))

    def write_note(self, text: str) -> None:
        """Put a note on the selected cell."""
        cells, curation = self.state.selection, self.curations.current
        if len(cells) == 1 and curation is not None and text != curation.note(cells[0]):
            self.curations.act(lambda curation: curation.write_note(int(cells[0]), text))

    @property
    def to_accept(self) -> np.ndarray:
        """(cells,) bool, undecided cells above the threshold; none without a map to trust."""
        painted, curation = shown_map(self.state), self.curations.current
        if painted is None or curation is None or painted.at_chance:
            return np.zeros(0 if curation is None else curation.n_cells, bool)
        return painted.above(self.state.shown.threshold) & (curation.status == UNDECIDED)

    def accept_above(self) -> None:
        """Accept all undecided cells above the threshold."""
        above, shown = self.to_accept, self.state.shown
        if not above.any():
            return
        change = self.curations.act(
            lambda curation: curation.decide_above(above, shown.factor, shown.threshold)
        )
        if change is not None:
            self.said.emit(change.sentence, "good", "")

    def step_in_time(self, way: Literal["undo", "redo"]) -> None:
        """Undo or redo a step, and go to its cell."""
        if not self.curations.is_open:
            return
        change = self.curations.act(Curation.undo if way == "undo" else Curation.redo)
        if change is None:
            if not self.curations.refused:
                self.said.emit(f"There is nothing to {way}.", "plain", "")
            return
        done = change.sentence.rstrip(".")
        self.said.emit(f"{'Undone' if way == 'undo' else 'Redone'}: {done}.", "plain", "")
        if len(change.cells) == 1:
            self.queue.go_to(int(change.cells[0]))


def earlier_table(curations: Curations) -> Path | None:
    """Table of decisions beside the recording, where there are none on these cells yet.

    suite2p, run again, has other ROIs, to which no journal belongs.
    """
    opened, curation = curations.state.current, curations.current
    if opened is None or opened.path is None or curation is None:
        return None
    decided = bool(curations.offers) or (curation.status != 0).any()
    return None if decided else table_beside(opened.path)


def take_over(curations: Curations, table: Path) -> None:
    """Apply decisions from a table to cells that nobody has decided on by hand."""
    opened = curations.state.current
    if opened is None:
        return
    try:
        found = recall(table, opened.recording)
    except InputError as error:
        curations.said.emit(str(error), "problem", "")
        return
    taken: list[int] = []

    def step(curation: Curation) -> None:
        taken.append(found.onto(curation))

    curations.act(step)
    if taken:
        sentence = f"Carried over {counted(taken[0], 'decision')}. {found.summary()}"
        curations.said.emit(sentence, "good", "")
