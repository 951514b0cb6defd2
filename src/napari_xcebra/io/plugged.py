"""Uses formats that other packages bring: their mistakes become sentences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from napari_xcebra.errors import InputError
from napari_xcebra.io.extraction import Behavior, Extraction
from napari_xcebra.io.failures import sentence_on_failure
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.plugins import Plugged, plugged_in, refuse

SUBJECTS = {"recording": Extraction, "behaviour file": Behavior}
"""What a format may be for, and what it then gives."""


class PluggedFormat:
    """A format of another package, with the names of one of ours."""

    def __init__(self, plugged: Plugged, subject: str) -> None:
        self._plugged, self._subject = plugged, subject
        self.NAME = str(plugged.value.NAME)
        self.__name__ = f"{plugged.package or 'plugin'}.{plugged.name}"

    def sniff(self, path: Path) -> bool:
        """Whether it recognises the path; not if it fails."""
        try:
            return bool(self._plugged.value.sniff(path))
        except Exception as error:  # code of others fails in any way
            refuse(self._plugged.name, self._plugged.package, error)
            return False

    def load(self, path: Path, settings: OpenSettings) -> Any:
        """What the path holds; a sentence if the plug-in fails."""
        with sentence_on_failure(path, f"{self.NAME} by plug-in {self._plugged.name}"):
            found = self._plugged.value.load(path, settings)
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
