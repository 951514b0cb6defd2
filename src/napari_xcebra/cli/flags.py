"""Makes flags: a flag, a group of them, or one for every setting; and those of several commands.

Each function returns a `Part`, which adds itself to a parser. `cli.commands` lists the parts of
every command, so a new flag is one line there.
"""

from __future__ import annotations

import argparse
from argparse import BooleanOptionalAction
from collections.abc import Callable, Iterable
from dataclasses import MISSING, Field, fields
from typing import Any, TypeAlias, get_type_hints

from napari_xcebra.attribution.methods import METHODS
from napari_xcebra.errors import InputError
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.learn.settings import PRESET_HELP, PRESETS, FitSettings
from napari_xcebra.recording import KINDS
from napari_xcebra.settings import choices_of, flag_of, number_of, worded, words_of
from napari_xcebra.text import parse_number

Part: TypeAlias = Callable[[argparse.ArgumentParser], object]

FLAGS = {
    knob.name: flag_of(knob.name)
    for settings in (OpenSettings, FitSettings)
    for knob in fields(settings)
} | {"factors": "--factor", "architecture": "--architecture", "session": "--session"}
FLAGS |= {"latents": "--latents", "standardised": "--standardised"}
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


def _knobs(settings: type, prefix: str, *, advanced: bool) -> Part:
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


# fmt: off
AGGREGATES = ("mean", "median", "max")
SCORED_AS_USUAL = preset(method=METHODS[0], frames=None, aggregate=AGGREGATES[0], significance=True)
"""What `ATTRIBUTION` holds if nothing is given."""

FIT = flag("fit", "FIT", "folder that fit or run wrote")
RUN = flag("run", "RUN", "folder that run or attribute wrote, or where a run was saved")
FACTOR = repeated("--factor", "NAME=VARIABLES",
    "a factor and its behaviour variables, such as place=x_cm,y_cm; place=x_cm,y_cm:3 also sets "
    "its number of latents; give one --factor for each (default: those that the window ticks)")
METHOD = flag("--method", "METHOD", f"{', '.join(METHODS)} (default %(default)s)",
    choices=METHODS, default=METHODS[0])
PROCESSES = flag("--processes", "N",
    "runs at a time on this computer (default: as many as cores and memory allow)",
    type=int, default=0)
RESUME = switch("--resume", "continue from the checkpoint in --out, if any")
DRY_RUN = switch("--dry-run", "only list what would be written")
QUIET = switch("--quiet", "print only errors")
VERBOSE = switch("--verbose",
    "print everything: the table of all measures, notes, and what each file holds")
PROGRESS = switch("--progress", "show progress bars even if stderr is not a terminal")

ATTRIBUTION = group("attribution",
    METHOD,
    flag("--frames", "FROM:TO[:EVERY]", "frames to score, such as 0:500 (default all)"),
    flag("--aggregate", None, "over frames (default %(default)s)",
        choices=AGGREGATES, default=AGGREGATES[0]),
    flag("--significance", None,
        "test which cells carry a factor above chance: adds p and q, takes seconds to minutes "
        "(default yes)", action=BooleanOptionalAction, default=True),
)
_OPENING = (
    repeated("--behavior", "FILE",
        "behaviour or trials: a table, arrays, poses or NWB; may be repeated"),
    repeated("--trials", "FILE",
        "table with a row for each trial: start, stop, and what is known of it; may be repeated"),
    repeated("--events", "FILE",
        "table with a row for each event: its time, and which it was; may be repeated"),
    flag("--footprints", "FILE",
        "label image (.tif, .npy) or ImageJ RoiSet.zip, for traces without footprints"),
    flag("--movie", "FILE",
        "what was imaged: data.bin, TIFF, HDF5, zarr or .mmap (default: one beside the recording)"),
    repeated("--kind", "VARIABLE=KIND", f"{', '.join(KINDS)}; where the guess is wrong"),
    _knobs(OpenSettings, "open_", advanced=False),
)
# fmt: on


def _recording(name: str, **how: str) -> tuple[Part, Part]:
    help = (
        "output of suite2p, CaImAn or another extractor, NWB, traces as an array, or a recording "
        "saved by napari-xcebra"
    )
    return (
        group("recording", flag(name, "PATH", help, **how), *_OPENING),
        group("recording, advanced", _knobs(OpenSettings, "open_", advanced=True)),
    )


RECORDING = _recording("path")
OPTIONAL_RECORDING = _recording("path", nargs="?")
RECORDINGS = _recording("paths", nargs="+")
TRAINING = (
    group(
        "training",
        flag(
            "--preset",
            None,
            f"{PRESET_HELP} (default %(default)s)",
            choices=PRESETS,
            default=next(iter(PRESETS)),
        ),
        _knobs(FitSettings, "setting_", advanced=False),
    ),
    group("training, advanced", _knobs(FitSettings, "setting_", advanced=True)),
)


def folder(**how: str | bool) -> Part:
    """Flags on the folder to write to, and on what to print meanwhile."""
    default = f" (default {how['default']})" if "default" in how else ""
    out = flag("--out", "DIR", f"folder to write to{default}", **how)
    return group("output", out, QUIET, PROGRESS)


OUTPUT = (preset(locks_folder=True), folder(required=True))


def file(help: str, *others: Part) -> Part:
    """Flags on the file to write, and on what to print meanwhile."""
    return group("output", flag("--out", "FILE", help), *others, QUIET)


def matched(use: str) -> Part:
    """A table of cells that are the same."""
    use += "; propose: as the command match proposes" if use.startswith("their") else ""
    formats = "CellReg's cellRegistered….mat or ROICaT's ….results_clusters.json"
    table = f"which cells are the same: a table with one column per session, {formats}"
    return flag("--matched", "FILE", f"{table}; {use}")
