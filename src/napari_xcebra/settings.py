"""Defines settings: each knob states its default, bounds and help once.

Forms, command-line flags and checks are all made from such a dataclass. Neither torch nor Qt is
imported here, so that they open quickly.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import Field, field, fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

from napari_xcebra.errors import InputError
from napari_xcebra.text import AmbiguousNumber, parse_number

_IN_BACKTICKS = re.compile(r"`([a-z_]+)`")


def knob(
    default: Any,
    help: str,
    *,
    low: float | None = None,
    high: float | None = None,
    title: str = "",
    advanced: bool = True,
    number: float | None = None,
    file: bool = False,
) -> Any:
    """Field of a settings dataclass with all that a form, a flag and a check need.

    `number` is what a form proposes if the default is a word, such as "auto"; a text that may name
    a `file` can be browsed for.
    """
    about = {"help": help, "low": low, "high": high, "title": title, "advanced": advanced}
    about["file"] = file
    about["number"] = default if number is None else number
    return field(default=default, metadata=about)


def check_knobs(settings: Any) -> None:
    """Convert every knob of a frozen settings dataclass to its type, or raise a sentence."""
    hints = get_type_hints(type(settings))
    for about in fields(settings):
        value = _converted(about.name, getattr(settings, about.name), hints[about.name])
        _check_bounds(about.name, value, about.metadata)
        object.__setattr__(settings, about.name, value)


def known_only(cls: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values for which the dataclass has a field."""
    known = {about.name for about in fields(cls)}
    return {name: value for name, value in values.items() if name in known}


def choices_of(cls: type, name: str) -> tuple[str, ...]:
    """Allowed values of a knob that is a choice; else an empty tuple."""
    hint = get_type_hints(cls)[name]
    return get_args(hint) if get_origin(hint) is Literal else ()


def title_of(knob: Field[Any]) -> str:
    """What a form calls a knob."""
    words = knob.name.rstrip("_").replace("_", " ")
    return knob.metadata["title"] or words[:1].upper() + words[1:]


def flag_of(knob: str) -> str:
    """What the command line calls a knob.

    >>> flag_of("lambda_"), flag_of("batch_size")
    ('--lambda', '--batch-size')
    """
    return "--" + knob.rstrip("_").replace("_", "-")


def worded(sentence: str, names: Mapping[str, str]) -> str:
    """Sentence with each knob under the name it has where the sentence is shown.

    The library writes a knob's Python name in backticks; the command line and the docks have their
    own names.

    >>> worded("Give `rate`, such as 30.", {"rate": "--rate"})
    'Give --rate, such as 30.'
    """
    return _IN_BACKTICKS.sub(lambda found: names.get(found[1], found[0]), sentence)


def words_of(cls: type, name: str) -> tuple[str, ...]:
    """Words that a knob allows besides numbers, such as "auto"; else an empty tuple."""
    return _words(get_type_hints(cls)[name])


def number_of(cls: type, name: str) -> type:
    """Type of a knob, apart from the words it allows."""
    return _number(get_type_hints(cls)[name])


def _words(hint: Any) -> tuple[str, ...]:
    literals = [arg for arg in get_args(hint) if get_origin(arg) is Literal]
    return tuple(word for literal in literals for word in get_args(literal))


def _number(hint: Any) -> Any:
    numbers = [arg for arg in get_args(hint) if arg in (int, float)]
    return numbers[0] if numbers else hint


def _converted(name: str, value: Any, hint: Any) -> Any:
    """Value converted to the type of its knob, or a sentence."""
    words, hint = _words(hint), _number(hint)
    if isinstance(value, str) and value in words:
        return value
    if get_origin(hint) is Literal:
        if value not in get_args(hint):
            raise InputError(
                f"`{name}` is {value!r}: one of {', '.join(get_args(hint))} is needed."
            )
        return value
    if (hint is bool and value not in (False, True)) or (
        hint is str and not isinstance(value, str)
    ):
        wanted = "True or False" if hint is bool else "text"
        raise InputError(f"`{name}` is {value!r}: {wanted} is needed.")
    try:
        converted = hint(parse_number(value) if hint is float and isinstance(value, str) else value)
        if hint is int and converted != value:
            raise ValueError
    except (TypeError, ValueError, OverflowError) as error:
        wanted = "a whole number" if hint is int else "a number"
        wanted = " or ".join([*words, wanted])
        ambiguous = isinstance(error, AmbiguousNumber)
        raise InputError(
            f"`{name}`: {error}" if ambiguous else f"`{name}` is {value!r}: {wanted} is needed."
        ) from None
    return converted


def _check_bounds(name: str, value: Any, about: Mapping[str, Any]) -> None:
    if isinstance(value, str):
        return
    low, high = about["low"], about["high"]
    if low is not None and not value >= low:
        raise InputError(f"`{name}` is {value}: {low:g} or more is needed.")
    if high is not None and not value <= high:
        raise InputError(f"`{name}` is {value}: {high:g} or less is needed.")
