"""Reads single frames of a video: on from the last one where that is near, else from a key frame.

A video is opened as what its name says, and never as a list of other files or addresses.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.io.clocks.time_files import read_times, slack
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.recording.movies import Video
from napari_xcebra.recording.recording import Recording

FORMATS = {
    ".mp4": "mp4",
    ".m4v": "mp4",
    ".mov": "mov",
    ".avi": "avi",
    ".mkv": "matroska",
    ".webm": "matroska",
    ".mpg": "mpeg",
    ".mpeg": "mpeg",
    ".wmv": "asf",
}
"""What a video may be, by the end of its name."""
NEAR = 60
"""Frames that are decoded on the way to one that is wanted, rather than looking for a key frame."""
WIDEST = 960
"""Pixels across that are shown; a wider video is made smaller as it is decoded."""


def is_video(path: Path) -> bool:
    """Whether a file has the name of a video."""
    return path.suffix.lower() in FORMATS and path.is_file()


def _open_container(path: Path) -> Any:
    """The file, opened by PyAV."""
    try:
        import av
    except ImportError:
        raise InputError(
            f"{path} is a video, which needs PyAV: pip install napari-xcebra[video]."
        ) from None
    if not is_video(path):
        known = ", ".join(FORMATS)
        raise InputError(f"{path} is not a video: a file that ends with {known} is needed.")
    try:
        only_files = {"protocol_whitelist": "file"}
        container = av.open(str(path), format=FORMATS[path.suffix.lower()], options=only_files)
    except (av.FFmpegError, OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read as a video ({error}).") from error
    if not container.streams.video:
        container.close()
        raise InputError(f"{path} has no pictures: a video is needed.")
    return container


class Decoder:
    """Frames of one video, for one thread; the file is open as long as this object lives.

    Parameters
    ----------
    path : Path
    stamps : (frames,) float64
        Seconds at which the file shows its frames, ascending.
    """

    def __init__(self, path: Path, stamps: np.ndarray) -> None:
        self._path, self._stamps = path, stamps
        self._between = (stamps[1:] + stamps[:-1]) / 2
        self._container = _open_container(path)
        self._stream = self._container.streams.video[0]
        self._stream.thread_type = "AUTO"
        self._coming: Iterator[Any] = iter(())
        self._at: int | None = None
        self._picture: np.ndarray | None = None

    def close(self) -> None:
        """Let go of the file."""
        self._container.close()

    def frame(self, number: int) -> np.ndarray:
        """(height, width, 3) uint8, a frame counted from 0."""
        if self._picture is not None and self._at == number:
            return self._picture
        try:
            self._picture = self._decoded(number)
        # a damaged file fails in many ways
        except Exception as error:
            self._at = None
            raise InputError(f"{self._path} cannot be read at frame {number:,} ({error}).") from (
                error
            )
        return self._picture

    def _decoded(self, number: int) -> np.ndarray:
        if self._at is None or not self._at < number <= self._at + NEAR:
            place = round(float(self._stamps[number]) / float(self._stream.time_base))
            self._container.seek(place, stream=self._stream)
            self._coming = self._container.decode(self._stream)
        last = None
        for frame in self._coming:
            last = frame
            self._at = self._number_of(frame)
            if self._at >= number:
                break
        if last is None:
            raise ValueError("it ends before")
        self._at = number
        return self._shown(last)

    def _number_of(self, frame: Any) -> int:
        if frame.time is None:
            return (self._at or 0) + 1
        return int(np.searchsorted(self._between, frame.time))

    def _shown(self, frame: Any) -> np.ndarray:
        share = min(1.0, WIDEST / frame.width)
        size = {} if share == 1 else {"width": int(frame.width * share) // 2 * 2,
                                      "height": int(frame.height * share) // 2 * 2}  # fmt: skip
        return frame.reformat(format="rgb24", **size).to_ndarray()


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
    container = _open_container(path)
    try:
        stream = container.streams.video[0]
        stamps = _stamps_of(container, stream)
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


def _stamps_of(container: Any, stream: Any) -> np.ndarray:
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
