"""Hides cells from the encoder while it is trained, so that it relies on none of them alone.

Dropout on the inputs, with a share drawn anew for every frame: a fixed share of a half costs
recordings of few cells much of what they tell (benchmarks/RESULTS.md, "Hiding cells").
"""

from __future__ import annotations

import torch
from torch import Tensor


def hidden_cells(x: Tensor, most: float, seed: int) -> Tensor:
    """Inputs with some cells at their mean in each frame, the others larger in proportion.

    Parameters
    ----------
    x : (frames, cells) or (frames, cells, window)
        With mean 0.
    most : float
        Largest share of the cells that is hidden.
    seed : int
        The same hides the same cells.
    """
    generator = torch.Generator().manual_seed(seed)
    frames, cells = x.shape[:2]
    # bytes are drawn at a quarter of the cost of floats
    least = (256 * most * torch.rand(frames, 1, generator=generator)).to(torch.uint8)
    drawn = torch.empty(frames, cells, dtype=torch.uint8).random_(generator=generator)
    shown = ((drawn >= least) * (256 / (256 - least.float()))).to(x.device)
    return x * (shown if x.ndim == 2 else shown[:, :, None])
