"""Behaviour brought to the clock of the imaging."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from napari_xcebra.io.extraction import Behavior, Series
from napari_xcebra.io.kinds import variable_from
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.recording import InputError, Variable


@dataclass(frozen=True)
class Placed:
    """Behaviour on the frames.

    Parameters
    ----------
    variables : sequence of Variable
    starts : (segments,) int64
        Frames at which a trial begins or ends; empty if there are none.
    excluded : (frames,) bool
        Frames to leave out.
    notes : tuple of str
    """

    variables: Sequence[Variable]
    starts: np.ndarray
    excluded: np.ndarray
    notes: tuple[str, ...]


def on_frames(behavior: Behavior, times: np.ndarray, settings: OpenSettings) -> Placed:
    """Place every series and interval on the frames.

    Parameters
    ----------
    behavior : Behavior
    times : (frames,) float64
        Seconds at which the frames were taken.
    settings : OpenSettings
    """
    variables = [_placed(series, times) for series in behavior.series]
    none = np.zeros(0, np.int64)
    return Placed(variables, none, np.zeros(len(times), bool), behavior.notes)


def _placed(series: Series, times: np.ndarray) -> Variable:
    values = np.asarray(series.values)
    length = len(values) if values.ndim else 1
    if length != len(times):
        raise InputError(
            f"{series.name} has {length} rows but the traces have {len(times)} frames: one row a "
            "frame is needed."
        )
    variable = variable_from(series.name, values)
    unit = series.unit or variable.unit
    return replace(variable, unit=unit, kind=series.kind or variable.kind)
