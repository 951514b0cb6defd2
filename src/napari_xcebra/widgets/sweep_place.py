"""Where a sweep runs: this computer, or a cluster that can be looked at first."""

from __future__ import annotations

from qtpy.QtCore import Signal
from qtpy.QtWidgets import (
    QComboBox,
    QGroupBox,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QSpinBox,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from napari_xcebra.jobs.cluster_check import ClusterFound, LookTask
from napari_xcebra.processor import cores
from napari_xcebra.sweeps.task import Place
from napari_xcebra.widgets.kept import keep, kept_text
from napari_xcebra.widgets.latest_job import LatestJob, Request
from napari_xcebra.widgets.notice import Notice
from napari_xcebra.widgets.path_fields import PathField
from napari_xcebra.widgets.session import Session
from napari_xcebra.widgets.wheel import spare_from_wheel

HERE, CLUSTER = range(2)
ADDRESS = "cluster address"


class SweepPlace(QGroupBox):
    """So many processes on this computer, or a Dask cluster by its address; and the folder."""

    changed = Signal()

    def __init__(self, session: Session) -> None:
        super().__init__("Where")
        self.where = QComboBox()
        self.where.addItems(["This computer", "Dask cluster"])
        self.where.setToolTip("Where the runs are computed; results are written here either way.")
        spare_from_wheel(self.where)
        self.processes = QSpinBox()
        self.processes.setRange(1, max(1, cores()))
        self.processes.setValue(max(1, cores()))
        self.processes.setToolTip("Runs at a time; each takes a core, and memory of its own.")
        self.address = QLineEdit(kept_text(ADDRESS))
        self.address.setPlaceholderText("tcp://scheduler:8786")
        self.address.setToolTip(
            "Of the cluster's Dask scheduler. What is sent there can be read and run by it: name "
            "only one that you trust."
        )
        self.test = QPushButton("Test")
        self.test.setToolTip("Ask the cluster what it has, and whether it can run this.")
        self.found = Notice()
        self.folder = PathField(
            "a folder for the sweep",
            "What comes of each run is written here. A sweep that was begun here goes on.",
            "folder to write to",
            folders=True,
        )
        self._lay_out()
        self._jobs = jobs = LatestJob(lambda task: session.worker.submit(task), self._show_test)
        self.destroyed.connect(lambda *_: jobs.close())
        self.where.currentIndexChanged.connect(self._show_where)
        self.address.textChanged.connect(lambda _: self._address_changed())
        self.test.clicked.connect(lambda _=False: self.look())
        self.folder.changed.connect(self.changed)
        self._show_where()

    def _lay_out(self) -> None:
        here, there = QWidget(), QWidget()
        row = QHBoxLayout(here)
        row.addWidget(self.processes)
        row.addWidget(QLabel("processes"), 1)
        row = QHBoxLayout(there)
        row.addWidget(self.address, 1)
        row.addWidget(self.test)
        self._stack = QStackedWidget()
        for page in (here, there):
            page.layout().setContentsMargins(0, 0, 0, 0)
            self._stack.addWidget(page)
        above = QHBoxLayout()
        above.addWidget(QLabel("Run on"))
        above.addWidget(self.where)
        above.addWidget(self._stack, 1)
        below = QHBoxLayout()
        below.addWidget(QLabel("Folder"))
        below.addWidget(self.folder, 1)
        layout = QVBoxLayout(self)
        layout.addLayout(above)
        layout.addWidget(self.found)
        layout.addLayout(below)
        layout.addStretch(1)

    @property
    def place(self) -> Place:
        """What is chosen."""
        if self.where.currentIndex() == CLUSTER:
            return Place(address=self.address.text().strip())
        return Place(self.processes.value())

    def why_not(self) -> str:
        """Why nothing can be run there; empty if it can."""
        if self.where.currentIndex() == CLUSTER and not self.address.text().strip():
            return "Give the address of the cluster's scheduler."
        return "" if self.folder.path else "Name a folder to write to."

    def look(self) -> None:
        """Ask the cluster what it has."""
        address = self.address.text().strip()
        if not address:
            self.found.say("Give the address of the cluster's scheduler.", "problem")
            return
        keep(ADDRESS, address)
        self.found.say(f"Asking {address} …")
        self._jobs.ask(Request(LookTask(address), self._looked, self._failed))
        self._show_test()

    def _looked(self, found: ClusterFound) -> None:
        if not found.usable:
            tone = "problem"
        else:
            tone = "warning" if found.differing or found.without else "good"
        self.found.say(found.sentence, tone)  # type: ignore[arg-type]

    def _failed(self, sentence: str, details: str) -> None:
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
