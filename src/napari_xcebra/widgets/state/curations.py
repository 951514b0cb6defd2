"""Keeps the decisions on each recording of a window, and the journals they are in."""

from __future__ import annotations

import getpass
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from threading import Thread
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from napari_xcebra.curation import (
    CellsInDoubt,
    Change,
    Curation,
    JournalInUse,
    Summary,
    journal_path,
    journals_of,
    merge_cells,
    open_curation,
    summary_of,
)
from napari_xcebra.errors import InputError, refusal
from napari_xcebra.io.decisions.outputs import extractor_accepted
from napari_xcebra.io.guard import hash_traces
from napari_xcebra.recording.fingerprint import is_known_at_once
from napari_xcebra.widgets.state.preferences import keep, kept_text
from napari_xcebra.widgets.state.signals import OfState, Signal

if TYPE_CHECKING:
    from pathlib import Path

    from napari_xcebra.recording import Recording
    from napari_xcebra.widgets.state.state import State
    from napari_xcebra.workspace_file import Opened

STILL_READING = (
    "The traces are still being read, to tell whether they are those that were judged before: try "
    "again in a moment."
)
IF_THE_SAME = "If they are the same, continue once more; if not, start over."
OFFERED = "This recording has earlier decisions: continue them or start over first (above)."


class Curations(OfState):
    """Opens journals when they are needed, and tells all docks what was decided.

    A journal is made at the first decision: viewing a recording writes nothing next to it. An
    existing journal is continued when the user says so.
    """

    changed = Signal()
    """Something was decided, or the decisions are those of another recording or journal."""
    said = Signal(str, str, str)
    """A sentence for a notice, its tone, and details."""

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self._open: WeakKeyDictionary[Opened, Curation] = WeakKeyDictionary()
        self._unused: WeakKeyDictionary[Opened, Curation] = WeakKeyDictionary()
        self._extractor: WeakKeyDictionary[Opened, tuple[np.ndarray, np.ndarray]] = (
            WeakKeyDictionary()
        )
        self._merged: WeakKeyDictionary[Opened, tuple[Recording, Recording, dict[int, Any]]] = (
            WeakKeyDictionary()
        )
        self._found: WeakKeyDictionary[Opened, list[Summary]] = WeakKeyDictionary()
        self._reading: WeakKeyDictionary[Opened, Thread] = WeakKeyDictionary()
        self._in_use = ""
        self._wanted: Path | None = None
        self._doubted = ""
        self.refused = False
        """Whether the last action was refused, for a reason that was said."""
        self._curator = kept_text("curator") or _user()
        self._blind = state.shown.blind
        state.recording_changed.connect(self._follow_recording)
        state.shown_changed.connect(self._follow_shown)

    def close(self) -> None:
        """Close the journals, so that other windows can write to them."""
        for curation in self._open.values():
            with suppress(OSError):  # Python may have closed the file already when it ends
                curation.close()
        self._open.clear()

    # ------------------------------------------------------------ who decides

    @property
    def curator(self) -> str:
        """Name under which decisions are kept."""
        return self._curator

    @curator.setter
    def curator(self, name: str) -> None:
        self._curator = name.strip() or _user()
        keep("curator", self._curator)
        for curation in self._open.values():
            curation.curator = self._curator

    # ------------------------------------------------------------ what there is

    @property
    def current(self) -> Curation | None:
        """Decisions on the current recording; None if there is no recording."""
        opened = self.state.current
        return None if opened is None else self.of(opened)

    def of(self, opened: Opened) -> Curation:
        """Decisions on a recording; empty until a journal is opened."""
        curation = self._open.get(opened)
        if curation is not None and curation.n_cells == opened.recording.n_cells:
            return curation
        unused = self._unused.get(opened)
        if unused is None or unused.n_cells != opened.recording.n_cells:
            unused = self._unused[opened] = Curation(opened.recording.cell_ids)
        return unused

    def accepted(self, opened: Opened) -> np.ndarray:
        """(cells,) bool: decisions where there are any, else what the extractor says."""
        return self.of(opened).accepted(self.extractor(opened))

    def extractor(self, opened: Opened) -> np.ndarray:
        """(cells,) bool: the extractor's own verdict, even if the file has our decisions by now."""
        present = np.asarray(opened.recording.accepted)
        known = self._extractor.get(opened)
        if known is None or not np.array_equal(known[0], present):
            known = self._extractor[opened] = (present, _read_extractor_calls(opened))
        return known[1]

    def status(self, opened: Opened) -> np.ndarray:
        """(cells,) int8 as in `Curation.status`; while scores are hidden, not those by threshold.

        Decisions by threshold would reveal which cells are above it.
        """
        curation = self.of(opened)
        status = curation.status
        return np.where(curation.by_threshold, 0, status) if self.state.shown.blind else status

    @property
    def is_open(self) -> bool:
        """Whether the current recording has its journal open."""
        return self.state.current in self._open if self.state.current else False

    @property
    def read_only(self) -> bool:
        """Whether decisions can only be looked at."""
        journal = self.current.journal if self.is_open and self.current else None
        return journal is not None and journal.read_only

    @property
    def offers(self) -> list[Summary]:
        """Journals of the current recording that could be continued; none once one is open."""
        opened = self.state.current
        if opened is None or self.is_open:
            return []
        if opened not in self._found:
            self._found[opened] = self._look_for(opened)
        return self._found[opened]

    @property
    def in_use(self) -> str:
        """Why the journal cannot be written to, in a sentence; empty if it can."""
        return "" if self.is_open else self._in_use

    def _look_for(self, opened: Opened) -> list[Summary]:
        try:
            files = journals_of(opened.recording, opened.path)
            return [summary for file in files if (summary := summary_of(file)) is not None]
        except (InputError, OSError) as error:
            self.said.emit(f"Earlier decisions cannot be read: {refusal(error)}", "problem", "")
            return []

    # ------------------------------------------------------------ opening

    def go_on(self, journal: Path | None = None, *, read_only: bool = False) -> bool:
        """Open a journal of the current recording, the usual one if none is given."""
        self._wanted = journal
        return self._opening(
            lambda opened: open_curation(
                opened.recording,
                opened.path,
                curator=self.curator,
                journal=journal,
                read_only=read_only,
                # asked once; whoever continues then says that they are
                same_cells=True if self._doubted == f"{journal}" else None,
            ),
            doubted=f"{journal}",
        )

    def look(self) -> bool:
        """View the journal that another window has open, as it is now."""
        return self.go_on(self._wanted, read_only=True)

    def begin_anew(self) -> bool:
        """Open a new journal; existing ones are left unchanged."""

        def begin(opened: Opened) -> Curation:
            number = 2
            while journal_path(opened.recording, opened.path, name=str(number)).exists():
                number += 1
            return open_curation(
                opened.recording, opened.path, curator=self.curator, name=str(number)
            )

        return self._opening(begin)

    def keep_own(self) -> bool:
        """Open a journal under the curator's own name, while another window has the usual one."""
        return self._opening(
            lambda opened: open_curation(
                opened.recording, opened.path, curator=self.curator, name=self.curator
            )
        )

    def _opening(self, open_it: Callable[[Opened], Curation], doubted: str = "") -> bool:
        opened = self.state.current
        if opened is None:
            return False
        if not is_known_at_once(opened.recording):
            self.said.emit(STILL_READING, "warning", "")
            return False
        try:
            curation = open_it(opened)
        except JournalInUse as error:
            self._in_use = str(error)
            self.changed.emit()
            return False
        except CellsInDoubt as error:
            self._doubted = doubted
            self.said.emit(f"{error} {IF_THE_SAME}", "warning", "")
            return False
        except (InputError, OSError) as error:
            self.said.emit(f"Decisions cannot be saved: {refusal(error)}", "problem", "")
            return False
        self._in_use = ""
        before = self._open.pop(opened, None)
        if before is not None:
            before.close()
        self._open[opened] = curation
        curation.changed.connect(self._tell)
        self._apply_merges()
        self.said.emit("\n".join(curation.journal.notes if curation.journal else ()), "warning", "")
        self.changed.emit()
        return True

    # ------------------------------------------------------------ deciding

    def act(self, step: Callable[[Curation], Change | None]) -> Change | None:
        """Apply a step to the decisions on the current recording; a journal is opened for it.

        Returns
        -------
        Change or None
            None if nothing was done: either there was nothing to do, or it was refused for a
            reason that was said, and `refused` is True.
        """
        self.refused = True
        if self.state.current is None:
            return None
        if not self.is_open:
            if self.offers:
                self.said.emit(OFFERED, "warning", "")
                return None
            if not self.go_on():
                return None
        curation = self.current
        assert curation is not None
        try:
            change = step(curation)
        except InputError as error:
            self.said.emit(str(error), "problem", "")
            return None
        self.refused = False
        return change

    # ------------------------------------------------------------ following

    def _tell(self, *_: object) -> None:
        self._apply_merges()
        self.changed.emit()

    def _apply_merges(self) -> None:
        """Let the recording in front have the traces and pixels of merged cells."""
        opened = self.state.current
        if opened is None:
            return
        curation, now = self.of(opened), opened.recording
        wanted = {cell: (*p, curation.summed[cell]) for cell, p in curation.merged.items()}
        plain, made, merged = self._merged.get(opened, (now, now, {}))
        if now.traces is not made.traces:  # opened in another way since
            plain, merged = now, {}
        if wanted == merged:
            return
        parts = {name: getattr(plain, name) for name in ("traces", "footprints", "accepted")}
        made = merge_cells(replace(now, **parts), curation)
        self._merged[opened] = plain, made, wanted
        self.state.change_recording(made, opened)

    def _follow_shown(self) -> None:
        if self.state.shown.blind != self._blind:
            self._blind = self.state.shown.blind
            self.changed.emit()

    def _follow_recording(self) -> None:
        self._in_use, self._wanted, self._doubted = "", None, ""
        for opened in self.state.opened:
            under_way = self._reading.get(opened)
            if not is_known_at_once(opened.recording) and not (under_way and under_way.is_alive()):
                thread = Thread(target=hash_traces, args=(opened.recording,), daemon=True)
                self._reading[opened] = thread
                thread.start()
        for opened in [opened for opened in self._open if opened not in self.state.opened]:
            self._open.pop(opened).close()
        self.changed.emit()


def _read_extractor_calls(opened: Opened) -> np.ndarray:
    try:
        return extractor_accepted(opened.recording, opened.path)
    except OSError:  # the files are out of reach by now
        return np.asarray(opened.recording.accepted)


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a user without a name, as in some containers
        return "curator"
