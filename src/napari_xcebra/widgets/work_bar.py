"""How far something is that is computed in the background."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from qtpy.QtWidgets import QProgressBar

if TYPE_CHECKING:
    from napari_xcebra.jobs import Advanced
    from napari_xcebra.widgets.computation import Computation


class WorkBar(QProgressBar):
    """Progress with the time left; moves to and fro while nothing is known yet.

    Parameters
    ----------
    tooltip : str
    """

    def __init__(self, tooltip: str) -> None:
        super().__init__()
        self.setToolTip(tooltip)

    def show_work(self, computation: Computation, *, running: bool, doing: str) -> str:
        """Show how far something is that was asked for; in a word or two, what it does now.

        Parameters
        ----------
        computation : Computation
        running : bool
            As of `show_progress`.
        doing : str
            What it does once it has begun.
        """
        self.show_progress(computation, running=running, counts=False)
        begun = running and computation.progress is not None
        return doing if begun else computation.waits_for.capitalize()

    def show_progress(self, computation: Computation, *, running: bool, counts: bool) -> None:
        """Show how far it is.

        Parameters
        ----------
        computation : Computation
        running : bool
            Whether what is meant is what is being computed; it may still wait for its turn.
        counts : bool
            Whether to name what is counted (frames, steps) rather than the share.
        """
        at = computation.progress if running else None
        self.setRange(0, at.total if at else 0)
        self.setValue(at.done if at else 0)
        if at is not None:
            done = f"{at.unit} {at.done} of {at.total}" if counts else "%p %"
            self.setFormat(f"{done}{_left(at)}")


def _left(at: Advanced) -> str:
    return "" if math.isnan(at.seconds_left) else f", {duration(at.seconds_left)} left"


def duration(seconds: float) -> str:
    """As a person would say it.

    >>> duration(8.2), duration(200)
    ('9 s', '3 min 20 s')
    """
    whole = math.ceil(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60} s"


def about(seconds: float) -> str:
    """A length of time that is not known exactly.

    >>> about(2.3), about(23), about(200), about(9000)
    ('about 5 s', 'about 25 s', 'about 3 min', 'about 2.5 h')
    """
    rounded = 5 * math.ceil(seconds / 5)
    if rounded < 90:
        return f"about {rounded} s"
    return f"about {round(seconds / 60)} min" if seconds < 5400 else f"about {seconds / 3600:.2g} h"


def takes(seconds: float, *, ready: bool = True) -> str:
    """How long something takes, to be put after what a button does; empty if nobody knows.

    >>> takes(2.3), takes(2.3, ready=False), takes(float("nan"))
    (' (about 5 s)', ' (after start-up, about 5 s)', '')

    Parameters
    ----------
    ready : bool
        Whether the background process has started, which takes some seconds by itself.
    """
    words = [] if ready else ["after start-up"]
    words += [] if math.isnan(seconds) else [about(seconds)]
    return f" ({', '.join(words)})" if words else ""
