"""The methods there are, by name.

A method takes a `Stream` and yields, chunk of frames by chunk, the local attribution
(frames in chunk, latents, cells) or (frames in chunk, latents, cells, window).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from torch import Tensor

from napari_xcebra.attribution.captum_methods import (
    feature_ablation,
    integrated_gradients,
    shapley_shuffled,
    shapley_zeros,
)
from napari_xcebra.attribution.gradients import inverted_neuron_gradient, neuron_gradient
from napari_xcebra.attribution.stream import Stream
from napari_xcebra.recording import InputError

Method = Callable[[Stream], Iterator[Tensor]]

METHODS: dict[str, Method] = {
    "inverted-neuron-gradient": inverted_neuron_gradient,
    "neuron-gradient": neuron_gradient,
    "integrated-gradients": integrated_gradients,
    "feature-ablation": feature_ablation,
    "shapley-zeros": shapley_zeros,
    "shapley-shuffled": shapley_shuffled,
}


def method_named(name: str) -> Method:
    """Method of that name, or a sentence listing those there are."""
    try:
        return METHODS[name]
    except KeyError:
        raise InputError(
            f"There is no attribution method {name!r}; there are: {', '.join(METHODS)}."
        ) from None


def local_scores(method: str, stream: Stream) -> Iterator[Tensor]:
    """|A| at every frame, averaged over the lags of a window: (frames in chunk, latents, cells)."""
    for local in method_named(method)(stream):
        size = local.abs()
        yield size.mean(3) if size.ndim == 4 else size
