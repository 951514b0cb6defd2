"""Compares the conditions of a finished sweep, with the animal as the unit."""

from __future__ import annotations

from pathlib import Path

from qtpy.QtCore import QSize, Qt
from qtpy.QtGui import QPixmap
from qtpy.QtWidgets import (
    QDialog,
    QLabel,
    QLineEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from napari_xcebra.jobs import tasks
from napari_xcebra.widgets.controls.boxes import PlainLabel
from napari_xcebra.widgets.controls.forms import PathField
from napari_xcebra.widgets.controls.layouts import in_form, in_row
from napari_xcebra.widgets.controls.notice import Notice
from napari_xcebra.widgets.services.jobs import while_exists
from napari_xcebra.widgets.services.sweeps import Sweeper

HELP = (
    "Puts all finished runs of the sweep into one table and compares conditions: the share of "
    "cells that carry each factor, and their scores. The animal is the unit of the test. Without "
    "a table or a pattern, every recording counts as an animal."
)
SHARE = "cohort-share.png"


class CohortWindow(QDialog):
    """Which animal, day and condition each recording is; then the comparison and its figure."""

    def __init__(self, sweeper: Sweeper, folder: Path, parent: QWidget) -> None:
        super().__init__(parent)
        self._sweeper, self.folder = sweeper, folder
        self.setWindowTitle("Cohort: compare animals and conditions")
        self.resize(820, 640)
        self.table = PathField(
            "the table of animals",
            "CSV with the columns run (recordings as the sweep names them), animal, day and "
            "condition. With a pattern, animal and condition are enough.",
            "optional: animals.csv",
        )
        self.pattern = QLineEdit()
        self.pattern.setPlaceholderText("optional: {animal} day {day}")
        self.pattern.setToolTip(
            "Finds animal, day and condition in the recordings' names; * stands for anything."
        )
        self.compare_button = QPushButton("Compare")
        self.compare_button.setToolTip(f"Write tables and figures to {folder}, and show the first.")
        self.notice = Notice(lasting=True)
        self.figure = QLabel()
        self.figure.setMinimumSize(QSize(320, 200))
        self.figure.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._lay_out()
        self.compare_button.clicked.connect(lambda _=False: self.compare())

    def _lay_out(self) -> None:
        layout = QVBoxLayout(self)
        layout.addWidget(PlainLabel(HELP, wrap=True))
        layout.addLayout(in_form(("Table", self.table), ("Pattern", self.pattern)))
        layout.addLayout(in_row(self.compare_button, 1))
        layout.addWidget(self.notice)
        layout.addWidget(self.figure, 1)

    def compare(self) -> None:
        """Compare in the background, and show what came of it."""
        exists = while_exists(self)

        def show(summary: str) -> None:
            if exists():
                self.notice.say(f"{summary}\nTables and figures are in {self.folder}.", "good")
                self._show_figure()

        def say(sentence: str, _tone: str, details: str) -> None:
            if exists():
                self.notice.say(sentence, "problem", details)

        self.figure.clear()
        self.notice.say("Comparing …")
        call = tasks.COHORT(self.folder, self.table.path, self.pattern.text().strip())
        self._sweeper.compare(call, show, say)

    def _show_figure(self) -> None:
        picture = QPixmap(str(self.folder / SHARE))
        self.figure.setPixmap(
            picture.scaled(
                self.figure.size(),
                Qt.AspectRatioMode.KeepAspectRatio,
                Qt.TransformationMode.SmoothTransformation,
            )
        )
