"""Runs a training: a loop that reports, and can be stopped at any step and resumed."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import cached_property
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from napari_xcebra.errors import TrainingDiverged
from napari_xcebra.learn.data.deconvolution import deconvolved_inputs
from napari_xcebra.learn.data.factors import Factors, TrainingPlan, as_factors, plan_for
from napari_xcebra.learn.data.inputs import Inputs, ReadInputs
from napari_xcebra.learn.data.sampling import Sampler
from napari_xcebra.learn.data.split import UsableFrames, split_by_memory, usable_frames
from napari_xcebra.learn.device import (
    FrameData,
    ThreadTrial,
    choose_device,
    limited_threads,
)
from napari_xcebra.learn.model.encoder import Encoder
from napari_xcebra.learn.model.frame_encoder import FrameEncoder
from napari_xcebra.learn.model.window_encoder import WindowEncoder
from napari_xcebra.learn.objective.regularised import Objective
from napari_xcebra.learn.objective.ridge import Yardstick
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.learn.training.lambda_search import UNSEARCHED, LambdaSearch
from napari_xcebra.learn.training.progress import Phase, Progress
from napari_xcebra.learn.training.settled import Settled
from napari_xcebra.learn.training.start import (
    check_latents,
    new_encoder,
    scaled,
    start_as_regression,
)
from napari_xcebra.recording import Recording

FORGOTTEN = 0.1, 0.001
"""Share of the mean gradient, and of its mean square, that each step replaces (1 − β)."""

LEAST = 1e-8
"""Added to the root of the mean square (ε)."""

CELLS = 512
"""Cells up to which their weights are learned at the full rate."""


class _Adam:
    """Adam, with all parameters next to each other in memory, and their gradients likewise.

    Parameters
    ----------
    parameters : sequence of Parameter
        On one device; those that need no gradient are left alone.
    rates : mapping of Parameter to float, optional
        Factor on the learning rate of those that have one of their own.
    """

    def __init__(
        self,
        parameters: Sequence[nn.Parameter],
        rates: Mapping[nn.Parameter, float] | None = None,
    ) -> None:
        learned = [p for p in parameters if p.requires_grad]
        own = [(rates or {}).get(p, 1.0) for p in learned]
        self._slowed: Tensor | None = None
        if any(rate != 1 for rate in own):
            each = [torch.full((p.numel(),), 1 / r) for p, r in zip(learned, own, strict=True)]
            self._slowed = torch.cat(each).to(learned[0])
        self.values = torch.cat([p.detach().flatten() for p in learned])
        self.gradients, self.mean, self.square = torch.zeros(3, *self.values.shape).to(self.values)
        self.steps = 0
        sizes = [p.numel() for p in learned]
        parts = zip(learned, self.values.split(sizes), self.gradients.split(sizes), strict=True)
        for parameter, values, gradients in parts:
            parameter.data = values.view_as(parameter)
            parameter.grad = gradients.view_as(parameter)

    def zero_grad(self) -> None:
        """Reset the gradients."""
        self.gradients.zero_()

    @torch.no_grad()
    def step(self, learning_rate: float) -> None:
        """Move all parameters by their gradients."""
        self.steps += 1
        of_mean, of_square = FORGOTTEN
        self.mean.lerp_(self.gradients, of_mean)
        self.square.mul_(1 - of_square).addcmul_(self.gradients, self.gradients, value=of_square)
        # both begin at zero: divided by how much they have seen
        seen = 1 - (1 - of_mean) ** self.steps
        root = math.sqrt(1 - (1 - of_square) ** self.steps)
        size = self.square.sqrt().div_(root).add_(LEAST)
        if self._slowed is not None:
            size.mul_(self._slowed)
        self.values.addcdiv_(self.mean, size, value=-learning_rate / seen)

    def state_dict(self) -> dict[str, Any]:
        """State that a resumed run needs, as `torch.optim` writes it."""
        steps = torch.tensor(float(self.steps))
        moments = {"step": steps, "exp_avg": self.mean, "exp_avg_sq": self.square}
        return {"state": {0: moments}, "param_groups": []}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state; from the beginning if it holds no moments."""
        nothing = torch.zeros_like(self.mean)
        moments = state["state"].get(0, {})
        self.steps = int(moments.get("step", 0))
        self.mean.copy_(moments.get("exp_avg", nothing))
        self.square.copy_(moments.get("exp_avg_sq", nothing))


def _rates_of(encoder: nn.Module) -> dict[nn.Parameter, float]:
    """Share of the learning rate for the weights of many cells.

    Adam moves every weight by as much, so that what a unit sees changes with the number of its
    inputs: with thousands of cells the first step would throw the embedding to its bound, from
    where it hardly comes back.
    """
    layers = [each for each in encoder.modules() if isinstance(each, FrameEncoder | WindowEncoder)]
    firsts = [each.first if isinstance(each, WindowEncoder) else each.layers[0] for each in layers]
    weights = [cast(nn.Parameter, first.weight) for first in firsts]
    return {weight: min(1.0, CELLS / weight.shape[1]) for weight in weights}


class Training:
    """A training run in progress.

    Everything random depends on the seed and the number of the step alone, so that a run
    resumed from its state goes on exactly as if it had not been stopped.

    Parameters
    ----------
    recording : Recording
    factors : mapping of str to variables or Factor
    settings : FitSettings
    plan : TrainingPlan, optional
        Where labels and parts are not this recording's own, but shared with others.
    report : callable, optional
        Called now and then while a recording is prepared, before the first step; may raise.
    """

    kernels: tuple[int, ...] = ()
    """Kernels of an encoder with a window, where they are not the default ones."""

    encoder: Encoder

    in_sample: bool = False
    """Whether the encoder may have been trained on the frames that are held out here."""

    widths: tuple[int, ...] = ()
    """Units of the hidden layers, where they do not follow from settings and recording."""

    def __init__(
        self,
        recording: Recording,
        factors: Factors | None,
        settings: FitSettings,
        plan: TrainingPlan | None = None,
        report: Callable[[], object] = lambda: None,
    ) -> None:
        self.settings, self._preparing = settings, report
        self.segment, self.rate = recording.segment, recording.rate
        self.usable = usable_frames(recording, settings.window)
        self.factors = as_factors(factors, settings)
        self.plan = plan or plan_for(recording, self.factors, settings)
        self.labels, self.parts = self.plan.labels, self.plan.parts
        check_latents(self.parts[-1].stop, recording.n_cells)  # before anything takes long
        self.split = split_by_memory(recording, self.labels, settings, self.plan.time_offset)
        self.inputs, inputs = self._make_inputs(recording)
        self._whole = self.sampler_of(self.split.training)
        self.device = choose_device(settings.device)
        self.data = FrameData(inputs, settings.window, self.device)
        self._build()

    def _make_inputs(self, recording: Recording) -> tuple[Inputs, np.ndarray | ReadInputs]:
        return deconvolved_inputs(recording, self.plan, self.split, self.settings, self._preparing)

    def _make_encoder(self) -> Encoder:
        encoder = new_encoder(self)
        self.regressions, self.hide = start_as_regression(self, encoder)
        return encoder

    def rows(self, frames: np.ndarray) -> np.ndarray:
        """Inputs of these frames, for a regression: (frames, cells) float32."""
        return self.data[frames].flatten(1).cpu().numpy()

    @cached_property
    def yardstick(self) -> Yardstick:
        """Regressions on the cells, which the beginning, the end and the verdict share."""
        return Yardstick(self.rows, self.split)

    def _build(self) -> None:
        self.asked_batch = self.settings.batch_size
        self.encoder = self._make_encoder().to(self.device)
        self.settings = scaled(self.settings, len(self._whole.references))
        self.batch_size = self.settings.batch_size
        self.objective = self._make_objective()
        self.psi = self.objective.psi
        learned = [*self.encoder.parameters(), *self.psi.parameters()]
        rates = _rates_of(self.encoder) if self.settings.network == "fitted" else None
        self.optimizer = _Adam(learned, rates)
        self.step = 0
        self.search = LambdaSearch.of(self)
        self.settled = self._settling()
        names = ("step", "penalty", "lambda", *(part.name for part in self.parts))
        self.history: dict[str, list[float]] = {name: [] for name in names}

    def _make_objective(self) -> Objective:
        return Objective(self.encoder, self.data, self.labels, self.parts, self.settings, self.hide)

    def _settling(self) -> Settled | None:
        """Decides when to stop early; None if all steps are to be done."""
        return Settled(self) if self.settings.stop_when_settled else None

    @property
    def steps(self) -> int:
        """Steps to do: those requested and those repeated, or fewer once nothing changes."""
        return (self.settled and self.settled.last) or self.settings.steps + self.repeated

    @property
    def repeated(self) -> int:
        """Steps that the search for λ undid when it ended, and that are repeated."""
        return self.search.undone if self.search is not None else 0

    def sampler_of(self, frames: UsableFrames) -> Sampler:
        """Draws batches from these frames."""
        plan, balance = self.plan, self.settings.balance
        return Sampler(frames, self.labels, plan.time_offset, plan.offsets, balance)

    @property
    def sampler(self) -> Sampler:
        """Draws from all training frames, except those set aside while λ is searched for."""
        return self._whole if self.search is None or self.search.over else self.search.sampler

    def run(self, every: int = 10) -> Iterator[Progress]:
        """Train to the end, reporting every so many steps; may be closed at any report.

        Yields
        ------
        Progress
        """
        began = time.perf_counter()
        losses: list[Tensor] = []
        with limited_threads(self.settings.threads):
            threads = self._thread_trial()
            while self.step < self.steps:
                with threads.step() if threads else nullcontext():
                    losses.append(self._train_step())
                self.step += 1
                if self.search is not None:
                    self.search.look(self)
                if self.settled is not None:
                    self.settled.look(self, losses[-1][:-1])
                if len(losses) == every or self.step == self.steps:
                    yield self._report(losses, time.perf_counter() - began)
                    losses = []

    def _thread_trial(self) -> ThreadTrial | None:
        """Finds the number of threads; None if it is given, or on a GPU."""
        if self.settings.threads or self.device.type != "cpu":
            return None
        return ThreadTrial(torch.get_num_threads())

    def _report(self, losses: list[Tensor], seconds: float) -> Progress:
        values = torch.stack(losses).mean(0).tolist()
        if not np.isfinite(values[:-1]).all():
            raise TrainingDiverged(
                f"Training diverged at step {self.step}: the loss is no longer a finite number. "
                "Lower `learning_rate`, or set `include_positive`, and train again."
            )
        loss = {part.name: value for part, value in zip(self.parts, values[:-1], strict=True)}
        progress = Progress(
            self.step,
            self.steps,
            self.phase(self.step),
            loss,
            values[-1],
            self.lambda_at(self.step),
            seconds,
        )
        row = {"step": self.step, "penalty": progress.penalty, "lambda": progress.lambda_, **loss}
        for name, value in row.items():
            self.history[name].append(float(value))
        return progress

    def phase(self, step: int) -> Phase:
        """Phase of λ at that step."""
        share = step / self.settings.steps
        if share <= self.settings.settle:
            return "settling"
        if self.search is not None:
            return "holding" if self.search.over else "raising λ"
        return "raising λ" if share < self.settings.settle + self.settings.ramp else "holding"

    def lambdas_at(self, step: int) -> list[float]:
        """λ of each part."""
        if self.search is not None:
            found = self.search.lambdas_at(step)
            return [found[part.name] for part in self.parts]
        return [self._ramped(step)] * len(self.parts)

    def lambda_at(self, step: int) -> float:
        """The largest λ of a part."""
        return max(self.lambdas_at(step))

    def _ramped(self, step: int) -> float:
        """λ: zero while InfoNCE settles, then ramped, then held (paper Sec. 4)."""
        raised = step / self.settings.steps - self.settings.settle
        if raised <= 0:
            return 0.0
        highest = UNSEARCHED if self.settings.lambda_ == "auto" else self.settings.lambda_
        return highest * min(1.0, raised / max(self.settings.ramp, 1e-9))

    def _learning_rate(self) -> float:
        if self.settled is not None and self.settled.at:
            end = self._cosine(self.settings.steps + self.repeated)
            return self.settled.learning_rate(self.step, self._cosine(self.settled.at), end)
        return self._cosine(self.step)

    def _cosine(self, step: int) -> float:
        """Learning rate at a step of a training that does all of them."""
        low, share = self.settings.decay, (step - self.repeated) / self.settings.steps
        return self.settings.learning_rate * (low + (1 - low) * 0.5 * (1 + np.cos(np.pi * share)))

    def _train_step(self) -> Tensor:
        """One step of Adam on `Objective.loss`: losses of all parts and the penalty, detached."""
        settings = self.settings
        batch = self.sampler.batch(self.step, settings.batch_size, settings.seed)
        seed = settings.seed * 1_000_003 + self.step
        loss, terms = self.objective.loss(batch, self.lambdas_at(self.step), seed)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step(self._learning_rate())
        return terms
