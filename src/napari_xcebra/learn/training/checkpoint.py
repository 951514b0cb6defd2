"""Copies the state of a training run: to go back to, or to resume from a file."""

from __future__ import annotations

import hashlib
import json
import time
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from napari_xcebra.errors import InputError
from napari_xcebra.files import open_file, whole

if TYPE_CHECKING:
    from napari_xcebra.learn.training.training import Training

VERSION = 2
"""Version of the file; a run is not resumed from another."""

State = dict[str, Tensor]
"""Weights of the encoder, temperatures, weights of time and the moments of Adam, by name."""


def state_of(training: Training) -> State:
    """Copy of the state at this step."""
    tensors = {f"encoder.{name}": w for name, w in training.encoder.state_dict().items()}
    tensors["log_temperature"] = training.psi.log_temperature
    tensors["log_time_weight"] = training.psi.log_time_weight
    for number, moments in training.optimizer.state_dict()["state"].items():
        tensors |= {f"adam.{number}.{name}": value for name, value in moments.items()}
    return {name: tensor.detach().clone() for name, tensor in tensors.items()}


def put_state(training: Training, state: State) -> None:
    """Restore what was learned; the number of the step stays."""
    prefix = "encoder."
    encoder = {n.removeprefix(prefix): t for n, t in state.items() if n.startswith(prefix)}
    training.encoder.load_state_dict(encoder)
    with torch.no_grad():
        training.psi.log_temperature.copy_(state["log_temperature"])
        training.psi.log_time_weight.copy_(state["log_time_weight"])
    moments: dict[int, State] = {}
    for name, tensor in state.items():
        if name.startswith("adam."):
            _, number, key = name.split(".")
            moments.setdefault(int(number), {})[key] = tensor.clone()
    groups = training.optimizer.state_dict()["param_groups"]
    training.optimizer.load_state_dict({"state": moments, "param_groups": groups})


class Checkpoint:
    """A safetensors file: weights, moments of Adam, history, and the state of λ and of the end.

    Parameters
    ----------
    path : path
    training : Training
        Run whose state to keep.
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
        tensors = self._tensors()
        about = {"run": self._run(), "step": str(self.training.step)}
        with whole(self.path) as file:
            save_file(tensors, file, {**about, "sha256": _checksum(tensors, about)})
        self._written = time.monotonic()

    def restore(self) -> bool:
        """Put the run into the state on disk; False if there is none.

        A checkpoint of another run (other settings, factors or traces) is refused, not overwritten.
        """
        if not self.path.exists():
            return False
        try:
            open_file(self.path).close()
            with safe_open(self.path, framework="pt") as file:
                about = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            # files of earlier versions have no checksum
            if about.pop("sha256", None) not in (None, _checksum(tensors, about)):
                raise ValueError("its checksum is another")
        # a damaged file fails in many ways
        except Exception as error:
            raise InputError(
                f"The checkpoint {self.path} cannot be read ({error}): remove it to start afresh."
            ) from error
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
        tensors = state_of(training)
        for name, values in training.history.items():
            tensors[f"history.{name}"] = torch.tensor(values, dtype=torch.float64)
        if training.search is not None:
            for name, values in training.search.looks.items():
                tensors[f"search.{name}"] = torch.tensor(values, dtype=torch.float64)
            for look, state in training.search.snapshots.items():
                tensors |= {f"snapshot.{look}.{name}": tensor for name, tensor in state.items()}
        if training.settled is not None:
            kept = training.settled.tensors()
            tensors |= {f"settled.{name}": tensor.clone() for name, tensor in kept.items()}
        return {name: tensor.cpu().contiguous() for name, tensor in tensors.items()}

    def _put(self, tensors: dict[str, Tensor], step: int) -> None:
        training = self.training
        put_state(training, tensors)
        for name in training.history:
            training.history[name] = tensors[f"history.{name}"].tolist()
        if training.search is not None:
            for name in training.search.looks:
                training.search.looks[name] = tensors[f"search.{name}"].tolist()
            training.search.snapshots = _snapshots(tensors)
        if training.settled is not None:
            prefix = "settled."
            kept = {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}
            training.settled.put(kept)
        training.step = step


def _checksum(tensors: dict[str, Tensor], about: dict[str, str]) -> str:
    """SHA-256 of everything in the file."""
    digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for name in sorted(tensors):
        values = tensors[name].numpy()
        digest.update(f"{name} {values.dtype} {values.shape} ".encode())
        digest.update(values.tobytes())
    return digest.hexdigest()


def _snapshots(tensors: dict[str, Tensor]) -> dict[int, State]:
    """States that the search for λ may still go back to, by the number of the look."""
    snapshots: dict[int, State] = {}
    for name, tensor in tensors.items():
        if name.startswith("snapshot."):
            _, look, what = name.split(".", 2)
            snapshots.setdefault(int(look), {})[what] = tensor
    return snapshots
