"""Paints scores on the cells.

A Labels layer whose colour map is a look-up table with one colour per cell: changing the scores
changes the table and touches no pixel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from napari.layers import Image, Labels, Layer
from napari.utils.colormaps import CyclicLabelColormap, ensure_colormap

from napari_xcebra.attribution.score_map import color_limits
from napari_xcebra.recording import Recording
from napari_xcebra.recording.drawn_cells import drawn_labels
from napari_xcebra.text import unmarked
from napari_xcebra.widgets.layers.layers import cell_features, footprints_of
from napari_xcebra.widgets.state.own_layers import metadata
from napari_xcebra.widgets.state.shown import COLORMAP

if TYPE_CHECKING:
    from napari_xcebra.attribution import Attribution
    from napari_xcebra.widgets.state.state import State

GREY = (0.5, 0.5, 0.5, 0.35)
"""Cells of a factor at chance."""
AT_CHANCE, NOT_TESTED = " (at chance)", " (not tested)"
DIMMED = 0.25
"""Opacity of cells below the threshold."""


def colors_of(
    scores: np.ndarray,
    colormap: str = COLORMAP,
    limits: tuple[float, float] | None = None,
    bright: np.ndarray | None = None,
    *,
    at_chance: bool = False,
) -> np.ndarray:
    """Colour of the background and of each cell.

    Parameters
    ----------
    scores : (cells,) float
        NaN: not used, clear.
    colormap : str
        Any that napari knows.
    limits : (low, high), optional
        Scores at the ends of the colour map; the range of the scores if not given.
    bright : (cells,) bool, optional
        Cells to show in full; the others are dimmed.
    at_chance : bool
        Whether the scores mean nothing: all cells that have one are grey.

    Returns
    -------
    (cells + 1, 4) float32, between 0 and 1
    """
    colors = np.zeros((len(scores) + 1, 4), np.float32)
    known = np.isfinite(scores)
    if at_chance:
        colors[1:][known] = GREY
    elif known.any():
        low, high = limits or (float(scores[known].min()), float(scores[known].max()))
        place = np.clip((scores[known] - low) / ((high - low) or 1.0), 0, 1)
        colors[1:][known] = ensure_colormap(colormap).map(place)
    if bright is not None and not at_chance:
        colors[1:][known & ~bright, 3] = DIMMED
    return colors


def label_colormap(colors: np.ndarray) -> CyclicLabelColormap:
    """Colour map of a Labels layer by a table: label i has row i."""
    return CyclicLabelColormap(colors=colors, background_value=0)


def score_layer(
    recording: Recording,
    attribution: Attribution,
    factor: str,
    token: str = "",
) -> Labels:
    """Labels layer of one factor, painted by score, with its features table.

    A factor at chance is painted grey and says so in its name: its scores would look like a map
    and mean nothing. One that could not be tested says so as well.
    """
    scores, tested = attribution.score(factor), attribution.significance
    layer = Labels(
        drawn_labels(footprints_of(recording), np.asarray(recording.accepted)),
        name=unmarked(f"{factor} · {attribution.method}{doubt_of(attribution, factor)}"),
        opacity=0.85,
        features=cell_features(
            recording,
            score=scores,
            z=attribution.z(factor),
            selected=attribution.above(factor),
            **({"q": tested.q(factor)} if tested and factor in tested.shortest else {}),
        ),
        metadata=metadata("scores", recording, token, **provenance(attribution, factor)),
    )
    limits = color_limits(scores, attribution.method)
    repaint(layer, scores, limits=limits, at_chance=attribution.at_chance(factor))
    return layer


def doubt_of(attribution: Attribution, factor: str) -> str:
    """Suffix of the title of a map at chance, or of one that could not be tested."""
    if attribution.at_chance(factor):
        return AT_CHANCE
    return NOT_TESTED if attribution.not_tested(factor) else ""


def add_quietly(state: State, layer: Layer) -> None:
    """Add a layer that the brush must not change; the selected layers stay selected."""
    layers = state.viewer.layers
    chosen, active = set(layers.selection), layers.selection.active
    state.layers.put(layer)
    layers.selection = chosen
    layers.selection.active = active
    layer.editable = False


def blank_layer(recording: Recording, labels: np.ndarray, name: str, **about: Any) -> Labels:
    """Hidden Labels layer whose cells have no colours yet; `about` says what it is to show."""
    return Labels(
        labels,
        name=name,
        opacity=0.85,
        visible=False,
        colormap=label_colormap(np.zeros((recording.n_cells + 1, 4), np.float32)),
        features=cell_features(recording),
        metadata=metadata("scores", recording, **about),
    )


def provenance(attribution: Attribution, factor: str) -> dict[str, Any]:
    """Where the scores of a layer come from."""
    return {
        "factor": factor,
        "method": attribution.method,
        "aggregate": attribution.aggregate,
        "at_chance": attribution.at_chance(factor),
        "verdict": attribution.verdicts.get(factor, ""),
        "seed": attribution.seed,
        "frames": attribution.n_frames,
    }


def repaint(layer: Labels, scores: np.ndarray, **how: Any) -> None:
    """Give the cells of a layer the colours of new scores; see `colors_of`."""
    layer.colormap = label_colormap(colors_of(np.asarray(scores, np.float64), **how))


def set_contrast(layer: Image, limits: tuple[float, float], most: float) -> tuple[float, float]:
    """Set the ends of the colours, with sliders that reach to `most`; returns them as set."""
    low, high = limits if limits[1] > limits[0] else (limits[0], limits[0] + 1.0)
    layer.contrast_limits_range = (min(0.0, low), max(most, high))
    layer.contrast_limits = (low, high)
    low, high = layer.contrast_limits
    return float(low), float(high)
