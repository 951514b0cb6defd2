"""Reads a file as trials or as events because the user says that it is."""

from __future__ import annotations

from pathlib import Path

from napari_xcebra.errors import InputError
from napari_xcebra.io.discovery import format_of
from napari_xcebra.io.extraction import Behavior
from napari_xcebra.io.settings import OpenSettings


def load_trials(path: Path) -> Behavior:
    """Trials: a row of a table each, or what another format calls trials."""
    from napari_xcebra.io.behavior.columns import trials_of

    columns = _columns(path)
    if columns is None:
        return _only(path, "trials", "intervals")
    return Behavior(intervals=(trials_of(columns, str(path)),), name=path.name)


def load_events(path: Path) -> Behavior:
    """Events: a row of a table each, or what another format calls events."""
    from napari_xcebra.io.behavior.columns import events_of

    columns = _columns(path)
    if columns is None:
        return _only(path, "events", "events")
    return Behavior(events=events_of(columns, path.stem, str(path), told=True), name=path.name)


def _columns(path: Path) -> dict[str, object] | None:
    """Columns of a table; None for any other format."""
    from napari_xcebra.io.containers.tables import read_table

    form = format_of(path, "behaviour file")
    if not form.__name__.endswith(".tables"):
        return None
    return {str(name): column for name, column in read_table(path, keep=("frame",)).items()}


def _only(path: Path, what: str, part: str) -> Behavior:
    """The trials or the events of a file that holds more."""
    found: Behavior = format_of(path, "behaviour file").load(path, OpenSettings())
    if not getattr(found, part):
        raise InputError(f"{path} holds no {what}.")
    kept = {part: getattr(found, part)}
    return Behavior(notes=found.notes, name=found.name, **kept)
