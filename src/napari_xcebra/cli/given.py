"""Turns what was typed into values: a recording, a fit, factors, settings, a folder."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from napari_xcebra.checksums import finish_writing
from napari_xcebra.cli.flags import FLAGS
from napari_xcebra.errors import InputError
from napari_xcebra.io.opening import ROLES, Opening
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.learn import Factor, Fit, FitSettings
from napari_xcebra.learn.settings import PRESETS
from napari_xcebra.recording import KINDS, Kind, Recording
from napari_xcebra.results import FIT
from napari_xcebra.settings import worded

if TYPE_CHECKING:
    from napari_xcebra.learn.data.factors import Factors


def recording_from(arguments: argparse.Namespace) -> Recording:
    """The recording that was named, opened as the flags say; what contradicts them is printed."""
    recording = opening_of(arguments).open()
    for sentence in recording.warnings:
        print(f"Warning: {worded(sentence, FLAGS)}", file=sys.stderr)
    return recording


def opening_of(arguments: argparse.Namespace) -> Opening:
    """How to open the recording that was named."""
    return Opening(
        Path(arguments.path),
        footprints=Path(arguments.footprints) if arguments.footprints else None,
        movie=Path(arguments.movie) if arguments.movie else None,
        kinds=_kinds_from(arguments.kind),
        settings=OpenSettings(**_given(OpenSettings, arguments, "open_")),
        **{role: tuple(Path(path) for path in getattr(arguments, role)) for role in ROLES},
    )


def loaded_fit(arguments: argparse.Namespace) -> Fit:
    """Fit in a folder; `run` and `fit` write DIR/fit, and DIR itself will do."""
    finish_writing(Path(arguments.fit))
    return Fit.load(fit_folder(Path(arguments.fit)) or arguments.fit)


def fit_folder(folder: Path) -> Path | None:
    """Folder of a fit: the one given, or `fit` in it; None if neither holds one."""
    places = (folder, folder / FIT)
    return next((place for place in places if (place / "fit.json").exists()), None)


def output_folder(arguments: argparse.Namespace) -> Path:
    """Folder to write to, checked now rather than after an hour of training."""
    out = Path(arguments.out)
    nearest = next(folder for folder in (out, *out.absolute().parents) if folder.exists())
    if not nearest.is_dir():
        raise InputError(f"--out {out} cannot be a folder: {nearest} is a file.")
    if not os.access(nearest, os.W_OK):
        raise InputError(f"--out {out} cannot be written: {nearest} is read-only.")
    return out


def settings_from(arguments: argparse.Namespace) -> FitSettings:
    """Settings of the preset, with the flags that were given."""
    return PRESETS[arguments.preset](**_given(FitSettings, arguments, "setting_"))


def factors_from(texts: list[str]) -> dict[str, Factor]:
    """Factors as typed: ``name=variable,variable`` and, if wanted, ``:latents``."""
    factors: dict[str, Factor] = {}
    for text in texts:
        name, _, rest = text.partition("=")
        variables, _, latents = rest.partition(":")
        named = tuple(v.strip() for v in variables.split(",") if v.strip())
        if not name or not named or (latents and not latents.isdecimal()):
            raise InputError(f"--factor {text} is not of the form name=variable,variable or "
                             "name=variable,variable:latents.")  # fmt: skip
        if name in factors:
            raise InputError(f"--factor {name} is given twice: list all its variables in one.")
        factors[name] = Factor(named, int(latents) if latents else None)
    return factors


def _kinds_from(texts: list[str]) -> dict[str, Kind]:
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


def counts_from(text: str, flag: str) -> list[int]:
    """Numbers as typed: ``1,2,4`` or ``1-4``."""
    counts: list[int] = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        if not first.isdecimal() or not (last or first).isdecimal():
            raise InputError(f"{flag} {text} is not of the form 1,2,4 or 1-4.")
        counts += range(int(first), int(last or first) + 1)
    return counts


def processes_from(
    arguments: argparse.Namespace, recordings: Iterable[Recording], settings: FitSettings
) -> int:
    """Processes: as many as were asked for, or as cores and memory allow."""
    from napari_xcebra.jobs.pool import room_for

    if arguments.processes < 0:
        raise InputError(f"--processes is {arguments.processes}: 1 or more is needed.")
    return arguments.processes or room_for(
        recordings, device=settings.device, threads=settings.threads
    )


def sessions_from(
    arguments: argparse.Namespace,
) -> tuple[dict[str, Recording], Factors, FitSettings]:
    """Recordings by name, factors and settings, from the flags or from a TOML file."""
    if len(arguments.paths) == 1 and arguments.paths[0].endswith(".toml"):
        from napari_xcebra.batch.config import read_sweep

        asked = read_sweep(arguments.paths[0])
        if len(asked.members) != len(asked.recordings):
            raise InputError(
                f"{arguments.paths[0]} lists several values for a setting: sessions are trained "
                "together once, so give each setting one value."
            )
        return dict(asked.recordings), asked.factors, asked.settings
    return _opened(arguments), factors_from(arguments.factor), settings_from(arguments)


def session_folder(arguments: argparse.Namespace, name: str) -> Path:
    """Folder of one of several sessions."""
    return output_folder(arguments) / (re.sub(r"[^\w.-]+", "-", name).strip("-.") or "session")


def _opened(arguments: argparse.Namespace) -> dict[str, Recording]:
    from napari_xcebra.io.sessions import session_names

    files = arguments.behavior
    if files and len(files) != len(arguments.paths):
        raise InputError(
            f"{len(arguments.paths)} recordings and {len(files)} --behavior are given: give one "
            "--behavior per recording, in the same order; a TOML file (CONFIG) can say more."
        )
    if arguments.movie:
        raise InputError(
            "--movie is that of one recording: leave it out, as sessions are trained without."
        )
    recordings: dict[str, Recording] = {}
    names = session_names([str(Path(path).absolute()) for path in arguments.paths])
    for number, name in enumerate(names):
        one = argparse.Namespace(**vars(arguments))
        one.path, one.behavior = arguments.paths[number], files[number : number + 1]
        opening = opening_of(one)
        recordings[name] = opening.open()
        opening.save(session_folder(arguments, name))
    return recordings


def _given(settings: Any, arguments: argparse.Namespace, prefix: str) -> dict[str, Any]:
    values = {knob.name: getattr(arguments, prefix + knob.name) for knob in fields(settings)}
    return {name: value for name, value in values.items() if value is not None}
