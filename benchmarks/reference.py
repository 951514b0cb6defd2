"""The reference implementation (PyPI `cebra` 0.6.1), set up through its public classes.

A hybrid, regularised xCEBRA model: the time objective on the whole embedding, the behaviour
objective on its last latents, the Jacobian penalty raised by its own scheduler.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import cebra.attribution
import cebra.data
import cebra.models
import cebra.solver
import numpy as np
import torch
from cebra.attribution._jacobian import compute_jacobian
from cebra.data.datasets import DatasetxCEBRA
from cebra.solver.multiobjective import MultiObjectiveConfig
from cebra.solver.schedulers import LinearRampUp
from scipy.spatial import cKDTree

MODEL = "offset1-model-mse-clip-5-5"
"""cells → 30d → 30d → 10d → d with GELU, clipped at ±5."""


@dataclass(frozen=True)
class ReferenceSettings:
    """What a user of the reference chooses.

    Parameters
    ----------
    tree : bool
        Put a k-d tree in the place of its brute-force search.
    projections : int
        Random projections of its Jacobian penalty (its default is 1); −1: exact.
    steps : int
        Where its run ends if it is trained to the end.
    ramp : (int, int)
        Steps at which λ starts to rise and at which it is reached.
    units : int
        Width of the layers of a model with a window.
    """

    tree: bool = False
    projections: int = 1
    steps: int = 1000
    batch_size: int = 512
    learning_rate: float = 0.003
    time_offset: int = 1
    lambda_: float = 0.1
    ramp: tuple[int, int] = (100, 200)
    model: str = MODEL
    units: int = 32


class TreeIndex:
    """The fair opponent: nearest labels by k-d tree, with the interface of its brute force."""

    def __init__(self, labels: torch.Tensor) -> None:
        self._tree = cKDTree(labels.numpy())

    def search(self, query: torch.Tensor) -> torch.Tensor:
        """Frame whose label is nearest to each query: (queries,) int64."""
        return torch.from_numpy(self._tree.query(query.numpy())[1])


def make_model(cells: int, latents: int, name: str = MODEL, units: int = 32) -> Any:
    """Its encoder; `units` is required but has no effect on models of single frames."""
    return cebra.models.init(name, num_neurons=cells, num_units=units, num_output=latents)


def make_loader(
    traces: np.ndarray,
    labels: np.ndarray | Mapping[str, np.ndarray],
    latents: tuple[int, ...],
    settings: ReferenceSettings,
) -> tuple[Any, Any]:
    """Its loader and the configuration that goes with it.

    Parameters
    ----------
    traces : (frames, cells) float32
    labels : (frames, columns), or mapping of factor to these
    latents : tuple of int
        For time alone, and for each factor.
    """
    named = labels if isinstance(labels, Mapping) else {"label": labels}
    dataset = DatasetxCEBRA(tensor(traces), **{n: tensor(each) for n, each in named.items()})
    loader = cebra.data.ContrastiveMultiObjectiveLoader(
        dataset=dataset, num_steps=10**9, batch_size=settings.batch_size
    )
    config = MultiObjectiveConfig(loader)
    offset, stops = settings.time_offset, np.cumsum(latents).tolist()
    objectives: list[tuple[tuple[int, int], str, dict[str, Any]]] = [
        ((0, stops[-1]), "time", {"time_offset": offset}),
        *(
            (span, "time_delta", {"time_delta": offset, "label_name": name})
            for span, name in zip(pairwise(stops), named, strict=True)
        ),
    ]
    with quiet():
        for span, distribution, arguments in objectives:
            config.set_slice(*span)
            config.set_loss("FixedEuclideanInfoNCE", temperature=1.0)
            config.set_distribution(distribution, **arguments)
            config.push()
        config.finalize()
    if settings.tree:
        for by_label in loader.distributions[1:]:
            by_label.index = TreeIndex(by_label.data)
    return loader, config


class ReferenceTraining:
    """Its solver, driven step by step as its `fit` does, so that each step can be timed."""

    def __init__(
        self,
        traces: np.ndarray,
        labels: np.ndarray | Mapping[str, np.ndarray],
        latents: tuple[int, ...],
        settings: ReferenceSettings,
        seed: int = 0,
    ) -> None:
        loader, config = make_loader(traces, labels, latents, settings)
        torch.manual_seed(seed)  # weights only: its sampling takes no seed
        model = make_model(traces.shape[1], sum(latents), settings.model, settings.units)
        loader.dataset.configure_for(model)
        with quiet():
            self.solver = cebra.solver.init(
                "multiobjective-solver",
                model=model,
                feature_ranges=config.feature_ranges,
                regularizer=cebra.models.JacobianReg(n=settings.projections),
                renormalize=False,
                use_sam=False,
                criterion=config.criterion,
                optimizer=torch.optim.Adam(model.parameters(), lr=settings.learning_rate),
                tqdm_on=False,
            )
        self.scheduler = LinearRampUp(
            n_splits=len(latents),
            step_to_switch_on_reg=settings.ramp[0],
            step_to_switch_off_reg=settings.ramp[1],
            start_weight=0.0,
            end_weight=settings.lambda_,
        )
        self.solver.model.train()
        self._batches = iter(loader)
        self.step = 0

    def train(self, steps: int) -> None:
        """Do that many steps."""
        for _ in range(steps):
            weights = self.scheduler.get_weights(step=self.step)
            self.solver.step(next(self._batches), weights_regularizer=weights)
            self.step += 1

    def jacobian(self, traces: np.ndarray) -> np.ndarray:
        """J_f at these frames: (frames, latents, cells)."""
        model = self.solver.model.module
        return reference_jacobian(model, tensor(traces))


def reference_jacobian(model: torch.nn.Module, x: torch.Tensor) -> np.ndarray:
    """Its Jacobian: (frames, latents, cells)."""
    x = x[:, :, None].requires_grad_(True)
    found = compute_jacobian(model, [x], cuda_device="cpu", double_precision=False)
    return found.reshape(found.shape[:3])


def attribution_method(traces: np.ndarray, latents: int) -> Any:
    """Its batched, Jacobian-based attribution, ready to be computed for a new model."""
    model = make_model(traces.shape[1], latents)
    x = tensor(traces).requires_grad_(True)
    return cebra.attribution.init(
        "jacobian-based-batched", model=model, input_data=x, output_dimension=latents
    )


def one_inversion(method: Any, batch_size: int = 1024) -> np.ndarray:
    """The part of its attribution that is comparable to ours: J, and J⁺ by one of its four ways."""
    batches = torch.split(method.input_data, batch_size)
    jacobian = np.vstack([method._compute_jacobian(batch) for batch in batches])
    return method._inverse(jacobian.reshape(jacobian.shape[:3]), method="svd")[0]


def tensor(values: np.ndarray) -> torch.Tensor:
    """Copy in the precision it works in; arrays of a recording are read-only."""
    return torch.tensor(values, dtype=torch.float32)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """It announces each step of its configuration by `print`."""
    with contextlib.redirect_stdout(io.StringIO()):
        yield
