"""Makes an image over time of one value per cell and frame, a frame when it is asked for."""

from __future__ import annotations

from typing import Any

import numpy as np

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
        frames, rest = frames_of(key, self.shape)
        if isinstance(frames, int):
            return self.frame(frames)[rest]
        return np.stack([self.frame(frame)[rest].copy() for frame in frames])


def frames_of(key: Any, shape: tuple[int, ...]) -> tuple[int | list[int], tuple[Any, ...]]:
    """Frames that an index asks for, a few of a long stretch, and what it asks for of each.

    >>> frames_of((7, slice(2)), (100, 8, 8))
    (7, (slice(None, 2, None),))
    >>> frames_of((Ellipsis, 3), (2, 8, 8))
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
