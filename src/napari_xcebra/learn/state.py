"""What a training run has learned so far, to go back to or to keep in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from napari_xcebra.learn.training import Training

State = dict[str, Tensor]
"""Weights of the encoder, temperatures, weights of time and the moments of Adam, by name."""


def state_of(training: Training) -> State:
    """Copy of what is learned at this step."""
    tensors = {f"encoder.{name}": w for name, w in training.encoder.state_dict().items()}
    tensors["log_temperature"] = training.log_temperature
    tensors["log_time_weight"] = training.log_time_weight
    for number, moments in training.optimizer.state_dict()["state"].items():
        tensors |= {f"adam.{number}.{name}": value for name, value in moments.items()}
    return {name: tensor.detach().clone() for name, tensor in tensors.items()}


def put_state(training: Training, state: State) -> None:
    """Make a run go on from what was learned then; the number of its step stays."""
    prefix = "encoder."
    encoder = {n.removeprefix(prefix): t for n, t in state.items() if n.startswith(prefix)}
    training.encoder.load_state_dict(encoder)
    with torch.no_grad():
        training.log_temperature.copy_(state["log_temperature"])
        training.log_time_weight.copy_(state["log_time_weight"])
    moments: dict[int, State] = {}
    for name, tensor in state.items():
        if name.startswith("adam."):
            _, number, key = name.split(".")
            moments.setdefault(int(number), {})[key] = tensor.clone()
    groups = training.optimizer.state_dict()["param_groups"]
    training.optimizer.load_state_dict({"state": moments, "param_groups": groups})
