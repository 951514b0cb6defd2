"""Finds the format of a file: adding a module adds a format.

A format of recordings is a module in `io/formats/`, or the module `reading` of a folder there; a
format of behaviour is a module in `io/behavior/`. Each has `NAME`, `sniff` and `load`.
`sniff(path) -> bool` checks names and first bytes, is fast and never raises; `load(path, settings)`
raises one `InputError` sentence for a file it cannot use. A module with ``GENERIC = True`` is asked
after all others. Formats of other packages are asked too; their mistakes become sentences.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, Literal

from napari_xcebra.errors import InputError, sentence_on_failure
from napari_xcebra.files import first_bytes
from napari_xcebra.io.extraction import Behavior, Extraction
from napari_xcebra.io.formats import native
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.plugins import Plugged, plugged_in, problems, refuse

Subject = Literal["recording", "behaviour file"]
PATIENCE = 1.0
"""Seconds in which a plug-in says whether it recognises a path."""
SUBJECTS = {"recording": Extraction, "behaviour file": Behavior}
"""What a format may be for, and what it then gives."""


@cache
def formats_of(subject: Subject) -> tuple[Any, ...]:
    """Format modules for recordings or for behaviour, the generic ones last."""
    names = _modules_in("formats" if subject == "recording" else "behavior")
    formats: list[Any] = [m for m in map(import_module, names) if hasattr(m, "sniff")]
    formats += _plugged_formats(subject)
    return tuple(sorted(formats, key=lambda module: getattr(module, "GENERIC", False)))


def is_recording(path: Path) -> bool:
    """Whether a specific format, not one for any array or table, recognises the path."""
    if not (path.is_dir() or path.is_file()):
        return False
    formats = formats_of("recording")
    return any(form.sniff(path) for form in formats if not getattr(form, "GENERIC", False))


def is_pose(path: Path) -> bool:
    """Whether it is a file of tracked poses."""
    from napari_xcebra.io.behavior import poses  # imports pandas

    return path.is_file() and poses.sniff(path)


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


def room_of(form: Any) -> str:
    """Module or folder of a format of recordings of ours, such as "suite2p"."""
    _, _, within = str(form.__name__).partition(f"{__package__}.formats.")
    return within.split(".")[0]


def _modules_in(folder: str) -> list[str]:
    """Names of modules in a folder of `io/`, and of `reading` in folders within it."""
    package = f"{__package__}.{folder}"
    return [
        f"{package}.{module.name}{'.reading' if module.ispkg else ''}"
        for module in iter_modules(import_module(package).__path__)
    ]


class NoAnswer(Exception):
    """A plug-in takes too long."""


def _in_time(function: Callable[[Path], Any], path: Path) -> Any:
    """What a function gives, unless it takes longer than `PATIENCE`; it is then ended."""
    answers: list[Any] = []
    failures: list[BaseException] = []

    def work() -> None:
        try:
            answers.append(function(path))
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    if thread.is_alive():
        # ends a loop of Python; what sleeps or waits does no harm
        ended = ctypes.py_object(SystemExit)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ended)
        raise NoAnswer(f"sniff does not answer within {PATIENCE:.0f} s")
    if failures:
        raise failures[0]
    return answers[0]


class _PluggedFormat:
    """A format of another package, with the names of one of ours."""

    def __init__(self, plugged: Plugged, subject: str) -> None:
        self._plugged, self._subject = plugged, subject
        self.NAME = str(plugged.value.NAME)
        self._is_slow = False
        self.__name__ = f"{plugged.package or 'plugin'}.{plugged.name}"

    def sniff(self, path: Path) -> bool:
        """Whether it recognises the path; not if it fails, or does not answer."""
        if self._is_slow:
            return False
        try:
            return bool(_in_time(self._plugged.value.sniff, path))
        # code of others fails in any way, and may even end the program
        except (Exception, SystemExit) as error:
            self._is_slow = isinstance(error, NoAnswer)
            refuse(self._plugged.name, self._plugged.package, error)
            return False

    def load(self, path: Path, settings: OpenSettings) -> Any:
        """What the path holds; a sentence if the plug-in fails."""
        with sentence_on_failure(path, f"{self.NAME} by plug-in {self._plugged.name}"):
            try:
                found = self._plugged.value.load(path, settings)
            except SystemExit as error:
                raise RuntimeError("it ends the program") from error
        wanted = SUBJECTS[self._subject]
        if not isinstance(found, wanted):
            raise InputError(
                f"{path} cannot be read: plug-in {self._plugged.name} gives "
                f"{type(found).__name__}, where {wanted.__name__} is needed."
            )
        return found


def _plugged_formats(subject: str) -> list[_PluggedFormat]:
    """Formats that other packages bring for recordings, or for behaviour."""
    found = []
    for plugged in plugged_in("formats"):
        missing = [n for n in ("NAME", "sniff", "load") if not hasattr(plugged.value, n)]
        own = getattr(plugged.value, "SUBJECT", "recording")
        if missing:
            refuse(plugged.name, plugged.package, f"it has no {' and no '.join(missing)}")
        elif own not in SUBJECTS:
            refuse(plugged.name, plugged.package, f"its SUBJECT is {own!r}")
        elif own == subject:
            found.append(_PluggedFormat(plugged, subject))
    return found
