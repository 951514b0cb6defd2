"""Holds what is seen of a recording while another one is in front, or in a workspace file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np

from napari_xcebra.settings import known_only
from napari_xcebra.widgets.state.shown import Shown


class View(NamedTuple):
    """What is painted, the selected cells, and the frame of the time slider."""

    shown: Shown
    selection: np.ndarray = np.zeros(0, np.int64)
    frame: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for a file."""
        selected = {"selection": [int(cell) for cell in self.selection], "frame": int(self.frame)}
        return {**asdict(self.shown), **selected}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], n_cells: int) -> View:
        """View from a file; earlier versions kept only what is painted."""
        selected = [int(cell) for cell in values.get("selection", ())]
        inside = [cell for cell in selected if 0 <= cell < n_cells]
        frame = max(int(values.get("frame", 0)), 0)
        return cls(Shown(**known_only(Shown, values)), np.array(inside, np.int64), frame)
