"""Paths that were opened last, kept between sessions of napari."""

from __future__ import annotations

from napari_xcebra.widgets.kept import keep, kept_list

MOST = 10
_KEY = "recent"


def recent_paths() -> list[str]:
    """Paths, the last one first."""
    return kept_list(_KEY)


def remember(path: str) -> None:
    """Put a path first."""
    keep(_KEY, [path, *(other for other in recent_paths() if other != path)][:MOST])
