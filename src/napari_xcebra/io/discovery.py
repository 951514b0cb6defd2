"""Finds the format of a file: adding a module adds a format.

A format of recordings is the module `reading` of a folder in `io/`; a format of behaviour is a
module in `io/behavior/`. Each has `NAME`, `sniff` and `load`. `sniff(path) -> bool` checks names
and first bytes, is fast and never raises; `load(path, settings)` raises one `InputError` sentence
for a file it cannot use. A module with ``GENERIC = True`` is asked after all others. Other packages
may bring formats too: see `io.plugged`.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, Literal

from napari_xcebra.errors import InputError
from napari_xcebra.files import first_bytes
from napari_xcebra.io.native import reading as native
from napari_xcebra.io.plugged import plugged_formats
from napari_xcebra.plugins import problems

Subject = Literal["recording", "behaviour file"]


@cache
def formats_of(subject: Subject) -> tuple[Any, ...]:
    """Format modules for recordings or for behaviour, the generic ones last."""
    names = _recording_modules() if subject == "recording" else _behavior_modules()
    formats: list[Any] = [m for m in map(import_module, names) if hasattr(m, "sniff")]
    formats += plugged_formats(subject)
    return tuple(sorted(formats, key=lambda module: getattr(module, "GENERIC", False)))


def is_recording(path: Path) -> bool:
    """Whether a specific format, not one for any array or table, recognises the path."""
    if not (path.is_dir() or path.is_file()):
        return False
    formats = formats_of("recording")
    return any(form.sniff(path) for form in formats if not getattr(form, "GENERIC", False))


def is_pose(path: Path) -> bool:
    """Whether it is a file of tracked poses."""
    from napari_xcebra.io.behavior import deeplabcut, sleap  # import pandas

    return path.is_file() and (deeplabcut.sniff(path) or sleap.sniff(path))


def needs_library(path: Path) -> bool:
    """Whether more than the name and the first bytes are looked at to recognise a file."""
    from napari_xcebra.io.containers.hdf5 import has_signature
    from napari_xcebra.io.containers.matlab import is_mat

    return path.is_file() and (
        first_bytes(path).startswith(b"PK") or has_signature(path) or is_mat(path)
    )


def format_of(path: Path, subject: Subject) -> Any:
    """The format that recognises the path, or a sentence listing what was looked for."""
    if not path.exists():
        raise InputError(f"There is no {subject} {path}.")
    if not (path.is_dir() or path.is_file()):
        raise InputError(f"{path} is a pipe or a device: a file or a folder is needed.")
    if subject == "recording" and native.sniff(path):
        return native  # without importing the other formats
    for module in formats_of(subject):
        if module.sniff(path):
            return module
    if path.is_dir() and not any(path.iterdir()):
        raise InputError(f"The folder {path} is empty: choose one that holds a {subject}.")
    looked_for = "; ".join(module.NAME for module in formats_of(subject))
    left_out = "".join(f" {sentence}" for sentence in problems())
    raise InputError(
        f"{path} is not a {subject} in a known format.{left_out} Looked for: {looked_for}."
    )


def folder_of(form: Any) -> str:
    """Folder of a format of recordings, such as "suite2p"."""
    return str(form.__name__.split(".")[-2])


def _recording_modules() -> list[str]:
    # looked for as files: `find_spec` would import every folder of `io/`
    return [
        f"{__package__}.{folder.name}.reading"
        for place in _path(__package__)
        for folder in iter_modules([place])
        if folder.ispkg
        and any(m.name == "reading" for m in iter_modules([f"{place}/{folder.name}"]))
    ]


def _behavior_modules() -> list[str]:
    package = f"{__package__}.behavior"
    return [f"{package}.{module.name}" for module in iter_modules(_path(package))]


def _path(package: str) -> Any:
    return import_module(package).__path__
