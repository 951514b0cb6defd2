"""The state of a training run on disk, to resume from."""

from __future__ import annotations

import json
import time
from os import PathLike
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from napari_xcebra.files import whole
from napari_xcebra.learn.training import Training
from napari_xcebra.recording import InputError

VERSION = 2
"""Of what the file holds: a run is not resumed from another."""


class Checkpoint:
    """One safetensors file: weights, moments of Adam, history, search for λ and steps done.

    Parameters
    ----------
    path : path
    training : Training
        Run whose state is kept.
    seconds : float
        Time between two writes.
    """

    def __init__(self, path: str | PathLike[str], training: Training, seconds: float = 5.0) -> None:
        self.path, self.training, self.seconds = Path(path), training, seconds
        self._written = time.monotonic()
        self._digest = training.data.digest()

    def keep(self, now: bool = False) -> None:
        """Write the state if it is due, or at once."""
        if not now and time.monotonic() - self._written < self.seconds:
            return
        with whole(self.path) as file:
            save_file(self._tensors(), file, {"run": self._run(), "step": str(self.training.step)})
        self._written = time.monotonic()

    def restore(self) -> bool:
        """Put the run into the state on disk; False if there is none.

        A checkpoint of another run (other settings, factors or traces) is refused, not overwritten.
        """
        if not self.path.exists():
            return False
        try:
            with safe_open(self.path, framework="pt") as file:
                about = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except (OSError, SafetensorError) as error:
            raise InputError(f"The checkpoint {self.path} cannot be read ({error}).") from error
        if about.get("run") != self._run():
            raise InputError(
                f"The checkpoint {self.path} belongs to a run with other settings, factors or "
                "traces: name another file, or remove it to start afresh."
            )
        self._put(tensors, int(about["step"]))
        return True

    def remove(self) -> None:
        """Delete the file."""
        self.path.unlink(missing_ok=True)

    def _run(self) -> str:
        training = self.training
        about = {
            "version": VERSION,
            "settings": training.settings.as_dict(),
            "parts": [part.as_dict() for part in training.parts],
            "cells": training.inputs.cell_ids.tolist(),
            "inputs": self._digest,
            "mean": training.inputs.mean.tolist(),
        }
        return json.dumps(about, sort_keys=True)

    def _tensors(self) -> dict[str, Tensor]:
        training = self.training
        tensors = {f"encoder.{n}": w for n, w in training.encoder.state_dict().items()}
        tensors["log_temperature"] = training.log_temperature.detach()
        tensors["log_time_weight"] = training.log_time_weight.detach()
        for number, state in training.optimizer.state_dict()["state"].items():
            tensors |= {f"adam.{number}.{name}": value for name, value in state.items()}
        for name, values in training.history.items():
            tensors[f"history.{name}"] = torch.tensor(values, dtype=torch.float64)
        for name, values in _looks(training).items():
            tensors[f"search.{name}"] = torch.tensor(values, dtype=torch.float64)
        return {name: t.detach().cpu().contiguous().clone() for name, t in tensors.items()}

    def _put(self, tensors: dict[str, Tensor], step: int) -> None:
        training = self.training
        prefix = "encoder."
        encoder = {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}
        training.encoder.load_state_dict(encoder)
        with torch.no_grad():
            training.log_temperature.copy_(tensors["log_temperature"])
            training.log_time_weight.copy_(tensors["log_time_weight"])
        state: dict[int, dict[str, Tensor]] = {}
        for name, tensor in tensors.items():
            if name.startswith("adam."):
                _, number, key = name.split(".")
                state.setdefault(int(number), {})[key] = tensor
        groups = training.optimizer.state_dict()["param_groups"]
        training.optimizer.load_state_dict({"state": state, "param_groups": groups})
        for name in training.history:
            training.history[name] = tensors[f"history.{name}"].tolist()
        looks = _looks(training)
        for name in looks:
            looks[name] = tensors[f"search.{name}"].tolist()
        training.step = step


def _looks(training: Training) -> dict[str, list[float]]:
    """State of the search for λ; empty if there is none."""
    return {} if training.search is None else training.search.looks
