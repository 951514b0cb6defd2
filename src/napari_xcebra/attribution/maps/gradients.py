"""Computes attribution from gradients of the encoder and, to compare, by captum's methods.

For captum, a baseline of zeros is every cell at its mean, as inputs are standardised. Each of its
methods passes through the encoder many times a frame: a tenth of the frames is usually enough.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

from napari_xcebra.attribution.stream import Stream
from napari_xcebra.learn.model.encoder import CUT_OFF, inverse

PATH_STEPS = 20
"""Points on the path from the baseline to the input; with 50 the scores differ by 1e-7."""
SHAPLEY_SAMPLES = 5
"""Random points on that path a frame, for Shapley values; frames average out the rest."""
SHUFFLED_FRAMES = 512
"""Frames of the recording that serve as shuffled baselines."""


def neuron_gradient(stream: Stream) -> Iterator[Tensor]:
    """J_f at every frame: (frames in chunk, latents, cells[, window])."""
    yield from _on_all_cores(stream.encoder.jacobian, stream)


def inverted_neuron_gradient(stream: Stream) -> Iterator[Tensor]:
    """J_f⁺ at every frame, transposed: (frames in chunk, latents, cells[, window]).

    A window is inverted whole, (cells × window): averaging over lags first, as the reference
    does, lets a cell whose lags differ in sign cancel itself.
    """
    encoder, scale = stream.encoder, stream.scale
    yield from _on_all_cores(lambda x: inverse(encoder.jacobian(x), scale, CUT_OFF), stream)


def _on_all_cores(explain: Callable[[Tensor], Tensor], stream: Stream) -> Iterator[Tensor]:
    """Explain the chunks in order, several at a time.

    A chunk on each core is faster than all cores on one chunk: the products are small.
    """
    if stream.workers == 1:
        yield from map(explain, stream.chunks())
        return
    with ThreadPoolExecutor(stream.workers) as pool:
        under_way: deque[Future[Tensor]] = deque()
        try:
            for x in stream.chunks():
                under_way.append(pool.submit(_without_gradients, explain, x))
                if len(under_way) > stream.workers:
                    yield under_way.popleft().result()
            while under_way:
                yield under_way.popleft().result()
        finally:
            # a consumer that stops waits only for what has begun
            pool.shutdown(wait=False, cancel_futures=True)


def _without_gradients(explain: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    with torch.no_grad():  # per thread
        return explain(x)


def integrated_gradients(stream: Stream) -> Iterator[Tensor]:
    """Gradient along the straight path from the mean trace to the input, times the input."""
    from captum.attr import IntegratedGradients  # slow to import, and rarely used

    method = IntegratedGradients(stream.encoder)
    for x, latent in _for_each_latent(stream, PATH_STEPS):
        yield _by_frame(method.attribute(x, target=latent, n_steps=PATH_STEPS), stream)


def feature_ablation(stream: Stream) -> Iterator[Tensor]:
    """Change of a latent when one cell, with all its lags, is set to its mean."""
    from captum.attr import FeatureAblation

    method = FeatureAblation(stream.encoder)
    cells = torch.arange(stream.encoder.n_cells, device=stream.device)
    mask = cells[None] if stream.encoder.window == 1 else cells[None, :, None]
    for x, latent in _for_each_latent(stream, 4):
        mask_of_x = mask.expand(1, *x.shape[1:])
        yield _by_frame(method.attribute(x, target=latent, feature_mask=mask_of_x), stream)


def shapley_zeros(stream: Stream) -> Iterator[Tensor]:
    """Shapley values (captum's GradientShap) against every cell at its mean."""
    first = next(stream.chunks())[:1]
    return _shapley(stream, torch.zeros_like(first))


def shapley_shuffled(stream: Stream) -> Iterator[Tensor]:
    """Shapley values (captum's GradientShap) against other frames, drawn at random."""
    return _shapley(stream, stream.drawn(SHUFFLED_FRAMES))


def _shapley(stream: Stream, baselines: Tensor) -> Iterator[Tensor]:
    from captum.attr import GradientShap

    method = GradientShap(stream.encoder)
    for number, (x, latent) in enumerate(_for_each_latent(stream, SHAPLEY_SAMPLES)):
        with _seeded(stream.seed + number, stream.device):
            local = method.attribute(x, baselines, target=latent, n_samples=SHAPLEY_SAMPLES)
        yield _by_frame(local, stream)


def _for_each_latent(stream: Stream, copies: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Inputs repeated for every latent, and the latent each copy is for.

    Yields
    ------
    (frames × latents, cells[, window]), (frames × latents,)
    """
    latents = stream.encoder.latents
    for x in stream.chunks(4 * copies):
        repeated = x.repeat_interleave(latents, 0).requires_grad_()
        yield repeated, torch.arange(latents, device=x.device).repeat(len(x))


def _by_frame(local: Tensor, stream: Stream) -> Tensor:
    return local.detach().unflatten(0, (-1, stream.encoder.latents))


@contextmanager
def _seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Seed the global generators that captum draws from, and restore them after."""
    state = np.random.get_state()  # noqa: NPY002
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        np.random.seed(seed % 2**32)  # noqa: NPY002
        try:
            yield
        finally:
            np.random.set_state(state)  # noqa: NPY002
