"""Which layers a recording has in napari, and how they say what they are.

Every layer of ours carries one entry in ``layer.metadata``, under the key ``napari-xcebra``:
``version`` (of this entry), ``role`` (what the layer shows), ``source`` (where the recording came
from), ``token`` (the same for all layers of a recording), and, by role, the recording itself or
the provenance of scores. Sessions find their layers by it, whatever the user calls them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

import numpy as np
from napari.utils.colormaps import CyclicLabelColormap, label_colormap

from napari_xcebra.footprints import Footprints
from napari_xcebra.recording import Recording
from napari_xcebra.traces import LazyTraces
from napari_xcebra.widgets.movie import CellMovie

if TYPE_CHECKING:
    import pandas as pd

KEY = "napari-xcebra"
VERSION = 1
Role = Literal["image", "activity", "cells", "scores", "scores over time", "decisions", "selection"]
LayerTuple = tuple[Any, dict[str, Any], str]
REJECTED = (0.5, 0.5, 0.5, 0.35)
"""Colour of ROIs that do not count as cells."""

IMAGE_NAMES = {
    "mean": "mean image",
    "enhanced": "enhanced mean image",
    "max": "maximum projection",
    "correlation": "correlation image",
}


def footprints_of(recording: Recording) -> Footprints:
    """Where the cells are; discs on a grid where the source does not say."""
    return recording.footprints or Footprints.on_a_grid(recording.n_cells)


def recording_layers(recording: Recording, name: str = "", token: str = "") -> list[LayerTuple]:
    """Background images, activity over time and cells, as (data, arguments, type).

    Parameters
    ----------
    recording : Recording
    name : str
        Put before the names of the layers, where several recordings share a viewer.
    token : str
        What the layers carry to be found by; a new one if not given.
    """
    token = token or uuid4().hex
    prefix = f"{name} · " if name else ""
    labels = footprints_of(recording).label_image()
    layers: list[LayerTuple] = []
    front = "mean" if "mean" in recording.images else next(iter(recording.images), "")
    for key, image in recording.images.items():
        low, high = np.percentile(image, [1, 99.8])
        shown: dict[str, Any] = {
            "name": prefix + IMAGE_NAMES.get(key, key),
            "colormap": "gray",
            "contrast_limits": (float(low), float(high) if high > low else float(low) + 1),
            "visible": key == front,
            "metadata": metadata("image", recording, token, shows=key),
        }
        layers.append((image, shown, "image"))
    layers.append(_activity_layer(recording, labels, prefix, token))
    cells: dict[str, Any] = {
        "name": f"{prefix}cells",
        "opacity": 0.6,
        "colormap": cell_colormap(recording),
        "features": cell_features(recording),
        "metadata": metadata("cells", recording, token, value=recording),
    }
    layers.append((labels, cells, "labels"))
    return layers


def metadata(role: Role, recording: Recording, token: str = "", **more: Any) -> dict[str, Any]:
    """Entry of a layer of ours."""
    about = {"version": VERSION, "role": role, "source": recording.source, "token": token}
    return {KEY: about | more}


def role_of(layer: Any) -> Role | None:
    """What a layer of ours shows; None for any other layer."""
    entry = layer.metadata.get(KEY)
    return entry.get("role") if isinstance(entry, dict) else None


def cell_colormap(recording: Recording) -> CyclicLabelColormap:
    """Accepted cells in various colours, others grey."""
    distinct = label_colormap(49).colors[1:]
    colors = np.zeros((recording.n_cells + 1, 4), np.float32)
    colors[1:] = distinct[np.arange(recording.n_cells) % len(distinct)]
    colors[1:][~np.asarray(recording.accepted)] = REJECTED
    return CyclicLabelColormap(colors=colors, background_value=0)


def shown_by(layer: Any) -> tuple[Role | None, str]:
    """What a layer of ours shows, and which of several: only one such layer is needed."""
    return role_of(layer), layer.metadata.get(KEY, {}).get("shows", "")


def lacks_layers(recording: Recording, present: Sequence[Any]) -> bool:
    """Whether some of the layers of a recording were removed from the viewer."""
    wanted = {"cells", "activity"} | ({"image"} if recording.images else set())
    return not wanted <= {role_of(layer) for layer in present}


def token_of(layer: LayerTuple) -> str:
    """What a layer of `recording_layers` carries to be found by."""
    return layer[1]["metadata"][KEY]["token"]


def cell_features(recording: Recording, **columns: np.ndarray) -> pd.DataFrame:
    """Features table as napari expects it: the row is the label, row 0 is background.

    Parameters
    ----------
    recording : Recording
    **columns : (cells,) arrays
        Scores and the like.

    Returns
    -------
    DataFrame, (cells + 1) rows
        "cell" has the id of the source program; what else that says about cells follows.
    """
    import pandas as pd

    said = {
        name: np.asarray(column, object if np.asarray(column).dtype.kind in "SU" else None)
        for name, column in recording.cells.items()
    }
    table = {
        "cell": np.asarray(recording.cell_ids),
        "accepted": np.asarray(recording.accepted),
        **said,
        **columns,
    }
    return pd.DataFrame({name: _after_background(np.asarray(v)) for name, v in table.items()})


def _after_background(column: np.ndarray) -> np.ndarray:
    """Column with an entry for the background before it, of which napari's status says nothing."""
    if column.dtype.kind == "f":
        # napari knows only Python's own NaN, which double precision is
        return np.concatenate([[np.nan], column.astype(np.float64)])
    return np.concatenate([np.array([None], object), column.astype(object)])


def _activity_layer(
    recording: Recording, labels: np.ndarray, prefix: str, token: str
) -> LayerTuple:
    traces = recording.traces
    sample = traces[:: max(1, recording.n_frames // 200)] if _small(traces) else traces[:50]
    low, high = np.percentile(sample, [20, 99.5])
    shown = {
        "name": f"{prefix}activity",
        "colormap": "inferno",
        "contrast_limits": (float(low), float(high) if high > low else float(low) + 1),
        "visible": False,
        "rgb": False,
        "axis_labels": ("frame", "plane", "y", "x") if labels.ndim == 3 else ("frame", "y", "x"),
        "metadata": metadata("activity", recording, token),
    }
    return CellMovie(traces, labels), shown, "image"


def _small(traces: Any) -> bool:
    return not isinstance(traces, LazyTraces)
