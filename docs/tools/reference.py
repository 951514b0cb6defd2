"""Parts of the reference that are made from the program, so that they cannot disagree with it."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from dataclasses import fields
from importlib import import_module
from typing import Any, get_type_hints

import house

import napari_xcebra
from napari_xcebra.cli.commands import make_parser
from napari_xcebra.io.discovery import formats_of
from napari_xcebra.io.movie.finding import FORMATS
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.settings import choices_of, number_of, title_of, words_of


def written(name: str) -> str:
    """Markdown of the part of that name."""
    if name not in PARTS:
        raise KeyError(f"docs/tools/reference.py writes no {name!r}; it has: {', '.join(PARTS)}.")
    return PARTS[name]()


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table; bars within a cell would end it."""
    heads = list(heads)
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(
        "| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines
    )


def settings_of(cls: type, *, advanced: bool | None = None) -> str:
    """Every knob of a settings class: what it is called, its default, its range, its help."""
    rows = []
    for knob in fields(cls):
        if advanced is not None and knob.metadata["advanced"] is not advanced:
            continue
        default = knob.default if knob.default not in ("", None) else "—"
        rows.append(
            [
                title_of(knob),
                f"`{knob.name}`",
                f"`{default}`",
                values_of(cls, knob),
                knob.metadata["help"],
            ]
        )
    return table(["In the dock", "In Python", "Default", "Values", "What it is"], rows)


def values_of(cls: type, knob: Any) -> str:
    """What a knob may be set to."""
    if choices := choices_of(cls, knob.name):
        return ", ".join(f"`{choice}`" for choice in choices)
    words = [f"`{word}`" for word in words_of(cls, knob.name)]
    kind = number_of(cls, knob.name)
    if kind is bool:
        return "`True`, `False`"
    low, high = knob.metadata["low"], knob.metadata["high"]
    if low is None and high is None:
        return ", ".join(words) or ("text" if get_type_hints(cls)[knob.name] is str else "")
    return ", ".join([*words, f"{_number(low)} – {_number(high)}"])


def _number(value: float | None) -> str:
    """Whole numbers in full, others short, nothing where there is no bound."""
    if value is None:
        return ""
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:g}"


def formats(modules: Iterable[Any]) -> str:
    """These formats, in the order in which files are tried."""
    rows = [[m.NAME, *_where_and_what(m.__name__, m.__doc__)] for m in modules]
    return table(["Format", "Module", "What is read"], rows)


def movie_formats() -> str:
    """Formats of movies, each with what its function `load_movie` says."""
    rows = []
    for form in FORMATS:
        module = import_module(f"napari_xcebra.io.{form.module}")
        about = _where_and_what(module.__name__, module.load_movie.__doc__)
        rows.append([module.MOVIE, *about])
    return table(["Format", "Module", "What is read"], rows)


def _where_and_what(module: str, text: str | None) -> list[str]:
    """File of a module, and the first paragraph of a docstring."""
    about = " ".join((text or "").split("\n\n")[0].split()).replace("``", "`")
    return [f"`{'/'.join(module.split('.')[1:])}.py`", about]


def commands() -> str:
    """Every command with its flags; settings of training are told elsewhere."""
    (subparsers,) = (
        action
        for action in make_parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    knobs = {f"--{knob.name.rstrip('_').replace('_', '-')}" for knob in fields(FitSettings)}
    parts = []
    for name, parser in subparsers.choices.items():
        rows = [
            [_typed(action), (action.help or "") % vars(action)]
            for action in parser._actions
            if action.dest != "help" and not knobs & set(action.option_strings)
        ]
        usage = parser.format_usage().removeprefix("usage: ").strip()
        parts.append(f"## {name}\n\n{parser.description}\n\n```text\n{usage}\n```\n")
        parts.append(table(["", ""], rows) if rows else "")
    return "\n\n".join(parts)


def _typed(action: argparse.Action) -> str:
    names = ", ".join(f"`{name}`" for name in action.option_strings)
    value = action.metavar or ("" if action.nargs == 0 else action.dest.upper())
    value = " ".join(value) if isinstance(value, tuple) else value
    return names if names and action.nargs == 0 else f"{names} `{value}`".strip()


def public_names() -> str:
    """Every public name, functions and values in the order of work, then the others."""
    homes = {name: home for home, names in napari_xcebra._HOMES.items() for name in names}
    order = [*(name for name in IN_ORDER if name in homes), *sorted(homes.keys() - set(IN_ORDER))]
    return "\n\n".join(f"::: napari_xcebra.{homes[name]}.{name}" for name in order)


IN_ORDER = (
    "open_recording",
    "Recording",
    "Variable",
    "Footprints",
    "fit",
    "FitSettings",
    "Factor",
    "Fit",
    "attribute",
    "Attribution",
    "significance",
    "Significance",
    "cell_statistics",
    "paint",
    "open_curation",
    "Curation",
)

PARTS: dict[str, Callable[[], str]] = {
    "settings": lambda: settings_of(FitSettings, advanced=False),
    "advanced_settings": lambda: settings_of(FitSettings, advanced=True),
    "open_settings": lambda: settings_of(OpenSettings),
    "formats": lambda: formats(formats_of("recording")),
    "behavior_formats": lambda: formats(formats_of("behaviour file")),
    "movie_formats": movie_formats,
    "commands": commands,
    "public_names": public_names,
    "house": lambda: f"<div>{house.drawn().strip()}</div>",
}
