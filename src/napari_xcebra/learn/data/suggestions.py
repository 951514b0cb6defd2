"""Suggests factors from the variables of a recording, as a starting point for a form."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.learn.data.factors import RESERVED, Factor
from napari_xcebra.learn.data.labels import Labels
from napari_xcebra.recording import Recording, Variable

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
