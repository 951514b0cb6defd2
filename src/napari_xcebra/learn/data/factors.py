"""Splits the embedding into named parts, one for each factor and one for time; suggests factors."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, get_args

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.learn.data.inputs import Filter
from napari_xcebra.learn.data.labels import Course, Labels, pairs_within, step_offset
from napari_xcebra.learn.settings import FitSettings, Similarity
from napari_xcebra.recording import Recording, Variable

TIME = "time"
RESERVED = (TIME, "step", "penalty", "lambda")


@dataclass(frozen=True)
class Factor:
    """Variables to attribute together, and settings of their own where these differ from the rest.

    Parameters
    ----------
    variables : sequence of str
        Behaviour variables of the recording; one with two columns counts as two.
    latents : int, optional
        Dimensions in the embedding; as many as the variables have, if not given (an angle: 2).
    similarity : {"euclidean", "dot", "power"}, optional
    temperature : float, optional
        Fixes τ of this factor.
    """

    variables: Sequence[str]
    latents: int | None = None
    similarity: Similarity | None = None
    temperature: float | None = None

    def __post_init__(self) -> None:
        names = [self.variables] if isinstance(self.variables, str) else self.variables
        object.__setattr__(self, "variables", tuple(names))


@dataclass(frozen=True)
class Part:
    """Dimensions start to stop of the embedding, and what they are trained on.

    Parameters
    ----------
    similarity : {"euclidean", "dot", "power"}
    temperature : float
        τ of the similarity φ/τ; where learning starts if `learned`.
    offset : int
        Frames over which the positive pair steps.
    time_weight : float
        Weight of this part's φ/τ inside the time objective, where learning starts: a label that
        moves further over a time pair than over its own step counts less there (App. A.2 asks
        that both agree). Learned, because what the cells tell of a label moves differently again;
        a fixed weight makes the time latents repeat the factor, which spoils the inverse.
    lambda_ : float
        λ that training ended with for this part; NaN before, and in fits of earlier versions.
    """

    name: str
    variables: tuple[str, ...]
    start: int
    stop: int
    similarity: Similarity
    temperature: float
    learned: bool = False
    offset: int = 1
    time_weight: float = 1.0
    lambda_: float = float("nan")

    @property
    def latents(self) -> slice:
        """Dimensions of the embedding."""
        return slice(self.start, self.stop)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for a file; JSON has no NaN, so None stands for it."""
        lambda_ = None if np.isnan(self.lambda_) else self.lambda_
        return asdict(self) | {"variables": list(self.variables), "lambda_": lambda_}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Part:
        """Part from a file; fields that this version does not know are ignored."""
        known = {f.name: values[f.name] for f in fields(cls) if values.get(f.name) is not None}
        return cls(**{**known, "variables": tuple(values["variables"])})


def part_named(name: str, parts: Sequence[Part]) -> Part:
    """Part of that name; the error lists the names there are."""
    for part in parts:
        if part.name == name:
            return part
    known = ", ".join(part.name for part in parts)
    raise InputError(f"There is no factor {name!r} here; there are: {known}.")


Factors = Mapping[str, "Factor | Sequence[str] | str"]


def as_factors(factors: Factors | None, settings: FitSettings) -> dict[str, Factor]:
    """Factors as the user may write them: a name, a list of names, or a `Factor`."""
    if not isinstance(factors or {}, Mapping):
        raise InputError(
            f"`factors` is {factors!r}: a mapping of names to variables is needed, such as "
            '{"place": ["position"]}.'
        )
    resolved = {}
    for name, given in (factors or {}).items():
        resolved[name] = given if isinstance(given, Factor) else Factor(given)
        _check(name, resolved[name])
    if settings.mode == "time":
        return {}
    if not resolved:
        raise InputError(
            f"`mode` {settings.mode!r} needs at least one of `factors`, each with its behaviour "
            "variables; `mode` 'time' needs none."
        )
    return resolved


def _check(name: str, factor: Factor) -> None:
    if not name or name in RESERVED:
        raise InputError(
            f"A factor is called {name!r}: it needs a name other than {', '.join(RESERVED)}, which "
            "are reserved."
        )
    latents, similarity, temperature = factor.latents, factor.similarity, factor.temperature
    if latents is not None and not (isinstance(latents, int | np.integer) and latents >= 1):
        raise InputError(f"Factor {name!r} has {latents!r} latents: 1 or more is needed.")
    if similarity is not None and similarity not in get_args(Similarity):
        known = ", ".join(get_args(Similarity))
        raise InputError(
            f"Factor {name!r} has similarity {similarity!r}: one of {known} is needed."
        )
    if temperature is not None and not 0 < temperature < np.inf:
        raise InputError(f"Factor {name!r} has temperature {temperature!r}: > 0 is needed.")


def factor_labels(recording: Recording, factors: Mapping[str, Factor]) -> dict[str, Labels]:
    """Labels of every factor."""
    return {name: Labels.of(recording, f.variables, name) for name, f in factors.items()}


def label_offsets(
    recording: Recording, labels: Mapping[str, Labels], settings: FitSettings
) -> dict[str, int]:
    """Frames over which each factor's labels step, at most 5 s and what the blocks allow."""
    if settings.label_offset:
        return dict.fromkeys(labels, settings.label_offset)
    longest = max(1, min(round(5 * recording.rate), recording.n_frames // (10 * settings.blocks)))
    return {
        name: step_offset(label, recording.segment, settings.label_step, longest)
        for name, label in labels.items()
    }


def time_offset(recording: Recording, offsets: Mapping[str, int], settings: FitSettings) -> int:
    """Frames between the members of a time pair: as set, else the slowest label's step."""
    return settings.time_offset or max(offsets.values(), default=max(1, round(recording.rate / 2)))


def lay_out(
    factors: Mapping[str, Factor],
    labels: Mapping[str, Labels],
    segment: np.ndarray,
    offsets: Mapping[str, int],
    settings: FitSettings,
) -> tuple[Part, ...]:
    """Parts of the embedding: factors in their order, then time.

    Parameters
    ----------
    segment : (frames,) int64
        Trial of each frame; label steps are taken within.
    offsets : mapping of str to int
        Frames a step, of each factor and of "time".
    """
    parts: list[Part] = []
    stop = 0
    for name, factor in factors.items():
        label, similarity = labels[name], factor.similarity or settings.similarity
        latents = factor.latents or label.dimensions
        if settings.mode == "supervised":
            latents = label.targets().shape[1]
        step, longer = (_step_variance(label, segment, offsets[n]) for n in (name, TIME))
        matched = settings.temperature == "matched" and similarity == "euclidean" and step > 0
        # τ = 2σ² of the label steps: the optimum of InfoNCE then has the scale of the labels
        temperature = factor.temperature or (2 * step if matched else settings.temperature_value)
        parts.append(
            Part(
                name,
                tuple(factor.variables),
                stop,
                stop + latents,
                similarity,
                temperature,
                settings.temperature == "learned" and factor.temperature is None,
                offsets[name],
                step / longer if longer > 0 and settings.time_weights == "learned" else 1.0,
            )
        )
        stop += latents
    if settings.mode in ("hybrid", "time"):
        parts.append(
            Part(
                TIME,
                (),
                stop,
                stop + settings.time_latents,
                settings.similarity,
                settings.temperature_value,
                settings.temperature == "learned",
                offsets[TIME],
            )
        )
    return tuple(parts)


@dataclass(frozen=True)
class TrainingPlan:
    """Labels and layout of a training run.

    Parameters
    ----------
    labels : mapping of str to Labels
        Of every factor.
    offsets : mapping of str to int
        Frames over which the labels of each factor step.
    time_offset : int
        Frames between the members of a time pair.
    parts : tuple of Part
    filter : Filter, optional
        Undoes delay and decay of the indicator; found on the recording if not given.
    courses : mapping of str to Course or None
        Where in each trial a factor is known that has one value in it; None for other factors.
    """

    labels: Mapping[str, Labels]
    offsets: Mapping[str, int]
    time_offset: int
    parts: tuple[Part, ...]
    filter: Filter | None = None
    courses: Mapping[str, Course | None] = field(default_factory=dict)


def plan_for(
    recording: Recording, factors: Mapping[str, Factor], settings: FitSettings
) -> TrainingPlan:
    """Labels, offsets and parts for a recording."""
    labels = factor_labels(recording, factors)
    offsets = label_offsets(recording, labels, settings)
    offset = time_offset(recording, offsets, settings)
    parts = lay_out(factors, labels, recording.segment, {**offsets, TIME: offset}, settings)
    courses = {name: Course.of(recording, label) for name, label in labels.items()}
    return TrainingPlan(labels, offsets, offset, parts, courses=courses)


def _step_variance(labels: Labels, segment: np.ndarray, offset: int) -> float:
    start = pairs_within(labels, segment, offset)
    return labels.step_variance(start, start + offset)


_AXIS = re.compile(r"(?:^|(?<=[_\W]))[xyz](?=$|[_\W])", re.IGNORECASE)
_LENGTH = re.compile(r"_?(?:um|mm|cm|m|px)?", re.IGNORECASE)
_UNIT = re.compile(
    r"_(?:(?:um|mm|cm|m|px|deg|rad)(?:_per)?(?:_s)?|ms?|s|hz|khz|mv|v|degrees|radians)$",
    re.IGNORECASE,
)
_EQUIPMENT = re.compile(
    r"(?:^|[_\W])(?:sync|ttl|strobe|trigger|photo_?(?:diode|detector|sensor)|clock|frames?|"
    r"exposure|shutter|time_?stamps?)\d*(?=$|[_\W])",
    re.IGNORECASE,
)
_SAME = 0.999
"""Correlation from which two variables are one."""


def suggested_factors(recording: Recording) -> dict[str, Factor]:
    """A factor for every variable, those that are axes of one place together.

    Variables that never change, or are hardly ever known, are left out.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> behavior = {name: rng.normal(size=50) for name in ("x_cm", "y_cm", "speed_cm_s")}
    >>> recording = Recording.from_arrays(rng.normal(size=(50, 3)), 10.0, behavior)
    >>> {name: factor.variables for name, factor in suggested_factors(recording).items()}
    {'position': ('x_cm', 'y_cm'), 'speed': ('speed_cm_s',)}
    """
    together: dict[str, list[str]] = {}
    for name, variable in recording.behavior.items():
        if not why_not(variable):
            # without its axis, the name is the same for all axes of one place
            together.setdefault(_AXIS.sub("", name, count=1), []).append(name)
    factors: dict[str, Factor] = {}
    for stem, names in together.items():
        kinds = {recording.behavior[name].kind for name in names}
        one_place = len(names) > 1 and kinds == {"continuous"}
        for group in [names] if one_place else [[name] for name in names]:
            title = _title(stem if one_place else group[0]) or _unnamed(stem, group)
            title = f"{title} variable" if title in RESERVED else title
            factors[_free(title, factors)] = Factor(group)
    return factors


def why_unticked(recording: Recording, factors: Mapping[str, Factor], room: int) -> dict[str, str]:
    """Why some factors should not be trained unless the user says so, in a few words each.

    Parameters
    ----------
    recording : Recording
    factors : mapping of str to Factor
    room : int
        Latents that all factors may have together: an embedding has no more than there are cells.

    Examples
    --------
    >>> speed = np.random.default_rng(0).normal(size=50)
    >>> behavior = {"speed": speed, "wheel": 2 * speed, "ttl_2": np.arange(50) % 2}
    >>> recording = Recording.from_arrays(np.zeros((50, 3)), 10.0, behavior)
    >>> why_unticked(recording, suggested_factors(recording), room=2)
    {'wheel': 'the same as speed', 'ttl_2': 'a signal of the equipment'}
    """
    reasons: dict[str, str] = {}
    ticked: dict[str, Factor] = {}
    for name, factor in factors.items():
        latents = latents_for(recording, factor.variables)
        twin = next((n for n, f in ticked.items() if _same(recording, factor, f)), "")
        if any(_EQUIPMENT.search(variable) for variable in factor.variables):
            reasons[name] = "a signal of the equipment"
        elif twin:
            reasons[name] = f"the same as {twin}"
        elif latents > room:
            reasons[name] = "more latents than cells"
        else:
            ticked[name] = factor
            room -= latents
    return reasons


def ticked_factors(
    recording: Recording, time_latents: int
) -> tuple[dict[str, Factor], dict[str, str]]:
    """Factors to train unless the user says otherwise, and why the others are not, by name."""
    suggested = suggested_factors(recording)
    room = int(np.sum(np.asarray(recording.accepted))) - time_latents
    reasons = why_unticked(recording, suggested, room)
    never = {name: why for name, each in recording.behavior.items() if (why := why_not(each))}
    return {n: f for n, f in suggested.items() if n not in reasons}, {**never, **reasons}


def _same(recording: Recording, one: Factor, other: Factor) -> bool:
    """Whether two factors of one variable each have the same values, up to scale and offset."""
    if len(one.variables) != 1 or len(other.variables) != 1:
        return False
    a, b = (recording.behavior[factor.variables[0]] for factor in (one, other))
    known = a.known & b.known
    x, y = a.values[known, 0], b.values[known, 0]
    if a.kind != b.kind or a.values.shape != b.values.shape or not len(x) or not x.std() * y.std():
        return False
    return bool(abs(np.corrcoef(x, y)[0, 1]) > _SAME)


def why_not(variable: Variable) -> str:
    """Why a variable cannot be a factor, in a few words; empty if it can."""
    known = variable.values[variable.known]
    if len(known) < 0.05 * len(variable.values):
        return "known at fewer than 5 % of the frames"
    if (np.ptp(known, axis=0) == 0).all():
        return "never changes"
    return ""


def latents_for(recording: Recording, variables: Sequence[str]) -> int:
    """Default number of latents of a factor of these variables; 0 if they cannot be a factor."""
    try:
        return Labels.of(recording, variables, "").dimensions
    except InputError:
        return 0


def _title(name: str) -> str:
    """Name of a factor: without unit; empty where nothing else is left."""
    title = _UNIT.sub("", name).strip("_ ")
    return "" if _UNIT.fullmatch(f"_{title}") else title


def _unnamed(stem: str, names: Sequence[str]) -> str:
    """Name of a factor of a column called by a unit alone, or of axes with no other word."""
    if len(names) == 1:
        return names[0]
    # x and y in cm/s, degrees or volts are no place
    if _LENGTH.fullmatch(stem):
        return "position"
    axes = [name.replace(stem, "") for name in names]
    return f"{'_'.join(axes)}{stem}"


def _free(title: str, taken: Mapping[str, Factor]) -> str:
    numbers = (title if i == 1 else f"{title} {i}" for i in range(1, len(taken) + 2))
    return next(name for name in numbers if name not in taken)
