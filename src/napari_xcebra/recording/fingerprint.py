"""Tells whether a recording, or its set of cells, is still the same."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from napari_xcebra.recording.recording import Recording


def fingerprint(recording: Recording) -> dict[str, Any]:
    """Enough to tell one recording from another, at little cost."""
    frames = np.linspace(0, recording.n_frames - 1, 5).astype(int)
    sample = np.concatenate([recording.traces[int(f) : int(f) + 1] for f in frames])
    return {
        "cells": recording.n_cells,
        "frames": recording.n_frames,
        "sample": float(np.abs(sample.astype(np.float64)).sum()),
    }


def cells_fingerprint(recording: Recording) -> dict[str, Any]:
    """Enough to tell whether cells are the same, however their traces were computed.

    Adds to the `fingerprint` checksums of the ids and, if there are footprints, of the pixel
    counts of the cells: these change with another extraction, but not with other open settings.
    """
    pixels = None
    if recording.footprints is not None:
        counts = np.bincount(recording.footprints.cell, minlength=recording.n_cells)
        pixels = _checksum(counts)
    ids = _checksum(np.asarray(recording.cell_ids))
    return {**fingerprint(recording), "ids": ids, "pixels": pixels}


def content_fingerprint(recording: Recording, variables: Sequence[str]) -> dict[str, Any]:
    """Enough to tell whether a run on these variables would give the same result.

    Adds to the `cells_fingerprint` what training uses: rate, trials, frames left out, cells
    accepted, and the variables.
    """
    labels = {}
    for name in variables:
        variable = recording.variable(name)
        about = variable.period if variable.kind == "circular" else None
        labels[name] = [variable.kind, about, _digest(variable.values)]
    return {
        **cells_fingerprint(recording),
        "rate": float(recording.rate),
        "starts": _digest(np.asarray(recording.starts)),
        "excluded": _digest(np.asarray(recording.excluded)),
        "accepted": _digest(np.asarray(recording.accepted)),
        "variables": labels,
    }


def same_sample(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Whether a sample of the traces is the same."""
    return bool(np.isclose(first["sample"], second["sample"], rtol=1e-4, equal_nan=True))


def same_cells(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Whether two `cells_fingerprint` belong to the same cells."""
    if (first["cells"], first["ids"]) != (second["cells"], second["ids"]):
        return False
    if first["pixels"] is not None and second["pixels"] is not None:
        return bool(first["pixels"] == second["pixels"])
    return bool(first["frames"] == second["frames"])


def _digest(values: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()[:16]


def _checksum(numbers: np.ndarray) -> str:
    return f"{zlib.crc32(numbers.astype('<i8').tobytes()):08x}"
