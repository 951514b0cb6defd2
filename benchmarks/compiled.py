"""What `torch.compile` would gain: loss, and encoder with penalty, beside the steps written out.

Seconds of the processor on one thread, of value and gradient; compiling is timed apart. Needs a C++
compiler.

    python benchmarks/compiled.py [--cells 50,500,5000] [--batch 512]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from report import header, row, typed
from torch import Tensor

from napari_xcebra.learn.model import make_encoder
from napari_xcebra.learn.model.encoder import Encoder
from napari_xcebra.learn.objective.loss import (
    cross_similarity,
    euclidean_info_nce,
    pair_similarity,
    penalty_directions,
)

LATENTS, PENALTY_BATCH, ROUNDS = 6, 64, 15


def plain_loss(a: Tensor, b: Tensor) -> Tensor:
    """InfoNCE as one would write it, for the compiler to make something of."""
    positive = pair_similarity(a, b, "euclidean")
    negative = cross_similarity(a, a, "euclidean")
    negative = negative - 1e9 * torch.eye(len(a))
    both = torch.cat([negative, positive[:, None]], 1)
    return (torch.logsumexp(both, 1) - positive).mean()


def seconds(work: Callable[[], Any]) -> float:
    """Median of several rounds, after one that compiles."""
    spent = []
    for _ in range(ROUNDS):
        began = time.process_time()
        work()
        spent.append(time.process_time() - began)
    return float(np.median(spent))


def compared(written: Callable[[], Any], plain: Callable[[], Any], compiled: Callable[[], Any]):
    """Seconds of the three, and those that the first call of the last took."""
    written()
    plain()
    began = time.perf_counter()
    compiled()
    compiling = time.perf_counter() - began
    return seconds(written), seconds(plain), seconds(compiled), compiling


def loss_of(batch: int) -> tuple[float, ...]:
    """Loss and its gradient."""
    a = (2 * torch.randn(batch, LATENTS)).requires_grad_()
    b = (a + 0.1 * torch.randn(batch, LATENTS)).detach().requires_grad_()
    compiled = torch.compile(plain_loss)
    return compared(
        lambda: euclidean_info_nce(a, b, True).backward(),
        lambda: plain_loss(a, b).backward(),
        lambda: compiled(a, b).backward(),
    )


def encoder_of(cells: int, batch: int) -> tuple[float, ...]:
    """Embedding of references and two partners, penalty on some, and the gradient of both."""
    encoder = make_encoder(cells, LATENTS, (30 * LATENTS, 30 * LATENTS, 10 * LATENTS), bound=20.0)
    x = torch.randn(3 * batch, cells)
    directions = penalty_directions(PENALTY_BATCH, torch.ones(LATENTS))

    def plain(x: Tensor, directions: Tensor) -> Tensor:
        embedding, squared = Encoder.embed(encoder, x, directions)
        return embedding.square().sum() + squared.mean()

    def written() -> None:
        embedding, squared = encoder.embed(x, directions)
        (embedding.square().sum() + squared.mean()).backward()

    compiled = torch.compile(plain)
    return compared(
        written, lambda: plain(x, directions).backward(), lambda: compiled(x, directions).backward()
    )


def main() -> None:
    """Compare the loss, then the encoder at each number of cells."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    numbers = lambda text: [int(value) for value in text.split(",")]  # noqa: E731
    parser.add_argument("--cells", type=numbers, default=[50, 500, 5000])
    parser.add_argument("--batch", type=int, default=512)
    given = typed(parser, cells=[], batch=64)
    torch.set_num_threads(1)
    print(header("torch.compile"))
    names = ("part", "written out, ms", "autograd, ms", "compiled, ms", "compiling, s (clock)")
    print(row(*names))
    print(row(*["---"] * len(names)))

    def show(name: str, found: tuple[float, ...]) -> None:
        *parts, compiling = found
        print(row(name, *(f"{1e3 * s:.2f}" for s in parts), f"{compiling:.0f}"), flush=True)

    show(f"loss, batch {given.batch}", loss_of(given.batch))
    for cells in given.cells:
        show(f"encoder and penalty, {cells:,} cells", encoder_of(cells, given.batch))


if __name__ == "__main__":
    main()
