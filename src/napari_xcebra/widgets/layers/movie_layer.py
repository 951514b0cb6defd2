"""Shows the movie of a recording on its time slider, without waiting for slow files."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.recording import Movie, Recording
from napari_xcebra.widgets.layers.cell_movie import frames_of
from napari_xcebra.widgets.state.own_layers import LayerTuple, metadata

PATIENCE = 0.015
"""Seconds to wait for a frame before the one before it is shown a little longer."""


class MovieOnSlider:
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
        frames, rest = frames_of(key, self.shape)
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
    return MovieOnSlider(movie, recording.n_frames), shown, "image"
