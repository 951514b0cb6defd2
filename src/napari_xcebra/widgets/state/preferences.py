"""Keeps the user's preferences and recent paths.

napari shows and keeps what the manifest lists under `configurations`. For versions that do not,
these settings are kept in a file of our own, as recent paths are.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from napari_xcebra.curation.journal import DATA_DIRECTORY
from napari_xcebra.errors import InputError
from napari_xcebra.files import read_json, whole
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.support.logs import start_logging
from napari_xcebra.widgets.state.shown import COLORMAP, COLORMAPS


def store() -> Path:
    """The file that preferences are kept in."""
    from platformdirs import user_config_path

    return user_config_path("napari-xcebra", appauthor=False) / "preferences.json"


def kept_list(key: str) -> list[str]:
    """Texts kept under a key."""
    value = _read_kept().get(key)
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


def kept_text(key: str) -> str:
    """Text kept under a key; empty if none is."""
    value = _read_kept().get(key)
    return value if isinstance(value, str) else ""


def keep(key: str, value: str | list[str] | None) -> None:
    """Keep a value under a key; None forgets what was kept."""
    values = {name: kept for name, kept in _read_kept().items() if name != key}
    if value is not None:
        values[key] = value
    # a home that cannot be written to is no reason to stop
    with suppress(OSError), whole(store()) as file:
        file.write_text(json.dumps(values, indent=1), encoding="utf-8")


def _read_kept() -> dict[str, Any]:
    try:
        values = read_json(store())
    except InputError:  # none yet, or damaged
        return {}
    return values if isinstance(values, dict) else {}


MOST = 10
_KEY = "recent"


def recent_paths() -> list[str]:
    """Paths, the last one first."""
    return kept_list(_KEY)


def remember(path: str) -> None:
    """Put a path first."""
    keep(_KEY, [path, *(other for other in recent_paths() if other != path)][:MOST])


def kept_pixel_size(path: Path) -> float:
    """Micrometres per pixel that the user gave for a recording; 0 if none."""
    try:
        return float(kept_text(_size_key(path)) or 0)
    except ValueError:  # edited by hand
        return 0.0


def keep_pixel_size(path: Path, size: float) -> None:
    """Remember the size of a pixel, in micrometres; 0 forgets it."""
    keep(_size_key(path), repr(size) if size else None)


def _size_key(path: Path) -> str:
    return f"pixel size of {path.absolute()}"


PLUGIN = "napari-xcebra"
GENERAL, KEYS = "general", "keys"
"""Groups of settings, as the manifest names them."""

_CHOSEN: set[str] = set()
"""Folders that the environment names because the user prefers them."""


def _shown_by_napari() -> Any:
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
    """The user's choice; empty if there is none."""
    settings = _shown_by_napari()
    if settings is None:
        return kept_text(f"{group}/{key}")
    return str(getattr(getattr(settings, group, None), key, ""))


def prefer(group: str, key: str, value: str) -> None:
    """Set a preference; napari shows and keeps it."""
    settings = _shown_by_napari()
    if settings is None:
        keep(f"{group}/{key}", value or None)
    else:
        setattr(getattr(settings, group), key, value)


def changes_of(group: str) -> Any:
    """Signal of changes in a group, for `follow`; None if this napari shows none."""
    settings = _shown_by_napari()
    return None if settings is None else getattr(settings, group).events


def preferred_colormap() -> str:
    """Colour map that scores begin with."""
    chosen = preferred(GENERAL, "colormap")
    return chosen if chosen in COLORMAPS else COLORMAP


def preferred_settings() -> FitSettings:
    """Settings that a training begins with."""
    return FitSettings(device=preferred(GENERAL, "device").strip() or "auto")


def _apply_preferences(_: object = None) -> None:
    """Apply the preferences of the whole program: the log, and where journals are kept."""
    start_logging("window", preferred(GENERAL, "log_level"))
    _use_data_directory(preferred(GENERAL, "data_directory").strip())


def follow_preferences() -> None:
    """Apply the preferences now, and whenever they change."""
    _apply_preferences()
    if (changes := changes_of(GENERAL)) is not None:
        changes.connect(_apply_preferences)  # once, however often it is asked for


def _use_data_directory(chosen: str) -> None:
    """Keep journals in the chosen folder, unless the environment names another."""
    before = os.environ.get(DATA_DIRECTORY, "")
    if before and before not in _CHOSEN:
        return
    if chosen:
        os.environ[DATA_DIRECTORY] = str(Path(chosen).expanduser())
        _CHOSEN.add(os.environ[DATA_DIRECTORY])
    else:
        os.environ.pop(DATA_DIRECTORY, None)
