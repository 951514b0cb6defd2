"""Many runs: several seeds as one batched model, beside one after the other; several processes.

Batched: the encoders of all seeds are stacked (`torch.func.stack_module_state`) and trained
together under `torch.vmap`, or by batched products written out (`torch.baddbmm`), with the same
batch size, losses and penalty as a run of its own. A step of the shipped training is the opponent;
the same plain step for one seed tells what batching itself gives. Processor time, one thread.

    python benchmarks/batched.py [--steps 4] [--sizes 40x128 100x512] [--pool 1 2]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from report import header, row, typed
from torch import Tensor, nn

from napari_xcebra.batch import Sweep
from napari_xcebra.batch.running import _lean, _run_member
from napari_xcebra.jobs.pool import ProcessPool
from napari_xcebra.learn import FitSettings
from napari_xcebra.learn.model import make_encoder
from napari_xcebra.learn.model.encoder import Encoder, gelu_slope
from napari_xcebra.learn.model.frame_encoder import FrameEncoder
from napari_xcebra.learn.training.training import Training
from napari_xcebra.simulate import box

SIZES = ("40x128", "40x512", "100x512", "400x512")
"""Cells and batch size."""
PENALTY = 64
LATENTS = 3
WIDTHS = (30 * LATENTS, 30 * LATENTS, 10 * LATENTS)
GROUPS = 3
"""References, positives by label, positives in time."""


class Step(nn.Module):
    """One loss, of one encoder, in plain operations."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, x: Tensor, directions: Tensor) -> Tensor:
        embedding, activations = self.encoder.trace(x)
        some = [each[: len(directions)] for each in activations]
        penalty = self.encoder.pullback(directions, some).square().sum((1, 2)).mean()
        return contrasted(embedding) + 0.05 * penalty


def contrasted(embedding: Tensor) -> Tensor:
    """InfoNCE of the behaviour part and of time: (…, frames, latents) to (…)."""
    reference, label, in_time = embedding.chunk(GROUPS, dim=-2)
    total: Any = 0.0
    for own, positive in ((slice(0, 2), label), (slice(0, LATENTS), in_time)):
        a, b = reference[..., own], positive[..., own]
        square = a.square().sum(-1)
        negative = 2 * a @ a.transpose(-1, -2) - square[..., None] - square[..., None, :]
        pair = -(a - b).square().sum(-1)
        uniform = torch.logaddexp(torch.logsumexp(negative, -1), pair)
        total = total + (uniform - pair).mean(-1)
    return total


def written_out(weights: list[Tensor], biases: list[Tensor], x: Tensor, v: Tensor) -> Tensor:
    """The same losses of all seeds in batched products; weights (seeds, outputs, inputs)."""
    h, slopes = x, []
    for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
        h = torch.baddbmm(bias[:, None], h, weight.transpose(1, 2))
        slopes.append(gelu_slope(h[:, :PENALTY]))
        h = nn.functional.gelu(h)
    h = torch.baddbmm(biases[-1][:, None], h, weights[-1].transpose(1, 2))
    slope = 1 - torch.tanh(h[:, :PENALTY] / 20) ** 2
    v = (v * slope[:, :, None]).flatten(1, 2)
    for weight, own in zip(weights[:0:-1], reversed(slopes), strict=True):
        v = torch.bmm(v, weight).unflatten(1, (PENALTY, -1)) * own[:, :, None]
        v = v.flatten(1, 2)
    pulled = torch.bmm(v, weights[0]).unflatten(1, (PENALTY, -1))
    return contrasted(20 * torch.tanh(h / 20)) + 0.05 * pulled.square().sum((2, 3)).mean(1)


def timed(steps: dict[str, Callable[[], object]], each: int) -> dict[str, float]:
    """Processor time of a step of each, in ms: the fastest of ten stretches, taken in turn.

    What else runs on the machine only ever adds to it.
    """
    taken: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(11):
        for name, step in steps.items():
            began = time.process_time()
            for _ in range(each):
                step()
            taken[name].append((time.process_time() - began) / each * 1e3)
    return {name: min(found[1:]) for name, found in taken.items()}


def training(cells: int, batch: int, seed: int) -> Training:
    made = box(frames=5000, cells=(cells // 2, cells - cells // 2))
    settings = FitSettings(
        steps=100_000, batch_size=batch, lambda_=0.05, settle=0, ramp=0, smoothing=0,
        readout=0, hide=0, deconvolve=False, hidden_units=30 * LATENTS,
        penalty_batch=PENALTY, penalty="exact", seed=seed, stop_when_settled=False,
    )  # fmt: skip
    made_ready = Training(made.recording, made.factors, settings)
    assert made_ready.parts[-1].stop == LATENTS
    made_ready.step = 1  # λ is there from the second step on
    return made_ready


def shipped(cells: int, batch: int) -> Callable[[], object]:
    one = training(cells, batch, 0)

    def step() -> None:
        one._train_step()
        one.step += 1

    return step


def drawn(trainings: list[Training]) -> Tensor:
    """The batches of all seeds, drawn and gathered as a run of its own does it."""
    found = []
    for each in trainings:
        batch = each.sampler.batch(each.step, each.batch_size, each.settings.seed)
        groups = [batch.reference, *batch.label.values(), batch.time]
        found.append(each.data[np.concatenate(groups)])
        each.step += 1
    return torch.stack(found)


def by_vmap(cells: int, batch: int, seeds: int) -> Callable[[], object]:
    encoders = [Step(make_encoder(cells, LATENTS, WIDTHS, bound=20.0)) for _ in range(seeds)]
    parameters, buffers = torch.func.stack_module_state(encoders)
    trainings, v = [training(cells, batch, seed) for seed in range(seeds)], directions(seeds)
    optimizer = torch.optim.Adam(list(parameters.values()), lr=0.003, fused=True)

    def loss(p: dict[str, Tensor], b: dict[str, Tensor], x: Tensor, v: Tensor) -> Tensor:
        return torch.func.functional_call(encoders[0], (p, b), (x, v))

    together = torch.vmap(loss)

    def step() -> None:
        optimizer.zero_grad()
        together(parameters, buffers, drawn(trainings), v).sum().backward()
        optimizer.step()

    return step


def by_products(cells: int, batch: int, seeds: int) -> Callable[[], object]:
    encoders = [make_encoder(cells, LATENTS, WIDTHS, bound=20.0) for _ in range(seeds)]
    layers = [list(e.layers) for e in encoders if isinstance(e, FrameEncoder)]
    weights = [nn.Parameter(torch.stack([layer.weight for layer in own]).detach())
               for own in zip(*layers, strict=True)]  # fmt: skip
    biases = [nn.Parameter(torch.stack([layer.bias for layer in own]).detach())
              for own in zip(*layers, strict=True)]  # fmt: skip
    trainings, v = [training(cells, batch, seed) for seed in range(seeds)], directions(seeds)
    optimizer = torch.optim.Adam([*weights, *biases], lr=0.003, fused=True)

    def step() -> None:
        optimizer.zero_grad()
        written_out(weights, biases, drawn(trainings), v).sum().backward()
        optimizer.step()

    return step


def directions(seeds: int) -> Tensor:
    return torch.eye(LATENTS).expand(seeds, PENALTY, LATENTS, LATENTS)


def pool_speed_up(processes: list[int]) -> None:
    """Time of eight runs through the pool, once its processes are up."""
    made = box(frames=10_000)
    sweep = Sweep(
        {"box": made.recording},
        made.factors,
        FitSettings(steps=300, lambda_=0.05),
        grid={"seed": list(range(8))},
    )
    recording, taken = _lean(sweep.recordings["box"]), {}
    for count in processes:
        with ProcessPool(count) as pool:
            short = Sweep({"box": made.recording}, made.factors, FitSettings(steps=2)).members[0]
            list(pool.map(_run_member, [recording] * count, [short] * count))
            began, ours = time.perf_counter(), time.process_time()
            found = list(pool.map(_run_member, [recording] * 8, sweep.members))
            ours = time.process_time() - ours
            taken[count] = time.perf_counter() - began
            runs = sum(each.seconds for each in found)
            print(f"{count}: {taken[count]:.1f} s, runs {runs:.1f} s, this process {ours:.2f} s")
    print("\n" + row("processes", "8 runs (s)", "speed-up"))
    print(row("---", "---", "---"))
    for count, seconds in taken.items():
        print(row(count, f"{seconds:.1f}", f"{taken[processes[0]] / seconds:.2f}"), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--sizes", nargs="*", default=SIZES, help="cells x batch size")
    parser.add_argument("--pool", nargs="*", type=int, default=[], help="numbers of processes")
    arguments = typed(parser, steps=1, sizes=["40x128"])
    torch.set_num_threads(1)
    print(header("Many runs"))
    print(row("cells", "batch", "seeds", "shipped", "plain, vmap", "plain, products", "gain"))
    print(row(*["---"] * 7))
    for cells, batch in (map(int, size.split("x")) for size in arguments.sizes):
        for seeds in (1, 4, 8):
            ms = timed(
                {
                    "shipped": shipped(cells, batch),
                    "vmap": by_vmap(cells, batch, seeds),
                    "products": by_products(cells, batch, seeds),
                },
                arguments.steps,
            )
            alone, vmap, products = ms["shipped"], ms["vmap"] / seeds, ms["products"] / seeds
            gain = alone / min(vmap, products)
            print(row(
                cells, batch, seeds, f"{alone:.2f}", f"{vmap:.2f}", f"{products:.2f}",
                f"{gain:.2f}",
            ), flush=True)  # fmt: skip
    if arguments.pool:
        pool_speed_up(arguments.pool)
