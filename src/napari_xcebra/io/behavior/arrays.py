"""Behaviour as arrays (.npz): each is a variable of its name."""

from __future__ import annotations

from pathlib import Path

from napari_xcebra.io.extraction import Behavior, Series
from napari_xcebra.io.npy import read_npz
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.recording import InputError

NAME = "arrays (.npz)"
GENERIC = True


def sniff(path: Path) -> bool:
    """Whether the name is that of a .npz file."""
    return path.is_file() and path.suffix.lower() == ".npz"


def load(path: Path, settings: OpenSettings) -> Behavior:
    """Arrays of the file."""
    arrays = read_npz(path)
    if not arrays:
        raise InputError(f"Behaviour file {path} has no variable.")
    return Behavior(tuple(Series(name, values) for name, values in arrays.items()))
