"""Chooses what to train, how and where: factors, recordings, settings and device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import (
    QAbstractItemView,
    QCheckBox,
    QHeaderView,
    QLabel,
    QLineEdit,
    QMenu,
    QPushButton,
    QTableWidget,
    QTableWidgetItem,
    QToolButton,
    QWidget,
)
from superqt.utils import signals_blocked

from napari_xcebra.errors import InputError
from napari_xcebra.jobs import tasks
from napari_xcebra.learn.data.factors import (
    Factor,
    latents_for,
    suggested_factors,
    why_not,
    why_unticked,
)
from napari_xcebra.learn.settings import PRESET_HELP, PRESETS, FitSettings
from napari_xcebra.recording import Recording
from napari_xcebra.widgets.controls.boxes import (
    PlainLabel,
    WholeBox,
    WindowButton,
    choice_box,
    plain,
)
from napari_xcebra.widgets.controls.forms import SettingsForm, in_dock
from napari_xcebra.widgets.controls.layouts import Fold, in_column, in_row, reach_after
from napari_xcebra.widgets.docks.train.sweep_window import SweepWindow
from napari_xcebra.widgets.docks.train.windows import DimensionWindow, MatchedWindow
from napari_xcebra.widgets.services.jobs import JobQueue, Processes, Work
from napari_xcebra.widgets.services.run_jobs import Latents
from napari_xcebra.widgets.state.preferences import keep, kept_text, preferred_settings
from napari_xcebra.workspace_file import Opened

if TYPE_CHECKING:
    from napari_xcebra.widgets.window import Services


HELP = (
    "Train one embedding on this recording and the ticked ones. Their cells may differ, and "
    "each gets its own run. They need the same variables and frame rate."
)


class _TogetherBox(QWidget):
    """A check box for each other recording; hidden if there is none."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._boxes: list[tuple[QCheckBox, Opened]] = []
        self._title = QLabel("Train together with")
        self._title.setToolTip(HELP)
        self._column = in_column(self._title, of=self, spacing=2)
        self.hide()

    @property
    def chosen(self) -> list[Opened]:
        """Recordings that are ticked."""
        return [opened for box, opened in self._boxes if box.isChecked()]

    def choose(self, *names: str) -> None:
        """Tick the recordings of these names, and no others."""
        for box, opened in self._boxes:
            box.setChecked(opened.name in names)

    def show_others(self, others: Sequence[Opened]) -> None:
        """Offer these recordings, none of them ticked."""
        for box, _ in self._boxes:
            self._column.removeWidget(box)
            box.deleteLater()
        self._boxes = []
        for opened in others:
            box = QCheckBox(opened.name)
            box.setToolTip(HELP)
            box.toggled.connect(lambda _: self.changed.emit())
            self._column.addWidget(box)
            self._boxes.append((box, opened))
        self.setVisible(bool(others))
        self.changed.emit()


TITLE = "What to train"
KEPT_BY_PRESETS = ("seed", "device", "threads", "accepted_only", "time_latents")
"""Settings that a preset leaves as they are."""
LIVE = "train/live"
"""Preference: whether maps are painted during training."""


class TrainingChoice(Fold):
    """All choices for a run; folded away, the title sums them up."""

    changed = Signal()

    def __init__(self, services: Services) -> None:
        super().__init__(TITLE, "Factors and settings of the next run.", unfolded=True)
        self._services = services
        self.factors = _FactorTable()
        self.together = _TogetherBox()
        self.name = QLineEdit()
        self.name.setPlaceholderText("name of the run")
        self.name.setToolTip("Name of the run; you can change it later.")
        self.form: SettingsForm[FitSettings] = SettingsForm(preferred_settings(), apart=True)
        self.preset = choice_box(f"{PRESET_HELP.capitalize()}. Seed and device stay as they are.")
        self.preset.addItems(list(PRESETS))
        self.live = QCheckBox("Paint the map during training")
        self.live.setToolTip(
            "Show a provisional map every few seconds, from some of the frames. Training takes "
            "a little longer; its result does not change. Recordings trained together are "
            "painted at the end."
        )
        self.live.setChecked(kept_text(LIVE) != "no")
        self.dimension = WindowButton(
            "How many latents?",
            "Train with several numbers of latents, and see where the seeds agree.",
            self._dimension_window,
        )
        self.sweep = WindowButton(
            "Sweep…",
            "Train many runs with other seeds, latents, λ or label shifts, here or on a cluster.",
            lambda parent: SweepWindow(services, self.read_choice, parent),
        )
        self.days = WindowButton(
            "The same cells, day by day…",
            "Compare the scores of cells that CellReg or ROICaT matched across the recordings of "
            "this window.",
            self._days_window,
        )
        self.device = _DeviceLabel(services.processes)
        self._lay_out()
        for part in (self.factors, self.together, self.form):
            part.changed.connect(self.changed)
        self.form.changed.connect(self.show_device)
        self.preset.textActivated.connect(self._use_preset)
        self.live.toggled.connect(lambda live: keep(LIVE, "yes" if live else "no"))
        self.together.changed.connect(lambda: self.live.setEnabled(not self.together.chosen))
        self.button.clicked.connect(self._sum_up)

    def _lay_out(self) -> None:
        self.details = Fold("Details", "Name, latents, λ, device and other settings of the run.")
        self.details.button.clicked.connect(self._show_latents)
        buttons = QWidget()
        in_row((self.dimension, 1), (self.sweep, 1), of=buttons)
        rarely = QLabel("Rarely changed")
        rarely.setStyleSheet("font-weight: bold; margin-top: 8px;")
        preset = QWidget()
        in_row(QLabel("Preset"), (self.preset, 1), of=preset)
        parts = (
            self.name,
            preset,
            self.form,
            self.live,
            self.device,
            buttons,
            rarely,
            self.form.rare,
        )
        for part in parts:
            self.details.addWidget(part)
        for part in (self.factors, self.together, self.days, self.details):
            self.addWidget(part)
        self._show_latents()

    def _show_latents(self) -> None:
        self.factors.show_latents(self.details.unfolded)

    def show_device(self) -> None:
        """Say where a run would be trained."""
        if not self.form.problem():
            self.device.show_device(self.form.value.device, self.form.value.threads)

    def read_choice(self) -> tuple[dict[str, Factor], FitSettings]:
        """Chosen factors and settings; raises `InputError` if they are invalid."""
        return self.factors.factors, self.form.value

    def why_not(self, opened: Opened) -> str:
        """Why the current choice cannot be trained; empty if it can."""
        if problem := self.form.problem():
            return problem
        try:
            factors = self.factors.factors
        except InputError as error:
            return str(error)
        if factors or self.form.value.mode == "time":
            return ""
        if not opened.recording.behavior:
            return "No behaviour yet: add a behaviour file in the Recording dock."
        return "Tick at least one factor."

    def show_recording(self, opened: Opened | None, others: Sequence[Opened]) -> None:
        """Offer the variables of a recording, and the others to train it together with."""
        self.factors.show_recording(opened.recording if opened else None)
        self.together.show_others(others)
        self.days.setVisible(bool(others))
        self.fold(unfolded=opened is None or not opened.runs)

    def fold(self, *, unfolded: bool = False) -> None:
        """Fold it away, or unfold it."""
        self.unfolded = unfolded
        self._sum_up()

    def _sum_up(self) -> None:
        """Put the choice into the title while folded away."""
        try:
            names = ", ".join(self.factors.factors)
        except InputError:
            names = ""
        folded = names and not self.unfolded
        self.title = f"{TITLE}: {names}" if folded else TITLE

    def _dimension_window(self, parent: QWidget) -> DimensionWindow:
        window = DimensionWindow(self._services, self.read_choice, parent)
        window.chosen.connect(self._use_latents)
        return window

    def _days_window(self, parent: QWidget) -> QWidget:
        return MatchedWindow(self._services, parent)

    def _use_preset(self, name: str) -> None:
        kept = {field: getattr(self.form.value, field) for field in KEPT_BY_PRESETS}
        self.form.value = PRESETS[name](**kept)

    def _use_latents(self, latents: Latents) -> None:
        if latents.of_time:
            self.form.value = replace(self.form.value, time_latents=latents.of_time)
        for name, number in latents.of_factors.items():
            self.factors.set_latents(name, number)


NAME, VARIABLES, LATENTS = range(3)
ROW, MOST_ROWS = 30, 6


class _FactorTable(QWidget):
    """Rows with a tick, a name, variables and a number of latents."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._recording: Recording | None = None
        self._unticked: dict[str, str] = {}
        self._table = QTableWidget(0, 3)
        self._table.setHorizontalHeaderLabels(["Factor", "Variables", "Latents"])
        for column, text in enumerate(
            (
                "Tick the factors to score cells for; double-click to rename.",
                "Behaviour variables of the factor; several are learned together.",
                "Dimensions of the embedding; usually as many as the variables have.",
            )
        ):
            self._table.horizontalHeaderItem(column).setToolTip(text)
        header = self._table.horizontalHeader()
        header.setSectionResizeMode(NAME, QHeaderView.ResizeMode.Stretch)
        header.setSectionResizeMode(VARIABLES, QHeaderView.ResizeMode.Stretch)
        header.setSectionResizeMode(LATENTS, QHeaderView.ResizeMode.ResizeToContents)
        self._table.verticalHeader().hide()
        self._table.verticalHeader().setDefaultSectionSize(ROW)
        self._table.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        self._table.setToolTip("Tick the factors to score cells for.")
        self._table.itemChanged.connect(lambda _: self.changed.emit())
        self.left_out = PlainLabel(wrap=True)
        self._add = QPushButton("Add factor")
        self._add.setToolTip("Add a row for variables that belong together.")
        self._add.clicked.connect(self._add_empty)
        buttons: list[Any] = []
        for text, ticked, tip in (
            ("All", True, "Tick every factor."),
            ("None", False, "Tick no factor."),
        ):
            button = QPushButton(text)
            button.setToolTip(tip)
            button.clicked.connect(lambda _=False, on=ticked: self._tick_all(on))
            buttons.append(button)
        in_column(self._table, self.left_out, in_row(*buttons, 1, self._add), of=self)

    def show_recording(self, recording: Recording | None) -> None:
        """Suggest factors for a recording, keeping those that still make sense."""
        before = self._rows() if self._recording is not None else {}
        self._recording, self._unticked = recording, {}
        self._table.setRowCount(0)
        if recording is not None:
            known = set(recording.behavior)
            kept = {n: row for n, row in before.items() if row[1] and set(row[1]) <= known}
            if kept and {v for _, names, _ in kept.values() for v in names} >= _usable(recording):
                for name, (ticked, names, latents) in kept.items():
                    self._add_row(name, names, latents, ticked)
            else:
                suggested = suggested_factors(recording)
                room = int(np.sum(np.asarray(recording.accepted))) - FitSettings().time_latents
                self._unticked = why_unticked(recording, suggested, room)
                for name, factor in suggested.items():
                    self._add_row(name, list(factor.variables), ticked=name not in self._unticked)
        self._add.setEnabled(bool(recording and recording.behavior))
        self._say_left_out()
        self._fit_height()
        self.changed.emit()

    def _say_left_out(self) -> None:
        behavior = self._recording.behavior if self._recording is not None else {}
        reasons = {name: why_not(variable) for name, variable in behavior.items()}
        said = []
        for words, why in (("Left out", reasons), ("Not ticked", self._unticked)):
            if names := [f"{name} ({reason})" for name, reason in why.items() if reason]:
                said.append(f"{words}: {', '.join(names)}.")
        self.left_out.setText(" ".join(said))
        self.left_out.setVisible(bool(said))

    @property
    def factors(self) -> dict[str, Factor]:
        """Ticked factors; raises `InputError` if they are invalid."""
        factors: dict[str, Factor] = {}
        for row in range(self._table.rowCount()):
            ticked, name, variables, latents = self._row(row)
            if not ticked:
                continue
            if not name:
                raise InputError("A ticked factor has no name: double-click it and type one.")
            if name in factors:
                raise InputError(f"Two factors are called {name!r}: rename one.")
            if not variables:
                raise InputError(f"Factor {name!r} has no variables: choose some in its row.")
            factors[name] = Factor(variables, latents)
        return factors

    def show_latents(self, shown: bool) -> None:
        """Show or hide the column with numbers of latents."""
        self._table.setColumnHidden(LATENTS, not shown)

    def tick(self, *names: str) -> None:
        """Tick these factors and no others."""
        for row in range(self._table.rowCount()):
            item = self._table.item(row, NAME)
            on = item.text() in names
            item.setCheckState(Qt.CheckState.Checked if on else Qt.CheckState.Unchecked)

    def _tick_all(self, on: bool) -> None:
        self.tick(*(self._rows() if on else ()))

    def set_latents(self, name: str, latents: int) -> None:
        """Set the number of latents of a factor."""
        for row in range(self._table.rowCount()):
            if self._table.item(row, NAME).text().strip() == name:
                self._table.cellWidget(row, LATENTS).setValue(latents)

    def _rows(self) -> dict[str, tuple[bool, list[str], int | None]]:
        rows = [self._row(row) for row in range(self._table.rowCount())]
        return {name: (ticked, variables, latents) for ticked, name, variables, latents in rows}

    def _row(self, row: int) -> tuple[bool, str, list[str], int | None]:
        item = self._table.item(row, NAME)
        menu: QMenu = self._table.cellWidget(row, VARIABLES).menu()
        variables = [action.data() for action in menu.actions() if action.isChecked()]
        spin: WholeBox = self._table.cellWidget(row, LATENTS)
        ticked = item.checkState() == Qt.CheckState.Checked
        return ticked, item.text().strip(), variables, spin.value() or None

    def _add_empty(self) -> None:
        taken = set(self._rows())
        self._add_row(next(n for i in range(1, 1000) if (n := f"factor {i}") not in taken), [])
        self._fit_height()

    def _add_row(
        self, name: str, variables: list[str], latents: int | None = None, ticked: bool = True
    ) -> None:
        row = self._table.rowCount()
        with signals_blocked(self._table):
            self._table.insertRow(row)
            item = QTableWidgetItem(name)
            item.setFlags(item.flags() | Qt.ItemFlag.ItemIsUserCheckable)
            item.setCheckState(Qt.CheckState.Checked if ticked else Qt.CheckState.Unchecked)
            item.setToolTip("Ticked factors are trained together. Double-click to rename.")
            self._table.setItem(row, NAME, item)
            spin = WholeBox()
            spin.setRange(0, 64)
            spin.setValue(latents or 0)
            spin.setAccessibleName(f"Latents of {name}")
            spin.setToolTip("Dimensions of this factor; auto uses as many as its variables have.")
            spin.valueChanged.connect(lambda _: self.changed.emit())
            button = self._variables_button(variables, spin)
            self._table.setCellWidget(row, VARIABLES, button)
            self._table.setCellWidget(row, LATENTS, spin)
        places = [(above, column) for above in range(row + 1) for column in (VARIABLES, LATENTS)]
        reach_after(self._table, [self._table.cellWidget(*place) for place in places])
        self.changed.emit()

    def _variables_button(self, chosen: list[str], spin: WholeBox) -> QToolButton:
        assert self._recording is not None
        button, menu = QToolButton(), QMenu()
        button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        button.setSizePolicy(button.sizePolicy().Policy.Ignored, button.sizePolicy().Policy.Fixed)
        for name, variable in self._recording.behavior.items():
            reason = why_not(variable)
            action = menu.addAction(f"{name} ({reason})" if reason else name)
            action.setData(name)
            action.setCheckable(True)
            action.setChecked(name in chosen)
            action.setEnabled(not reason)
        menu.triggered.connect(lambda _: self._choose(button, spin))
        button.setMenu(menu)
        # a menu is not owned by its button
        menu.setParent(button, menu.windowFlags())
        self._show_choice(button, spin)
        return button

    def _choose(self, button: QToolButton, spin: WholeBox) -> None:
        self._show_choice(button, spin)
        self.changed.emit()

    def _show_choice(self, button: QToolButton, spin: WholeBox) -> None:
        names = [action.data() for action in button.menu().actions() if action.isChecked()]
        button.setText(", ".join(names) or "choose…")
        button.setAccessibleName(f"Variables: {', '.join(names) or 'none'}")
        button.setToolTip(
            plain(f"Variables: {', '.join(names)}." if names else "Choose variables.")
        )
        assert self._recording is not None
        spin.setSpecialValueText(f"auto ({latents_for(self._recording, names)})")

    def _fit_height(self) -> None:
        """As tall as its rows, so that the dock does not scroll inside a scroll area."""
        rows = min(max(self._table.rowCount(), 1), MOST_ROWS)
        header = self._table.horizontalHeader().sizeHint().height()
        self._table.setFixedHeight(header + rows * ROW + 6)


def _usable(recording: Recording) -> set[str]:
    return {name for name, variable in recording.behavior.items() if not why_not(variable)}


class _DeviceLabel(QLabel):
    """A line such as "Trains on CPU, 1 thread"."""

    def __init__(self, processes: Processes) -> None:
        super().__init__()
        self.setWordWrap(True)
        self.setToolTip("Where training runs; change Device or Threads under Details.")
        self._asked: tuple[str, int] | None = None
        self._jobs = jobs = JobQueue(processes, latest=True)
        self.destroyed.connect(lambda *_: jobs.close())

    def show_device(self, device: str, threads: int) -> None:
        """Name the device that the settings stand for on this computer."""
        if (device, threads) == self._asked:
            return
        self._asked = (device, threads)
        self.setText("Looking for the device …")
        asked = device, threads

        def tell(words: str) -> None:
            if self._asked == asked:
                self.setText(words)

        call = tasks.DEVICE(device, threads)
        self._jobs.ask(
            Work(
                "the device",
                call,
                lambda name: tell(f"Trains on {name}"),
                say=lambda sentence, *_: tell(in_dock(sentence)),
            )
        )
