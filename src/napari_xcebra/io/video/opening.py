"""Opens a video of the animal, and brings it to the clock of a recording."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.io.clocks.time_files import read_times, slack
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.io.video.decoding import open_container
from napari_xcebra.recording import Recording
from napari_xcebra.recording.movies.video import Video

MOST_FRAMES = 50_000_000


def open_video(settings: OpenSettings, recording: Recording) -> Video:
    """The video that the settings name, on the clock of a recording.

    Raises
    ------
    InputError
        If it cannot be read, its times do not fit, or it was taken at another time.
    """
    path = Path(settings.video)
    if not path.is_file():
        raise InputError(f"There is no video {path}.")
    container = open_container(path)
    try:
        stream = container.streams.video[0]
        rate, count = _rate_and_count(container, stream, path)
        field = int(stream.height), int(stream.width)
    finally:
        container.close()
    times = _times(path, count, settings.video_rate or rate, settings)
    imaged = np.asarray(recording.times)
    if times[-1] < imaged[0] or times[0] > imaged[-1]:
        raise InputError(
            f"{path} runs from {times[0]:.1f} to {times[-1]:.1f} s, but the imaging from "
            f"{imaged[0]:.1f} to {imaged[-1]:.1f} s: set `video_offset`, in seconds."
        )
    return Video(path, times, field, rate)


def _rate_and_count(container: Any, stream: Any, path: Path) -> tuple[float, int]:
    """Frames per second, and number of frames, which not every file says."""
    rate = float(stream.average_rate or stream.guessed_rate or 0)
    if not rate > 0:
        raise InputError(f"{path} does not say how many frames it has per second.")
    count = int(stream.frames)
    if not count and stream.duration:
        count = round(float(stream.duration * stream.time_base) * rate)
    if not count and container.duration:
        count = round(container.duration / 1e6 * rate)
    if not 0 < count < MOST_FRAMES:
        raise InputError(f"{path} has no frames, or does not say how long it is.")
    return rate, count


def _times(path: Path, count: int, rate: float, settings: OpenSettings) -> np.ndarray:
    """Seconds on the clock of the imaging at which the frames were taken."""
    if not settings.video_times:
        return np.arange(count) / rate + settings.video_offset
    file = Path(settings.video_times)
    times = read_times(file)
    if abs(len(times) - count) > slack(count):
        raise InputError(
            f"{file} has {len(times):,} times (`video_times`), but {path.name} has {count:,} "
            "frames: a time for each frame is needed."
        )
    if not np.isfinite(times).all() or (np.diff(times) < 0).any():
        raise InputError(f"{file} has times that run backwards: times in order are needed.")
    return times[:count] + settings.video_offset
