"""Paths that were opened last, kept between sessions of napari."""

from __future__ import annotations

from qtpy.QtCore import QSettings

MOST = 10
_KEY = "recent"


def recent_paths() -> list[str]:
    """Paths, the last one first."""
    kept = _store().value(_KEY, [])
    # Qt gives a single entry back as text, and none as None
    return [kept] if isinstance(kept, str) else list(kept or [])


def remember(path: str) -> None:
    """Put a path first."""
    store = _store()
    store.setValue(_KEY, [path, *(other for other in recent_paths() if other != path)][:MOST])
    store.sync()


def _store() -> QSettings:
    return QSettings("napari-xcebra", "napari-xcebra")
