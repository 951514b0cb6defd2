"""Decides on device, precision and threads, and holds the inputs on the device.

What is drawn or gathered at every step is drawn or gathered there: of the host it needs one batch
of frame numbers. Double precision is for the processor, as not every GPU has it.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import torch
from threadpoolctl import threadpool_limits
from torch import Tensor

from napari_xcebra.errors import InputError

if TYPE_CHECKING:
    from napari_xcebra.learn.data.inputs import ReadInputs

DIGESTED_BYTES = 64 * 2**20
"""Inputs that suffice to tell one recording from another."""

EMBEDDED_BYTES = 16 * 2**20
"""Inputs that are encoded at a time."""

CACHED_BYTES = 2**20
"""Inputs that are gathered and hidden at a time."""

SHARES, WINDOWS = 32, 1024
"""Shares of cells that are hidden, and masks of each."""

STEPS_A_DRAW = 32
"""Steps for which masks are drawn at once."""

TRIED_STEPS = 4
"""Steps on each number of threads that is tried."""

LONG_STEP = 0.01
"""Seconds of a step from which on more threads are worth trying."""


def in_double(values: Tensor) -> Tensor:
    """Values in double precision, on the processor: GPUs of Apple refuse it."""
    return values.cpu().double()


def seeded(seed: int, device: torch.device) -> torch.Generator | None:
    """Source of random numbers on a device; None for `meta`, which has no numbers."""
    return None if device.type == "meta" else torch.Generator(device).manual_seed(seed)


class FrameData:
    """Inputs on the training device, gathered by frame number.

    Parameters
    ----------
    inputs : (frames, cells) float32, or computed on demand
    window : int
        1: each frame for itself; else with the frames around it, (cells, window) a frame.
    """

    def __init__(self, inputs: np.ndarray | ReadInputs, window: int, device: torch.device) -> None:
        self._rows: Tensor | ReadInputs
        if not isinstance(inputs, np.ndarray):
            self._rows = inputs
        else:
            # a frame's cells beside each other, or gathering it touches as many lines of memory
            self._rows = torch.as_tensor(np.ascontiguousarray(inputs), device=device)
        self.window, self.device = window, device
        self._room: Tensor | None = None
        self._drawn: tuple[tuple[int, float, int], Tensor] | None = None
        self.lags = np.arange(window) - window // 2

    def __len__(self) -> int:
        """Frames of the recording."""
        return self._rows.shape[0]

    def digest(self) -> str:
        """Hash of the inputs, at evenly spaced frames if they are many, to tell them apart."""
        frames, cells = self._rows.shape
        every = max(1, 4 * frames * cells // DIGESTED_BYTES)
        rows = self._gathered(np.arange(0, frames, every)).cpu().numpy()
        return hashlib.sha256(repr((frames, cells)).encode() + rows.data).hexdigest()

    def __getitem__(self, frames: np.ndarray) -> Tensor:
        """(frames, cells) or (frames, cells, window)."""
        if self.window == 1:
            return self._gathered(frames)
        # lag by lag in memory, which is how convolutions go through it
        rows = self._gathered((self.lags[:, None] + frames).ravel())
        return rows.view(self.window, len(frames), -1).permute(1, 2, 0)

    def seen(self, frames: np.ndarray | Tensor, hide: float, seed: int) -> Tensor:
        """The same, with some cells hidden from each frame; valid until the next call.

        Dropout on the inputs, so that the encoder relies on no cell alone, with a share drawn anew
        for every frame: a fixed share of a half costs recordings of few cells much of what they
        tell (results/ordinary.md, "Hiding cells"). Hidden cells are at their mean, the others
        larger in proportion.

        Gathered and hidden a few frames at a time, while they are in the processor's cache, and
        always in the same memory: with thousands of cells, new memory takes longer than the rest.

        Parameters
        ----------
        frames : (n,) int64
            On the device, or they are brought there.
        hide : float
            Largest share of the cells to hide.
        seed : int
            The same seed hides the same cells.
        """
        cells, first = self._rows.shape[1], -(self.window // 2)
        frames = torch.as_tensor(frames, device=self.device)
        rows = self._room_for(len(frames) * self.window).view(self.window, len(frames), cells)
        hidden = self._masks(len(frames), cells, hide, seed) if hide else None
        for here in _cached(len(frames), cells):
            mask = hidden[0].index_select(0, hidden[1][here]) if hidden else None
            for lag in range(self.window):
                some, wanted = rows[lag, here], frames[here] + (first + lag)
                if not isinstance(self._rows, Tensor):
                    some.copy_(torch.from_numpy(self._rows[wanted.cpu().numpy()]))
                else:
                    torch.index_select(self._rows, 0, wanted, out=some)
                if mask is not None:
                    some.mul_(mask)
        return rows[0] if self.window == 1 else rows.permute(1, 2, 0)

    def _masks(self, frames: int, cells: int, hide: float, seed: int) -> tuple[Tensor, Tensor]:
        """Masks drawn in bulk for several steps, and which of them each frame has."""
        key = cells, hide, seed // STEPS_A_DRAW
        if self._drawn is None or self._drawn[0] != key:
            self._drawn = key, _masks(cells, hide, key[2], self.device)
        return self._drawn[1], _own_masks(frames, cells, seed, self.device)

    @property
    def bytes_of_frame(self) -> int:
        """Memory that the inputs of a frame take."""
        return 4 * self._rows.shape[1] * self.window

    def _room_for(self, rows: int) -> Tensor:
        if self._room is None or len(self._room) < rows:
            self._room = torch.empty(rows, self._rows.shape[1], device=self.device)
        return self._room[:rows]

    def _gathered(self, frames: np.ndarray) -> Tensor:
        """Inputs of these frames alone: (frames, cells)."""
        if not isinstance(self._rows, Tensor):
            return torch.from_numpy(self._rows[frames]).to(self.device)
        return self._rows.index_select(0, torch.as_tensor(frames, device=self.device))


def _masks(cells: int, most: float, seed: int, device: torch.device) -> Tensor:
    """Factors of the cells, 0 where they are hidden: (masks, cells) float32.

    To draw every cell of every frame takes as long as the rest of a step. Masks are windows into a
    few long rows of factors instead, one row for each share that is hidden: as good as new ones,
    and small enough to stay in the processor's cache. They overlap in memory.
    """
    generator = seeded(seed, device)
    length = cells + WINDOWS
    level = torch.arange(SHARES, device=device)[:, None]
    hidden = torch.rand(SHARES, 1, generator=generator, device=device)
    hidden = (most / SHARES) * (level + hidden)
    shown = torch.rand(SHARES, length, generator=generator, device=device) >= hidden
    factors = shown / shown.float().mean(1, keepdim=True).clamp_(min=1 / length)
    return factors.as_strided((SHARES * length - cells, cells), (1, 1))


def _own_masks(frames: int, cells: int, seed: int, device: torch.device) -> Tensor:
    """Mask of each frame: (frames,) int64."""
    generator = seeded(seed, device)
    first = torch.randint(SHARES * WINDOWS, (frames,), generator=generator, device=device)
    return first + first.div(WINDOWS, rounding_mode="floor") * cells


def _cached(frames: int, cells: int) -> Iterator[slice]:
    """Frames a few at a time, as fit into the processor's cache."""
    step = max(1, CACHED_BYTES // (4 * cells))
    for start in range(0, frames, step):
        yield slice(start, min(start + step, frames))


def embedded(
    encoder: Callable[[Tensor], Tensor], data: FrameData, frames: np.ndarray
) -> np.ndarray:
    """Embedding at these frames, NaN elsewhere: (all frames, latents) float32."""
    found = None
    with torch.no_grad():
        pieces = min(-(-len(frames) * data.bytes_of_frame // EMBEDDED_BYTES), len(frames))
        for chunk in np.array_split(frames, max(1, pieces)):
            values = encoder(data[chunk]).cpu().numpy()
            if found is None:
                found = np.full((len(data), values.shape[1]), np.nan, np.float32)
            found[chunk] = values
    assert found is not None
    return found


def choose_device(name: str) -> torch.device:
    """Device by name; "auto" takes a GPU where there is one."""
    if name == "auto":
        if torch.cuda.is_available():
            name = "cuda"
        else:
            name = "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError):
        raise InputError(f"`device` is {name!r}, which this computer does not have.") from None
    return device


def describe_device(name: str, threads: int) -> str:
    """Device in words: the name of the GPU, or the processor with its threads.

    >>> describe_device("cpu", 1)
    'CPU, 1 thread'
    """
    device = choose_device(name)
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    if device.type == "mps":
        return "the GPU of this Mac (mps)"
    if device.type != "cpu":
        return str(device)
    threads = threads or torch.get_num_threads()
    return f"CPU, {threads} thread{'s' if threads > 1 else ''}"


@contextmanager
def limited_threads(threads: int) -> Iterator[None]:
    """Compute on that many threads (0: unchanged), and restore the number afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads or before)
    try:
        with threadpool_limits(threads or None, user_api="blas"):  # of numpy; torch has its own
            yield
    finally:
        torch.set_num_threads(before)


class ThreadTrial:
    """Tries the first steps on one thread, on two, four …, until more are no faster.

    All steps count. The number of threads decides in which order numbers are summed, and so the
    last digits of a result; hence only on request.

    Parameters
    ----------
    most : int
        Threads at most.
    clock : callable
        Seconds that have passed.
    """

    def __init__(self, most: int, clock: Callable[[], float] = time.perf_counter) -> None:
        self._most, self._clock = most, clock
        self._fastest, self._shortest = 1, float("inf")
        self._spent: list[float] = []
        self.threads = 1
        self.over = False

    @contextmanager
    def step(self) -> Iterator[None]:
        """Context of each step: sets the threads to try, and times it."""
        if self.over:
            yield
            return
        torch.set_num_threads(self.threads)
        began = self._clock()
        yield
        self._spent.append(self._clock() - began)
        if len(self._spent) == TRIED_STEPS:
            self._next(min(self._spent))
            self._spent = []

    def _next(self, seconds: float) -> None:
        faster = seconds < self._shortest
        if faster:
            self._fastest, self._shortest = self.threads, seconds
        self.over = not faster or seconds < LONG_STEP or 2 * self.threads > self._most
        self.threads = self._fastest if self.over else 2 * self.threads
        torch.set_num_threads(self.threads)
