"""Finds our layers in a viewer by what they carry.

Every layer of ours carries one entry in ``layer.metadata``, under the key ``napari-xcebra``:
``version`` (of this entry), ``role`` (what the layer shows), ``source`` (where the recording came
from), ``token`` (the same for all layers of a recording), and, by role, the recording itself or
the provenance of scores. Layers are found by it, whatever the user calls them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

from napari_xcebra.widgets.state.signals import OfState

if TYPE_CHECKING:
    from napari_xcebra.recording import Recording
    from napari_xcebra.widgets.state.state import State
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


def _clean_names(viewer: Any, opened: Opened) -> None:
    """Take away the numbers that napari put after names that another recording had."""
    for layer in layers_of(viewer, opened):
        layer.name = re.sub(r" \[\d+\]$", "", layer.name)


def is_copy(layer: Any) -> bool:
    """Whether a layer is a copy of the background, made for a second view."""
    return role_of(layer) == "image" and bool(layer.metadata[KEY].get("second"))


class Drawing(Protocol):
    """Draws recordings in a viewer; handed to the state, which does not draw itself."""

    def add_missing(self, viewer: Any, opened: Opened, layers: Sequence[LayerTuple] | None) -> None:
        """Add those layers of a recording that are not in the viewer."""

    def bring_up_to_date(self, viewer: Any, opened: Opened) -> None:
        """Update the layers after a change of a recording."""

    def take_out(self, viewer: Any, layers: Sequence[Any]) -> None:
        """Take layers out of the viewer."""

    def put_back(self, viewer: Any, layers: Sequence[Any]) -> None:
        """Put layers back that were taken out, in their order."""


class LayerSets(OfState):
    """Knows the layers of all recordings, in the viewer or set aside."""

    def __init__(self, state: State, drawing: Drawing) -> None:
        super().__init__(state)
        self._drawing = drawing
        # by token, of recordings that are not in front
        self._aside: dict[str, list[Any]] = {}
        # tokens of recordings that have come to the front before, and that changed since
        self._drawn: set[str] = set()
        self._outdated: set[str] = set()

    def is_aside(self, opened: Opened) -> bool:
        """Whether the layers of a recording are set aside."""
        return opened.token in self._aside

    def bring(self, opened: Opened | None, layers: Sequence[LayerTuple] | None = None) -> None:
        """Set the layers of all other recordings aside, and put those of this one back.

        When it comes for the first time, its layers are made; `layers` are those of
        `recording_layers`, where they were made already.
        """
        viewer = self.state.viewer
        for other in self.state.opened:
            if other is not opened and not self.is_aside(other):
                own = layers_of(viewer, other)
                self._aside[other.token] = [layer for layer in own if not is_copy(layer)]
                self._drawing.take_out(viewer, own)
        if opened is None:
            return
        self._drawing.put_back(viewer, self._aside.pop(opened.token, []))
        if opened.token not in self._drawn:
            self.add(opened, layers)
        if opened.token in self._outdated:
            self._outdated.discard(opened.token)
            self._drawing.bring_up_to_date(viewer, opened)

    def add(self, opened: Opened, layers: Sequence[LayerTuple] | None = None) -> None:
        """Add those of the images, activity and cells of a recording that are not in the viewer."""
        self._drawn.add(opened.token)
        self._drawing.add_missing(self.state.viewer, opened, layers)

    def adopt(self, opened: Opened) -> None:
        """Take over layers that somebody else added to the viewer."""
        self._drawn.add(opened.token)

    def tidy(self, opened: Opened) -> None:
        """Take away the numbers that napari gave to names that another recording had."""
        _clean_names(self.state.viewer, opened)

    def update(self, opened: Opened) -> None:
        """Update the layers of a recording that was changed, once it is in front."""
        if opened is self.state.current:
            self._drawing.bring_up_to_date(self.state.viewer, opened)
        else:
            self._outdated.add(opened.token)

    def of(self, opened: Opened | None, *roles: Role) -> list[Any]:
        """Layers of a recording, also while it is not in front; those of some roles, if given."""
        if opened is None:
            return []
        aside = self._aside.get(opened.token)
        own = layers_of(self.state.viewer, opened) if aside is None else list(aside)
        return [layer for layer in own if role_of(layer) in roles] if roles else own

    def one(self, opened: Opened | None, role: Role) -> Any | None:
        """The first layer of a recording that has this role; None if there is none."""
        return next(iter(self.of(opened, role)), None)

    def lacks_some(self, opened: Opened) -> bool:
        """Whether layers of a recording were removed from the viewer."""
        wanted = {"cells", "activity"} | ({"image"} if opened.recording.images else set())
        wanted |= {"movie"} if opened.recording.movie is not None else set()
        return not wanted <= {role_of(layer) for layer in self.of(opened)}

    def put(self, layer: Any, place: int | None = None) -> None:
        """Insert a layer of a recording into the viewer, above the others unless told where.

        Wherever layers of a recording are made, this adds them. One of a recording that is not in
        front waits with its others, and one of a closed recording is dropped.
        """
        token = layer.metadata[KEY]["token"]
        owner = next((opened for opened in self.state.opened if opened.token == token), None)
        if owner is None:
            return
        if self.is_aside(owner):
            self._aside[token].append(layer)
        else:
            layers = self.state.viewer.layers
            layers.insert(len(layers) if place is None else place, layer)

    def remove(self, opened: Opened, layer: Any) -> None:
        """Remove a layer of a recording, also if it is not in front."""
        if self.is_aside(opened):
            self._aside[opened.token].remove(layer)
        else:
            self.state.viewer.layers.remove(layer)

    def forget(self, opened: Opened) -> None:
        """Remove all layers of a recording that is not in front, copies by the user included."""
        if own := layers_of(self.state.viewer, opened):
            self._drawing.take_out(self.state.viewer, own)
        self._aside.pop(opened.token, None)
        self._outdated.discard(opened.token)
