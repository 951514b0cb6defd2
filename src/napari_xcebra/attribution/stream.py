"""Reads the frames to explain and feeds them to the encoder chunk by chunk.

Only a stretch of the recording is in memory at a time, smoothed and standardised as in training, so
memory does not grow with the length of the recording.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from napari_xcebra.errors import InputError
from napari_xcebra.learn.data.split import usable_frames
from napari_xcebra.learn.device import FrameData, choose_device
from napari_xcebra.learn.model.encoder import Encoder
from napari_xcebra.learn.result import Fit
from napari_xcebra.recording import Recording
from napari_xcebra.support.diagnostics import cores

CHUNK_BYTES = 64 * 2**20
"""Bytes of one chunk with all temporary copies of its Jacobians; small enough for the working set
to stay in the processor's cache."""
ROW_BYTES = 2**20
"""Bytes of the stretch of the recording that chunks are cut from."""

FRAMES_OF_KEY = 64
"""Frames by which a recording is recognised."""
MOST_WORKERS = 8
"""Chunks at a time, however many cores there are: each takes memory."""

FrameChoice = slice | np.ndarray | None


@dataclass(frozen=True)
class Stream:
    """An encoder, and the inputs at which to explain it.

    Parameters
    ----------
    fit : Fit
    recording : Recording
    frames : (frames,) int64
        Ascending; each one's window lies within its trial.
    seed : int
        For methods that draw at random.
    device : torch.device
    workers : int
        Chunks explained at a time.
    data : FrameData, optional
        Inputs of all frames, if they are already in memory.
    """

    fit: Fit
    recording: Recording
    frames: np.ndarray
    seed: int
    device: torch.device
    workers: int = 1
    data: FrameData | None = None

    @cached_property
    def encoder(self) -> Encoder:
        """The trained encoder."""
        # making its layers draws weights, which would change the caller's random numbers
        with torch.random.fork_rng(devices=[]):
            return self.fit.encoder(str(self.device))

    @cached_property
    def scale(self) -> Tensor:
        """Factor of each latent inside the similarity: (latents,)."""
        return torch.as_tensor(np.array(self.fit.scale), device=self.device)

    @cached_property
    def key(self) -> bytes:
        """Recognises a fit, a recording with its labels, and frames; also in another process."""
        fit, recording = self.fit, self.recording
        some = np.linspace(0, recording.n_frames - 1, FRAMES_OF_KEY).astype(np.int64)
        labels = [recording.variable(name) for part in fit.parts for name in part.variables]
        kinds = [(each.name, each.kind) for each in labels]
        digest = hashlib.blake2b(f"{recording.source}{recording.n_frames}{kinds}".encode())
        trials = recording.trials
        for array in (
            recording.segment,
            *(np.asarray(each.values) for each in labels),
            *(() if trials is None else (trials.first, trials.stop)),
            *(fit.weights[name] for name in sorted(fit.weights)),
            fit.inputs.cell_ids,
            *(np.asarray(recording.traces[int(frame) : int(frame) + 1]) for frame in some),
            self.frames,
        ):
            digest.update(np.ascontiguousarray(array).data)
        return digest.digest()

    def chunks(self, copies: int = 8) -> Iterator[Tensor]:
        """Inputs of the encoder: (frames in chunk, cells) or (frames in chunk, cells, window).

        Parameters
        ----------
        copies : int
            Memory that the method needs for a frame, in Jacobians.
        """
        most = self._frames_at_once(copies)
        for frames in self._stretches():
            first, data = self._read(frames)
            for start in range(0, len(frames), most):
                yield data[frames[start : start + most] - first]

    def inputs(self, frames: np.ndarray) -> Tensor:
        """Inputs at these frames, ascending, from the stretch of the recording around them."""
        first, data = self._read(frames)
        return data[frames - first]

    def drawn(self, most: int) -> Tensor:
        """Inputs at this many frames of the stream, drawn at random by the seed."""
        rng = np.random.default_rng(self.seed)
        frames = rng.choice(self.frames, min(most, len(self.frames)), replace=False)
        return torch.cat(list(replace(self, frames=np.sort(frames)).chunks()))

    def thin(self, most: int) -> tuple[Stream, tuple[str, ...]]:
        """At most this many frames, evenly spaced, and a note if any are left out."""
        if len(self.frames) <= most:
            return self, ()
        kept = self.frames[np.linspace(0, len(self.frames) - 1, most).round().astype(np.int64)]
        note = f"Taken over {most} evenly spaced frames of {len(self.frames)}."
        return replace(self, frames=kept), (note,)

    @property
    def _margin(self) -> int:
        """Frames on either side that smoothing and the window reach."""
        return self.fit.inputs.radius + 1 + self.fit.settings.window

    def _read(self, frames: np.ndarray) -> tuple[int, FrameData]:
        """Inputs of the stretch of the recording around these frames, and its first frame."""
        if self.data is not None:
            return 0, self.data
        first = max(0, int(frames[0]) - self._margin)
        last = min(self.recording.n_frames, int(frames[-1]) + self._margin + 1)
        stretch = take_stretch(self.recording, first, last)
        return first, self.fit.frame_data(stretch, str(self.device))

    def _frames_at_once(self, copies: int) -> int:
        encoder = self.encoder
        width = max(encoder.n_cells, encoder.width) * encoder.window
        return max(1, CHUNK_BYTES // (4 * encoder.latents * width * copies))

    def _stretches(self) -> Iterator[np.ndarray]:
        """The frames, cut into stretches that fit into memory."""
        if self.data is not None:
            yield self.frames
            return
        # margins are read twice: with many cells, stretches grow so that margins are a small part
        reach = max(ROW_BYTES // (4 * self.recording.n_cells), 4 * self._margin)
        start = 0
        while start < len(self.frames):
            stop = int(np.searchsorted(self.frames, self.frames[start] + reach))
            yield self.frames[start:stop]
            start = stop


def make_stream(
    fit: Fit,
    recording: Recording,
    frames: FrameChoice = None,
    seed: int | None = None,
    device: str | None = None,
    workers: int | None = None,
) -> Stream:
    """Stream over those of the requested frames that can be used."""
    asked = resolve_frames(recording, frames)
    usable = usable_frames(recording, fit.settings.window)
    chosen = usable if asked is None else np.intersect1d(asked, usable)
    if len(chosen) == 0:
        count = 0 if asked is None else len(asked)
        raise InputError(
            f"None of the {count} requested frames can be used: at least one is needed that is "
            f"not excluded and whose window ({fit.settings.window} frames) lies within a trial."
        )
    where = choose_device(device or fit.settings.device)
    return Stream(
        fit,
        recording,
        chosen,
        fit.settings.seed if seed is None else seed,
        where,
        workers or (min(cores(), MOST_WORKERS) if where.type == "cpu" else 1),
    )


def resolve_frames(recording: Recording, frames: FrameChoice) -> np.ndarray | None:
    """Numbers of the requested frames, in their order; None for all."""
    if frames is None:
        return None
    if isinstance(frames, slice):
        return np.arange(recording.n_frames)[frames]
    asked = np.atleast_1d(np.asarray(frames))
    if asked.size == 0:
        return np.zeros(0, np.int64)
    if asked.ndim != 1 or asked.dtype.kind not in "biu":
        raise InputError(
            f"frames has type {asked.dtype} and shape {asked.shape}: a slice, whole numbers or "
            "one True or False a frame is needed."
        )
    if asked.dtype.kind == "b":
        if len(asked) != recording.n_frames:
            raise InputError(
                f"frames has {len(asked)} True or False but the recording has "
                f"{recording.n_frames} frames: one a frame is needed."
            )
        return np.flatnonzero(asked)
    if asked.min() < 0 or asked.max() >= recording.n_frames:
        raise InputError(
            f"frames runs from {asked.min()} to {asked.max()}, but the recording has 0 to "
            f"{recording.n_frames - 1}."
        )
    return asked.astype(np.int64)


def spread_out(scores: np.ndarray, fit: Fit, recording: Recording) -> np.ndarray:
    """Scores of the cells in use, placed among all ROIs, with NaN elsewhere: (n, cells) float32."""
    spread = np.full((len(scores), recording.n_cells), np.nan, np.float32)
    spread[:, fit.inputs.columns(recording)] = scores
    return spread


def take_stretch(recording: Recording, first: int, last: int) -> Recording:
    """Traces of consecutive frames, with the trial boundaries among them."""
    starts = np.asarray(recording.starts) - first
    return replace(
        recording,
        traces=recording.traces[first:last],
        behavior={},
        starts=starts[(starts > 0) & (starts < last - first)],
        excluded=np.asarray(recording.excluded)[first:last],
        footprints=None,
        images={},
        times=None,
        trials=None,
    )
