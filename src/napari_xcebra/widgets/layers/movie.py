"""Shows the movie of a recording on its time slider, not waiting for files, and values by cell."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from napari.utils.notifications import show_warning
from qtpy.QtCore import QObject, Signal

from napari_xcebra.errors import InputError
from napari_xcebra.recording import Movie, Recording
from napari_xcebra.widgets.state.signals import OfState
from napari_xcebra.widgets.state.state import LayerTuple, metadata, role_of

if TYPE_CHECKING:
    from napari_xcebra.widgets.state.state import State


PATIENCE = 0.015
"""Seconds to wait for a frame before the one before it is shown a little longer."""


class _MovieOnSlider:
    """Stands for a (frames, height, width) image, or (frames, planes, height, width).

    napari asks for a frame at a time, in the thread of the window. A thread reads it. Once
    someone listens to `late`, a frame that takes long is shown when it has come; meanwhile the
    one before stays. Of frames that are asked for meanwhile only the last is read.

    Parameters
    ----------
    movie : Movie
    n_frames : int
        Of the recording.
    """

    def __init__(self, movie: Movie, n_frames: int) -> None:
        self.movie, self._n_frames = movie, n_frames
        self.late: Callable[[], object] | None = None
        """Called in another thread when a frame has come that was not waited for."""
        self.problem = ""
        """Why the last frame could not be read, in a sentence."""
        self._turn = threading.Condition()
        self._at_hand: tuple[tuple[int, int], np.ndarray] | None = None
        self._wanted: tuple[int, int] | None = None
        self._reading = self._awaited = False

    @property
    def shape(self) -> tuple[int, ...]:
        """Frames of the recording, planes if there are any, height and width."""
        return (self._n_frames, *self.movie.shape[1:])

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def dtype(self) -> np.dtype:
        """Type of the values."""
        return self.movie.dtype

    @property
    def size(self) -> int:
        """Number of pixels in all frames."""
        return int(np.prod(self.shape, dtype=np.int64))

    def __len__(self) -> int:
        return self._n_frames

    def __getitem__(self, key: Any) -> np.ndarray:
        frames, rest = _frames_of(key, self.shape)
        if isinstance(frames, int):
            return self._part(frames, rest)
        wait = len(frames) > 1
        return np.stack([self._part(frame, rest, wait=wait) for frame in frames])

    def _part(self, frame: int, rest: tuple[Any, ...], *, wait: bool = False) -> np.ndarray:
        number = self.movie.of_frame(frame)
        if not self.movie.stacked:
            return self._frame(number, 0, wait)[rest]
        if rest and np.ndim(rest[0]) == 0 and not isinstance(rest[0], slice):
            plane = int(np.arange(len(self.movie.planes))[rest[0]])
            return self._frame(number, plane, wait)[rest[1:]]
        planes = range(len(self.movie.planes))
        return np.stack([self._frame(number, plane, wait=True) for plane in planes])[rest]

    def _frame(self, number: int, plane: int, wait: bool) -> np.ndarray:
        """The frame, or, where it takes long and someone will be told, what is at hand."""
        if wait or self.late is None:
            return self.movie.plane(number, plane)
        with self._turn:
            self._wanted = number, plane
            if self._at_hand is None or self._at_hand[0] != self._wanted:
                self._awaited = True
                if not self._reading:
                    self._reading = True
                    threading.Thread(target=self._read, daemon=True, name="movie").start()
                self._turn.wait_for(self._has_come, PATIENCE)
                self._awaited = False
            if self._at_hand is None:
                return np.zeros(self.movie.field, self.dtype)
            return self._at_hand[1]

    def _has_come(self) -> bool:
        return not self._reading or (self._at_hand or (None,))[0] == self._wanted

    def _read(self) -> None:
        """Read what is wanted until there is nothing newer; in a thread."""
        while True:
            with self._turn:
                key = self._wanted
            assert key is not None, "a thread is started for a frame"
            try:
                frame, self.problem = self.movie.plane(*key), ""
            except InputError as error:
                frame, self.problem = np.zeros(self.movie.field, self.dtype), str(error)
            with self._turn:
                self._at_hand = key, frame
                done = key == self._wanted
                if done:
                    self._reading = False
                late = not self._awaited
                self._turn.notify_all()
            if (late or self.problem) and self.late is not None:
                self.late()
            if done:
                return


def movie_layer(recording: Recording, token: str) -> LayerTuple:
    """Layer of the movie of a recording."""
    movie = recording.movie
    assert movie is not None, "only a recording with a movie has such a layer"
    shown = {
        "name": "movie",
        "colormap": "gray",
        "contrast_limits": movie.contrast,
        "rgb": False,
        "multiscale": False,
        # one frame as it is; napari would take the mean of that one
        "projection_mode": "none",
        "axis_labels": ("frame", "plane", "y", "x") if movie.stacked else ("frame", "y", "x"),
        "metadata": metadata("movie", recording, token),
    }
    return _MovieOnSlider(movie, recording.n_frames), shown, "image"


class _Arrivals(QObject):
    """Carries the news from the thread that reads to that of the window."""

    came = Signal()


class MoviePlayer(OfState):
    """Lets no movie of the window wait for its files, and draws each frame when it has come."""

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self._arrivals = _Arrivals()
        self._arrivals.came.connect(self._draw)
        self._told: set[str] = set()
        for layer in state.viewer.layers:
            self._listen(layer)
        state.viewer.layers.events.inserted.connect(self._follow)

    def _follow(self, event: Any) -> None:
        self._listen(event.value)

    def _listen(self, layer: Any) -> None:
        if role_of(layer) == "movie":
            layer.data.late = self._arrivals.came.emit

    def _draw(self) -> None:
        if not self.state_open:
            return
        for layer in self.state.viewer.layers:
            if role_of(layer) == "movie" and isinstance(layer.data, _MovieOnSlider):
                layer.refresh(extent=False, thumbnail=False)
                if (problem := layer.data.problem) and problem not in self._told:
                    self._told.add(problem)
                    show_warning(problem)


MOST_FRAMES = 64
"""Frames that are drawn at once where a stretch is asked for, evenly spaced over it."""


class CellMovie:
    """Stands for a (frames, height, width) image in which every cell has one value per frame.

    napari asks it for a frame at a time, so that a slider over 100,000 frames costs nothing.

    Parameters
    ----------
    values : (frames, cells) array or LazyTraces
        Can be replaced later: set `values`, then refresh the layer.
    labels : (height, width) or (planes, height, width) int
        Cell i has label i + 1.
    """

    dtype = np.dtype(np.float32)

    def __init__(self, values: Any, labels: np.ndarray) -> None:
        self.values = values
        # np.take wants the platform's own integers; converting once saves a copy a frame
        self._labels = labels.astype(np.intp)
        self._lookup = np.full(int(values.shape[1]) + 1, np.nan, np.float32)
        # napari may still hold the frame before while it asks for the next
        self._buffers = [np.empty(labels.shape, np.float32) for _ in range(2)]

    @property
    def shape(self) -> tuple[int, ...]:
        """Frames, then the field of view."""
        return (int(self.values.shape[0]), *self._labels.shape)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return 1 + self._labels.ndim

    @property
    def size(self) -> int:
        """Number of pixels in all frames."""
        return int(np.prod(self.shape))

    def __len__(self) -> int:
        return self.shape[0]

    def frame(self, number: int) -> np.ndarray:
        """Field of view at a frame, background NaN; valid until the frame after the next."""
        self._lookup[1:] = self.values[number]
        self._buffers.reverse()
        return np.take(self._lookup, self._labels, out=self._buffers[0], mode="clip")

    def __getitem__(self, key: Any) -> np.ndarray:
        frames, rest = _frames_of(key, self.shape)
        if isinstance(frames, int):
            return self.frame(frames)[rest]
        return np.stack([self.frame(frame)[rest].copy() for frame in frames])


def _frames_of(key: Any, shape: tuple[int, ...]) -> tuple[int | list[int], tuple[Any, ...]]:
    """Frames that an index asks for, a few of a long stretch, and what it asks for of each.

    >>> _frames_of((7, slice(2)), (100, 8, 8))
    (7, (slice(None, 2, None),))
    >>> _frames_of((Ellipsis, 3), (2, 8, 8))
    ([0, 1], (slice(None, None, None), 3))
    """
    key = key if isinstance(key, tuple) else (key,)
    if Ellipsis in key:
        place = key.index(Ellipsis)
        filled = (slice(None),) * (len(shape) - len(key) + 1)
        key = (*key[:place], *filled, *key[place + 1 :])
    frames = np.arange(shape[0])[key[0]]
    if np.ndim(frames) == 0:
        return int(frames), key[1:]
    if len(frames) > MOST_FRAMES:
        frames = frames[np.linspace(0, len(frames) - 1, MOST_FRAMES).astype(int)]
    return frames.tolist(), key[1:]
