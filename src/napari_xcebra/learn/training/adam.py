"""Adam (Kingma and Ba 2015) on all parameters at once.

`torch.optim` imports torch's compiler, which takes seconds before the first step, and goes through
the parameters one by one, which takes longer than the arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn

from napari_xcebra.learn.model.frame_encoder import FrameEncoder
from napari_xcebra.learn.model.window_encoder import WindowEncoder

FORGOTTEN = 0.1, 0.001
"""Share of the mean gradient, and of its mean square, that each step replaces (1 − β)."""

LEAST = 1e-8
"""Added to the root of the mean square (ε)."""

CELLS = 512
"""Cells up to which their weights are learned at the full rate."""


class Adam:
    """Adam, with all parameters next to each other in memory, and their gradients likewise.

    Parameters
    ----------
    parameters : sequence of Parameter
        On one device; those that need no gradient are left alone.
    rates : mapping of Parameter to float, optional
        Factor on the learning rate of those that have one of their own.
    """

    def __init__(
        self,
        parameters: Sequence[nn.Parameter],
        rates: Mapping[nn.Parameter, float] | None = None,
    ) -> None:
        learned = [p for p in parameters if p.requires_grad]
        own = [(rates or {}).get(p, 1.0) for p in learned]
        self._slowed: Tensor | None = None
        if any(rate != 1 for rate in own):
            each = [torch.full((p.numel(),), 1 / r) for p, r in zip(learned, own, strict=True)]
            self._slowed = torch.cat(each).to(learned[0])
        self.values = torch.cat([p.detach().flatten() for p in learned])
        self.gradients, self.mean, self.square = torch.zeros(3, *self.values.shape).to(self.values)
        self.steps = 0
        sizes = [p.numel() for p in learned]
        parts = zip(learned, self.values.split(sizes), self.gradients.split(sizes), strict=True)
        for parameter, values, gradients in parts:
            parameter.data = values.view_as(parameter)
            parameter.grad = gradients.view_as(parameter)

    def zero_grad(self) -> None:
        """Reset the gradients."""
        self.gradients.zero_()

    @torch.no_grad()
    def step(self, learning_rate: float) -> None:
        """Move all parameters by their gradients."""
        self.steps += 1
        of_mean, of_square = FORGOTTEN
        self.mean.lerp_(self.gradients, of_mean)
        self.square.mul_(1 - of_square).addcmul_(self.gradients, self.gradients, value=of_square)
        # both begin at zero: divided by how much they have seen
        seen = 1 - (1 - of_mean) ** self.steps
        root = math.sqrt(1 - (1 - of_square) ** self.steps)
        size = self.square.sqrt().div_(root).add_(LEAST)
        if self._slowed is not None:
            size.mul_(self._slowed)
        self.values.addcdiv_(self.mean, size, value=-learning_rate / seen)

    def state_dict(self) -> dict[str, Any]:
        """State that a resumed run needs, as `torch.optim` writes it."""
        steps = torch.tensor(float(self.steps))
        moments = {"step": steps, "exp_avg": self.mean, "exp_avg_sq": self.square}
        return {"state": {0: moments}, "param_groups": []}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state; from the beginning if it holds no moments."""
        nothing = torch.zeros_like(self.mean)
        moments = state["state"].get(0, {})
        self.steps = int(moments.get("step", 0))
        self.mean.copy_(moments.get("exp_avg", nothing))
        self.square.copy_(moments.get("exp_avg_sq", nothing))


def rates_of(encoder: nn.Module) -> dict[nn.Parameter, float]:
    """Share of the learning rate for the weights of many cells.

    Adam moves every weight by as much, so that what a unit sees changes with the number of its
    inputs: with thousands of cells the first step would throw the embedding to its bound, from
    where it hardly comes back.
    """
    layers = [each for each in encoder.modules() if isinstance(each, FrameEncoder | WindowEncoder)]
    firsts = [each.first if isinstance(each, WindowEncoder) else each.layers[0] for each in layers]
    weights = [cast(nn.Parameter, first.weight) for first in firsts]
    return {weight: min(1.0, CELLS / weight.shape[1]) for weight in weights}
