"""Continues earlier decisions, previews and writes new ones, and trains on the accepted cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDialog,
    QFileDialog,
    QLabel,
    QLineEdit,
    QMenu,
    QMessageBox,
    QPlainTextEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from napari_xcebra.errors import InputError
from napari_xcebra.io.decisions.outputs import accepted_labels, plan_output, possible_outputs
from napari_xcebra.io.decisions.plan import Plan, Written, plan_together
from napari_xcebra.io.decisions.restoring import restore
from napari_xcebra.recording import Recording
from napari_xcebra.text import counted
from napari_xcebra.widgets.controls.boxes import (
    PlainLabel,
    choice_box,
    fill,
    menu_of,
    plain,
    small_button,
)
from napari_xcebra.widgets.controls.layouts import in_column, in_row
from napari_xcebra.widgets.controls.notice import Notice
from napari_xcebra.widgets.layers.layers import footprints_of
from napari_xcebra.widgets.services.jobs import in_background
from napari_xcebra.widgets.state.cell_queue import earlier_table, take_over
from napari_xcebra.widgets.state.curations import OFFERED, Curations
from napari_xcebra.widgets.state.shown import shown_map

if TYPE_CHECKING:
    import pandas as pd

    from napari_xcebra.widgets.services.training import Retraining
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
        self.dialog: _SaveDecisions | None = None
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

    def open_dialog(self) -> _SaveDecisions | None:
        """Ask what to write."""
        if self._curations.offers:
            self.said.emit(OFFERED, "warning", "")
            return None
        what = self._to_write()
        if what is None:
            return None
        self.dialog = _SaveDecisions(what, self)
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
        question = QMessageBox(self)
        question.setTextFormat(Qt.TextFormat.PlainText)  # folders are named by users
        question.setText(f"Put back the files of {path.name} as they were before decisions?")
        question.setInformativeText("The decisions themselves are kept, and can be written again.")
        put_back = question.addButton("Put back", QMessageBox.ButtonRole.AcceptRole)
        question.addButton("Cancel", QMessageBox.ButtonRole.RejectRole)
        put_back.clicked.connect(
            lambda _=False: in_background(lambda: restore(path).files, done, self._failed, self)
        )
        question.open()

    def _to_write(self) -> _ToWrite | None:
        opened = self._state.current
        if opened is None:
            return None
        curations = self._curations
        return _ToWrite(
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
        self.said.emit(_in_a_sentence(written), "good", "")

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


@dataclass(frozen=True, eq=False)
class _ToWrite:
    """The state of the cells at the time of writing.

    Parameters
    ----------
    recording : Recording
    path : Path or None
        What it was opened from.
    accepted : (cells,) bool
    table : DataFrame
        Decisions, one row per cell.
    scores : DataFrame or None
        One row per cell and factor.
    """

    recording: Recording
    path: Path | None
    accepted: np.ndarray
    table: pd.DataFrame
    scores: pd.DataFrame | None

    def plan(self, kind: str, destination: Path | None, **options: Any) -> Plan:
        """What one output would write where."""
        return plan_output(
            kind,
            self.recording,
            self.path,
            self.accepted,
            self.table,
            self.scores,
            destination,
            **options,
        )


class _SaveDecisions(QDialog):
    """Outputs to choose, a preview of what they write where, and a button that writes it."""

    written = Signal(object)
    """What was `Written`, which can be restored."""

    def __init__(self, what: _ToWrite, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Save decisions")
        self.setMinimumWidth(560)
        self._what = what
        self._destination: Path | None = None
        self._plans: list[Plan] = []
        self._asked = 0
        self.boxes: dict[str, QCheckBox] = {}
        self.in_place = QCheckBox("change the open NWB file itself (a backup is kept)")
        self.in_place.setToolTip("Otherwise the decisions go to a copy next to it.")
        self.where = PlainLabel()
        self.folder = QPushButton("Write to another folder …")
        self.folder.setToolTip("Leave the recording's own folder unchanged.")
        self.preview = QPlainTextEdit()
        self.preview.setReadOnly(True)
        self.preview.setToolTip("What will be written where; nothing has been written yet.")
        self.notice = Notice()
        self.write_button = QPushButton("Write")
        self.write_button.setDefault(True)
        self.write_button.setToolTip(
            "Write everything in the preview; if anything fails, nothing is changed."
        )
        self.close_button = QPushButton("Cancel")
        self.close_button.setToolTip("Close without writing.")
        self._lay_out()
        self.folder.clicked.connect(lambda _=False: self._choose_folder())
        self.in_place.toggled.connect(self.show_preview)
        self.write_button.clicked.connect(lambda _=False: self.write())
        self.close_button.clicked.connect(self.reject)
        self.show_preview()

    def _lay_out(self) -> None:
        layout = QVBoxLayout(self)
        outputs = possible_outputs(self._what.recording, self._what.path)
        # those of the recording's own program come first
        first = next((output.kind for output in outputs if output.possible), "")
        for output in outputs:
            box = QCheckBox(output.title)
            box.setEnabled(output.possible)
            box.setChecked(output.kind == first)
            box.setToolTip(plain(output.why_not) or "Tick to preview what would be written.")
            box.toggled.connect(self.show_preview)
            self.boxes[output.kind] = box
            layout.addWidget(box)
            if not output.possible:
                reason = PlainLabel(output.why_not, wrap=True)
                reason.setEnabled(False)
                reason.setIndent(24)
                layout.addWidget(reason)
            elif output.kind == "nwb":
                layout.addWidget(self.in_place)
        self.in_place.setVisible(self.boxes["nwb"].isEnabled())
        layout.addLayout(in_row((self.where, 1), self.folder))
        layout.addWidget(self.preview, 1)
        layout.addWidget(self.notice)
        layout.addLayout(in_row(1, self.close_button, self.write_button))

    @property
    def kinds(self) -> list[str]:
        """Outputs that are ticked."""
        return [kind for kind, box in self.boxes.items() if box.isChecked() and box.isEnabled()]

    def write_to(self, folder: Path | None) -> None:
        """Choose another folder; None for the places next to the recording."""
        self._destination = folder
        self.show_preview()

    def show_preview(self, *_: Any) -> None:
        """Plan the ticked outputs in the background, as files must be read for it."""
        self._asked += 1
        asked, kinds, what = self._asked, self.kinds, self._what
        to, in_place = self._destination, self.in_place.isChecked()
        self.where.setText(f"To {to}" if to else "Next to the recording")
        self.write_button.setEnabled(False)
        self.notice.clear()

        def plan() -> list[Plan]:
            return [
                what.plan(kind, to, **({"in_place": in_place} if kind == "nwb" else {}))
                for kind in kinds
            ]

        def failed(sentence: str, details: str) -> None:
            if asked == self._asked:
                self.preview.clear()
                self.notice.say(sentence, "problem", details)

        in_background(plan, lambda plans: self._show_plans(asked, plans), failed, self)

    def _show_plans(self, asked: int, plans: list[Plan]) -> None:
        if asked != self._asked:
            return
        self._plans = plans
        self.preview.setPlainText("\n\n".join("\n".join(plan.lines()) for plan in plans))
        self.write_button.setEnabled(bool(plans))

    def write(self) -> None:
        """Write what the preview shows."""
        plans = self._plans
        self.write_button.setEnabled(False)
        in_background(lambda: plan_together(plans).write(), self._done, self._failed, self)

    def _done(self, written: Written) -> None:
        self.written.emit(written)
        self.accept()

    def _failed(self, sentence: str, details: str) -> None:
        self.show_preview()  # the files may be other than they were
        self.notice.say(sentence, "problem", details)

    def _choose_folder(self) -> None:
        folder = QFileDialog.getExistingDirectory(self, "Write decisions to")
        if folder:
            self.write_to(Path(folder))


def _in_a_sentence(written: Written) -> str:
    """What was written where."""
    files = written.files
    if not files:
        return "Nothing to write: the files are already up to date."
    shown = ", ".join(path.name for path in files[:4]) + (" …" if len(files) > 4 else "")
    folders = {path.parent for path in files}
    return f"Wrote {shown} to {folders.pop()}." if len(folders) == 1 else f"Wrote {shown}."


class JournalLine(QWidget):
    """A choice where there are earlier decisions or another window.

    The line with the curator's name, and that which says that all is saved, stand elsewhere.
    """

    named = Signal(str)

    def __init__(self, curations: Curations) -> None:
        super().__init__()
        self._curations = curations
        self.name = QLineEdit(curations.curator)
        self.name.setToolTip("Your name, saved with each decision.")
        self.place = PlainLabel()
        self.offer = Notice()
        self.journals: QComboBox = choice_box("Earlier decisions on this recording.")
        self.go_on = small_button("Continue", "Continue from these decisions.")
        self.anew = small_button(
            "Start over", "Start without any decisions; earlier ones stay on disk."
        )
        self.look = small_button(
            "View only", "See the decisions of the other window without changing them."
        )
        self.own = small_button(
            "Keep my own", "Decide here as well; saved in a second file under your name."
        )
        self.recall = small_button(
            "Apply to these cells",
            "Cells of the two extractions are matched by position; your decisions by hand take "
            "precedence.",
        )
        self._lay_out()
        for choice in (self.journals, self.go_on, self.anew, self.look, self.own, self.recall):
            choice.hide()  # all of them side by side would make the dock wide
        self.recall.clicked.connect(lambda _=False: self._recall())
        self.name.editingFinished.connect(lambda: self.named.emit(self.name.text()))
        self.name.returnPressed.connect(self.name.clearFocus)
        self.go_on.clicked.connect(lambda _=False: curations.go_on(self.journals.currentData()))
        self.anew.clicked.connect(lambda _=False: curations.begin_anew())
        self.look.clicked.connect(lambda _=False: curations.look())
        self.own.clicked.connect(lambda _=False: curations.keep_own())

    def _lay_out(self) -> None:
        self.curator = QWidget()
        in_row(QLabel("Curator"), (self.name, 1), of=self.curator)
        buttons = in_row(self.go_on, self.anew, self.look, self.own, self.recall, 1)
        in_column(self.offer, self.journals, buttons, of=self, spacing=4)

    def show_state(self) -> None:
        """Show where decisions are kept, or what there is to choose."""
        curations = self._curations
        offers, in_use = curations.offers, curations.in_use
        table = earlier_table(curations)
        if not self.name.hasFocus():
            self.name.setText(curations.curator)
        self._show_place()
        if in_use:
            self.offer.say(in_use, "warning")
        elif len(offers) == 1:
            self.offer.say(f"Decided earlier: {offers[0].sentence}.", "plain")
        elif offers:
            self.offer.say(f"This recording was curated {len(offers)} times:", "plain")
        elif table is not None:
            self.offer.say(f"{table.name} has decisions from an earlier extraction.")
        else:
            self.offer.clear()
        self.recall.setVisible(not in_use and table is not None)
        fill(
            self.journals,
            [(f"{summary.path.name}: {summary.sentence}", summary.path) for summary in offers],
            offers[0].path if offers else None,
        )
        self.journals.setVisible(len(offers) > 1 and not in_use)
        for button in (self.go_on, self.anew):
            button.setVisible(bool(offers) and not in_use)
        for button in (self.look, self.own):
            button.setVisible(bool(in_use))

    def _recall(self) -> None:
        table = earlier_table(self._curations)
        if table is not None:
            take_over(self._curations, table)

    def _show_place(self) -> None:
        curation = self._curations.current
        journal = curation.journal if curation else None
        if journal is None:
            self.place.clear()
        elif journal.read_only:
            self.place.setText("view only")
            self.place.setToolTip(f"{journal.path} is being written in another window.")
        else:
            self.place.setText("✓ saved")
            self.place.setToolTip(f"Each decision is saved at once to {journal.path}.")
