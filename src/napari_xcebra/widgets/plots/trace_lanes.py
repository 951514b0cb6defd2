"""Draws signals below each other, each in its own lane, thinned to what a screen can show.

Drawing 100,000 frames must not take longer than drawing 1,000.
Buckets have a power of two of frames and lie at multiples of it, so that a signal does not
flicker when it is scrolled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from napari_xcebra.attribution.single_cell.tuning import Column
from napari_xcebra.recording import Kind


class Extremes:
    """Lowest and highest value of a signal in buckets of 2, 4, 8 … frames.

    Parameters
    ----------
    values : (frames,) float
        NaN where there is none.
    """

    def __init__(self, values: np.ndarray) -> None:
        values = np.asarray(values)
        self._levels = [(values, values)]
        while len(self._levels[-1][0]) > 64:
            low, high = self._levels[-1]
            self._levels.append((_halved(low, np.fmin), _halved(high, np.fmax)))

    def between(self, first: int, last: int, points: int) -> tuple[np.ndarray, np.ndarray]:
        """Frames and values to draw for first ≤ frame < last.

        Where there are more frames than points, between `points` and 4 × `points` come back,
        the lowest and the highest value of each bucket.
        """
        level = min(_level(last - first, points), len(self._levels) - 1)
        low, high = self._levels[level]
        if level == 0:
            return np.arange(first, last), low[first:last]
        bucket = np.arange(first >> level, min(((last - 1) >> level) + 1, len(low)))
        frames = np.repeat((bucket << level) + (1 << (level - 1)), 2)
        values = np.stack([low[bucket], high[bucket]], axis=1).ravel()
        return np.minimum(frames, len(self._levels[0][0]) - 1), values


def every_nth(
    values: np.ndarray, first: int, last: int, points: int
) -> tuple[np.ndarray, np.ndarray]:
    """Frames and values at even distances, for signals whose extremes mean nothing: angles."""
    step = 1 << _level(last - first, points)
    frames = np.arange(-(-first // step) * step, last, step)
    return frames, values[frames]


def joined(values: np.ndarray, part: np.ndarray, period: float | None = None) -> np.ndarray:
    """Whether a line leads from each point to the next: (points,) bool, the last False.

    Parameters
    ----------
    values : (points,) float
        No line leads to or from NaN.
    part : (points,) int
        No line leads from one part of the recording to another.
    period : float, optional
        No line leads across the wrap of an angle.
    """
    known = np.isfinite(values)
    lines = np.zeros(len(values), bool)
    lines[:-1] = known[1:] & known[:-1] & (part[1:] == part[:-1])
    if period is not None:
        with np.errstate(invalid="ignore"):
            lines[:-1] &= np.abs(np.diff(values)) < period / 2
    return lines


def steps(
    times: np.ndarray, values: np.ndarray, lines: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same signal as a staircase: each value stays until the next."""
    if len(times) < 2:
        return times, values, lines
    flat = np.repeat(lines, 2)[:-1]
    return np.repeat(times, 2)[1:], np.repeat(values, 2)[:-1], flat


def _level(frames: int, points: int) -> int:
    """Power of two of the frames a bucket has."""
    return max(0, int(np.floor(np.log2(max(frames, 1) / max(points, 1)))))


def _halved(values: np.ndarray, pick: np.ufunc) -> np.ndarray:
    even = values[: len(values) // 2 * 2]
    half = pick(even[::2], even[1::2])
    return half if len(even) == len(values) else np.append(half, values[-1])


GAP = 0.12
"""Share of a lane that is left free between it and the next."""
FEW = 4
"""Words that fit beside a lane."""


@dataclass(frozen=True, eq=False)
class Line:
    """A signal in a lane.

    Parameters
    ----------
    values : (frames,) float
    pen : any
        What pyqtgraph takes for a pen.
    kind : {"continuous", "circular", "discrete"}
    period : float
        Full turn, if circular.
    frames : (n,) int, optional
        Frames that the values belong to, ascending; all from 0 on if not given.
    """

    values: np.ndarray
    pen: Any
    kind: Kind = "continuous"
    period: float = 2 * np.pi
    frames: np.ndarray | None = None

    @cached_property
    def _extremes(self) -> Extremes:
        return Extremes(self.values)

    def visible(
        self, first: int, last: int, points: int, times: np.ndarray, part: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What to draw of the frames from first to last: times, values, lines between them.

        Parameters
        ----------
        first, last : int
            Frames, without the last.
        points : int
            About as many are wanted.
        times : (frames,) float
        part : (frames,) int
            No line leads from one part of the recording to another.
        """
        if self.frames is not None:
            first, last = np.searchsorted(self.frames, (first, last))
        if self.kind == "circular":
            found, values = every_nth(self.values, first, last, points)
        else:
            found, values = self._extremes.between(first, last, points)
        if self.frames is not None:
            found = self.frames[found]
        period = self.period if self.kind == "circular" else None
        lines = joined(values, part[found], period)
        at, values = times[found], np.nan_to_num(values)
        return steps(at, values, lines) if self.kind == "discrete" else (at, values, lines)

    def texts(self, frames: np.ndarray) -> list[str]:
        """Values at some frames, for a table; empty where there is none."""
        at = np.full(int(frames[-1]) + 1, np.nan)
        known = np.arange(len(self.values)) if self.frames is None else self.frames
        inside = known < len(at)
        at[known[inside]] = self.values[inside]
        return ["" if np.isnan(value) else f"{value:.6g}" for value in at[frames]]


@dataclass(frozen=True, eq=False)
class Lane:
    """A strip of the plot.

    Parameters
    ----------
    title : str
    lines : sequence of Line
    low, high : float
        Values at the lower and upper edge.
    color : str
        Of the title.
    height : float
        Relative to the other lanes.
    ticks : mapping of float to str
        What is written at the right, by value.
    bar : (float, str), optional
        Scale bar at the right: how much it stands for, and in words.
    """

    title: str
    lines: Sequence[Line]
    low: float
    high: float
    color: str
    height: float = 1.0
    ticks: dict[float, str] = field(default_factory=dict)
    bar: tuple[float, str] | None = None


@dataclass(frozen=True)
class Placed:
    """Where a lane lies in the plot, which counts from 0 at the top downwards."""

    lane: Lane
    bottom: float
    top: float

    def height_of(self, values: Any) -> Any:
        """Position of values in the plot."""
        share = (np.asarray(values) - self.lane.low) / (self.lane.high - self.lane.low)
        return self.bottom + share * (self.top - self.bottom)

    @property
    def middle(self) -> float:
        """Where the title goes."""
        return (self.bottom + self.top) / 2


def placed(lanes: Sequence[Lane]) -> list[Placed]:
    """Lanes from top to bottom: the first begins at 0, below it the values are negative."""
    ends = -np.cumsum([0.0] + [lane.height for lane in lanes])
    return [
        Placed(lane, end + GAP / 2, start - GAP / 2)
        for lane, start, end in zip(lanes, ends[:-1], ends[1:], strict=True)
    ]


def cell_lane(
    title: str, trace: np.ndarray, unit: str, pen: Any, color: str, height: float = 1.0
) -> Lane:
    """Lane of a trace, from its resting level to nearly its highest peak, with a scale bar."""
    low, high = np.percentile(trace[:: max(1, len(trace) // 50_000)], [0.5, 99.95])
    low, high = _apart(low, high)
    size = round_part(high - low)
    bar = (size, f"{size:g} {unit}".rstrip())
    return Lane(title, [Line(trace, pen)], low, high, color, height, bar=bar)


def round_part(whole: float) -> float:
    """A round number, between a fifth and a half of another one.

    >>> round_part(1.9), round_part(430.0), round_part(0.027)
    (0.5, 200.0, 0.01)
    """
    power = 10 ** np.floor(np.log10(whole / 2))
    return float(max(n for n in (1, 2, 5) if n * power <= whole / 2) * power)


def behavior_lane(column: Column, pen: Any, color: str) -> Lane:
    """Lane of a behaviour variable: angles without their wraps, discrete values as steps."""
    values = column.values
    if column.kind == "circular":
        values = values % column.period
        low, high = 0.0, column.period
    else:
        known = values[~np.isnan(values)]
        low, high = _apart(known.min(), known.max()) if len(known) else (0.0, 1.0)
    line = Line(values, pen, column.kind, column.period)
    ticks = _words(column) or _ends(low, high)
    return Lane(column.title, [line], low, high, color, 1.0, ticks)


def _words(column: Column) -> dict[float, str]:
    """Words of a discrete column by value, if it has few."""
    words = dict(enumerate(column.words)) if column.kind == "discrete" else {}
    return {float(value): word for value, word in words.items()} if len(words) <= FEW else {}


def score_lane(
    title: str, scores: np.ndarray, frames: np.ndarray, pens: Sequence[Any], color: str
) -> Lane:
    """Lane of the scores of several cells over time: (n, cells) float at n frames."""
    known = scores[np.isfinite(scores)]
    low, high = _apart(0.0, np.percentile(known, 99.8)) if len(known) else (0.0, 1.0)
    lines = [Line(values, pen, frames=frames) for values, pen in zip(scores.T, pens, strict=True)]
    return Lane(title, lines, low, high, color, 1.5, _ends(low, high))


def _apart(low: float, high: float) -> tuple[float, float]:
    return (float(low), float(high)) if high > low else (float(low) - 0.5, float(low) + 0.5)


def _ends(low: float, high: float) -> dict[float, str]:
    return {low: f"{low:.3g}", high: f"{high:.3g}"}
