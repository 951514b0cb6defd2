"""Makes flags: a flag, a group of them, or one for every setting.

Each function returns a `Part`, which adds itself to a parser. `cli.commands` lists the parts of
every command, so a new flag is one line there.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from dataclasses import MISSING, Field, fields
from typing import Any, TypeAlias, get_type_hints

from napari_xcebra.errors import InputError
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.settings import choices_of, flag_of, number_of, worded, words_of
from napari_xcebra.text import parse_number

Part: TypeAlias = Callable[[argparse.ArgumentParser], object]

FLAGS = {
    knob.name: flag_of(knob.name)
    for settings in (OpenSettings, FitSettings)
    for knob in fields(settings)
} | {"factors": "--factor"}
"""Flags for the names in the library's sentences."""


def flag(name: str, metavar: str | None, help: str, **how: Any) -> Part:
    """A flag with a value or, without dashes, a positional argument; `how` as in argparse."""
    if metavar is not None:  # not every action takes one
        how["metavar"] = metavar
    return lambda parser: parser.add_argument(name, help=help, **how)


def switch(name: str, help: str) -> Part:
    """A flag without a value."""
    return lambda parser: parser.add_argument(name, action="store_true", help=help)


def repeated(name: str, metavar: str, help: str) -> Part:
    """A flag that may be given several times; its values are a list."""
    return flag(name, metavar, help, action="append", default=[])


def preset(**values: Any) -> Part:
    """Values that the command has and the user cannot change."""
    return lambda parser: parser.set_defaults(**values)


def group(title: str, *parts: Part) -> Part:
    """Flags under a title of their own in the help."""
    return lambda parser: _add(parser.add_argument_group(title), parts)


def one_of(*parts: Part) -> Part:
    """Flags that exclude each other."""
    return lambda parser: _add(parser.add_mutually_exclusive_group(), parts)


def knobs(settings: type, prefix: str, *, advanced: bool) -> Part:
    """A flag for every knob of a settings dataclass, with its help, default and bounds."""
    chosen = [knob for knob in fields(settings) if knob.metadata["advanced"] == advanced]
    return lambda parser: _add(parser, [_knob_flag(settings, knob, prefix) for knob in chosen])


def _add(parser: Any, parts: Iterable[Part]) -> None:
    for part in parts:
        part(parser)


def _knob_flag(settings: type, knob: Field[Any], prefix: str) -> Part:
    name, how, metavar = knob.name, dict[str, Any](dest=f"{prefix}{knob.name}"), None
    if get_type_hints(settings)[name] is bool:
        how["action"] = argparse.BooleanOptionalAction
    elif choices := choices_of(settings, name):
        how["choices"] = choices
    else:
        words, kind = words_of(settings, name), number_of(settings, name)
        how["type"] = _number_or(words, kind)
        metavar = "|".join([*words, kind.__name__.upper()])
    return flag(flag_of(name), metavar, _help(knob), **how)


def number(text: str) -> float:
    """Number that the user typed, also with a decimal comma; for `type` of a flag."""
    try:
        return parse_number(text)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _number_or(words: tuple[str, ...], kind: type) -> Callable[[str], Any]:
    def typed(text: str) -> Any:
        return text if text in words else number(text) if kind is float else kind(text)

    # its name in the error for a mistyped value
    typed.__name__ = " or ".join([*words, kind.__name__])
    return typed


def _help(knob: Field[Any]) -> str:
    low, high = knob.metadata["low"], knob.metadata["high"]
    assert knob.default is not MISSING
    default = {True: "yes", False: "no"}.get(knob.default) if knob.type == "bool" else knob.default
    bounds = "" if low is None else f"; {low:g} to {high:g}"
    return f"{worded(knob.metadata['help'], FLAGS)} (default {default}{bounds})".replace("%", "%%")
