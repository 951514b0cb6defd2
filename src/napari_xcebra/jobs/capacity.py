"""How many processes this computer has room for."""

from __future__ import annotations

from collections.abc import Iterable

import psutil

from napari_xcebra.processor import cores
from napari_xcebra.recording import Recording

PROGRAM = 0.6 * 2**30
"""Bytes of a process before it has any data: torch, above all."""
COPIES = 5
"""Copies of the traces at the peak of a run: as read, smoothed, standardised, and on the way."""
GPU_PROGRAM = 0.7 * 2**30
"""Bytes on a GPU that a process takes before it has any data."""


def room_for(recordings: Iterable[Recording], *, device: str = "auto", threads: int = 1) -> int:
    """Processes that fit the cores and the memory there are, 1 at least.

    Parameters
    ----------
    recordings : iterable of Recording
        A process holds one of them at a time; the largest counts.
    device : str
        As of `FitSettings`; on a GPU, its memory counts as well.
    threads : int
        Of each process.
    """
    largest = max((4 * each.n_frames * each.n_cells for each in recordings), default=0)
    fits = [cores() // max(1, threads)]
    fits.append(int(psutil.virtual_memory().available // (PROGRAM + COPIES * largest)))
    if device != "cpu" and (free := _free_on_gpu()) is not None:
        fits.append(int(free // (GPU_PROGRAM + 2 * largest)))
    return max(1, min(fits))


def _free_on_gpu() -> int | None:
    """Bytes free on the GPU that "auto" takes; None if there is none, or it shares our memory."""
    import torch

    return torch.cuda.mem_get_info()[0] if torch.cuda.is_available() else None
