"""The methods there are, by name.

Most explain the encoder frame by frame: they take a `Stream` and yield, chunk of frames by chunk,
the local attribution (frames in chunk, latents, cells), with a window (…, cells, window). The
generative gradient does so as well, once its map is fitted. Others score a factor as a whole: they
take a `Stream`, and a `Watch` to report to, and return scores (factors, cells), notes and more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from torch import Tensor

from napari_xcebra.attribution.captum_methods import (
    feature_ablation,
    integrated_gradients,
    shapley_shuffled,
    shapley_zeros,
)
from napari_xcebra.attribution.encoding.conditional import FactorScores, conditional_encoding
from napari_xcebra.attribution.encoding.generative import generative_gradient
from napari_xcebra.attribution.gradients import inverted_neuron_gradient, neuron_gradient
from napari_xcebra.attribution.method_notes import OVER_TIME
from napari_xcebra.attribution.stream import Stream
from napari_xcebra.attribution.watching import Watch
from napari_xcebra.recording import InputError

LocalMethod = Callable[[Stream], Iterator[Tensor]]
FactorMethod = Callable[[Stream, Watch], FactorScores]

LOCAL_METHODS: dict[str, LocalMethod] = {
    "inverted-neuron-gradient": inverted_neuron_gradient,
    "neuron-gradient": neuron_gradient,
    "integrated-gradients": integrated_gradients,
    "feature-ablation": feature_ablation,
    "shapley-zeros": shapley_zeros,
    "shapley-shuffled": shapley_shuffled,
}


FACTOR_METHODS: dict[str, FactorMethod] = {"conditional-encoding": conditional_encoding}

METHODS = (*FACTOR_METHODS, OVER_TIME, *LOCAL_METHODS)
"""Names of all methods, the default first."""


def check_method(name: str) -> None:
    """Raise a sentence listing the methods there are, if this is none."""
    if name not in METHODS:
        raise InputError(
            f"There is no attribution method {name!r}; there are: {', '.join(METHODS)}."
        )


def local_scores(method: str, stream: Stream, watch: Watch | None = None) -> Iterator[Tensor]:
    """|A| at every frame, averaged over the lags of a window: (frames in chunk, latents, cells).

    Parameters
    ----------
    watch : Watch, optional
        Who is told while the map of the generative gradient is fitted.
    """
    check_method(method)
    if method in FACTOR_METHODS:
        raise InputError(
            f"{method} explains whole traces, and has no scores over time: choose another method, "
            f"such as {OVER_TIME}, to see scores frame by frame."
        )
    explained = LOCAL_METHODS.get(method, partial(generative_gradient, watch=watch))
    for local in explained(stream):
        size = local.abs_()
        yield size.mean(3) if size.ndim == 4 else size
