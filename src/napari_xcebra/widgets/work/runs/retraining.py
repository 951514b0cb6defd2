"""Trains a run again on the accepted cells, and compares the two maps."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from qtpy.QtCore import QTimer

from napari_xcebra.attribution.ranks import rank_correlation
from napari_xcebra.runs import free_name
from napari_xcebra.widgets.state.curations import OFFERED
from napari_xcebra.widgets.state.of_state import OfState
from napari_xcebra.widgets.state.shown import shown_map
from napari_xcebra.widgets.state.signals import Signal

if TYPE_CHECKING:
    from napari_xcebra.runs import Run
    from napari_xcebra.widgets.layers.score_painter import ScorePainter
    from napari_xcebra.widgets.state.curations import Curations
    from napari_xcebra.widgets.state.state import State
    from napari_xcebra.widgets.work.runs.training import Trainer
    from napari_xcebra.workspace_file import Opened

FEWEST = 2


class Retraining(OfState):
    """Trains on the accepted cells, then shows the two maps beside each other."""

    said = Signal(str, str, str)
    """A sentence for a notice, its tone, and details."""

    def __init__(
        self, state: State, curations: Curations, painter: ScorePainter, training: Trainer
    ) -> None:
        super().__init__(state)
        self._curations, self._painter, self.training = curations, painter, training
        self._under_way: tuple[Opened, str, Run, str] | None = None
        self.training.changed.connect(self._follow)
        self.training.said.connect(self._pass_on)

    def why_not(self) -> str:
        """Why it cannot begin, in a sentence; empty if it can."""
        opened, run = self.state.current, self.state.shown_run
        if opened is None or run is None:
            return "Train a run first; it can then be trained again on the accepted cells."
        if self.training.busy:
            return "A run is being trained: see the Train dock."
        if self._curations.offers:
            return OFFERED
        accepted = int(self._curations.accepted(opened).sum())
        if accepted < FEWEST:
            return f"Accept at least {FEWEST} cells first; {accepted} accepted so far."
        return ""

    def start(self) -> str:
        """Train again; returns the name of the new run, empty if it cannot begin."""
        opened, run = self.state.current, self.state.shown_run
        if opened is None or run is None or self.why_not():
            return ""
        accepted = self._curations.accepted(opened)
        taken = [other.name for other in opened.runs]
        name = free_name(f"run {len(taken) + 1}, accepted cells", taken)
        recording = replace(opened.recording, accepted=accepted)
        job = self.training.start(opened, name, run.factors, run.fit.settings, recording)
        if job is None:
            return ""
        self._under_way = (opened, name, run, self.state.shown.factor)
        self.said.emit(
            f"Training “{name}” on {int(accepted.sum())} cells with the settings of {run.name}; "
            "see the Train dock for progress.", "plain", "",
        )  # fmt: skip
        return name

    def _follow(self) -> None:
        if self._under_way is not None and not self.training.busy:
            # once the trainer has shown the new run
            QTimer.singleShot(0, self._compare)

    def _compare(self) -> None:
        if self._under_way is None or self._state() is None or self.training.busy:
            return
        (opened, name, before, factor), self._under_way = self._under_way, None
        state, after = self.state, opened.run(name)
        if after is None or state.current is not opened or factor not in after.fit.factors:
            return
        self._painter.beside = (before.name, factor)
        state.shown = replace(state.shown, run=name, factor=factor, latent=None)
        new, old = shown_map(state), self._painter.map_beside()
        if old is None or new is None:
            return
        rho = f"{rank_correlation(new.scores, old.scores):.2f}".replace("-", "−")
        self.said.emit(
            f"“{name}” is shown on the left, {before.name} on the right: rank correlation {rho} "
            f"for {factor}. The plot is in the Attribution dock, under Details.", "good", "",
        )  # fmt: skip

    def _pass_on(self, sentence: str, tone: str, details: str) -> None:
        if self._under_way is not None:
            self._under_way = None
            self.said.emit(sentence, tone, details)
