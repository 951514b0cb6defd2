"""Shows how a training went: its curves, how λ was found, and why it ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from napari_xcebra.widgets.controls.boxes import PlainLabel
from napari_xcebra.widgets.controls.layouts import Fold
from napari_xcebra.widgets.plots.plot_style import style_of
from napari_xcebra.widgets.plots.training_plots import LearningPlot

if TYPE_CHECKING:
    from napari_xcebra.jobs import Advanced
    from napari_xcebra.learn import Fit


class CourseFold(Fold):
    """Unfolded while a run is trained, folded away once there is a verdict."""

    def __init__(self) -> None:
        super().__init__("How it was learned", "Learning curves, λ, and why training ended.")
        self.plot = LearningPlot()
        self.facts = PlainLabel(wrap=True)
        for part in (self.plot, self.facts):
            self.addWidget(part)
        self._training = False
        self._reports = 0
        self.hide()

    def follow_theme(self, theme: str) -> None:
        """Draw in the colours of a theme of napari."""
        self.plot.follow_theme(style_of(theme))

    def follow(self, course: Sequence[Advanced], chance: float) -> None:
        """Draw the curves of a training up to its last report."""
        if len(course) == self._reports:
            return
        self._reports = len(course)
        if not self._training:
            self._training = self.unfolded = True
            self.facts.clear()
        self.plot.follow(course, chance)

    def show_fit(self, fit: Fit) -> None:
        """Show how a finished run was learned."""
        if self._training:
            self._training = self.unfolded = False
        chances = [goodness.chance for goodness in fit.goodness.values()]
        self.plot.show_history(fit.history, chances[0] if chances else np.nan)
        self.facts.setText("\n".join(filter(None, [fit.lambda_reason, fit.stop_reason])))
        self.show()
