"""Reading and writing recordings: one module a format.

A format is a module with `NAME`, `sniff(path) -> bool` and `load(path, rate) -> Recording`; adding
its name to `FORMATS` is all it takes. `sniff` looks at names and first bytes only, and never
raises; `load` raises one `InputError` sentence for a file it cannot use. No format unpickles.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Protocol

from napari_xcebra.io import arrays, native
from napari_xcebra.io.behavior import load_behavior, with_kinds
from napari_xcebra.io.native import save_recording
from napari_xcebra.recording import InputError, Kind, Recording

__all__ = ["FORMATS", "Format", "open_recording", "save_recording"]


class Format(Protocol):
    """What a module must have to be one of the formats."""

    NAME: str

    def sniff(self, path: Path) -> bool:
        """Whether the path looks like this format."""
        ...

    def load(self, path: Path, rate: float | None) -> Recording:
        """Recording at the path; a rate that is given stands above one that was found."""
        ...


FORMATS: tuple[Format, ...] = (native, arrays)
"""Formats in the order in which they are asked; the first that recognises the path reads it."""


def open_recording(
    path: str | PathLike[str],
    behavior: str | PathLike[str] | None = None,
    *,
    rate: float | None = None,
    kinds: Mapping[str, Kind] | None = None,
) -> Recording:
    """Recording at a path, in any format that is known.

    Parameters
    ----------
    path : path
        A recording that `save_recording` wrote, or traces as .npy, .npz or .csv,
        (frames, cells).
    behavior : path, optional
        CSV or npz with one row a frame; see `napari_xcebra.io.behavior`. Its variables are added
        to those the recording brings, and replace those of the same name.
    rate : float, optional
        Frames per second; needed where the file does not say, and stands above it where it does.
    kinds : mapping of str to {"continuous", "circular", "discrete"}, optional
        For variables whose kind should not be guessed.

    Returns
    -------
    Recording
    """
    path = Path(path)
    if not path.exists():
        raise InputError(f"There is no file or folder {path}.")
    form = next((form for form in FORMATS if form.sniff(path)), None)
    if form is None:
        looked_for = "; ".join(form.NAME for form in FORMATS)
        raise InputError(f"{path} is in no format that is known. Looked for: {looked_for}.")
    recording = form.load(path, rate)
    if not recording.source:
        recording = replace(recording, source=str(path))
    if behavior is not None:
        recording = load_behavior(Path(behavior), recording)
    return with_kinds(recording, kinds or {})
