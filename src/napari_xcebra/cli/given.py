"""What the words of a command line stand for: a recording, a fit, a folder."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from napari_xcebra.cli.flags import kinds_from, opening_from
from napari_xcebra.recording import InputError, Recording

if TYPE_CHECKING:
    from napari_xcebra.learn import Fit
    from napari_xcebra.opening import Opening

FIT = "fit"
"""Folder of a fit, in that of the run."""


def recording_from(arguments: argparse.Namespace) -> Recording:
    """The recording that was named, opened as the flags say."""
    return opening_of(arguments).open()


def opening_of(arguments: argparse.Namespace) -> Opening:
    """How the recording is to be opened."""
    from napari_xcebra.opening import Opening

    return Opening(
        Path(arguments.path),
        tuple(Path(path) for path in arguments.behavior or ()),
        Path(arguments.footprints) if arguments.footprints else None,
        kinds_from(arguments.kind),
        opening_from(arguments),
    )


def loaded_fit(arguments: argparse.Namespace) -> Fit:
    """Fit in a folder; `run` and `fit` write DIR/fit, and DIR itself will do."""
    from napari_xcebra.learn import Fit

    return Fit.load(fit_folder(Path(arguments.fit)) or arguments.fit)


def fit_folder(folder: Path) -> Path | None:
    """The folder of a fit, which may be the one given or the one in it; None if neither is."""
    places = (folder, folder / FIT)
    return next((place for place in places if (place / "fit.json").exists()), None)


def output_folder(arguments: argparse.Namespace) -> Path:
    """Folder to write to; found wanting now rather than after an hour of training."""
    out = Path(arguments.out)
    nearest = next(folder for folder in (out, *out.absolute().parents) if folder.exists())
    if not nearest.is_dir():
        raise InputError(f"--out {out} cannot be a folder: {nearest} is a file.")
    if not os.access(nearest, os.W_OK):
        raise InputError(f"--out {out} cannot be written: {nearest} is read-only.")
    return out
