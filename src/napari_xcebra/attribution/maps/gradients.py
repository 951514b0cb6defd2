"""Computes attribution from the Jacobian of the encoder and from its pseudo-inverse."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import torch
from torch import Tensor

from napari_xcebra.attribution.stream import Stream
from napari_xcebra.learn.model.encoder import CUT_OFF, inverse


def neuron_gradient(stream: Stream) -> Iterator[Tensor]:
    """J_f at every frame: (frames in chunk, latents, cells[, window])."""
    yield from on_all_cores(stream.encoder.jacobian, stream)


def inverted_neuron_gradient(stream: Stream) -> Iterator[Tensor]:
    """J_f⁺ at every frame, transposed: (frames in chunk, latents, cells[, window]).

    A window is inverted whole, (cells × window): averaging over lags first, as the reference
    does, lets a cell whose lags differ in sign cancel itself.
    """
    encoder, scale = stream.encoder, stream.scale
    yield from on_all_cores(lambda x: inverse(encoder.jacobian(x), scale, CUT_OFF), stream)


def on_all_cores(explain: Callable[[Tensor], Tensor], stream: Stream) -> Iterator[Tensor]:
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
