"""Turns what was typed into values: a recording, a fit, factors, settings, a folder."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_xcebra.analysis_file import factors_typed
from napari_xcebra.checksums import finish_writing
from napari_xcebra.cli.flags import FLAGS
from napari_xcebra.errors import InputError
from napari_xcebra.io.opening import ROLES, Opening
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.learn import Fit, FitSettings
from napari_xcebra.learn.data.factors import as_factors, ticked_factors
from napari_xcebra.learn.settings import PRESETS
from napari_xcebra.recording import KINDS, Kind, Recording
from napari_xcebra.runs import ANALYSIS, FIT
from napari_xcebra.settings import worded

if TYPE_CHECKING:
    from napari_xcebra.learn.data.factors import Factors


def recording_from(arguments: argparse.Namespace) -> Recording:
    """The recording that was named, opened as the flags say; what contradicts them is printed."""
    recording = opening_of(arguments).open()
    for sentence in recording.warnings:
        print(f"Warning: {worded(sentence, FLAGS)}", file=sys.stderr)
    analysis = getattr(arguments, "analysis", None)
    return recording if analysis is None else analysis.on(recording)


_OF_ANALYSIS = ("method", "frames", "aggregate", "significance", "seeds")
"""Flags of `run` on its scores, which a file of an analysis has."""
_OF_MODEL = ("model", "architecture", "session", "latents", "standardised")
_BESIDE_ANALYSIS = ("--out", "--quiet", "--verbose", "--progress", "--processes", "--resume")


def take_analysis(arguments: argparse.Namespace) -> None:
    """Do as a file says that an earlier run wrote, if one is given in place of a recording."""
    if not arguments.path.endswith(".toml"):
        return
    from napari_xcebra.analysis_file import read_analysis

    flags = [word.partition("=")[0] for word in arguments.typed if word.startswith("--")]
    if also := [word for word in flags if word not in _BESIDE_ANALYSIS]:
        raise InputError(f"{arguments.path} says all about the run: leave out {', '.join(also)}.")
    arguments.analysis = analysis = read_analysis(Path(arguments.path))
    how = dict(analysis.how)
    for name, value in {**dict.fromkeys(_OF_MODEL), **how.pop("model", {}), **how}.items():
        if name in _OF_ANALYSIS or value is not None:
            setattr(arguments, name, value)
    _print_versions(analysis.versions)


def _print_versions(before: Mapping[str, str]) -> None:
    """Warn where a program is of another version than then."""
    other = {n: v for n in before if (v := _version_of(n)) != before[n] and v}
    if other:
        said = ", ".join(f"{name} {before[name]} (now {v})" for name, v in other.items())
        print(f"Warning: made with {said}: last digits may differ.", file=sys.stderr)


def _version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def write_analysis(
    arguments: argparse.Namespace, trained: Fit, recording: Recording, new: Path
) -> None:
    """Write the file that makes this run again."""
    from napari_xcebra.analysis_file import Analysis

    how = {name: value for name in _OF_ANALYSIS if (value := getattr(arguments, name)) is not None}
    if getattr(arguments, "model", None) is not None:
        model = {name: value for name in _OF_MODEL if (value := getattr(arguments, name))}
        how["model"] = {**model, "model": str(Path(arguments.model).absolute())}
    settings = settings_from(arguments)
    cells = np.asarray(trained.inputs.cell_ids) if settings.accepted_only else None
    factors = as_factors(chosen_factors(arguments, recording, tell=False), settings)
    analysis = Analysis(
        opening_of(arguments), factors, settings, how, cells, versions=trained.versions
    )
    analysis.save(new / ANALYSIS, recording, seen_from=output_folder(arguments))


def opening_of(arguments: argparse.Namespace) -> Opening:
    """How to open the recording that was named."""
    if hasattr(arguments, "analysis"):
        return arguments.analysis.opening
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
    if hasattr(arguments, "analysis"):
        return arguments.analysis.settings
    return PRESETS[arguments.preset](**_given(FitSettings, arguments, "setting_"))


def chosen_factors(
    arguments: argparse.Namespace, recording: Recording, *, tell: bool = True
) -> Factors:
    """Factors as typed; if none are, those that the window ticks, which is said."""
    settings = settings_from(arguments)
    if hasattr(arguments, "analysis"):
        return arguments.analysis.factors
    if arguments.factor or settings.mode == "time":
        return factors_typed(arguments.factor)
    ticked, reasons = ticked_factors(recording, settings.time_latents)
    said = [f"--factor {name}={','.join(each.variables)}" for name, each in ticked.items()]
    left_out = [f"{name} ({reason})" for name, reason in reasons.items()]
    if said and tell and not arguments.quiet:
        print(f"No --factor is given, so these are taken: {' '.join(said)}")
        if left_out:
            print(f"Left out: {', '.join(left_out)}.")
    return ticked


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
        from napari_xcebra.batch.plan import read_sweep

        asked = read_sweep(arguments.paths[0])
        if len(asked.members) != len(asked.recordings):
            raise InputError(
                f"{arguments.paths[0]} lists several values for a setting: sessions are trained "
                "together once, so give each setting one value."
            )
        return dict(asked.recordings), asked.factors, asked.settings
    return opened_sessions(arguments), factors_typed(arguments.factor), settings_from(arguments)


def session_folder(arguments: argparse.Namespace, name: str) -> Path:
    """Folder of one of several sessions."""
    return output_folder(arguments) / (re.sub(r"[^\w.-]+", "-", name).strip("-.") or "session")


def opened_sessions(arguments: argparse.Namespace) -> dict[str, Recording]:
    """Recordings by the names of their sessions."""
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
        if arguments.command == "training.sessions":
            opening.save(session_folder(arguments, name))
    return recordings


def _given(settings: Any, arguments: argparse.Namespace, prefix: str) -> dict[str, Any]:
    values = {knob.name: getattr(arguments, prefix + knob.name) for knob in fields(settings)}
    return {name: value for name, value in values.items() if value is not None}
