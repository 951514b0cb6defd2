"""Finds our layers in a viewer by what they carry.

Every layer of ours carries one entry in ``layer.metadata``, under the key ``napari-xcebra``:
``version`` (of this entry), ``role`` (what the layer shows), ``source`` (where the recording came
from), ``token`` (the same for all layers of a recording), and, by role, the recording itself or
the provenance of scores. Layers are found by it, whatever the user calls them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from napari_xcebra.recording import Recording
    from napari_xcebra.workspace_file import Opened

KEY = "napari-xcebra"
VERSION = 1
Role = Literal[
    "image",
    "movie",
    "activity",
    "outlines",
    "cells",
    "scores",
    "scores over time",
    "scores around an event",
    "decisions",
    "selection",
    "close-up",
]
LayerTuple = tuple[Any, dict[str, Any], str]


def metadata(role: Role, recording: Recording, token: str = "", **more: Any) -> dict[str, Any]:
    """Entry of a layer of ours."""
    about = {"version": VERSION, "role": role, "source": recording.source, "token": token}
    return {KEY: about | more}


def role_of(layer: Any) -> Role | None:
    """What a layer of ours shows; None for any other layer."""
    return shown_by(layer.metadata)[0]


def shown_by(metadata: dict[str, Any]) -> tuple[Role | None, str]:
    """What a layer with this metadata shows, and which one of several."""
    entry = metadata.get(KEY)
    return (entry.get("role"), entry.get("shows", "")) if isinstance(entry, dict) else (None, "")


def token_of(layer: LayerTuple) -> str:
    """Token of a layer of `recording_layers`."""
    return layer[1]["metadata"][KEY]["token"]


def layers_of(viewer: Any, opened: Opened) -> list[Any]:
    """Layers that belong to a recording."""
    return [
        layer
        for layer in viewer.layers
        if role_of(layer) and layer.metadata[KEY].get("token") == opened.token
    ]


def clean_names(viewer: Any, opened: Opened) -> None:
    """Take away the numbers that napari put after names that another recording had."""
    for layer in layers_of(viewer, opened):
        layer.name = re.sub(r" \[\d+\]$", "", layer.name)


def is_copy(layer: Any) -> bool:
    """Whether a layer is a copy of the background, made for a second view."""
    return role_of(layer) == "image" and bool(layer.metadata[KEY].get("second"))
