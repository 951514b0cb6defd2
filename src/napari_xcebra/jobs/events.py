"""What a job tells: started, advanced, sketched a provisional map, and three ways to end."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from napari_xcebra.errors import InputError

if TYPE_CHECKING:
    from napari_xcebra.attribution.result import Attribution

NAN = float("nan")
Unit = Literal["step", "frame", "cell", "run"]


@dataclass(frozen=True)
class Started:
    """The child has the call, and begins."""


@dataclass(frozen=True)
class Advanced:
    """Progress of a job; sent at most about 15 times a second.

    Parameters
    ----------
    done, total : int
        Steps of a training run, frames, or cells.
    unit : {"step", "frame", "cell", "run"}
    seconds_left : float
        At the pace so far; NaN while unknown.
    phase : {"settling", "raising λ", "holding"} or ""
        What λ does; this and what follows apply only to training.
    loss : mapping of str to float
        Of each factor, over the last steps: InfoNCE in nats, or the squared error of a
        supervised fit.
    penalty : float
        ‖J_f‖²_F; NaN while λ is 0.
    lambda_ : float
    """

    done: int
    total: int
    unit: Unit
    seconds_left: float = NAN
    phase: str = ""
    loss: Mapping[str, float] = field(default_factory=dict)
    penalty: float = NAN
    lambda_: float = NAN


@dataclass(frozen=True)
class Sketched:
    """A provisional map of a run that is being trained.

    Parameters
    ----------
    attribution : Attribution
        Over some of the frames, and without a verdict.
    done, total : int
        Steps.
    """

    attribution: Attribution
    done: int
    total: int


@dataclass(frozen=True)
class Finished:
    """The call finished; `result` is what it returned."""

    result: Any


@dataclass(frozen=True)
class Failed:
    """The call failed.

    Parameters
    ----------
    sentence : str
        For the user: what happened, and what to do.
    details : str
        For a bug report: traceback and last output; may be empty.
    error : InputError or None
        What was raised, with all that it carries, if it can be sent.
    """

    sentence: str
    details: str = ""
    error: InputError | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Cancelled:
    """The user asked to stop.

    Parameters
    ----------
    result : any or None
        What there is so far: training returns the `Fit` of the steps it did, if it has the time
        to.
    """

    result: Any = None


Outcome = Finished | Failed | Cancelled
Event = Started | Advanced | Sketched | Outcome


class Report(Protocol):
    """How a running call reports its progress, and learns that it should stop."""

    def __call__(self, advanced: Advanced | Sketched) -> None:
        """Report progress, as often as you like; a provisional map always reaches the window."""

    def stop(self) -> bool:
        """Whether it should stop."""


class Silence:
    """Report to nobody."""

    def __call__(self, advanced: Advanced | Sketched) -> None:
        """Nobody listens."""

    def stop(self) -> bool:
        """Never."""
        return False


class Counter:
    """Reports what is done as `on_progress` of a function, with the time left at the pace so far.

    Parameters
    ----------
    report : Report
    unit : {"step", "frame", "cell", "run"}
    """

    def __init__(self, report: Report, unit: Unit) -> None:
        self._report, self._unit = report, unit
        self._first: tuple[float, int] | None = None

    def __call__(self, *at: Any) -> None:
        """Take the numbers done and in all, or the `Progress` of a training."""
        if len(at) == 2:
            done, total = at
            self._report(Advanced(done, total, self._unit, self._seconds_left(done, total)))
            return
        (now,) = at
        left = self._seconds_left(now.step, now.steps)
        self._report(
            Advanced(
                now.step, now.steps, self._unit, left, now.phase, now.loss, now.penalty, now.lambda_
            )
        )

    def _seconds_left(self, done: int, total: int) -> float:
        """Seconds; NaN at the first report."""
        now = time.monotonic()
        if self._first is None:
            self._first = now, done
        began, before = self._first
        return (now - began) / (done - before) * (total - done) if done > before else NAN
