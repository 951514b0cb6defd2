"""Renders the frames of a simulated movie from traces and footprints, when they are asked for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.recording.footprints import Footprints
from napari_xcebra.recording.movies.frames import Frames
from napari_xcebra.recording.traces import LazyTraces


@dataclass(frozen=True, eq=False)
class RenderedFrames(Frames):
    """Cells that light up with their traces, over a resting field, with the noise of photons.

    A frame is the same whenever it is asked for. Traces and footprints are those of the recording,
    so that it takes no memory of its own to speak of.

    Parameters
    ----------
    traces : (frames, rois) float32
        ΔF/F.
    footprints : Footprints
        Without planes.
    rest : (height, width) float32
        The field at ΔF/F 0, in detector counts.
    gain : (pixels of the footprints,) float32
        Detector counts that ΔF/F 1 adds there.
    dark : float
        Detector counts without light.
    noise : float
        Standard deviation of a pixel, in square roots of its counts above `dark`.
    seed : int
    """

    traces: np.ndarray | LazyTraces
    footprints: Footprints
    rest: np.ndarray
    gain: np.ndarray
    dark: float
    noise: float
    seed: int = 0

    dtype = np.dtype(np.int16)

    def __post_init__(self) -> None:
        for name, found, wanted in (
            ("rest", np.shape(self.rest), self.footprints.shape),
            ("gain", np.shape(self.gain), self.footprints.cell.shape),
        ):
            if found != wanted:
                raise InputError(f"{name} of the movie has shape {found}: {wanted} is needed.")

    @property
    def shape(self) -> tuple[int, int, int]:  # type: ignore[override]
        """Frames, height and width."""
        height, width = self.rest.shape
        return len(self.traces), height, width

    @cached_property
    def _place(self) -> np.ndarray:
        """Of each pixel of the footprints, in the field row after row."""
        return np.ravel_multi_index(self.footprints.pixels, self.rest.shape)

    def read(self, number: int, rows: slice, columns: slice) -> np.ndarray:
        """Render the frame, and cut the part."""
        image = self.rest.copy()
        lit = self.gain * self.traces[number][self.footprints.cell]
        np.add.at(image.reshape(-1), self._place, lit)
        light = np.sqrt(np.maximum(image - self.dark, 0))
        noise = np.random.default_rng([self.seed, number]).standard_normal(image.shape, np.float32)
        image += np.float32(self.noise) * light * noise
        return np.clip(image[rows, columns], 0, np.iinfo(np.int16).max).astype(np.int16)
