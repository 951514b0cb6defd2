"""Recordings with the layers they will have, made in the background and put into a session."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from napari_xcebra.opening import Opening
from napari_xcebra.recording import Recording
from napari_xcebra.sample_data import SAMPLES
from napari_xcebra.sessions import Opened
from napari_xcebra.widgets.garbage import collect_while_waiting
from napari_xcebra.widgets.layers import LayerTuple, recording_layers
from napari_xcebra.widgets.session import Session


class Loaded(NamedTuple):
    """A recording that is ready to be shown.

    Parameters
    ----------
    recording : Recording
    layers : list of (data, arguments, type)
        Making them takes reading traces and drawing cells.
    opening : Opening or None
    """

    recording: Recording
    layers: list[LayerTuple]
    opening: Opening | None = None


def read(opening: Opening) -> Loaded:
    """Read a recording from its files."""
    recording = opening.open()
    return Loaded(recording, recording_layers(recording), opening)


def simulate(key: str) -> Loaded:
    """Make one of the samples."""
    recording = SAMPLES[key].make()
    return Loaded(recording, recording_layers(recording))


def put_into(session: Session, loaded: Loaded) -> None:
    """Show a recording; one that was opened again takes the place of what it was before."""
    before = session.current
    again = before if before and is_from(before, loaded.opening) else None
    if again is not None and _same_cells(again, loaded.recording):
        again.opening = loaded.opening
        session.change_recording(loaded.recording)
        _adjust_contrast(session, again, loaded.layers)
        return
    session.show(loaded.recording, loaded.opening, loaded.layers)
    session.warm_up()
    if again is not None and not again.runs:
        session.forget(again)
    collect_while_waiting()


def is_from(opened: Opened, opening: Opening | None) -> bool:
    """Whether a recording was opened from the same path."""
    return bool(opening and opened.opening and opened.opening.path == opening.path)


def _same_cells(opened: Opened, recording: Recording) -> bool:
    """Whether a recording can take the place of another under the same layers and runs."""
    before = opened.recording
    if before.traces.shape != recording.traces.shape:
        return False
    if not np.array_equal(np.asarray(before.cell_ids), np.asarray(recording.cell_ids)):
        return False
    return np.array_equal(opened.labels, Opened("", recording, "").labels)


def _adjust_contrast(session: Session, opened: Opened, layers: list[LayerTuple]) -> None:
    """Give layers in the viewer the contrast of newly made ones: traces have another scale."""
    for _, arguments, _ in layers:
        for layer in session.layers_of(opened):
            if "contrast_limits" in arguments and layer.name.endswith(arguments["name"]):
                layer.reset_contrast_limits_range()
                layer.contrast_limits = arguments["contrast_limits"]
