"""Chooses what to train, how and where: factors, recordings, settings and device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from qtpy.QtCore import Signal
from qtpy.QtWidgets import QCheckBox, QLabel, QLineEdit, QWidget

from napari_xcebra.errors import InputError
from napari_xcebra.learn.data.factors import Factor
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.widgets.controls.boxes import WindowButton
from napari_xcebra.widgets.controls.forms import SettingsForm
from napari_xcebra.widgets.controls.layouts import Fold, in_column, in_row
from napari_xcebra.widgets.docks.train.device_label import DeviceLabel
from napari_xcebra.widgets.docks.train.dimension_window import DimensionWindow
from napari_xcebra.widgets.docks.train.factor_table import FactorTable
from napari_xcebra.widgets.docks.train.sweep_window import SweepWindow
from napari_xcebra.widgets.services.sweeps import Latents
from napari_xcebra.widgets.state.preferences import keep, kept_text, preferred_settings
from napari_xcebra.workspace_file import Opened

if TYPE_CHECKING:
    from napari_xcebra.widgets.window import Services

HELP = (
    "Train one embedding on this recording and the ticked ones. Their cells may differ, and "
    "each gets its own run. They need the same variables and frame rate."
)


class TogetherBox(QWidget):
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
LIVE = "train/live"
"""Preference: whether maps are painted during training."""


class TrainingChoice(Fold):
    """All choices for a run; folded away, the title sums them up."""

    changed = Signal()

    def __init__(self, services: Services) -> None:
        super().__init__(TITLE, "Factors and settings of the next run.", unfolded=True)
        self._services = services
        self.factors = FactorTable()
        self.together = TogetherBox()
        self.name = QLineEdit()
        self.name.setPlaceholderText("name of the run")
        self.name.setToolTip("Name of the run; you can change it later.")
        self.form: SettingsForm[FitSettings] = SettingsForm(preferred_settings(), apart=True)
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
            lambda parent: SweepWindow(services, self.asked_for, parent),
        )
        self.days = WindowButton(
            "The same cells, day by day…",
            "Compare the scores of cells that CellReg or ROICaT matched across the recordings of "
            "this window.",
            self._days_window,
        )
        self.device = DeviceLabel(services.processes)
        self._lay_out()
        for part in (self.factors, self.together, self.form):
            part.changed.connect(self.changed)
        self.form.changed.connect(self.show_device)
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
        parts = (self.name, self.form, self.live, self.device, buttons, rarely, self.form.rare)
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

    def asked_for(self) -> tuple[dict[str, Factor], FitSettings]:
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
        window = DimensionWindow(self._services, self.asked_for, parent)
        window.chosen.connect(self._use_latents)
        return window

    def _days_window(self, parent: QWidget) -> QWidget:
        # it takes pandas, which the dock can do without
        from napari_xcebra.widgets.docks.train.matched_window import MatchedWindow

        return MatchedWindow(self._services, parent)

    def _use_latents(self, latents: Latents) -> None:
        if latents.of_time:
            self.form.value = replace(self.form.value, time_latents=latents.of_time)
        for name, number in latents.of_factors.items():
            self.factors.set_latents(name, number)
