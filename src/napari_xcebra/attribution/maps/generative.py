"""Computes the generative gradient: how much a cell changes with each latent, all others held.

The theory has x = g(z), and inverts the Jacobian of the encoder to get that of g. With noise, the
two are no longer inverses. So g itself is fitted: every cell as a function of the latents. Latents
tied to variables are, up to an affine map, those variables, which are known without noise; the
others are the encoder's estimate of the unobserved state. Each factor's part of g is scaled by what
it carries in held-out blocks of time, less its standard error: pure noise has no slope.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from napari_xcebra.attribution.encoding.courses import AnyBasis
from napari_xcebra.attribution.encoding.model import THOROUGH, Effort, make_encoding
from napari_xcebra.attribution.encoding.state import latents_without, state_slopes, time_latents
from napari_xcebra.attribution.maps.conditional import shares
from napari_xcebra.attribution.stream import Stream
from napari_xcebra.attribution.watching import Watch
from napari_xcebra.learn.data.factors import TIME, Part
from napari_xcebra.learn.data.split import usable_frames
from napari_xcebra.learn.result import Fit
from napari_xcebra.recording import Recording

FAINT = 0.01
"""What is left of a score no larger than its error, so that cells keep their order."""
FITTING = 0.8
"""Share of the work spent on fitting the map; the rest explains the frames."""
SAMPLED = 64
"""Frames by which a recording is recognised."""
CHUNK_BYTES = 32 * 2**20
"""Bytes of gradients computed at a time."""


@dataclass(frozen=True, eq=False)
class Generative:
    """The fitted map from latents to cells.

    Parameters
    ----------
    bases : mapping of str to Basis
        Of the factors that are tied to variables.
    weights : mapping of str to (columns, cells) float32
        Of every factor: the mean over held-out blocks.
    """

    bases: Mapping[str, AnyBasis]
    weights: Mapping[str, np.ndarray]

    @classmethod
    def of(cls, stream: Stream, watch: Watch, effort: Effort = THOROUGH) -> Generative:
        """Fit it to the frames of a stream."""
        encoding = make_encoding(stream, watch, effort)
        models = encoding.models(watch)
        found = shares(encoding, models, watch, thorough=False)
        sure = np.maximum(found.scores() - found.errors(), FAINT * found.scores())
        carried = np.maximum(sure * found.variance.sum(0), 0)
        weights = {}
        for part, own_share in zip(stream.fit.parts, carried, strict=True):
            own = encoding.columns[part.name]
            weights[part.name] = np.empty((len(own), len(encoding.lags)), np.float32)
            for cohort, both in zip(encoding.cohorts, models, strict=True):
                model = both.with_state if part.name == TIME else both.observed
                size = np.maximum(model.size(own).sum(0), 1e-9)
                borne_out = np.minimum(own_share[cohort.cells] / size, 1)
                weights[part.name][:, cohort.cells] = model.weights[:, own].mean(0) * borne_out
        return cls(encoding.predictors.bases, weights)

    def local(self, stream: Stream) -> Iterator[Tensor]:
        """∂g/∂z at the frames of a stream: (frames in chunk, latents, cells)."""
        parts, cells = stream.fit.parts, len(stream.fit.inputs.cell_ids)
        nobody = (np.zeros(0, np.int64),)
        at_once = max(1, CHUNK_BYTES // (4 * cells * len(stream.fit.scale)))
        for start in range(0, len(stream.frames), at_once):
            frames = stream.frames[start : start + at_once]
            here = replace(stream, frames=frames)
            state = latents_without(here, time_latents(stream), nobody)[0]
            slopes = [self._slopes(part, frames, state) for part in parts]
            yield torch.as_tensor(np.concatenate(slopes).transpose(1, 0, 2))

    def _slopes(self, part: Part, frames: np.ndarray, state: np.ndarray) -> np.ndarray:
        """Change of every cell along each latent of a factor: (latents, frames, cells)."""
        if part.name == TIME:
            columns = state_slopes(state)
        else:
            columns = self.bases[part.name].slopes(frames).astype(np.float32)
        changes: np.ndarray = columns @ self.weights[part.name]
        wanted = part.stop - part.start
        if len(changes) == wanted:
            return changes
        # with fewer or more latents than dimensions, each latent gets their mean size
        size = np.sqrt(np.square(changes).mean(0))
        return np.broadcast_to(size, (wanted, *size.shape))


_last: dict[bytes, Generative] = {}
"""The last map, since scores over time are requested again and again."""


def generative_gradient(stream: Stream, watch: Watch | None = None) -> Iterator[Tensor]:
    """∂g/∂z at every frame of a stream: (frames in chunk, latents, cells).

    The map is fitted to all usable frames of the recording, whichever are explained.
    """
    key = _key(stream.fit, stream.recording)
    if key not in _last:
        usable = usable_frames(stream.recording, stream.fit.settings.window)
        watch = watch or Watch(len(usable), None, None)
        watch.share = FITTING * len(stream.frames) / len(usable)
        model = Generative.of(replace(stream, frames=usable), watch)
        _last.clear()
        _last[key] = model
    return _last[key].local(stream)


def _key(fit: Fit, recording: Recording) -> bytes:
    """Recognises a fit and a recording, also in another process."""
    some = np.linspace(0, recording.n_frames - 1, SAMPLED).astype(np.int64)
    digest = hashlib.blake2b(f"{recording.source}{recording.n_frames}".encode())
    for array in (
        *(fit.weights[name] for name in sorted(fit.weights)),
        fit.inputs.cell_ids,
        *(np.asarray(recording.traces[int(frame) : int(frame) + 1]) for frame in some),
        *(variable.values for variable in recording.behavior.values()),
    ):
        digest.update(np.ascontiguousarray(array).data)
    return digest.digest()
