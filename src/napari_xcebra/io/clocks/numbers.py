"""Places behaviour by numbers of frames or samples, and between the ticks of a coarse clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.io.clocks.time_files import slack
from napari_xcebra.io.extraction import Series, TimesIn
from napari_xcebra.io.settings import OpenSettings


def place_numbers(
    series: Sequence[Series], frames: np.ndarray, settings: OpenSettings, who: str
) -> tuple[list[Series], list[str]]:
    """Series numbered by frames or samples, with times in seconds; and notes.

    Parameters
    ----------
    series : sequence of Series
    frames : (frames,) float64
        Seconds at which the frames were taken; NaN where that is not known.
    settings : OpenSettings
    who : str
        What sentences call the source.
    """
    clocks: dict[int, tuple[np.ndarray | None, np.ndarray | slice]] = {}
    placed: list[Series] = []
    notes: list[str] = []
    for one in series:
        if one.times is None or one.times_in not in ("frames", "samples"):
            placed.append(one)
            continue
        are_frames = one.times_in == "frames" and not settings.behavior_rate
        if id(one.times) not in clocks:
            numbers = np.asarray(one.times, np.float64)
            times, rows, said = (
                _by_frames(numbers, frames, settings, who)
                if are_frames
                else _by_samples(numbers, len(frames), settings, who)
            )
            clocks[id(one.times)] = (times, rows)
            notes += said
        times, rows = clocks[id(one.times)]
        values = np.asarray(one.values)[rows]
        times_in: TimesIn = "frames" if are_frames else "seconds"
        placed.append(replace(one, values=values, times=times, times_in=times_in))
    return placed, notes


def _by_frames(
    numbers: np.ndarray, frames: np.ndarray, settings: OpenSettings, who: str
) -> tuple[np.ndarray | None, np.ndarray | slice, list[str]]:
    """Times of the frames that rows name, the rows to take, and notes."""
    n_frames = len(frames)
    counted = numbers[np.isfinite(numbers) & (numbers >= 0)]
    if len(counted) == 0:
        raise InputError(
            f"{who} numbers no frame: set `behavior_clock` to rows if each row is one."
        )
    low, high = counted.min(), counted.max()
    first, is_guess = _first_number(low, high, n_frames, settings)
    numbers = numbers - first
    inside = np.isfinite(numbers) & (numbers >= 0) & (numbers <= n_frames - 1)
    beyond = int((numbers > n_frames - 1).sum())
    if settings.behavior_clock in ("auto", "frames") and beyond > slack(n_frames):
        raise InputError(
            f"{who} numbers frames {low:g} to {high:g}, but the recording has {n_frames} frames. "
            "If they are those of a camera, set `behavior_rate` to its frames per second. To leave "
            f"out what is beyond the last frame, set `behavior_clock` to frames-from-{first}."
        )
    if len(numbers) == n_frames and np.array_equal(numbers, np.arange(n_frames)):
        return None, slice(None), []
    seen = len(np.unique(np.round(numbers[inside])))
    note = f"{who} numbers {seen:,} of {n_frames:,} frames, from {first} on"
    if is_guess:
        note += (
            f", which is a guess: set `behavior_clock` to frames-from-{1 - first} if it is wrong"
        )
    notes = [f"{note}. Frames without a row have no value (`gap` bridges them)."]
    if not inside.all():
        notes.append(f"{who} has {int((~inside).sum())} rows outside the frames: left out.")
    if not inside.any():
        raise InputError(
            f"{who} numbers frames {low:g} to {high:g}, but the recording has {n_frames} frames."
        )
    rows = np.flatnonzero(inside)
    return np.interp(numbers[rows], np.arange(n_frames), frames), rows, notes


def _first_number(
    low: float, high: float, n_frames: int, settings: OpenSettings
) -> tuple[int, bool]:
    """Number of the first frame, 0 or 1, and whether it is a guess."""
    if settings.behavior_clock in ("frames-from-0", "frames-from-1"):
        return int(settings.behavior_clock[-1]), False
    if low == 0:
        return 0, False
    if high == n_frames:
        return 1, False
    # nothing but the range tells: a table that ends early rather begins with the first frame
    return (1, True) if low == 1 and high < n_frames - 1 else (0, True)


def _by_samples(
    numbers: np.ndarray, n_frames: int, settings: OpenSettings, who: str
) -> tuple[np.ndarray | None, np.ndarray | slice, list[str]]:
    """Times of numbered samples, or their order if there is one for each frame; and notes."""
    known = numbers[np.isfinite(numbers)]
    if settings.behavior_rate:
        first = 1.0 if len(known) and known.min() == 1 else 0.0
        return (numbers - first) / settings.behavior_rate, slice(None), []
    order = np.argsort(numbers, kind="stable")
    steps = np.diff(numbers[order])
    regular = len(steps) and np.all(np.abs(steps / np.median(steps) - 1) < 0.01)
    if len(numbers) == n_frames and len(known) == n_frames and regular and np.median(steps) > 0:
        note = (
            f"{who} numbers its samples, one for each frame in their order: if that is wrong, set "
            "`behavior_rate` to the samples per second."
        )
        return None, order, [note]
    raise InputError(
        f"{who} numbers its samples, {len(numbers):,} for {n_frames:,} frames: set `behavior_rate` "
        "to the samples per second, or `behavior_clock` to rows if each row is a frame."
    )


def spread_ticks(times: np.ndarray, frames: np.ndarray) -> np.ndarray | None:
    """Times of rows that share a tick of a clock that is coarser than the frames.

    A clock of whole seconds gives ten rows a second the same time. They are spread evenly over
    the second; at the ends and beside gaps, where a tick has fewer rows, as wide as usual.

    Parameters
    ----------
    times : (rows,) float64
        Ascending.
    frames : (frames,) float64

    Returns
    -------
    (rows,) float64 or None
        None if fewer than half of the rows share the time of another, or ticks are fine enough.
    """
    ticks, inverse, counts = np.unique(times, return_inverse=True, return_counts=True)
    if len(ticks) < 2 or len(frames) < 2 or len(ticks) > 0.5 * len(times) + 1:
        return None
    steps = np.diff(ticks)
    tick, usual = float(np.median(steps)), float(np.median(counts))
    if tick <= float(np.median(np.diff(frames))):
        return None
    place = np.arange(len(times)) - np.r_[0, np.cumsum(counts)[:-1]][inverse]
    alone = steps > 1.5 * tick
    begins, ends = np.r_[True, alone], np.r_[alone, True]
    width = np.where((begins | ends) & (counts < usual), usual, counts)
    lead = np.where(begins & ~ends, width - counts, 0)
    return np.asarray(times + tick * (place + lead[inverse]) / width[inverse])
