"""Trainings with several numbers of latents; they go on when the window is closed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from psygnal import Signal

from napari_xcebra.jobs import DimensionTask
from napari_xcebra.learn.duration import seconds_to_fit
from napari_xcebra.learn.suggestions import latents_for
from napari_xcebra.widgets.computation import Work, computation_of
from napari_xcebra.widgets.per_session import OfSession, one_per_session

if TYPE_CHECKING:
    from napari_xcebra.learn.consistency import Dimensions
    from napari_xcebra.learn.parts import Factor
    from napari_xcebra.learn.result import Fit
    from napari_xcebra.learn.settings import FitSettings
    from napari_xcebra.recording import Recording
    from napari_xcebra.widgets.session import Opened, Session


@dataclass(frozen=True)
class Latents:
    """How many to take.

    Parameters
    ----------
    of_time : int
        0 where there are none.
    of_factors : mapping of str to int
        Of those factors whose number was looked for.
    """

    of_time: int
    of_factors: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Trial:
    """What is tried.

    Parameters
    ----------
    recording : Recording
    factors : mapping of str to Factor
    settings : FitSettings
    time_latents : tuple of int
        None of them in modes without time latents.
    factor_latents : tuple of int
        Of the one factor there is; empty for as many as its variables have.
    seeds : int
        Trainings at each number of latents.
    """

    recording: Recording
    factors: Mapping[str, Factor]
    settings: FitSettings
    time_latents: tuple[int, ...]
    factor_latents: tuple[int, ...]
    seeds: int

    @property
    def sizes(self) -> list[tuple[int, int]]:
        """Latents of all factors together, and of time."""
        usual = sum(
            factor.latents or latents_for(self.recording, factor.variables)
            for factor in self.factors.values()
        )
        return list(product(self.factor_latents or (usual,), self.time_latents or (0,)))

    def seconds(self, like: Fit | None) -> float:
        """About how long it takes; `like` is a fit that was timed on this machine."""
        cells = int(np.asarray(self.recording.accepted).sum())
        each = (seconds_to_fit(self.settings, cells, sum(size), like) for size in self.sizes)
        return self.seeds * sum(each)

    @property
    def task(self) -> DimensionTask:
        """As the child takes it."""
        return DimensionTask(
            self.recording,
            dict(self.factors),
            self.settings,
            self.time_latents or (self.settings.time_latents,),
            self.factor_latents or None,
            self.seeds,
        )

    def latents(self, found: Dimensions) -> Latents:
        """What the suggestion comes to in the Train dock."""
        chosen = found.suggested
        names = list(self.factors) if self.factor_latents else []
        return Latents(chosen.time_latents, {name: chosen.factor_latents for name in names})


class DimensionSearch(OfSession):
    """Has numbers of latents tried, and keeps what came of the last time.

    Parameters
    ----------
    session : Session
    """

    changed = Signal()
    """There is a result."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._work: Work | None = None
        self._found: tuple[Opened, Trial, Dimensions] | None = None

    @property
    def found(self) -> tuple[Trial, Dimensions] | None:
        """What was tried on the current recording, and what came of it."""
        current = self.session.current
        if self._found is None or self._found[0] is not current:
            return None
        return self._found[1:]

    @property
    def awaited(self) -> bool:
        """Whether it is under way, or waits for its turn."""
        return computation_of(self.session).awaits(self._work)

    @property
    def running(self) -> bool:
        """Whether it is what is being computed."""
        return self._work is not None and computation_of(self.session).current is self._work

    def start(self, trial: Trial) -> None:
        """Try numbers of latents on the current recording, after what is under way."""
        opened = self.session.current
        if opened is None or self.awaited:
            return

        def keep(found: Dimensions) -> None:
            self._found = (opened, trial, found)
            self.changed.emit()

        self._work = Work("the number of latents", trial.task, keep, long=True)
        computation_of(self.session).ask([self._work])


dimension_search_of = one_per_session(DimensionSearch)
"""The search of a session; made when first asked for."""
