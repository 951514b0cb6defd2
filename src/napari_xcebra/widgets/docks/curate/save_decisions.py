"""Previews and writes decisions to files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from qtpy.QtCore import Signal
from qtpy.QtWidgets import (
    QCheckBox,
    QDialog,
    QFileDialog,
    QPlainTextEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from napari_xcebra.io.decisions import Plan, Written, plan_output, plan_together, possible_outputs
from napari_xcebra.recording import Recording
from napari_xcebra.widgets.controls.boxes import PlainLabel, plain
from napari_xcebra.widgets.controls.layouts import in_row
from napari_xcebra.widgets.controls.notice import Notice
from napari_xcebra.widgets.services.jobs import in_background

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class ToWrite:
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


class SaveDecisions(QDialog):
    """Outputs to choose, a preview of what they write where, and a button that writes it."""

    written = Signal(object)
    """What was `Written`, which can be restored."""

    def __init__(self, what: ToWrite, parent: QWidget | None = None) -> None:
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


def in_a_sentence(written: Written) -> str:
    """What was written where."""
    files = written.files
    if not files:
        return "Nothing to write: the files are already up to date."
    shown = ", ".join(path.name for path in files[:4]) + (" …" if len(files) > 4 else "")
    folders = {path.parent for path in files}
    return f"Wrote {shown} to {folders.pop()}." if len(folders) == 1 else f"Wrote {shown}."
