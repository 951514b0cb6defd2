"""Events of a job: started, advanced, sketched a provisional map, and three ways to end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from napari_xcebra.errors import InputError

if TYPE_CHECKING:
    from napari_xcebra.attribution.result import Attribution

NAN = float("nan")
Unit = Literal["step", "frame", "cell", "run"]


@dataclass(frozen=True)
class Started:
    """The child has the task, and begins."""


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
    """The task finished; `result` is what its `run` returned."""

    result: Any


@dataclass(frozen=True)
class Failed:
    """The task failed.

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
