"""Opens a video of the animal, and brings it to the clock of a recording."""

from __future__ import annotations

from itertools import islice
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
        stamps = stamps_of(container, stream)
        field = int(stream.height), int(stream.width)
    # a damaged file fails in many ways
    except Exception as error:
        raise InputError(f"{path} cannot be read as a video ({error}).") from error
    finally:
        container.close()
    if not len(stamps):
        raise InputError(f"{path} has no frames.")
    times = _times(path, stamps, settings)
    imaged = np.asarray(recording.times)
    if times[-1] < imaged[0] or times[0] > imaged[-1]:
        raise InputError(
            f"{path} runs from {times[0]:.1f} to {times[-1]:.1f} s, but the imaging from "
            f"{imaged[0]:.1f} to {imaged[-1]:.1f} s: set `video_offset`, in seconds."
        )
    return Video(path, times, field, stamps)


def stamps_of(container: Any, stream: Any) -> np.ndarray:
    """(frames,) float64, seconds at which a file shows its frames.

    Where it does not say that they are evenly spaced, the file is read, but no frame is decoded.
    """
    count, rate, unit = int(stream.frames), stream.average_rate, float(stream.time_base)
    if 0 < count <= MOST_FRAMES and rate and rate == stream.base_rate:
        return (stream.start_time or 0) * unit + np.arange(count) / float(rate)
    packets = (packet for packet in container.demux(stream) if packet.size)
    shown = (packet.dts if packet.pts is None else packet.pts for packet in packets)
    places = np.fromiter((at for at in islice(shown, MOST_FRAMES) if at is not None), np.int64)
    return np.sort(places) * unit


def _times(path: Path, stamps: np.ndarray, settings: OpenSettings) -> np.ndarray:
    """Seconds on the clock of the imaging at which the frames were taken."""
    count = len(stamps)
    if not settings.video_times:
        rate = settings.video_rate
        times = np.arange(count) / rate if rate else stamps - stamps[0]
        return times + settings.video_offset
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
