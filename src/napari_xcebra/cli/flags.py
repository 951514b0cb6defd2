"""Flags of the commands, and what they mean; those of training are made from `FitSettings`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from typing import TYPE_CHECKING, Any, get_type_hints

from napari_xcebra.attribution.method_notes import METHODS
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.knobs import choices_of, flag, number_of, worded, words_of
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.recording import KINDS, InputError, Kind

if TYPE_CHECKING:
    from napari_xcebra.learn import Factor

AGGREGATES = ("mean", "median", "max")
FACTORS_HELP = (
    "a factor and its behaviour variables, such as place=x_cm,y_cm; place=x_cm,y_cm:3 also sets "
    "its number of latents; give one --factor for each"
)


def add_recording_flags(
    parser: argparse.ArgumentParser, *, required: bool = True, several: bool = False
) -> None:
    """Flags for what `open_recording` takes; of several recordings, the paths are `paths`."""
    group = parser.add_argument_group("recording")
    number = "+" if several else None if required else "?"
    group.add_argument("paths" if several else "path", metavar="PATH", nargs=number,
                       help="what suite2p, CaImAn or another extractor wrote, NWB, traces as an "
                       "array, or a recording saved by napari-xcebra")  # fmt: skip
    group.add_argument("--behavior", metavar="FILE", action="append",
                       help="behaviour or trials: a table, arrays, poses or NWB; may be given "
                       "several times")  # fmt: skip
    group.add_argument("--footprints", metavar="FILE",
                       help="label image (.tif, .npy) or ImageJ RoiSet.zip, for traces without "
                       "footprints")  # fmt: skip
    group.add_argument("--kind", action="append", default=[], metavar="VARIABLE=KIND",
                       help=f"{', '.join(KINDS)}; if guessed wrong")  # fmt: skip
    _add_knobs(OpenSettings, group, parser.add_argument_group("recording, advanced"), "open_")


def add_output_flags(
    parser: argparse.ArgumentParser, default: str | None = None, *, required: bool = True
) -> None:
    """Where to write, and how much to say."""
    group = parser.add_argument_group("output")
    text = f"folder to write to{f' (default {default})' if default else ''}"
    group.add_argument("--out", metavar="DIR", default=default, required=required and not default,
                       help=text)  # fmt: skip
    group.add_argument("--quiet", action="store_true", help="say nothing but errors")
    group.add_argument("--progress", action="store_true",
                       help="show progress bars even if stderr is not a terminal")  # fmt: skip


def add_attribution_flags(parser: argparse.ArgumentParser) -> None:
    """Flags for what `attribute` takes."""
    group = parser.add_argument_group("attribution")
    group.add_argument("--method", choices=METHODS, default=METHODS[0], metavar="METHOD",
                       help=f"{', '.join(METHODS)} (default {METHODS[0]})")  # fmt: skip
    group.add_argument("--frames", metavar="FROM:TO[:EVERY]",
                       help="frames to score, such as 0:500 (default all)")  # fmt: skip
    group.add_argument("--aggregate", choices=AGGREGATES, default=AGGREGATES[0],
                       help=f"over frames (default {AGGREGATES[0]})")  # fmt: skip
    group.add_argument("--significance", action=argparse.BooleanOptionalAction, default=True,
                       help="test which cells carry a factor by more than chance: adds p and q, "
                       "takes seconds to minutes (default yes)")  # fmt: skip


def add_settings_flags(parser: argparse.ArgumentParser) -> None:
    """One flag for every knob of `FitSettings`, with its help, default and bounds."""
    common = parser.add_argument_group("training")
    advanced = parser.add_argument_group("training, advanced")
    _add_knobs(FitSettings, common, advanced, "setting_")


FLAGS = {
    knob.name: flag(knob.name)
    for settings in (OpenSettings, FitSettings)
    for knob in fields(settings)
} | {"factors": "--factor"}
"""What the command line calls what a sentence of the library names."""


def settings_from(arguments: argparse.Namespace) -> FitSettings:
    """Settings with the flags that were given."""
    return FitSettings(**_given(FitSettings, arguments, "setting_"))


def opening_from(arguments: argparse.Namespace) -> OpenSettings:
    """How to open a recording, by the flags that were given."""
    return OpenSettings(**_given(OpenSettings, arguments, "open_"))


def factors_from(texts: list[str]) -> dict[str, Factor]:
    """Factors as typed: ``name=variable,variable`` and, if wanted, ``:latents``."""
    from napari_xcebra.learn import Factor

    factors: dict[str, Factor] = {}
    for text in texts:
        name, _, rest = text.partition("=")
        variables, _, latents = rest.partition(":")
        named = tuple(v.strip() for v in variables.split(",") if v.strip())
        if not name or not named or (latents and not latents.isdecimal()):
            raise InputError(f"--factor {text} is not of the form name=variable,variable or "
                             "name=variable,variable:latents.")  # fmt: skip
        if name in factors:
            raise InputError(f"--factor {name} is given twice: list its variables in one.")
        factors[name] = Factor(named, int(latents) if latents else None)
    return factors


def kinds_from(texts: list[str]) -> dict[str, Kind]:
    """Kinds as typed: ``variable=kind``."""
    kinds: dict[str, Kind] = {}
    for text in texts:
        name, _, kind = text.partition("=")
        known = next((k for k in KINDS if k == kind), None)
        if not name or known is None:
            raise InputError(f"--kind {text} is not of the form variable=kind with a kind of "
                             f"{', '.join(KINDS)}.")  # fmt: skip
        kinds[name] = known
    return kinds


def frames_from(text: str | None) -> slice | None:
    """Frames as typed: ``from:to`` or ``from:to:every``, each of which may be left out."""
    if text is None:
        return None
    parts = text.split(":")
    try:
        numbers = [int(part) if part.strip() else None for part in parts]
    except ValueError:
        numbers = []
    if len(numbers) not in (2, 3):
        raise InputError(f"--frames {text} is not of the form from:to or from:to:every.")
    return slice(*numbers)


def _add_knobs(settings: Any, common: Any, advanced: Any, prefix: str) -> None:
    hints = get_type_hints(settings)
    for knob in fields(settings):
        group = advanced if knob.metadata["advanced"] else common
        how: dict[str, Any] = {"dest": f"{prefix}{knob.name}", "help": _help(knob)}
        if hints[knob.name] is bool:
            how |= {"action": argparse.BooleanOptionalAction}
        elif choices := choices_of(settings, knob.name):
            how |= {"choices": choices}
        else:
            words, number = words_of(settings, knob.name), number_of(settings, knob.name)
            metavar = "|".join([*words, number.__name__.upper()])
            how |= {"type": _number_or(words, number), "metavar": metavar}
        group.add_argument(flag(knob.name), **how)


def _number_or(words: tuple[str, ...], number: type) -> Callable[[str], Any]:
    def typed(text: str) -> Any:
        return text if text in words else number(text)

    # what the error of a mistyped value calls it
    typed.__name__ = " or ".join([*words, number.__name__])
    return typed


def _given(settings: Any, arguments: argparse.Namespace, prefix: str) -> dict[str, Any]:
    values = {knob.name: getattr(arguments, prefix + knob.name) for knob in fields(settings)}
    return {name: value for name, value in values.items() if value is not None}


def _help(knob: Field[Any]) -> str:
    low, high = knob.metadata["low"], knob.metadata["high"]
    assert knob.default is not MISSING
    default = {True: "yes", False: "no"}.get(knob.default) if knob.type == "bool" else knob.default
    bounds = "" if low is None else f"; {low:g} to {high:g}"
    return f"{worded(knob.metadata['help'], FLAGS)} (default {default}{bounds})".replace("%", "%%")
