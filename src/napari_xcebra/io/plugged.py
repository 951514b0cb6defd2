"""Uses formats that other packages bring: their mistakes become sentences."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from napari_xcebra.errors import InputError
from napari_xcebra.io.extraction import Behavior, Extraction
from napari_xcebra.io.failures import sentence_on_failure
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.plugins import Plugged, plugged_in, refuse

PATIENCE = 1.0
"""Seconds in which a plug-in says whether it recognises a path."""
SUBJECTS = {"recording": Extraction, "behaviour file": Behavior}
"""What a format may be for, and what it then gives."""


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


class PluggedFormat:
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


def plugged_formats(subject: str) -> list[PluggedFormat]:
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
            found.append(PluggedFormat(plugged, subject))
    return found
