"""The training run: a loop that reports, can be stopped at any step, and resumed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from napari_xcebra.errors import TrainingDiverged
from napari_xcebra.learn.adam import Adam
from napari_xcebra.learn.averaging import averaged
from napari_xcebra.learn.deconvolution import find_filter
from napari_xcebra.learn.device import FrameData, choose_device, limited_threads
from napari_xcebra.learn.encoder import (
    Encoder,
    FrameEncoder,
    make_encoder,
    rates_of,
    widths_for,
)
from napari_xcebra.learn.hiding import hidden_cells
from napari_xcebra.learn.inputs import Filter, inputs_for
from napari_xcebra.learn.lambda_search import UNSEARCHED, LambdaSearch
from napari_xcebra.learn.length import independent_samples, steps_for
from napari_xcebra.learn.objective import penalty_directions
from napari_xcebra.learn.parts import (
    TIME,
    Factors,
    Part,
    Plan,
    as_factors,
    plan_for,
)
from napari_xcebra.learn.progress import Phase, Progress
from napari_xcebra.learn.psi import Psi
from napari_xcebra.learn.regression import Regression
from napari_xcebra.learn.ridge import Ridge, chosen_on_aside
from napari_xcebra.learn.sampling import Batch, Sampler
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.learn.settled import Settled
from napari_xcebra.learn.split import Frames, split_by_memory, usable_frames
from napari_xcebra.learn.threads import ThreadTrial
from napari_xcebra.recording import InputError, Recording

DRAWN_AHEAD = 32
"""Steps whose pairs are drawn at once: one call of the k-d tree serves them all."""

LEAST_PENALTY = 0.01
"""Least penalty of the regression that an encoder begins as.

Without noise the best regression weighs cells against each other finely; as soon as one of them is
hidden, or λ pulls at the weights, it is worse than nothing (box model of 3,000 frames: R² 0.30
instead of 0.88).
"""

HIDDEN_FROM = 4.0
"""Cells are hidden in full where a regression misses a quarter of a variable or more.

Without noise every cell counts: on the box model, where a regression has R² 0.97, hiding half of
the cells costs 0.03 of it, and J⁺ falls from 1.00 to 0.90.
"""

LEAST_BATCH = 16
"""Frames a step, at least, however short a recording is."""


class Training:
    """A training run in progress.

    Everything random depends on the seed and the number of the step alone, so that a run
    resumed from its state goes on exactly as if it had not been stopped.

    Parameters
    ----------
    recording : Recording
    factors : mapping of str to variables or Factor
    settings : FitSettings
    plan : Plan, optional
        Where labels and parts are not this recording's own, but shared with others.
    """

    kernels: tuple[int, ...] = ()
    """Of an encoder with a window, where it is not to have the default ones."""

    encoder: Encoder

    widths: tuple[int, ...] = ()
    """Units of the hidden layers, where they are not to follow from settings and recording."""

    def __init__(
        self,
        recording: Recording,
        factors: Factors | None,
        settings: FitSettings,
        plan: Plan | None = None,
    ) -> None:
        self.settings = settings
        self.segment, self.rate = recording.segment, recording.rate
        self.usable = usable_frames(recording, settings.window)
        self.factors = as_factors(factors, settings)
        self.plan = plan or plan_for(recording, self.factors, settings)
        self.labels, self.parts = self.plan.labels, self.plan.parts
        self.split = split_by_memory(recording, self.labels, settings, self.plan.time_offset)
        self.inputs, inputs = inputs_for(
            recording, self.split.training.anchors, settings, self._find_filter(recording)
        )
        self._whole = self.sampler_of(self.split.training)
        self.device = choose_device(settings.device)
        self.data = FrameData(inputs, settings.window, self.device)
        self._build()

    def _find_filter(self, recording: Recording) -> Filter:
        """Filter behind the smoothing of the traces; an encoder with a window learns its own."""
        if not self.settings.deconvolve or self.settings.window > 1:
            return Filter()
        with limited_threads(self.settings.threads):
            return find_filter(recording, self.labels, self.split, self.settings)

    def _make_encoder(self) -> Encoder:
        """The encoder to train; its initial weights depend on the seed alone."""
        settings, latents = self.settings, self.parts[-1].stop
        cells = len(self.inputs.cell_ids)
        if latents > cells:
            raise InputError(
                f"The embedding has {latents} latents but only {cells} cells are in use: at most "
                "as many latents as cells are possible; lower `time_latents` or name fewer factors."
            )
        samples = independent_samples(len(self.split.training.anchors), self.inputs.smoothing)
        widths = self.widths or widths_for(settings.hidden_units, latents, samples, settings.window)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(settings.seed)
            encoder = make_encoder(
                cells,
                latents,
                widths,
                bound=settings.bound,
                window=settings.window,
                kernels=self.kernels,
            )
        self._start_as_regression(encoder)
        return encoder

    def _start_as_regression(self, encoder: Encoder) -> None:
        """Let every factor begin as the ridge regression of its labels, where there is room.

        InfoNCE has optima in which a label is folded over, and the penalty, once it comes, may
        hold a latent at nothing; an encoder that begins at the labels starts out of their reach.
        """
        contrastive = self.settings.mode in ("hybrid", "behavior")
        if not (self.settings.readout and contrastive and isinstance(encoder, FrameEncoder)):
            return
        latents: list[int] = []
        starts = []
        with limited_threads(self.settings.threads):
            for part in self.parts:
                if part.name == TIME:
                    continue
                labels = self.labels[part.name]
                wanted = labels.coordinates()[:, : part.stop - part.start]
                latents += range(part.start, part.start + wanted.shape[1])
                rest, whole = chosen_on_aside(self.rows, labels, self.split, wanted, LEAST_PENALTY)
                self.regressions[part.name] = whole
                # frames that are set aside to choose λ are not to be known from the start
                starts.append(rest if self.settings.lambda_ == "auto" else whole)
        worst = np.nan_to_num(min(each.r2 for each in starts))
        self.hide *= min(1.0, HIDDEN_FROM * (1 - worst))
        weights = np.hstack([each.weights for each in starts]).T
        bias = np.concatenate([each.mean - each.origin @ each.weights for each in starts])
        if 2 * len(latents) <= min(w.shape[0] for w in encoder.weights[:-1]):
            encoder.start_linear(
                latents,
                torch.as_tensor(weights, dtype=torch.float32),
                torch.as_tensor(bias, dtype=torch.float32),
            )

    def rows(self, frames: np.ndarray) -> np.ndarray:
        """Inputs of these frames, to be regressed on: (frames, cells) float64."""
        return self.data[frames].flatten(1).cpu().numpy().astype(np.float64)

    def average(self) -> None:
        """End as the mean of what was trained and the regressions, if frames set aside asked."""
        if self.search is not None and self.search.over and self.search.shares:
            self.encoder = averaged(self, self.regressions, self.search.shares)

    def _build(self) -> None:
        settings = self.settings
        self.hide = settings.hide
        self.regressions: dict[str, Ridge] = {}
        self.encoder = self._make_encoder().to(self.device)
        self.psi = Psi(self.parts, settings, self.device)
        most = max(len(self._whole.references) // 2, LEAST_BATCH)
        self.asked_batch = settings.batch_size
        self.batch_size = min(settings.batch_size, most)
        settings = self.settings = replace(settings, batch_size=self.batch_size)
        if settings.stop_when_settled:
            steps = steps_for(settings.steps, len(self._whole.references), self.batch_size)
            settings = self.settings = replace(settings, steps=steps)
        learned = [*self.encoder.parameters(), *self.psi.parameters()]
        self.optimizer = Adam(learned, rates_of(self.encoder))
        self.regression = Regression(self.labels, self.parts, self.device)
        self.step = 0
        self.search = self._lambda_search()
        self.settled = self._settling()
        self._drawn_by: tuple[Sampler, int] | None = None
        self.history: dict[str, list[float]] = {"step": [], "penalty": [], "lambda": []}
        for name in self.loss_names:
            self.history[name] = []

    def _lambda_search(self) -> LambdaSearch | None:
        """How λ is found; None if it is given, or if the recording is too short to set aside."""
        if self.settings.lambda_ != "auto":
            return None
        try:
            return LambdaSearch(self)
        except InputError:
            return None

    def _settling(self) -> Settled | None:
        """What tells when to stop early; None if all steps are to be done."""
        return Settled(self) if self.settings.stop_when_settled else None

    @property
    def steps(self) -> int:
        """Steps to do: as many as were asked for and count, or fewer once nothing changes."""
        return (self.settled and self.settled.last) or self.settings.steps + self.repeated

    @property
    def repeated(self) -> int:
        """Steps of the search for λ that were undone when it ended, and are done again."""
        return self.search.undone if self.search is not None else 0

    def sampler_of(self, frames: Frames) -> Sampler:
        """Draws batches from these frames."""
        return Sampler(frames, self.labels, self.plan.time_offset, self.plan.offsets)

    @property
    def sampler(self) -> Sampler:
        """Draws from all training frames, except those set aside while λ is searched for."""
        return self._whole if self.search is None or self.search.over else self.search.sampler

    @property
    def log_temperature(self) -> Tensor:
        """Log τ of each part: (parts,)."""
        return self.psi.log_temperature

    @property
    def log_time_weight(self) -> Tensor:
        """Logarithm of the weight of each part inside the time objective: (parts,)."""
        return self.psi.log_time_weight

    @property
    def negatives(self) -> int:
        """N of the training's InfoNCE: its chance level is log N."""
        return self.batch_size - 1 + self.settings.include_positive

    @property
    def loss_names(self) -> tuple[str, ...]:
        """Parts that have a loss of their own."""
        return tuple(part.name for part in self.parts)

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
        """What finds the number of threads; None if it is given, or on a GPU."""
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
        loss = dict(zip(self.loss_names, values[:-1], strict=True))
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
        """What λ does at that step."""
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
            before, end = (
                self._cosine(self.settled.at),
                self._cosine(self.settings.steps + self.repeated),
            )
            return self.settled.learning_rate(self.step, before, end)
        return self._cosine(self.step)

    def _cosine(self, step: int) -> float:
        """Learning rate at a step of a training that does all of them."""
        low, share = self.settings.decay, (step - self.repeated) / self.settings.steps
        return self.settings.learning_rate * (low + (1 - low) * 0.5 * (1 + np.cos(np.pi * share)))

    def _train_step(self) -> Tensor:
        """One step of Adam on Eq. 10: the losses of all parts and the penalty, detached."""
        batch = self._batch()
        lambdas = self.lambdas_at(self.step)
        largest = max(lambdas)
        scale = self.scale()
        directions = None
        if largest > 0:
            shares = torch.tensor(lambdas, device=self.device) / largest
            directions = self._penalty_directions(scale * self.psi.of_latents(shares.sqrt()))
        if self.settings.mode == "supervised":
            losses, loss, squared = self._regression_losses(batch, directions)
        else:
            losses, loss, squared = self._contrastive_losses(batch, directions, scale)
        penalty = squared.mean()  # NaN of none
        if largest > 0:
            loss = loss + largest * penalty
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step(self._learning_rate())
        return torch.cat([losses.detach(), penalty.detach()[None]])

    def _batch(self) -> Batch:
        """Pairs of this step, cut from those drawn ahead for several steps."""
        size = self.batch_size
        chunk, within = divmod(self.step, DRAWN_AHEAD)
        sampler = self.sampler
        if self._drawn_by != (sampler, chunk):
            rng = np.random.default_rng([self.settings.seed, chunk])
            self._drawn = sampler.draw(size * DRAWN_AHEAD, rng)
            self._drawn_by = sampler, chunk
        cut = slice(within * size, (within + 1) * size)
        labels = {name: frames[cut] for name, frames in self._drawn.label.items()}
        return Batch(self._drawn.reference[cut], self._drawn.time[cut], labels)

    def _contrastive_losses(
        self, batch: Batch, directions: Tensor | None, scale: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """InfoNCE of every part, what is to be lowered, and ‖J_f‖²_F of some frames.

        The batch is encoded once, its references are the negatives.
        """
        rows = {name: batch.rows(name) for name in batch.label}
        groups = [batch.reference, *(batch.label[name][own] for name, own in rows.items())]
        if self.parts[-1].name == TIME:
            groups.append(batch.time)
        embedding, squared = self._embed(self._seen(np.concatenate(groups)), directions)
        reference, *positives = (embedding * scale).split([len(group) for group in groups])
        losses = torch.stack(
            [
                self._info_nce(part, reference, positive, rows.get(part.name))
                for part, positive in zip(self.parts, positives, strict=True)
            ]
        )
        loss = losses.sum()
        if self.settings.readout and self.labels:
            own = embedding[: len(batch.reference)]
            loss = loss + self.settings.readout * self.regression.readout(own, batch.reference)
        return losses, loss, squared

    def _seen(self, frames: np.ndarray) -> Tensor:
        """Inputs of these frames, with some cells hidden from each."""
        if not self.hide:
            return self.data[frames]
        return hidden_cells(self.data[frames], self.hide, self._seed)

    @property
    def _seed(self) -> int:
        """Of what is drawn at this step, beside its pairs."""
        return self.settings.seed * 1_000_003 + self.step

    def _embed(self, x: Tensor, directions: Tensor | None) -> tuple[Tensor, Tensor]:
        """Embedding, and ‖J‖²_F of some frames, of unit vectors where they are what is compared."""
        if directions is None or not self.psi.on_sphere:
            return self.encoder.embed(x, directions)
        embedding, activations = self.encoder.trace(x)
        some = [each[: len(directions)] for each in activations]
        directions = self.psi.tangent(directions, embedding[: len(directions)])
        return embedding, self.encoder.pullback(directions, some).square().flatten(1).sum(1)

    def _info_nce(
        self, part: Part, reference: Tensor, positive: Tensor, rows: np.ndarray | None
    ) -> Tensor:
        """InfoNCE of a part, over the references that have a positive (all if not given)."""
        if rows is not None and len(rows) < len(reference):
            if len(rows) < 2:
                return reference.sum() * 0
            reference = reference[rows]
        return self.psi.info_nce(part, reference, positive)

    def pair(self, part: Part, a: Tensor, b: Tensor) -> Tensor:
        """ψ(x, x⁺) of one part, for scaled embeddings of corresponding frames: (pairs,)."""
        return self.psi.pair(part, a, b)

    def cross(self, part: Part, a: Tensor, b: Tensor) -> Tensor:
        """ψ of one part for every frame of `a` with every frame of `b`."""
        return self.psi.cross(part, a, b)

    def scale(self) -> Tensor:
        """Factor of each latent inside the similarity: (latents,)."""
        return self.psi.scale()

    def _regression_losses(
        self, batch: Batch, directions: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        embedding, squared = self.encoder.embed(self._seen(batch.reference), directions)
        losses = self.regression.losses(embedding, batch.reference)
        return losses, losses.sum(), squared

    def _penalty_directions(self, scale: Tensor) -> Tensor:
        exact = self.settings.penalty == "exact" or (
            self.settings.penalty == "auto" and self.encoder.latents <= 16
        )
        rows = min(self.settings.penalty_batch, self.batch_size)
        if exact:
            return penalty_directions(rows, scale)
        generator = torch.Generator().manual_seed(self._seed)
        return penalty_directions(rows, scale, self.settings.projections, generator)
