"""Reads a sweep from a TOML file.

method = "both-routes"                    # may be left out
shifts = [0, 60, 120]                     # seconds; [0] if left out

[[recordings]]                            # one such part per recording
name = "day 1"                            # its path, if left out
path = "day1/suite2p/plane0"              # from the folder of this file
behavior = "day1/behaviour.csv"           # or several: ["a.csv", "b.csv"]
kinds = { heading_rad = "circular" }
truth = "carries.csv"                     # a column `cell`, and one of 0 and 1 for each factor
rate = 30                                 # and any other flag of `napari-xcebra info`

[factors]
place = ["x_cm", "y_cm"]
speed = { variables = ["speed"], latents = [1, 2] }

[settings]                                # of training: a value, or a list of values to try
seed = [0, 1, 2]
time_latents = [1, 2, 3]
lambda = ["auto", 0.1]
steps = 600
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from napari_xcebra.attribution.methods import METHODS
from napari_xcebra.batch.plan import Sweep
from napari_xcebra.errors import InputError
from napari_xcebra.files import read_text
from napari_xcebra.io.opening import ROLES, Opening
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.learn.data.factors import Factor
from napari_xcebra.learn.settings import PRESETS, FitSettings
from napari_xcebra.recording import KINDS, Recording
from napari_xcebra.settings import worded
from napari_xcebra.spreadsheets import read_csv

_TOP = ("method", "shifts", "recordings", "factors", "settings")
_OPENING = ("name", "path", *ROLES, "footprints", "kinds", "truth")
_FACTOR = ("variables", "latents", "similarity", "temperature")
_KEYS = {about.name: f"settings.{about.name.rstrip('_')}" for about in fields(FitSettings)} | {
    about.name: about.name for about in fields(OpenSettings)
}
"""Names in the file of what the library's sentences name."""


def read_sweep(path: str | os.PathLike[str]) -> Sweep:
    """The sweep described by a file, with its recordings open."""
    path = Path(path)
    asked = _parsed(path)
    try:
        _check_keys(asked, _TOP, "")
        factors, latents = _factors(asked.get("factors", {}))
        settings, grid = _settings(asked.get("settings", {}))
        recordings, truth = _recordings(asked.get("recordings"), path.parent)
        return Sweep(
            recordings,
            factors,
            settings,
            grid,
            latents,
            shifts=_numbers(asked.get("shifts", [0.0]), "shifts"),
            method=_text(asked.get("method", METHODS[0]), "method"),
            truth=truth,
        )
    except InputError as error:
        raise InputError(f"{path}: {worded(str(error), _KEYS)}") from error


def _parsed(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path} is not valid TOML: {error}.") from error
    except RecursionError as error:
        raise InputError(f"{path} is not valid TOML: it is nested too deeply.") from error


def _settings(asked: Any) -> tuple[FitSettings, dict[str, list[Any]]]:
    """Settings that all runs share, and lists of those that vary."""
    asked = {_knob(name): value for name, value in _table(asked, "settings").items()}
    known = [about.name for about in fields(FitSettings)]
    preset = asked.pop("preset", next(iter(PRESETS)))
    _check_keys(asked, [*known, "preset"], "settings.")
    if preset not in PRESETS:
        raise InputError(f"settings.preset is {preset!r}: one of {', '.join(PRESETS)} is needed.")
    grid = {name: value for name, value in asked.items() if isinstance(value, list)}
    for name, values in grid.items():
        if not values:
            raise InputError(f"settings.{_key(name)} is an empty list: give at least one value.")
    single = {name: value for name, value in asked.items() if name not in grid}
    return PRESETS[preset](**single), grid


def _factors(asked: Any) -> tuple[dict[str, Factor], dict[str, list[int]]]:
    factors, latents = {}, {}
    for name, given in _table(asked, "factors").items():
        where = f"factors.{name}"
        about = dict(given) if isinstance(given, Mapping) else {"variables": given}
        _check_keys(about, _FACTOR, f"{where}.")
        if isinstance(about.get("latents"), list):
            latents[name] = _numbers(about.pop("latents"), f"{where}.latents")
        if "variables" not in about:
            raise InputError(f"{where} names no variables: variables = [...] is needed.")
        variables = _texts(about.pop("variables"), f"{where}.variables")
        factors[name] = Factor(variables, **about)
    return factors, latents


def _recordings(
    asked: Any, folder: Path
) -> tuple[dict[str, Recording], dict[str, dict[str, np.ndarray]]]:
    if not isinstance(asked, list) or not asked:
        raise InputError("recordings is missing: a part [[recordings]] with a path is needed.")
    found: dict[str, Recording] = {}
    truth: dict[str, dict[str, np.ndarray]] = {}
    for number, given in enumerate(asked, 1):
        where = f"recordings {number}"
        about = _table(given, where)
        choices = tuple(each.name for each in fields(OpenSettings))
        _check_keys(about, (*_OPENING, *choices), f"{where}: ")
        if "path" not in about:
            raise InputError(f"{where} has no path.")
        name = _text(about.get("name", about["path"]), f"{where}: name")
        if name in found:
            raise InputError(f"{where} is called {name!r}, like another one: give it its own name.")
        found[name] = _opening(about, choices, folder, where).open()
        if "truth" in about:
            truth[name] = _truth(folder / _text(about["truth"], f"{where}: truth"), found[name])
    return found, truth


def _opening(about: Mapping[str, Any], choices: Sequence[str], folder: Path, where: str) -> Opening:
    kinds = _table(about.get("kinds", {}), f"{where}: kinds")
    for variable, kind in kinds.items():
        if kind not in KINDS:
            known = ", ".join(KINDS)
            raise InputError(f"{where}: kinds.{variable} is {kind!r}: one of {known} is needed.")
    footprints = about.get("footprints")
    return Opening(
        folder / _text(about["path"], f"{where}: path"),
        footprints=None
        if footprints is None
        else folder / _text(footprints, f"{where}: footprints"),
        kinds=kinds,
        movie=None,  # no run looks at it
        settings=OpenSettings(**{name: about[name] for name in choices if name in about}),
        **{
            role: tuple(folder / p for p in _texts(about.get(role, []), f"{where}: {role}"))
            for role in ROLES
        },
    )


def _truth(path: Path, recording: Recording) -> dict[str, np.ndarray]:
    """Cells known to carry each factor, from a table."""
    try:
        table = read_csv(path)
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read as a table: {error}.") from error
    if "cell" not in table:
        raise InputError(f"{path} has no column `cell` with the ids of the cells.")
    ids = np.asarray(recording.cell_ids)
    missing = ~np.isin(ids, table["cell"])
    if missing.any():
        raise InputError(
            f"{path} lacks {int(missing.sum())} of the {len(ids)} cells (first: {ids[missing][0]})."
        )
    rows = table.set_index("cell").loc[ids]
    return {str(name): rows[name].to_numpy().astype(bool) for name in rows}


def _check_keys(given: Mapping[str, Any], known: Sequence[str], before: str) -> None:
    for name in given:
        if name not in known:
            keys = ", ".join(_key(each) for each in known)
            raise InputError(f"{before}{name} is not known; there are: {keys}.")


def _knob(key: str) -> str:
    """Field of `FitSettings` for a key: Python keeps the word lambda for itself."""
    return "lambda_" if key == "lambda" else key.replace("-", "_")


def _key(knob: str) -> str:
    return knob.rstrip("_")


def _table(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"{where} is {value!r}: a table, [{where}], is needed.")
    return value


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value:
        raise InputError(f"{where} is {value!r}: text is needed.")
    return value


def _texts(value: Any, where: str) -> list[str]:
    return [_text(each, where) for each in (value if isinstance(value, list) else [value])]


def _numbers(value: Any, where: str) -> list[Any]:
    values = value if isinstance(value, list) else [value]
    for each in values:
        if isinstance(each, bool) or not isinstance(each, int | float):
            raise InputError(f"{where} has {each!r}: numbers are needed.")
    if not values:
        raise InputError(f"{where} is an empty list: give at least one value.")
    return values
