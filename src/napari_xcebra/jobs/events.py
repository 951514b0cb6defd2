"""What a job tells of itself: it started, advanced, and ended in one of three ways.

A training run may also show what its map looks like so far.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from napari_xcebra.attribution.result import Attribution

NAN = float("nan")
Unit = Literal["step", "frame", "cell", "run"]


@dataclass(frozen=True)
class Started:
    """The child has the task, and begins."""


@dataclass(frozen=True)
class Advanced:
    """Where a job stands; told some 15 times a second at most.

    Parameters
    ----------
    done, total : int
        Steps of a training run, frames, or cells.
    unit : {"step", "frame", "cell", "run"}
    seconds_left : float
        At the pace so far; NaN while that is not known.
    phase : {"settling", "raising λ", "holding"} or ""
        What λ does; this and the rest are of training alone.
    loss : mapping of str to float
        Of each factor, over the last steps: InfoNCE in nats, or the squared error of a
        supervised fit.
    chance : float
        InfoNCE of an encoder that knows nothing; NaN for a supervised fit.
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
    chance: float = NAN
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
    """The task came to its end; `result` is what its `run` returned."""

    result: Any


@dataclass(frozen=True)
class Failed:
    """The task came to nothing.

    Parameters
    ----------
    sentence : str
        For the user: what happened, and what to do.
    details : str
        For a report to the developers: traceback and last output; may be empty.
    """

    sentence: str
    details: str = ""


@dataclass(frozen=True)
class Cancelled:
    """The user asked to stop.

    Parameters
    ----------
    result : any or None
        What there was so far: a training run hands over the `Fit` of the steps it did, if it
        is asked early enough to do so.
    """

    result: Any = None


Outcome = Finished | Failed | Cancelled
Event = Started | Advanced | Sketched | Outcome
