"""How far the run is that is being trained, and how long it will take."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from qtpy.QtWidgets import QProgressBar

from napari_xcebra.widgets.work_bar import duration

if TYPE_CHECKING:
    from napari_xcebra.jobs import Advanced
    from napari_xcebra.widgets.trainer import Trainer

PHASES = {
    "settling": "learning",
    "raising λ": "learning, λ is raised",
    "holding": "learning, λ is kept",
}
"""How the phases of training are called in the window."""


class TrainingBar(QProgressBar):
    """Steps done, what λ does, and the time left; hidden while nothing is trained."""

    def __init__(self) -> None:
        super().__init__()
        self.setToolTip("Steps done, what λ does, and the time left.")

    def show_training(self, trainer: Trainer) -> None:
        """Show how far it is."""
        at = trainer.progress
        self.setVisible(trainer.busy)
        # a bar without an end would move to and fro, but Qt puts no words on it
        self.setRange(0, at.total if at else 1)
        self.setValue(at.done if at else 0)
        if at is None or trainer.doing == "stopping":
            self.setFormat(trainer.doing)
        else:
            self.setFormat(in_words(at))


def in_words(at: Advanced) -> str:
    """What runs, how far it is and how long it will take."""
    left = "" if np.isnan(at.seconds_left) else f" · {duration(at.seconds_left)} left"
    doing = PHASES.get(at.phase, at.phase) or "scoring the cells"
    return f"{doing} · {at.unit} {at.done} of {at.total}{left}"
