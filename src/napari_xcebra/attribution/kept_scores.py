"""Scores over time that were computed before, kept on disk within a budget.

A file is known by everything that its scores depend on: the encoder, the traces of the stretch and
around it, the method. What is not found, or cannot be read, is computed anew, so that the folder
may be deleted at any time. The files that were not used for longest go first.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import numpy as np

from napari_xcebra.attribution.method_notes import OVER_TIME
from napari_xcebra.files import whole
from napari_xcebra.learn.result import Fit
from napari_xcebra.recording import Recording

FOLDER = "NAPARI_XCEBRA_CACHE"
"""Variable of the environment that names another folder; empty: nothing is kept."""
BUDGET = 2**30
"""Bytes that all files together may take."""
MOST = 64 * 2**20
"""Bytes of traces that a stretch may lie in: of more, reading them all would take too long."""


@dataclass(frozen=True)
class KeptScores:
    """Files of scores in a folder.

    Parameters
    ----------
    folder : Path or None
        None: nothing is kept.
    budget : int
        Bytes that all files together may take.
    """

    folder: Path | None
    budget: int = BUDGET

    def get(self, key: str, compute: Callable[[], np.ndarray]) -> np.ndarray:
        """Scores of that name, computed and kept if there are none; of no name, computed."""
        if self.folder is None or not key:
            return compute()
        path = self.folder / f"{key}.npy"
        found = _read(path)
        if found is None:
            found = compute()
            with contextlib.suppress(OSError):  # a full disk is no reason to show nothing
                self._keep(path, found)
        return found

    def _keep(self, path: Path, scores: np.ndarray) -> None:
        if scores.nbytes > self.budget // 4:
            return
        with whole(path) as temporary, temporary.open("wb") as file:
            np.save(file, scores, allow_pickle=False)
        files = sorted(path.parent.glob("*.npy"), key=_used, reverse=True)
        taken = 0
        for file_ in files:
            with contextlib.suppress(FileNotFoundError):  # another window may have been quicker
                taken += file_.stat().st_size
                if taken > self.budget and file_ != path:
                    file_.unlink()


def kept_scores() -> KeptScores:
    """Those of whoever uses this computer."""
    told = os.environ.get(FOLDER)
    if told is not None:
        return KeptScores(Path(told) if told else None)
    import platformdirs

    cache = platformdirs.user_cache_dir("napari-xcebra", appauthor=False)
    return KeptScores(Path(cache) / "scores")


def key_of(
    fit: Fit, recording: Recording, latents: slice, method: str, frames: np.ndarray, smooth: float
) -> str:
    """Name of the scores at some frames; empty if they lie in too long a stretch.

    Parameters
    ----------
    latents : slice
        Dimensions of the embedding.
    frames : (n,) int64
        Ascending.
    smooth : float
        As of `scores_by_frame`.
    """
    margin = fit.inputs.radius + 1 + fit.settings.window
    if len(frames) == 0:
        return ""
    first, last = max(0, int(frames[0]) - margin), int(frames[-1]) + margin + 1
    behavior: list[np.ndarray] = []
    if method == OVER_TIME:  # whose map is fitted to the whole recording
        first, last = 0, recording.n_frames
        behavior = [np.asarray(recording.behavior[n].values) for n in sorted(recording.behavior)]
    if (min(last, recording.n_frames) - first) * recording.n_cells * 4 > MOST:
        return ""
    about = {
        "version": metadata.version("napari-xcebra"),
        "settings": fit.settings.as_dict(),
        "kernel": fit.inputs.kernel.tolist(),
        "method": method,
        "latents": [latents.start, latents.stop],
        "smooth": smooth,
        "first": first,
    }
    digest = hashlib.blake2b(json.dumps(about, sort_keys=True).encode(), digest_size=16)
    for array in (
        *(fit.weights[name] for name in sorted(fit.weights)),
        fit.scale,
        fit.inputs.cell_ids,
        fit.inputs.mean,
        fit.inputs.scale,
        frames,
        np.asarray(recording.traces[first:last]),
        np.asarray(recording.segment[first:last]),
        np.asarray(recording.excluded)[first:last],
        np.asarray(recording.cell_ids),
        *behavior,
    ):
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _read(path: Path) -> np.ndarray | None:
    """Scores in a file, which is marked as used; None if there is none that can be read."""
    try:
        found = np.load(path, allow_pickle=False)
        os.utime(path)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, EOFError):
        with contextlib.suppress(OSError):
            path.unlink()
        return None
    return np.asarray(found)


def _used(path: Path) -> float:
    """When a file was last used."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
