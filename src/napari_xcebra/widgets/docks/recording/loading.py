"""Loads recordings and their layers in the background, and shows them."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from napari_xcebra.io.kinds import with_kinds
from napari_xcebra.io.opening import Opening
from napari_xcebra.io.orientation import LayoutUnclear
from napari_xcebra.jobs import Job
from napari_xcebra.recording import Recording
from napari_xcebra.sample_data import SAMPLES
from napari_xcebra.widgets.layers.layers import recording_layers
from napari_xcebra.widgets.services.reading import result_of
from napari_xcebra.widgets.state.own_layers import LayerTuple, shown_by
from napari_xcebra.widgets.state.preferences import keep_pixel_size
from napari_xcebra.widgets.state.state import State, collect_while_waiting
from napari_xcebra.workspace_file import Opened


class Loaded(NamedTuple):
    """A recording that is ready to be shown.

    Parameters
    ----------
    recording : Recording
    layers : list of (data, arguments, type)
        Making them involves reading traces and drawing cells.
    opening : Opening or None
    """

    recording: Recording
    layers: list[LayerTuple]
    opening: Opening | None = None


def read(job: Job, opening: Opening) -> Loaded | LayoutUnclear:
    """Wait until a recording is read from its files, or a question about it; in a thread."""
    try:
        recording = result_of(job)
    except LayoutUnclear as unclear:
        return unclear
    return Loaded(recording, recording_layers(recording), opening)


def simulate(key: str) -> Loaded:
    """Make one of the samples."""
    recording = SAMPLES[key].make()
    return Loaded(recording, recording_layers(recording))


def put_into(state: State, loaded: Loaded) -> None:
    """Show a recording; one that was opened again replaces the earlier one."""
    before = state.current
    again = before if before and is_from(before, loaded.opening) else None
    if again is not None and _same_cells(again, loaded.recording):
        again.opening = loaded.opening
        state.change_recording(loaded.recording)
        _adjust_contrast(state, again, loaded.layers)
        return
    state.show(loaded.recording, loaded.opening, loaded.layers)
    if again is not None and not again.runs:
        state.forget(again)
    collect_while_waiting()


def with_kind(opened: Opened, name: str, kind: str) -> Recording:
    """Recording with a variable of another kind, which is noted in how it was opened."""
    changed = with_kinds(opened.recording, {name: kind})  # type: ignore[dict-item]
    if opened.opening is not None:
        kinds = {**opened.opening.kinds, name: kind}
        opened.opening = replace(opened.opening, kinds=kinds)  # type: ignore[arg-type]
    return changed


def with_pixel_size(opened: Opened, size: float) -> Recording:
    """Recording with pixels of another size, in micrometres; remembered for its path.

    0 gives back what the file says once it is opened again, and none until then.
    """
    if opened.opening is not None:
        settings = replace(opened.opening.settings, pixel_size=size)
        opened.opening = replace(opened.opening, settings=settings)
        keep_pixel_size(opened.opening.path, size)
    return replace(opened.recording, pixel_size=size or None)


def take_behavior(state: State, opened: Opened, opening: Opening, recording: Recording) -> None:
    """Give a recording the behaviour that was read anew, unless it was opened again since."""
    if opened.opening is opening:
        state.change_recording(replace(opened.recording, behavior=recording.behavior), opened)


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


def _adjust_contrast(state: State, opened: Opened, layers: list[LayerTuple]) -> None:
    """Give layers in the viewer the contrast of newly made ones: traces have another scale."""
    limits = {
        shown_by(arguments["metadata"]): arguments["contrast_limits"]
        for _, arguments, _ in layers
        if "contrast_limits" in arguments
    }
    for layer in state.layers.of(opened):
        if (shown := shown_by(layer.metadata)) in limits:
            layer.reset_contrast_limits_range()
            layer.contrast_limits = limits[shown]
