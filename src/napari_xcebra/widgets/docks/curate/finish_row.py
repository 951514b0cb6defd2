"""Saves decisions to files or a layer, and starts another round of training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from qtpy.QtCore import Signal
from qtpy.QtWidgets import QFileDialog, QMenu, QPushButton, QWidget

from napari_xcebra.errors import InputError
from napari_xcebra.io.decisions import Written, accepted_labels, restore
from napari_xcebra.text import counted
from napari_xcebra.widgets.controls.boxes import menu_of
from napari_xcebra.widgets.controls.layouts import in_column, in_row
from napari_xcebra.widgets.docks.curate.save_decisions import (
    SaveDecisions,
    ToWrite,
    in_a_sentence,
)
from napari_xcebra.widgets.layers.layers import footprints_of
from napari_xcebra.widgets.services.jobs import in_background
from napari_xcebra.widgets.state.curations import OFFERED
from napari_xcebra.widgets.state.deciding import earlier_table, take_over
from napari_xcebra.widgets.state.shown import shown_map

if TYPE_CHECKING:
    import pandas as pd

    from napari_xcebra.widgets.services.training import Retraining
    from napari_xcebra.widgets.state.curations import Curations
    from napari_xcebra.widgets.state.state import State
    from napari_xcebra.workspace_file import Opened


class FinishRow(QWidget):
    """A menu to save, a button to train again, and one to restore what was written."""

    said = Signal(str, str, str)
    """A sentence for a notice, its tone, and details."""

    def __init__(self, state: State, curations: Curations, retraining: Retraining) -> None:
        super().__init__()
        self._state, self._curations, self._retraining = state, curations, retraining
        self._written: WeakKeyDictionary[Opened, Written] = WeakKeyDictionary()
        self.dialog: SaveDecisions | None = None
        self.save = QPushButton("Save decisions")
        self.save.setToolTip("Save to suite2p, CaImAn, NWB, a table or ImageJ, or as a layer.")
        self.again = QPushButton("Train again on accepted")
        self.undo = QPushButton("Restore the original")
        self.undo.setToolTip("Put the original files back.")
        self.undo.hide()
        self.save.setMenu(self._menu())
        in_column(in_row(self.save, self.again, spacing=4), self.undo, of=self, spacing=4)
        self.again.clicked.connect(lambda _=False: self.train_again())
        self.undo.clicked.connect(lambda _=False: self.restore())

    def _menu(self) -> QMenu:
        entries = (
            ("Write to files …", "Choose file formats, and preview what is written where.",
             self.open_dialog),
            ("New Labels layer of the accepted cells",
             "An ordinary layer, to save or to measure with other plugins.", self.add_layer),
            ("Take decisions from a table …",
             "Use a table saved here, even if suite2p was run again since: cells are "
             "matched by position.", self.recall),
            ("Restore the original files …",
             "The files as they were before decisions were written, however long ago.",
             self.restore_earlier),
        )  # fmt: skip
        return menu_of(self, entries)

    def show_state(self) -> None:
        """Show whether another round of training can begin, and what can be put back."""
        written = self._written.get(opened) if (opened := self._state.current) else None
        self.undo.setVisible(written is not None and bool(written.files))
        why_not = self._retraining.why_not()
        self.again.setEnabled(not why_not)
        self.again.setToolTip(
            why_not
            or (
                "Train a new run on the accepted cells only, with the factors and settings of "
                "the painted run; then compare both maps side by side."
            )
        )

    def train_again(self) -> str:
        """Train on the accepted cells; returns the name of the run, empty if it cannot begin."""
        return self._retraining.start()

    # ------------------------------------------------------------ files

    def open_dialog(self) -> SaveDecisions | None:
        """Ask what to write."""
        if self._curations.offers:
            self.said.emit(OFFERED, "warning", "")
            return None
        what = self._to_write()
        if what is None:
            return None
        self.dialog = SaveDecisions(what, self)
        self.dialog.written.connect(partial(self._keep_written, self._state.current))
        self.dialog.open()
        return self.dialog

    def recall(self, path: str | Path | None = None) -> None:
        """Take decisions over from a table that was written here."""
        curations = self._curations
        if path is None:
            start = str(earlier_table(curations) or "")
            path, _ = QFileDialog.getOpenFileName(self, "Take decisions from", start, "*.csv")
        if path:
            take_over(curations, Path(path))

    def restore(self) -> None:
        """Put back what was written last."""
        opened = self._state.current
        written = self._written.get(opened) if opened else None
        if written is not None:
            done = partial(self._restored, opened)
            in_background(lambda: written.restore().files, done, self._failed, self)

    def restore_earlier(self) -> None:
        """Put back what was written here at an earlier time."""
        opened = self._state.current
        path = opened.path if opened else None
        if path is None:
            self.said.emit(
                "This recording was not opened from files: there is nothing to restore.",
                "warning",
                "",
            )
            return
        done = partial(self._restored, opened)
        in_background(lambda: restore(path).files, done, self._failed, self)

    def _to_write(self) -> ToWrite | None:
        opened = self._state.current
        if opened is None:
            return None
        curations = self._curations
        return ToWrite(
            opened.recording,
            opened.path,
            curations.accepted(opened),
            curations.of(opened).table(),
            self._scores(),
        )

    def _scores(self) -> pd.DataFrame | None:
        """Scores of all factors of the painted run, unless they are hidden."""
        import pandas as pd

        painted = shown_map(self._state)
        if painted is None:
            return None
        attribution, threshold = painted.attribution, self._state.shown.threshold
        tables = [
            attribution.table(factor, threshold).assign(factor=factor)
            for factor in attribution.factors
        ]
        return pd.concat(tables, ignore_index=True)

    def _keep_written(self, opened: Opened | None, written: Written) -> None:
        if opened is not None:
            self._written[opened] = written
        self.show_state()
        self.said.emit(in_a_sentence(written), "good", "")

    def _restored(self, opened: Opened | None, files: Sequence[object]) -> None:
        if opened is not None:
            self._written.pop(opened, None)
        self.show_state()
        self.said.emit(f"Restored {counted(len(files), 'file')}.", "good", "")

    def _failed(self, sentence: str, details: str) -> None:
        self.said.emit(sentence, "problem", details)

    # ------------------------------------------------------------ layer

    def add_layer(self) -> None:
        """Add an ordinary Labels layer with the accepted cells, under their labels."""
        opened = self._state.current
        if opened is None:
            return
        accepted = self._curations.accepted(opened)
        where = replace(opened.recording, footprints=footprints_of(opened.recording))
        try:
            labels = accepted_labels(where, accepted)
        except InputError as error:
            self.said.emit(str(error), "problem", "")
            return
        self._state.viewer.add_labels(labels, name=f"{opened.name} · accepted cells")
        self.said.emit(
            f"Added a layer with {counted(int(accepted.sum()), 'accepted cell')}.", "good", ""
        )
