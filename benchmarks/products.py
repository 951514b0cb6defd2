"""The matrix products that a training step cannot do without, bare, as the limit of its speed."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from napari_xcebra.learn import Training
from napari_xcebra.learn.data.factors import TIME
from napari_xcebra.learn.model.frame_encoder import FrameEncoder
from napari_xcebra.learn.model.window_encoder import WindowEncoder

Shape = tuple[int, int, int]
"""Rows, inner dimension and columns of a product."""


def shapes_of(training: Training) -> list[Shape]:
    """Products of one step: layers, exact penalty and similarities, with their gradients."""
    settings, encoder = training.settings, training.encoder
    batch = settings.batch_size * (1 + len(training.parts))
    rows = min(settings.penalty_batch, settings.batch_size) * encoder.latents
    if isinstance(encoder, FrameEncoder):
        shapes = _frame_layers(encoder, batch, rows)
    else:
        shapes = _window_layers(cast(WindowEncoder, encoder), batch, rows)
    for part in training.parts:
        latents = encoder.latents if part.name == TIME else part.stop - part.start
        n = settings.batch_size
        shapes += [(n, latents + 1, n), (latents + 1, n, n), (latents + 1, n, n)]
    return shapes


def _frame_layers(encoder: FrameEncoder, batch: int, rows: int) -> list[Shape]:
    first, *others = (weight.shape for weight in encoder.weights)
    shapes = []
    for outputs, inputs in others:
        shapes += 3 * [(batch, inputs, outputs)] + 3 * [(rows, outputs, inputs)]
    shapes += 2 * [(batch, first[1], first[0])]  # nothing before the cells needs a gradient
    return shapes + _first_of_penalty(first[0], first[1], rows)


def _first_of_penalty(hidden: int, cells: int, rows: int) -> list[Shape]:
    """By the Gram matrix of the first layer where that is cheaper."""
    if cells > hidden and rows > hidden:
        return [(hidden, cells, hidden), (hidden, hidden, cells), *2 * [(rows, hidden, hidden)]]
    return 3 * [(rows, hidden, cells)]


def _window_layers(encoder: WindowEncoder, batch: int, rows: int) -> list[Shape]:
    hidden, cells, kernel = encoder.first.weight.shape
    lags = encoder.window - kernel + 1
    shapes = 2 * kernel * [(lags * batch, cells, hidden)]
    wide = kernel * hidden
    if cells > hidden and rows * lags > wide:
        shapes += [(wide, cells, wide), (wide, wide, cells)]
        shapes += 2 * [(rows * (lags - k), hidden, hidden) for k in range(kernel)]
    else:
        shapes += 3 * kernel * [(rows * lags, hidden, cells)]
    for layer in encoder.skips:
        kernel = cast(nn.Conv1d, layer).weight.shape[2]
        lags -= kernel - 1
        each = [(lags * batch, hidden, hidden), (lags * rows, hidden, hidden)]
        shapes += 3 * kernel * each
    outputs = encoder.latents
    return shapes + 3 * [(batch, hidden, outputs)] + 3 * [(rows, outputs, hidden)]


class Products:
    """Products of these shapes on memory of their own."""

    def __init__(self, shapes: list[Shape]) -> None:
        made: dict[Shape, tuple[Tensor, Tensor, Tensor]] = {}
        for m, k, n in shapes:
            if (m, k, n) not in made:
                made[m, k, n] = torch.randn(m, k), torch.randn(k, n), torch.empty(m, n)
        self._operands = [made[shape] for shape in shapes]

    def __call__(self) -> None:
        """All of them once."""
        for a, b, out in self._operands:
            torch.mm(a, b, out=out)
