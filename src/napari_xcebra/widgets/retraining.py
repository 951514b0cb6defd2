"""The next round: the same training once more, on the cells that were accepted."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from psygnal import Signal
from qtpy.QtCore import QTimer

from napari_xcebra.attribution.comparison import rank_correlation
from napari_xcebra.runs import free_name
from napari_xcebra.widgets.curations import OFFERED, curations_of
from napari_xcebra.widgets.per_session import OfSession, one_per_session
from napari_xcebra.widgets.score_map import shown_map
from napari_xcebra.widgets.score_painter import painter_of
from napari_xcebra.widgets.trainer import trainer_of

if TYPE_CHECKING:
    from napari_xcebra.runs import Run
    from napari_xcebra.sessions import Opened
    from napari_xcebra.widgets.session import Session

FEWEST = 2


class Retraining(OfSession):
    """Trains on the accepted cells, then shows the two maps beside each other.

    Parameters
    ----------
    session : Session
    """

    said = Signal(str, str, str)
    """A sentence for a notice, its tone, and details."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.trainer = trainer_of(session)
        self._under_way: tuple[Opened, str, Run, str] | None = None
        self.trainer.changed.connect(self._follow)
        self.trainer.said.connect(self._pass_on)

    def why_not(self) -> str:
        """Why it cannot begin, in a sentence; empty if it can."""
        opened, run = self.session.current, self.session.shown_run
        if opened is None or run is None:
            return "Train a run first: it is then trained again on the cells that you accepted."
        if self.trainer.busy:
            return "A run is being trained: its progress is in the Train dock."
        curations = curations_of(self.session)
        if curations.offers:
            return OFFERED
        accepted = int(curations.accepted(opened).sum())
        if accepted < FEWEST:
            return f"{accepted} cells are accepted: at least {FEWEST} are needed."
        return ""

    def start(self) -> str:
        """Train again; returns the name of the new run, empty if it cannot begin."""
        opened, run = self.session.current, self.session.shown_run
        if opened is None or run is None or self.why_not():
            return ""
        accepted = curations_of(self.session).accepted(opened)
        taken = [other.name for other in opened.runs]
        name = free_name(f"run {len(taken) + 1}, accepted cells", taken)
        recording = replace(opened.recording, accepted=accepted)
        job = self.trainer.start(opened, name, run.factors, run.fit.settings, recording)
        if job is None:
            return ""
        self._under_way = (opened, name, run, self.session.shown.factor)
        self.said.emit(
            f"Training “{name}” on {int(accepted.sum())} cells with the settings of {run.name}; "
            "its progress is in the Train dock.", "plain", "",
        )  # fmt: skip
        return name

    def _follow(self) -> None:
        if self._under_way is not None and not self.trainer.busy:
            # once the trainer has shown the new run
            QTimer.singleShot(0, self._compare)

    def _compare(self) -> None:
        if self._under_way is None or self._session() is None or self.trainer.busy:
            return
        (opened, name, before, factor), self._under_way = self._under_way, None
        session, after = self.session, opened.run(name)
        if after is None or session.current is not opened or factor not in after.fit.factors:
            return
        painter = painter_of(session)
        painter.beside = (before.name, factor)
        session.shown = replace(session.shown, run=name, factor=factor, latent=None)
        new, old = shown_map(session), painter.map_beside()
        if old is None or new is None:
            return
        rho = f"{rank_correlation(new.scores, old.scores):.2f}".replace("-", "−")
        self.said.emit(
            f"“{name}” is shown on the left, {before.name} on the right: rank correlation {rho} "
            f"for {factor}. The Attribution dock has the plot.", "good", "",
        )  # fmt: skip

    def _pass_on(self, sentence: str, tone: str, details: str) -> None:
        if self._under_way is not None:
            self._under_way = None
            self.said.emit(sentence, tone, details)


retraining_of = one_per_session(Retraining)
"""The next round of a session."""
