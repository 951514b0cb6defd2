"""What the user prefers, as set in napari's Preferences under napari-xcebra.

napari shows and keeps what the manifest lists under `configurations`. Versions that do not yet do
so leave it to the docks, and it is kept as other things are.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from napari_xcebra.curation.places import DATA_DIRECTORY
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.logs import start_logging
from napari_xcebra.widgets.kept import keep, kept_text
from napari_xcebra.widgets.painting import COLORMAP, COLORMAPS

PLUGIN = "napari-xcebra"
GENERAL, KEYS = "general", "keys"
"""Groups of settings, as the manifest names them."""

_CHOSEN: set[str] = set()
"""Folders that the environment names because the user prefers them."""


def shown_by_napari() -> Any:
    """Settings of this plugin in napari's Preferences; None if this napari shows none."""
    try:
        from napari.settings import get_plugin_settings
    except ImportError:  # before 0.9
        return None
    try:
        return get_plugin_settings(PLUGIN)
    except KeyError:  # imported, but not installed
        return None


def preferred(group: str, key: str) -> str:
    """What was chosen; empty if nothing was."""
    settings = shown_by_napari()
    if settings is None:
        return kept_text(f"{group}/{key}")
    return str(getattr(getattr(settings, group, None), key, ""))


def prefer(group: str, key: str, value: str) -> None:
    """Choose something; napari shows it, and it is there the next time."""
    settings = shown_by_napari()
    if settings is None:
        keep(f"{group}/{key}", value or None)
    else:
        setattr(getattr(settings, group), key, value)


def changes_of(group: str) -> Any:
    """Signal of changes in a group, for `follow`; None if this napari shows none."""
    settings = shown_by_napari()
    return None if settings is None else getattr(settings, group).events


def preferred_colormap() -> str:
    """Colour map that scores begin with."""
    chosen = preferred(GENERAL, "colormap")
    return chosen if chosen in COLORMAPS else COLORMAP


def preferred_settings() -> FitSettings:
    """Settings that a training begins with."""
    return FitSettings(device=preferred(GENERAL, "device").strip() or "auto")


def apply_preferences(_: object = None) -> None:
    """Take up what concerns the whole program: the log, and where journals are kept."""
    start_logging("window", preferred(GENERAL, "log_level"))
    _use_data_directory(preferred(GENERAL, "data_directory").strip())


def follow_preferences() -> None:
    """Take it up now, and whenever it is changed."""
    apply_preferences()
    if (changes := changes_of(GENERAL)) is not None:
        changes.connect(apply_preferences)  # once, however often it is asked for


def _use_data_directory(chosen: str) -> None:
    """Have journals kept there, unless the environment said otherwise before."""
    before = os.environ.get(DATA_DIRECTORY, "")
    if before and before not in _CHOSEN:
        return
    if chosen:
        os.environ[DATA_DIRECTORY] = str(Path(chosen).expanduser())
        _CHOSEN.add(os.environ[DATA_DIRECTORY])
    else:
        os.environ.pop(DATA_DIRECTORY, None)
