"""What comes after deciding: files, a layer, the next round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from qtpy.QtCore import Signal
from qtpy.QtWidgets import QFileDialog, QHBoxLayout, QMenu, QPushButton, QVBoxLayout, QWidget

from napari_xcebra.errors import InputError
from napari_xcebra.io.decisions import Written, accepted_labels, plan_restore
from napari_xcebra.widgets.background import in_background
from napari_xcebra.widgets.curations import OFFERED, curations_of
from napari_xcebra.widgets.layers import footprints_of
from napari_xcebra.widgets.recalling import earlier_table, take_over
from napari_xcebra.widgets.retraining import retraining_of
from napari_xcebra.widgets.save_decisions import (
    SaveDecisions,
    ToWrite,
    in_a_sentence,
)
from napari_xcebra.widgets.score_map import shown_map

if TYPE_CHECKING:
    import pandas as pd

    from napari_xcebra.widgets.session import Session


class OnwardsRow(QWidget):
    """A menu to save, a button to train again, and one to restore what was written."""

    said = Signal(str, str, str)
    """A sentence for a notice, its tone, and details."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._written: Written | None = None
        self.dialog: SaveDecisions | None = None
        self.save = QPushButton("Save decisions")
        self.save.setToolTip("To files of suite2p, CaImAn, NWB, a table or ImageJ; or to a layer.")
        self.again = QPushButton("Train again on accepted")
        self.undo = QPushButton("Restore the original")
        self.undo.setToolTip("Put the files back as they were before they were written.")
        self.undo.hide()
        self._make_menu()
        row = QHBoxLayout()
        row.setSpacing(4)
        row.addWidget(self.save)
        row.addWidget(self.again)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        layout.addLayout(row)
        layout.addWidget(self.undo)
        self.again.clicked.connect(lambda _=False: self.train_again())
        self.undo.clicked.connect(lambda _=False: self.restore())

    def _make_menu(self) -> None:
        menu = QMenu(self)
        menu.setToolTipsVisible(True)
        for title, tooltip, called in (
            ("Write to files …", "Choose the programs; see first what is written where.",
             self.open_dialog),
            ("New Labels layer of the accepted cells",
             "An ordinary layer, to measure with other plugins or to save.", self.add_layer),
            ("Take decisions from a table …",
             "As it was written here, also onto cells that suite2p found anew: they are known "
             "again by their place.", self.recall),
            ("Restore the original files …",
             "Put back what was there before decisions were written here, also long ago.",
             self.restore_earlier),
        ):  # fmt: skip
            action = menu.addAction(title)
            action.setToolTip(tooltip)
            action.triggered.connect(lambda _=False, call=called: call())
        self.save.setMenu(menu)

    def show_state(self) -> None:
        """Say whether another round can begin."""
        why_not = retraining_of(self._session).why_not()
        self.again.setEnabled(not why_not)
        self.again.setToolTip(
            why_not
            or "A new run with the factors and settings of the one that is shown, on the accepted "
            "cells alone; then both maps beside each other."
        )

    def train_again(self) -> str:
        """Train on the accepted cells; the name of the new run, empty if it cannot begin."""
        return retraining_of(self._session).start()

    # ------------------------------------------------------------ files

    def open_dialog(self) -> SaveDecisions | None:
        """Ask what to write."""
        if curations_of(self._session).offers:
            self.said.emit(OFFERED, "warning", "")
            return None
        what = self._to_write()
        if what is None:
            return None
        self.dialog = SaveDecisions(what, self)
        self.dialog.written.connect(self._keep_written)
        self.dialog.open()
        return self.dialog

    def recall(self, path: str | Path | None = None) -> None:
        """Take decisions over from a table that was written here."""
        curations = curations_of(self._session)
        if path is None:
            start = str(earlier_table(curations) or "")
            path, _ = QFileDialog.getOpenFileName(self, "Take decisions from", start, "*.csv")
        if path:
            take_over(curations, Path(path))

    def restore(self) -> None:
        """Put back what was written last."""
        written = self._written
        if written is not None:
            in_background(lambda: written.restore().files, self._restored, self._failed, self)

    def restore_earlier(self) -> None:
        """Put back what was written here in an earlier session."""
        opened = self._session.current
        path = opened.path if opened else None
        if path is None:
            self.said.emit("This recording did not come from files.", "warning", "")
            return
        in_background(lambda: plan_restore(path).write().files, self._restored, self._failed, self)

    def _to_write(self) -> ToWrite | None:
        opened = self._session.current
        if opened is None:
            return None
        curations = curations_of(self._session)
        return ToWrite(
            opened.recording,
            opened.path,
            curations.accepted(opened),
            curations.of(opened).table(),
            self._scores(),
        )

    def _scores(self) -> pd.DataFrame | None:
        """Scores of all factors of the run that is shown, unless they are hidden."""
        import pandas as pd

        painted = shown_map(self._session)
        if painted is None:
            return None
        attribution, threshold = painted.attribution, self._session.shown.threshold
        tables = [
            attribution.table(factor, threshold).assign(factor=factor)
            for factor in attribution.factors
        ]
        return pd.concat(tables, ignore_index=True)

    def _keep_written(self, written: Written) -> None:
        self._written = written
        self.undo.setVisible(bool(written.files))
        self.said.emit(in_a_sentence(written), "good", "")

    def _restored(self, files: Sequence[object]) -> None:
        self._written = None
        self.undo.hide()
        count = len(files)
        self.said.emit(f"{count} file{'s' * (count != 1)} as before.", "good", "")

    def _failed(self, sentence: str, details: str) -> None:
        self.said.emit(sentence, "problem", details)

    # ------------------------------------------------------------ layer

    def add_layer(self) -> None:
        """Add an ordinary Labels layer with the accepted cells, under their labels."""
        opened = self._session.current
        if opened is None:
            return
        accepted = curations_of(self._session).accepted(opened)
        where = replace(opened.recording, footprints=footprints_of(opened.recording))
        try:
            labels = accepted_labels(where, accepted)
        except InputError as error:
            self.said.emit(str(error), "problem", "")
            return
        self._session.viewer.add_labels(labels, name=f"{opened.name} · accepted cells")
        self.said.emit(f"A layer with {int(accepted.sum())} accepted cells was added.", "good", "")
