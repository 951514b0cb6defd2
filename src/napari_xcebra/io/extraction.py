"""Holds what other programs wrote, before any choice is made about it.

A neural format gives an `Extraction`, a behaviour format a `Behavior`; `assemble` makes one
`Recording` of the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from napari_xcebra.recording.footprints import Footprints
from napari_xcebra.recording.traces import LazyTraces
from napari_xcebra.recording.variables import Kind

Signal = Literal["fluorescence", "neuropil", "dff", "denoised", "events", "traces"]
"""What a program may have extracted; "traces" is for arrays that do not say what they are."""
TimesIn = Literal["seconds", "unnamed", "frames", "samples"]
"""What times count: "unnamed" is taken for seconds, as the source does not say."""


FEW_COLUMNS = 3
"""An array with no more columns is a position or a pose rather than traces."""


def columns_of(name: str, values: np.ndarray) -> dict[str, np.ndarray]:
    """Properties of cells, by name: a few numbers a cell are as many; more are none.

    >>> list(columns_of("coordinates", np.zeros((5, 2))))
    ['coordinates_1', 'coordinates_2']
    """
    if values.ndim == 1 or values.shape[1] == 1:
        return {name: values.reshape(-1)}
    few = values.shape[1] <= FEW_COLUMNS
    return {f"{name}_{i}": column for i, column in enumerate(values.T, 1)} if few else {}


def finite_image(image: np.ndarray) -> np.ndarray | None:
    """Image as float32, its least value where it has none; None if it has no value at all."""
    with np.errstate(over="ignore"):  # what float32 cannot hold counts as not finite
        image = image.astype(np.float32)
    known = np.isfinite(image)
    return np.where(known, image, image[known].min()) if known.any() else None


class Arrays(dict[str, Any]):
    """Arrays of a file by name, with what the file calls their axes, where it does.

    Attributes
    ----------
    axes : dict of str to tuple of str
    """

    def __init__(self) -> None:
        super().__init__()
        self.axes: dict[str, tuple[str, ...]] = {}


@dataclass(frozen=True)
class Series:
    """Samples of one behaviour variable, on a clock of its own.

    Parameters
    ----------
    name : str
    values : (samples,) or (samples, columns) array of numbers
        NaN where not known.
    times : (samples,) float64 or None
        On the clock of the imaging, in any order. None: the file does not say; one sample a frame
        is then needed.
    unit : str
    kind : {"continuous", "circular", "discrete", "event"} or None
        None: to be guessed from name and values.
    period : float or None
        Full turn of a circular variable. None: to be guessed.
    labels : tuple of str
        What the values 0, 1, 2 … stand for, if they are words.
    sparse : bool
        Whether the source leaves out frames in which it found nothing, so that there may be
        fewer samples than frames.
    times_in : {"seconds", "unnamed", "frames", "samples"}
        What `times` count.
    """

    name: str
    values: np.ndarray
    times: np.ndarray | None = None
    unit: str = ""
    kind: Kind | None = None
    period: float | None = None
    labels: tuple[str, ...] = ()
    sparse: bool = False
    times_in: TimesIn = "seconds"


@dataclass(frozen=True)
class Intervals:
    """Trials or epochs: stretches of time, with what is known about each.

    Parameters
    ----------
    name : str
        "trials", or what the source calls them.
    start, stop : (intervals,) float64
        Seconds on the clock of the imaging; `stop` is exclusive.
    columns : mapping of str to (intervals,) array
        Numbers or words, such as the condition of each trial.
    in_frames : bool
        Whether `start` and `stop` are numbers of frames, from 0 on, rather than seconds.
    """

    name: str
    start: np.ndarray
    stop: np.ndarray
    columns: Mapping[str, np.ndarray] = field(default_factory=dict)
    in_frames: bool = False


@dataclass(frozen=True)
class Events:
    """Moments at which something happened: a reward, a lick, the onset of a stimulus.

    Parameters
    ----------
    name : str
    times : (events,) float64
        Seconds on the clock of the imaging.
    rows : (events,) int64 or None
        Row of the source in which each stands, counted from 1; for sentences.
    in_frames : bool
        Whether `times` are numbers of frames, from 0 on, rather than seconds.
    """

    name: str
    times: np.ndarray
    rows: np.ndarray | None = None
    in_frames: bool = False


@dataclass(frozen=True)
class Behavior:
    """All that a behaviour file holds; `name` is what sentences call it."""

    series: tuple[Series, ...] = ()
    intervals: tuple[Intervals, ...] = ()
    notes: tuple[str, ...] = ()
    name: str = ""
    events: tuple[Events, ...] = ()


@dataclass(frozen=True)
class Extraction:
    """What an extractor wrote about one recording.

    Parameters
    ----------
    signals : mapping of signal name to (frames, cells) array or LazyTraces
        All of one shape.
    rate : float or None
        Frames per second, if the source says.
    times : (frames,) float64 or None
        Seconds at which the frames were taken, where the source has them.
    cell_ids : (cells,) int or None
        Ids in the source program.
    accepted : (cells,) bool or None
        None: the source does not tell cells from others.
    cells : mapping of str to (cells,) array
        What else the source says about each cell: "probability", "plane", "name", "snr" …
    footprints : Footprints or None
    images : mapping of str to (height, width) float32, of the field of view
        "mean", "enhanced", "max", "correlation": those there are. Full size; NaN is not
        allowed, what a cropped image leaves out is filled with its least value.
    excluded : (frames,) bool or None
        Frames the source marks as bad.
    starts : sequence of int or None
        First frames of the sessions that were concatenated.
    behavior : Behavior
        What the same file says about behaviour.
    neuropil_coefficient : float or None
    pixel_size : float or None
        Micrometres per pixel.
    notes : tuple of str
        One sentence each for what the user should know.
    """

    signals: Mapping[Signal, Any]
    rate: float | None = None
    times: np.ndarray | None = None
    cell_ids: np.ndarray | None = None
    accepted: np.ndarray | None = None
    cells: Mapping[str, np.ndarray] = field(default_factory=dict)
    footprints: Footprints | None = None
    images: Mapping[str, np.ndarray] = field(default_factory=dict)
    excluded: np.ndarray | None = None
    starts: np.ndarray | None = None
    behavior: Behavior = Behavior()
    neuropil_coefficient: float | None = None
    pixel_size: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def n_frames(self) -> int:
        """Number of frames."""
        return int(self._any.shape[0])

    @property
    def n_cells(self) -> int:
        """Number of ROIs."""
        return int(self._any.shape[1])

    @property
    def _any(self) -> np.ndarray | LazyTraces:
        return next(iter(self.signals.values()))


LEAST, MOST = 0.01, 100.0
"""Micrometres that a pixel of a microscope may have; 72 dots per inch, say, are 353 of them."""
SQUARE = 0.02
"""Share by which height and width may differ before it is told."""

_MICROMETRES = {
    **dict.fromkeys(("µm", "μm", "um", r"\u00b5m", "micron", "microns"), 1.0),
    **dict.fromkeys(("micrometer", "micrometers", "micrometre", "micrometres"), 1.0),
    **dict.fromkeys(("nm", "nanometer", "nanometers", "nanometre", "nanometres"), 1e-3),
    **dict.fromkeys(("mm", "millimeter", "millimeters", "millimetre", "millimetres"), 1e3),
    **dict.fromkeys(("cm", "centimeter", "centimeters"), 1e4),
    **dict.fromkeys(("m", "meter", "meters", "metre", "metres"), 1e6),
    **dict.fromkeys(("inch", "inches", "in"), 25_400.0),
}


def micrometres(unit: Any) -> float | None:
    """Micrometres in a unit of length; None if it is none.

    >>> micrometres("microns"), micrometres("meters"), micrometres("pixels")
    (1.0, 1000000.0, None)
    """
    return _MICROMETRES.get(str(unit).strip().lower())


def judged(width: Any, height: Any = None) -> tuple[float | None, tuple[str, ...]]:
    """Micrometres per pixel, and notes; None if it cannot be true.

    Parameters
    ----------
    width, height : number
        Of a pixel, in micrometres; the height is the same if it is not given.

    >>> judged(0.8, 0.8), judged(352.8)
    ((0.8, ()), (None, ()))
    """
    try:
        across, down = float(width), float(width if height is None else height)
    except (TypeError, ValueError, OverflowError):
        return None, ()
    if not (LEAST <= across <= MOST and LEAST <= down <= MOST):
        return None, ()
    if abs(across - down) <= SQUARE * across:
        return across, ()
    note = (
        f"Pixels are {across:.3g} µm wide and {down:.3g} µm high, but are drawn as squares: the "
        "scale bar is for the width."
    )
    return across, (note,)


def pair(value: Any) -> tuple[float, float] | None:
    """The first two of one to three numbers, or one of them twice; None of anything else."""
    try:
        numbers = np.asarray(value, np.float64).reshape(-1)
    except (TypeError, ValueError, OverflowError):
        return None
    if len(numbers) not in (1, 2, 3) or not np.isfinite(numbers).all():
        return None
    return float(numbers[0]), float(numbers[min(1, len(numbers) - 1)])
