"""What to train, and how: factors, recordings to train together with, and settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from qtpy.QtCore import Signal
from qtpy.QtWidgets import QCheckBox

from napari_xcebra.errors import InputError
from napari_xcebra.learn.parts import Factor
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.widgets.dimension_search import Latents
from napari_xcebra.widgets.dimension_window import DimensionButton
from napari_xcebra.widgets.factor_table import FactorTable
from napari_xcebra.widgets.fold import Fold
from napari_xcebra.widgets.forms import SettingsForm
from napari_xcebra.widgets.kept import keep, kept_text
from napari_xcebra.widgets.preferences import preferred_settings
from napari_xcebra.widgets.together import TogetherBox

if TYPE_CHECKING:
    from napari_xcebra.recording import Recording
    from napari_xcebra.widgets.session import Opened, Session

TITLE = "What to train"
LIVE = "train/live"
"""Under which it is kept whether maps are painted while a run learns."""


class TrainingChoice(Fold):
    """Everything a run can be asked for; folded away, its title sums it up.

    Parameters
    ----------
    session : Session
    """

    changed = Signal()

    def __init__(self, session: Session) -> None:
        super().__init__(TITLE, "What to train, and how.", unfolded=True)
        self.factors = FactorTable()
        self.dimension = DimensionButton(session, self.asked_for)
        self.factors.buttons.addWidget(self.dimension)
        self.together = TogetherBox()
        self.form: SettingsForm[FitSettings] = SettingsForm(preferred_settings())
        self.live = QCheckBox("Paint the map while it learns")
        self.live.setToolTip(
            "Show a provisional map every few seconds, over some of the frames; training takes a "
            "little longer. It changes nothing in what is learned. Recordings that are trained "
            "together are painted at the end."
        )
        self.live.setChecked(kept_text(LIVE) != "no")
        for part in (self.factors, self.together, self.form, self.live):
            self.addWidget(part)
        for part in (self.factors, self.together, self.form):
            part.changed.connect(self.changed)
        self.dimension.chosen.connect(self._use_latents)
        self.live.toggled.connect(lambda live: keep(LIVE, "yes" if live else "no"))
        self.together.changed.connect(lambda: self.live.setEnabled(not self.together.chosen))
        self.button.clicked.connect(self._sum_up)

    def asked_for(self) -> tuple[dict[str, Factor], FitSettings]:
        """Factors and settings as they are chosen; raises `InputError` where they do not fit."""
        return self.factors.factors, self.form.value

    def why_not(self, recording: Recording) -> str:
        """Why nothing can be trained with what is chosen; empty if it can."""
        if problem := self.form.problem():
            return problem
        try:
            factors = self.factors.factors
        except InputError as error:
            return str(error)
        if factors or self.form.value.mode == "time":
            return ""
        if not recording.behavior:
            return "No behaviour yet: add a behaviour file in the Recording dock."
        return "Tick at least one factor."

    def show_recording(self, opened: Opened | None, others: Sequence[Opened]) -> None:
        """Offer the variables of a recording, and the others to train it together with."""
        self.factors.show_recording(opened.recording if opened else None)
        self.together.show_others(others)
        self.fold(unfolded=opened is None or not opened.runs)

    def fold(self, *, unfolded: bool = False) -> None:
        """Fold it away, or unfold it."""
        self.unfolded = unfolded
        self._sum_up()

    def _sum_up(self) -> None:
        """Say what is chosen where it is folded away."""
        try:
            names = ", ".join(self.factors.factors)
        except InputError:
            names = ""
        folded = names and not self.unfolded
        self.title = f"{TITLE}: {names}" if folded else TITLE

    def _use_latents(self, latents: Latents) -> None:
        if latents.of_time:
            self.form.value = replace(self.form.value, time_latents=latents.of_time)
        for name, number in latents.of_factors.items():
            self.factors.set_latents(name, number)
