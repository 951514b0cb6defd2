"""Asks what a sweep varies and where it runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from qtpy.QtCore import Signal
from qtpy.QtWidgets import (
    QComboBox,
    QFormLayout,
    QGroupBox,
    QLabel,
    QLineEdit,
    QPushButton,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from napari_xcebra.batch.cluster import ClusterFound
from napari_xcebra.batch.running import ComputePlace
from napari_xcebra.errors import InputError
from napari_xcebra.jobs import tasks
from napari_xcebra.learn.data.factors import Factor
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.recording import Recording
from napari_xcebra.report.exports import default_path
from napari_xcebra.support.diagnostics import cores
from napari_xcebra.text import parse_number
from napari_xcebra.widgets.controls.boxes import WholeBox
from napari_xcebra.widgets.controls.forms import PathField
from napari_xcebra.widgets.controls.layouts import in_row, spare_from_wheel
from napari_xcebra.widgets.controls.notice import Notice
from napari_xcebra.widgets.services.jobs import JobQueue, Processes, Work
from napari_xcebra.widgets.state.preferences import keep, kept_text

HERE, CLUSTER = range(2)
ADDRESS = "cluster address"


class SweepPlace(QGroupBox):
    """A number of processes on this computer, or a Dask cluster by its address; and the folder."""

    changed = Signal()

    def __init__(self, processes: Processes) -> None:
        super().__init__("Where")
        self.where = QComboBox()
        self.where.addItems(["This computer", "Dask cluster"])
        self.where.setToolTip(
            "Where runs are computed; results are saved on this computer either way."
        )
        spare_from_wheel(self.where)
        self.processes = WholeBox()
        self.processes.setRange(1, max(1, cores()))
        self.processes.setValue(max(1, cores()))
        self.processes.setToolTip("Runs at the same time; each uses one core and its own memory.")
        self.address = QLineEdit(kept_text(ADDRESS))
        self.address.setPlaceholderText("tcp://scheduler:8786")
        self.address.setToolTip(
            "Address of the cluster's Dask scheduler, which can read what is sent there and "
            "run it: use only a cluster you trust."
        )
        self.test = QPushButton("Test")
        self.test.setToolTip("Check what the cluster has, and whether it can run this.")
        self.found = Notice(lasting=True)
        self._suggested: Path | None = None
        self.folder = PathField(
            "a folder for the sweep",
            "Results of each run are saved here. An unfinished sweep in this folder continues.",
            "folder to write to",
            folders=True,
        )
        self._lay_out()
        self._jobs = jobs = JobQueue(processes, latest=True)
        jobs.changed.connect(self._show_test)
        self.destroyed.connect(lambda *_: jobs.close())
        self.where.currentIndexChanged.connect(self._show_where)
        self.address.textChanged.connect(lambda _: self._address_changed())
        self.test.clicked.connect(lambda _=False: self.look())
        self.folder.changed.connect(self.changed)
        self._show_where()

    def _lay_out(self) -> None:
        here, there = QWidget(), QWidget()
        in_row(self.processes, (QLabel("processes"), 1), of=here)
        in_row((self.address, 1), self.test, of=there)
        self._stack = QStackedWidget()
        for page in (here, there):
            self._stack.addWidget(page)
        layout = QVBoxLayout(self)
        layout.addLayout(in_row(QLabel("Run on"), self.where, (self._stack, 1)))
        layout.addWidget(self.found)
        layout.addLayout(in_row(QLabel("Folder"), (self.folder, 1)))
        layout.addStretch(1)

    @property
    def place(self) -> ComputePlace:
        """What is chosen."""
        if self.where.currentIndex() == CLUSTER:
            return ComputePlace(address=self.address.text().strip())
        return ComputePlace(self.processes.value())

    def suggest(self, recording: Recording) -> None:
        """Name a folder beside the recording, unless the user named one."""
        if self.folder.path in (None, self._suggested):
            self._suggested = default_path(recording, "sweep", suffix="")
            self.folder.path = self._suggested

    def why_not(self) -> str:
        """Why nothing can be run there; empty if it can."""
        if self.where.currentIndex() == CLUSTER and not self.address.text().strip():
            return "Enter the address of the cluster's scheduler."
        return "" if self.folder.path else "Choose a folder to write to."

    def look(self) -> None:
        """Ask the cluster what it has."""
        address = self.address.text().strip()
        if not address:
            self.found.say("Enter the address of the cluster's scheduler.", "problem")
            return
        keep(ADDRESS, address)
        self.found.say(f"Asking {address} …")
        self._jobs.ask(Work("the cluster", tasks.CLUSTER(address), self._looked, say=self._failed))
        self._show_test()

    def _looked(self, found: ClusterFound) -> None:
        if not found.usable:
            tone = "problem"
        else:
            tone = "warning" if found.differing or found.without else "good"
        self.found.say(found.sentence, tone)  # type: ignore[arg-type]

    def _failed(self, sentence: str, _tone: str, details: str) -> None:
        self.found.say(sentence, "problem", details)

    def _address_changed(self) -> None:
        self.found.clear()
        self.changed.emit()

    def _show_where(self) -> None:
        self._stack.setCurrentIndex(self.where.currentIndex())
        if self.where.currentIndex() == HERE:
            self.found.clear()
        self.changed.emit()

    def _show_test(self) -> None:
        self.test.setEnabled(not self._jobs.busy)


SEEDS = "0-4"


class SweepForm(QGroupBox):
    """Seeds, latents, λ and shifts of the labels; an empty line is as in the Train dock."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__("What to vary")
        self.seed = _line("Other seeds show which scores vary by chance: 0-4, or 0, 1, 7.")
        self.seed.setText(SEEDS)
        self.time_latents = _line("Numbers of time latents: 1-4, or 1, 2, 4.")
        self.lambda_ = _line("Weights of the Jacobian penalty: auto, 0.1, 1.")
        self.shifts = _line(
            "Seconds by which the labels are shifted against the traces, wrapping around: 0 is "
            "as recorded; the others show the chance level."
        )
        self.shifts.setPlaceholderText("0")
        self._latents: dict[str, QLineEdit] = {}
        self._form = QFormLayout(self)
        for title, line in (
            ("Seeds", self.seed),
            ("λ", self.lambda_),
            ("Time latents", self.time_latents),
            ("Label shifts (s)", self.shifts),
        ):
            self._form.addRow(title, line)
            line.textChanged.connect(lambda _: self.changed.emit())

    def show_common(self, factors: Mapping[str, Factor], settings: FitSettings) -> None:
        """Show the values used where a line is empty."""
        self.seed.setPlaceholderText(str(settings.seed))
        self.lambda_.setPlaceholderText(str(settings.lambda_))
        self.time_latents.setPlaceholderText(str(settings.time_latents))
        if list(self._latents) != list(factors):
            for line in self._latents.values():
                self._form.removeRow(line)
            self._latents = {}
            for name in factors:
                line = _line(f"Numbers of latents of {name}: 1-3, or 1, 2, 4.")
                line.textChanged.connect(lambda _: self.changed.emit())
                self._form.addRow(f"Latents of {name}", line)
                self._latents[name] = line
        for name, factor in factors.items():
            own = "as many as its variables" if factor.latents is None else str(factor.latents)
            self._latents[name].setPlaceholderText(own)

    @property
    def grid(self) -> dict[str, list[Any]]:
        """Knobs and their values; InputError says which line cannot be read."""
        lines = {"seed": self.seed, "lambda_": self.lambda_, "time_latents": self.time_latents}
        titles = {"seed": "Seeds", "lambda_": "λ", "time_latents": "Time latents"}
        return {
            name: values_of(line.text(), titles[name])
            for name, line in lines.items()
            if line.text().strip()
        }

    @property
    def latents(self) -> dict[str, list[Any]]:
        """Numbers of latents of each factor whose line has some."""
        return {
            name: values_of(line.text(), f"Latents of {name}")
            for name, line in self._latents.items()
            if line.text().strip()
        }

    @property
    def seconds(self) -> list[Any]:
        """Shifts of the labels."""
        return values_of(self.shifts.text() or "0", "Label shifts")


def values_of(text: str, title: str) -> list[Any]:
    """Values as typed: numbers and words after commas, whole numbers also as a range.

    After semicolons, numbers may have a decimal comma.

    >>> values_of("0-2, 7", "Seeds"), values_of("auto, 0.1", "λ"), values_of("-60; 0,5", "Shifts")
    ([0, 1, 2, 7], ['auto', 0.1], [-60, 0.5])
    """
    values: list[Any] = []
    for part in filter(None, (each.strip() for each in text.split(";" if ";" in text else ","))):
        first, dash, last = part.rpartition("-")
        if dash and first.strip().isdecimal() and last.strip().isdecimal():
            values += range(int(first), int(last) + 1)
        elif part == "auto":
            values.append(part)
        else:
            try:
                number = parse_number(part)
            except InputError:
                raise InputError(
                    f"{title}: {part!r} is not a number; type values as 1, 2, 4 or 1-4."
                ) from None
            values.append(int(number) if number.is_integer() else number)
    if not values:
        raise InputError(f"{title}: no values in {text!r}.")
    return values


def _line(help: str) -> QLineEdit:
    line = QLineEdit()
    line.setToolTip(help)
    return line
