"""Whatever is done in whatever order, and wherever it is cut off: a simple model agrees."""

from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from napari_xcebra.curation import STATUSES, CellFilter, Curation, Journal, Queue, ordered
from napari_xcebra.errors import InputError

IDS = [40, 7, 1000, 3, 12, 5, 8]
CELLS = st.sets(st.integers(0, len(IDS) - 1), min_size=1)
CELL = st.integers(0, len(IDS) - 1)
SELECTED = st.lists(st.booleans(), min_size=len(IDS), max_size=len(IDS))
TAG = st.sampled_from(["place", "red", "µ λ"])


class Model:
    """What should be: a row a cell, and whole copies of all rows for undo and redo."""

    def __init__(self):
        self.rows = [("undecided", "", frozenset(), "", None) for _ in IDS]
        self.before, self.after = [], []

    def set(self, rows):
        if rows != self.rows:
            self.before.append(self.rows)
            self.after = []
            self.rows = rows

    def undo(self):
        if self.before:
            self.after.append(self.rows)
            self.rows = self.before.pop()

    def redo(self):
        if self.after:
            self.before.append(self.rows)
            self.rows = self.after.pop()


class AnySequence(RuleBasedStateMachine):
    @initialize()
    def begin(self):
        self.folder = TemporaryDirectory()
        self.path = Path(self.folder.name) / "journal.jsonl"
        self.model = self.before_last = Model()
        self.length_before = 0
        self.open()

    def teardown(self):
        if hasattr(self, "folder"):
            self.curation.close()
            self.folder.cleanup()

    def open(self):
        self.curation = Curation(IDS, journal=Journal(self.path, curator="Ann"))

    def remember(self):
        """As things are before the next write."""
        self.before_last = deepcopy(self.model)
        self.length_before = self.path.stat().st_size

    @rule(cells=CELLS, status=st.sampled_from(STATUSES))
    def decide(self, cells, status):
        self.remember()
        self.curation.decide(sorted(cells), status)
        by = "" if status == "undecided" else "hand"
        rows = list(self.model.rows)
        for cell in cells:
            rows[cell] = (status, by, *rows[cell][2:])
        self.model.set(rows)

    @rule(selected=SELECTED)
    def move_threshold(self, selected):
        self.remember()
        self.curation.decide_above(selected, "place", 0.5)
        self.model.set(
            [
                ("accepted", "threshold", *row[2:]) if above and row[0] == "undecided" else row
                for row, above in zip(self.model.rows, selected, strict=True)
            ]
        )

    @rule(selected=SELECTED, of=st.sampled_from(["extractor", "proposal"]))
    def adopt(self, selected, of):
        self.remember()
        chosen = np.array(selected)
        self.curation.adopt(chosen, ~chosen, of)
        rows = list(self.model.rows)
        for cell, accept in enumerate(selected):
            status = "accepted" if accept else "rejected"
            free = rows[cell][0] == "undecided" if of == "extractor" else rows[cell][1] != "hand"
            if free and rows[cell][0] != status:
                rows[cell] = (status, of, *rows[cell][2:])
        self.model.set(rows)

    @rule(cells=CELLS)
    def merge(self, cells):
        rows = list(self.model.rows)
        if any(rows[cell][4] not in (None, IDS[cell]) for cell in cells):
            with pytest.raises(InputError):
                self.curation.merge(sorted(cells))
            return
        groups = {rows[cell][4] for cell in cells} - {None}
        members = sorted(cells | {i for i, row in enumerate(rows) if row[4] in groups})
        keeper = min(cells)
        if len(members) < 2:
            return
        self.remember()
        self.curation.merge(sorted(cells), keeper)
        for cell in members:
            status = "accepted" if cell == keeper else "rejected"
            rows[cell] = (status, "hand", *rows[cell][2:4], IDS[keeper])
        self.model.set(rows)

    @rule(cell=CELL)
    def split(self, cell):
        rows = list(self.model.rows)
        if rows[cell][4] is None:
            return
        self.remember()
        self.curation.split(cell)
        members = [i for i, row in enumerate(rows) if row[4] == rows[cell][4]]
        for each in members:
            rows[each] = ("accepted", "hand", *rows[each][2:4], None)
        self.model.set(rows)

    @rule(cells=CELLS, tag=TAG, on=st.sampled_from([None, True, False]))
    def tag(self, cells, tag, on):
        self.remember()
        self.curation.tag(sorted(cells), tag, on)
        rows = list(self.model.rows)
        if on is None:
            on = not all(tag in rows[cell][2] for cell in cells)
        for cell in cells:
            tags = rows[cell][2] | {tag} if on else rows[cell][2] - {tag}
            rows[cell] = (*rows[cell][:2], tags, *rows[cell][3:])
        self.model.set(rows)

    @rule(cell=CELL, text=st.text(max_size=5) | st.just('a\n{"do": "undo"}'))
    def note(self, cell, text):
        self.remember()
        self.curation.write_note(cell, text)
        rows = list(self.model.rows)
        rows[cell] = (*rows[cell][:3], text, rows[cell][4])
        self.model.set(rows)

    @rule()
    def undo(self):
        self.remember()
        assert self.curation.can_undo == bool(self.model.before)
        self.curation.undo()
        self.model.undo()

    @rule()
    def redo(self):
        self.remember()
        assert self.curation.can_redo == bool(self.model.after)
        self.curation.redo()
        self.model.redo()

    @rule(end=st.sampled_from(["closed", "crashed"]))
    def reopen(self, end):
        self.remember()
        if end == "closed":
            self.curation.close()
        else:
            self.curation.journal._release()  # as the system does when the process is gone
        if not self.path.exists():  # nothing had been decided
            assert not self.model.before and not self.model.after
            self.length_before = 0
        self.open()
        assert self.curation.notes == ()

    @precondition(lambda self: self.path.stat().st_size > self.length_before)
    @rule(share=st.floats(0, 1), zeros=st.integers(0, 3))
    def cut_off_the_last_write(self, share, zeros):
        """Power cut: some first part of the last write is there, and perhaps empty blocks."""
        self.curation.journal._release()
        written = self.path.read_bytes()
        last = written[self.length_before :]
        kept = last[: round(share * len(last))]
        whole = kept.count(b"\n") == last.count(b"\n") or kept == last[:-1]
        self.path.write_bytes(written[: self.length_before] + kept + b"\0" * zeros)
        if not whole or (kept == last[:-1] and zeros):
            self.model = self.before_last
        self.remember()
        self.open()

    @rule(statuses=st.sets(st.sampled_from(STATUSES)), tag=TAG | st.just(""), cell=CELL)
    def walk_a_filtered_queue(self, statuses, tag, cell):
        wanted = CellFilter(tuple(statuses), tag=tag)
        keep = wanted.keep(self.curation.status, tagged=self.curation.tagged(tag))
        queue = Queue(ordered("id", self.curation.cell_ids), keep)
        by_id = sorted(range(len(IDS)), key=lambda each: IDS[each])
        rows = self.model.rows
        kept = [c for c in by_id if rows[c][0] in statuses and (not tag or tag in rows[c][2])]
        assert queue.cells.tolist() == kept
        assert queue.next(cell) == next((c for c in kept if IDS[c] > IDS[cell]), None)
        assert queue.previous(cell) == next((c for c in kept[::-1] if IDS[c] < IDS[cell]), None)

    @invariant()
    def agrees_with_the_model(self):
        curation = self.curation
        merged = {cell: IDS[k] for k, parts in curation.merged.items() for cell in parts}
        rows = [
            (
                curation.status_of(cell),
                curation.by(cell),
                curation.tags(cell),
                curation.note(cell),
                merged.get(cell),
            )
            for cell in range(len(IDS))
        ]
        assert rows == self.model.rows
        assert curation.can_undo == bool(self.model.before)
        assert curation.can_redo == bool(self.model.after)


AnySequence.TestCase.settings = settings(
    max_examples=40,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
test_any_sequence_of_actions_and_crashes_agrees_with_a_simple_model = AnySequence.TestCase
