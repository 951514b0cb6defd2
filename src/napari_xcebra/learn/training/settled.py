"""Stops a run once neither the maps of the factors nor the losses change.

It watches while λ is held. Once nothing changes any more, the learning rate falls to its final
value over a few last steps, as it would have over all that were asked for, and training stops.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from napari_xcebra.attribution.ranks import average_ranks
from napari_xcebra.learn.data.factors import TIME
from napari_xcebra.learn.model.encoder import CUT_OFF, inverse

if TYPE_CHECKING:
    from torch import Tensor

    from napari_xcebra.learn.training.training import Training

EVERY = 20
"""Steps between two looks."""
APART = 4
"""Looks between the two whose maps are compared.

What the weights drift in a few steps is less than the noise of a map: two looks apart, one of
eight trainings stopped where its map was still 0.02 of auROC below its end.
"""
FRAMES = 128
"""Frames that a map is taken over."""
CHUNK_BYTES = 64 * 2**20
"""Jacobians that are taken at once."""
ALIKE = 0.985
"""Rank correlation of two maps of a factor that count as the same."""
SPAN = 2
"""Looks over which losses are averaged, before and now."""
FLAT = 0.02
"""Share of its goodness by which the loss of a part may still fall from one look to the other."""
IN_A_ROW = 3
"""Looks in a row without a change, after which a run has settled."""
LAST = 40
"""Steps over which the learning rate then goes down."""


class Settled:
    """Watches a run, and says from which step on nothing changes.

    Parameters
    ----------
    training : Training
        Its split, labels, parts and encoder are made.

    Attributes
    ----------
    maps : list of (2 factors, cells) float32
        The last ones: of the Jacobian, then of its inverse.
    losses : list of (parts,) float64
        Means over the steps before each of the last looks.
    in_a_row : int
        Looks without a change, up to the last one.
    at : int
        Step at which it had settled; 0 if it has not.
    """

    def __init__(self, training: Training) -> None:
        anchors = training.split.training.anchors
        some = np.linspace(0, len(anchors) - 1, min(FRAMES, len(anchors))).astype(np.int64)
        self._frames = anchors[some]
        named = [part for part in training.parts if part.name != TIME]
        self._watched = named or list(training.parts)
        self.maps: list[np.ndarray] = []
        self.losses: list[np.ndarray] = []
        self.in_a_row = 0
        self.at = 0
        self._since = torch.zeros(len(training.parts), device=training.device)
        self._count = 0

    @property
    def last(self) -> int:
        """The step to stop at; 0 while it has not settled."""
        return self.at + LAST if self.at else 0

    def look(self, training: Training, losses: Tensor) -> None:
        """Compare with some steps ago, if a look is due.

        Parameters
        ----------
        losses : (parts,)
            Of the last step.
        """
        if self.at or training.phase(training.step) != "holding":
            return
        self._since += losses
        self._count += 1
        if training.step % EVERY:
            return
        self.losses.append((self._since / self._count).cpu().numpy().astype(np.float64))
        self.maps.append(self._map(training))
        self._since.zero_()
        self._count = 0
        del self.maps[: -APART - 1], self.losses[: -2 * SPAN]
        same = len(self.maps) == APART + 1 and self._unchanged(training)
        self.in_a_row = self.in_a_row + 1 if same else 0
        if self.in_a_row >= IN_A_ROW and training.step + LAST < training.steps:
            self.at = training.step

    def _unchanged(self, training: Training) -> bool:
        if min(agreement(self.maps[0], self.maps[-1])) < ALIKE:
            return False
        before, now = np.mean(self.losses[:SPAN], 0), np.mean(self.losses[SPAN:], 0)
        supervised = training.settings.mode == "supervised"
        goodness = (1.0 if supervised else np.log(training.settings.negatives)) - now
        return bool((before - now <= FLAT * np.maximum(goodness, 1.0)).all())

    @torch.no_grad()
    def _map(self, training: Training) -> np.ndarray:
        """Means of |J| and of |J⁺| over frames, and latents of each factor: (2 factors, cells).

        The inverse goes on changing after the Jacobian itself has come to rest.
        """
        scale = training.psi.scale()
        sizes: list[Tensor] = []
        for frames in np.array_split(self._frames, self._chunks(training)):
            jacobian = training.encoder.jacobian(training.data[frames])
            for each in (jacobian, inverse(jacobian, scale, CUT_OFF)):
                size = each.abs().sum(0)
                sizes.append(size.sum(-1) if size.ndim == 3 else size)  # over the lags of a window
        totals = [torch.stack(sizes[which::2]).sum(0) for which in (0, 1)]
        rows = [total[part.latents].mean(0) for total in totals for part in self._watched]
        return torch.stack(rows).cpu().numpy()

    def _chunks(self, training: Training) -> int:
        """Number of chunks of frames."""
        values = training.encoder.latents * len(training.inputs.cell_ids)
        of_a_frame = 4 * values * training.settings.window
        return -(-len(self._frames) // max(1, CHUNK_BYTES // of_a_frame))

    def learning_rate(self, step: int, before: float, end: float) -> float:
        """Learning rate after a run settled: from the rate it had, evenly down to the final one."""
        return before + (end - before) * min(1.0, (step - self.at) / LAST)

    def tensors(self) -> dict[str, Tensor]:
        """State, for a checkpoint."""
        return {
            "maps": torch.tensor(np.array(self.maps)),
            "losses": torch.tensor(np.array(self.losses)),
            "since": self._since,
            "counts": torch.tensor([self._count, self.in_a_row, self.at]),
        }

    def put(self, tensors: dict[str, Tensor]) -> None:
        """Continue from the state of a checkpoint."""
        self.maps, self.losses = list(tensors["maps"].numpy()), list(tensors["losses"].numpy())
        self._since.copy_(tensors["since"])
        self._count, self.in_a_row, self.at = (int(count) for count in tensors["counts"])

    @property
    def reason(self) -> str:
        """Why it stopped, in a sentence; empty if it did not."""
        if not self.at:
            return ""
        return (
            f"Stopped after {self.last} steps, because by step {self.at} neither the maps nor the "
            "losses changed any more."
        )


def agreement(one: np.ndarray, other: np.ndarray) -> list[float]:
    """Rank correlation of each row of two maps.

    >>> agreement(np.array([[1.0, 2, 3]]), np.array([[1.0, 5, 9]]))
    [1.0]
    """
    ranks = [
        np.stack([average_ranks(row) for row in a]) - (a.shape[1] + 1) / 2 for a in (one, other)
    ]
    product, sizes = (ranks[0] * ranks[1]).sum(1), [(r**2).sum(1) for r in ranks]
    return [float(rho) for rho in product / np.maximum(np.sqrt(sizes[0] * sizes[1]), 1e-12)]
