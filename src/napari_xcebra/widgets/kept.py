"""What is kept between sessions of napari, for whoever uses this computer."""

from __future__ import annotations

from qtpy.QtCore import QSettings


def store() -> QSettings:
    """Where it is kept."""
    return QSettings("napari-xcebra", "napari-xcebra")


def kept_list(key: str) -> list[str]:
    """Texts kept under a key."""
    value = store().value(key, [])
    # Qt gives a single entry back as text, and none as None
    return [value] if isinstance(value, str) else list(value or [])


def kept_text(key: str) -> str:
    """Text kept under a key; empty if none is."""
    value = store().value(key, "")
    return value if isinstance(value, str) else ""


def keep(key: str, value: object) -> None:
    """Keep a value under a key; None forgets what was kept."""
    settings = store()
    if value is None:
        settings.remove(key)
    else:
        settings.setValue(key, value)
    settings.sync()
