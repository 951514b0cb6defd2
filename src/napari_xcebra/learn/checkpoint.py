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
from napari_xcebra.learn.state import State, put_state, state_of
from napari_xcebra.learn.training import Training
from napari_xcebra.recording import InputError

VERSION = 2
"""Of what the file holds: a run is not resumed from another."""


class Checkpoint:
    """One safetensors file: weights, moments of Adam, history, and what decides on λ and the end.

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


def _snapshots(tensors: dict[str, Tensor]) -> dict[int, State]:
    """States that the search for λ may still go back to, by the number of the look."""
    snapshots: dict[int, State] = {}
    for name, tensor in tensors.items():
        if name.startswith("snapshot."):
            _, look, what = name.split(".", 2)
            snapshots.setdefault(int(look), {})[what] = tensor
    return snapshots
