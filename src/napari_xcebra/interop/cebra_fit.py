"""Opens a model that was trained with the `cebra` package as a fit to a recording."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path

import numpy as np
import torch

from napari_xcebra.errors import InputError
from napari_xcebra.interop.cebra_files import CebraModel, read_cebra_model
from napari_xcebra.io.guard import read
from napari_xcebra.learn.data.factors import Factor, Factors
from napari_xcebra.learn.data.inputs import Inputs, ReadInputs
from napari_xcebra.learn.data.smoothing import gaussian_kernel, smoothed
from napari_xcebra.learn.device import limited_threads
from napari_xcebra.learn.fitting import finish
from napari_xcebra.learn.model.cebra_encoder import CebraEncoder, window_of
from napari_xcebra.learn.model.encoder import Encoder
from napari_xcebra.learn.quality.goodness import check_measurable
from napari_xcebra.learn.result import Fit
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.learn.training.training import Training
from napari_xcebra.recording import Recording
from napari_xcebra.standardise import changes

Latents = Mapping[str, "slice | Iterable[int]"]

BETTER = 0.05
"""Nats by which the loss under one reading of the traces must be lower for it to be taken."""

UNLIKE = 0.5
"""Share of its nats above chance that a model may miss here before this is told."""

BATCHES = 20
"""Batches over which a loss is taken."""

BEHAVIOUR_LATENTS = 3
"""Latents that `cebra` gives to behaviour with ``hybrid=True``."""


def open_cebra(
    path: str | PathLike[str],
    recording: Recording,
    factors: Factors | None = None,
    *,
    latents: Latents | None = None,
    architecture: str = "",
    session: int | None = None,
    standardised: bool | None = None,
    settings: FitSettings | None = None,
) -> Fit:
    """Open a model of `cebra` on the recording it was trained on; nothing in the file is run.

    Parameters
    ----------
    path : path
        A `.pt` file of ``CEBRA.save``, or the saved ``state_dict()`` of a solver or a model.
    recording : Recording
        Whose accepted cells, or all of its cells, are the columns that the model was trained on.
    factors : mapping of str to list of str, or to Factor
        The labels it was trained with, by the recording's variables: ``{"place": ["x", "y"]}``.
        None for a model of time alone.
    latents : mapping of str to slice or list of int
        Dimensions of the embedding that belong to each factor, counted from 0; the rest is what was
        not observed. With a single factor, all of them, or the first three of a hybrid model.
    architecture : str
        Name of the model in `cebra`, such as "offset10-model", where the file does not say.
    session : int
        Which of several sessions, counted from 0; the one with that many cells if not given.
    standardised : bool
        Whether it was trained on z-scored traces. If not given, the reading under which its loss is
        lower; traces as they are if there is no difference.
    settings : FitSettings
        For device, threads and the frames on which it is measured.

    Returns
    -------
    Fit
        With notes on how it was read. Its goodness is not held out, as the model may have been
        trained on any frame; p comes from the cells and is.
    """
    model = read(read_cebra_model, Path(path), architecture, paths=(Path(path),))
    opened = _OpenedModel.of(
        Path(path).name, model, recording, session, factors or {}, latents or {}
    )
    readings = [standardised] if standardised is not None else [False, True]
    trainings = [opened.training(recording, each, settings or FitSettings()) for each in readings]
    for training in trainings:
        check_measurable(training)
    chosen, note = trainings[0], "Traces were given to it z-scored." if standardised else ""
    if standardised is None:
        chosen, note = _better(*trainings)
    return opened.fit(chosen, recording, note)


@dataclass(frozen=True)
class _OpenedModel:
    """One session's encoder, and what its latents stand for."""

    name: str
    model: CebraModel
    weights: Mapping[str, np.ndarray]
    columns: np.ndarray
    factors: Mapping[str, Factor]
    order: tuple[int, ...]
    notes: tuple[str, ...]

    @classmethod
    def of(
        cls,
        name: str,
        model: CebraModel,
        recording: Recording,
        session: int | None,
        factors: Factors,
        latents: Latents,
    ) -> _OpenedModel:
        number = _session(name, model, recording, session)
        weights = model.sessions[number]
        columns = _columns(name, len(weights["mean"]), recording)
        resolved = {n: f if isinstance(f, Factor) else Factor(f) for n, f in factors.items()}
        own = _latents(name, model, resolved, latents, len(weights["order"]))
        counted = {n: replace(f, latents=len(own[n])) for n, f in resolved.items()}
        labels = model.labels[number] if model.labels else ()
        notes = tuple(_doubts(labels, resolved, recording))
        taken = [latent for each in own.values() for latent in each]
        rest = [latent for latent in range(len(weights["order"])) if latent not in taken]
        return cls(name, model, weights, columns, counted, (*taken, *rest), notes)

    def training(
        self, recording: Recording, standardised: bool, settings: FitSettings
    ) -> _OpenedTraining:
        """A run that is over before it begins, by which the encoder is measured."""
        mean, spread = _moments(recording, self.columns)
        encoder = CebraEncoder.like(self.model.architecture, self.weights)
        weights = {name: torch.tensor(value) for name, value in self.weights.items()}
        weights["order"] = torch.tensor(self.order)
        if not standardised:  # the inputs are, so that a hidden cell is at its mean
            weights |= {"mean": torch.tensor(mean), "spread": torch.tensor(spread)}
        encoder.load_state_dict(weights)
        ids = np.asarray(recording.cell_ids)[self.columns]
        inputs = Inputs(ids, mean, spread, 0.0)
        return _OpenedTraining(encoder, inputs, recording, self.factors, self._settings(settings))

    def _settings(self, own: FitSettings) -> FitSettings:
        """What it was trained with, as far as there are words for it here."""
        asked, owned = self.model.arguments, sum(f.latents or 0 for f in self.factors.values())
        rest = len(self.order) - owned
        offset = asked.get("time_offsets", 1)
        offset = max(1, int(offset[0] if isinstance(offset, tuple | list) else offset))
        steps = len(self.model.losses) or int(asked.get("max_iterations", 1))
        bound = CebraEncoder.like(self.model.architecture, self.weights).bound
        return replace(
            own,
            mode="time" if not owned else "hybrid" if rest else "behavior",
            time_latents=min(max(rest, 1), 64),
            steps=min(max(steps, 1), 1_000_000),
            stop_when_settled=False,
            lambda_=0.0,
            window=window_of(self.model.architecture),
            smoothing=0.0,
            time_offset=min(offset, 10_000),
            label_offset=min(offset, 10_000),
            batch_size=min(max(int(asked.get("batch_size") or own.batch_size), 16), 65_536),
            learning_rate=min(max(float(asked.get("learning_rate", 3e-4)), 1e-6), 1.0),
            readout=0.0,
            hide=0.0,
            deconvolve=False,
            balance=False,
            similarity="dot" if self._on_sphere else "euclidean",
            temperature="fixed",
            temperature_value=min(max(float(asked.get("temperature", 1.0)), 1e-4), 1e4),
            time_weights="fixed",
            include_positive=False,
            network="published",
            bound=min(max(bound, 0.5), 1e4),
            accepted_only=True,
        )

    @property
    def _on_sphere(self) -> bool:
        distance = self.model.arguments.get("distance")
        return distance == "cosine" if distance else "-mse" not in self.model.architecture

    def fit(self, training: _OpenedTraining, recording: Recording, note: str) -> Fit:
        """Measured, with what the file says of its training."""
        settings = training.settings
        training.step = settings.steps
        found = finish(training, recording)
        version = f" {self.model.version}" if self.model.version else ""
        notes = (
            f"Opened from {self.name} ({self.model.architecture} of cebra{version}); nothing was "
            "trained here. It may have been trained on these very frames, so nats and decoding "
            "from its latents are not held out; p is that of the cells alone.",
            *filter(None, [note, self._unlike(training)]),
            *self.notes,
        )
        count = len(self.model.losses)
        history = {"step": np.arange(count, dtype=np.float64) + 1, "lambda": np.zeros(count)}
        history["penalty"] = np.zeros(count)
        history |= dict.fromkeys((p.name for p in found.parts), np.full(count, np.nan))
        history[found.parts[0].name] = self.model.losses
        return replace(
            found,
            settings=settings,
            history=history,
            notes=notes,
            versions={**found.versions, "cebra": self.model.version or "unknown"},
            architecture=self.model.architecture,
        )

    def _unlike(self, training: _OpenedTraining) -> str:
        """A sentence if the loss here is not what it was when training ended."""
        asked, losses = self.model.arguments, self.model.losses
        alike = asked.get("conditional") in (None, "time_delta", "time") and not self.model.hybrid
        size = asked.get("batch_size")
        if not (alike and size and len(losses) and len(self.model.sessions) == 1):
            return ""
        if len(training.parts) > 1:  # the file does not say which of several were trained
            return ""
        before = float(losses[-max(1, len(losses) // 20) :].mean()) - float(np.log(int(size)))
        now = _loss(training)
        if before >= 0 or now <= (1 - UNLIKE) * before:
            return ""
        return (
            f"Its loss is {now:.2f} here and was {before:.2f} when its training ended (InfoNCE "
            "less log N): it was trained on other traces, such as smoothed ones, or on other "
            "labels. Its maps mean little until these are the same."
        )


class _OpenedTraining(Training):
    """A run whose encoder was trained elsewhere, perhaps on the frames that are held out here.

    Parameters
    ----------
    encoder : Encoder
    inputs : Inputs
    recording, factors, settings
        As `Training` takes them.
    """

    in_sample = True

    def __init__(
        self,
        encoder: Encoder,
        inputs: Inputs,
        recording: Recording,
        factors: Factors,
        settings: FitSettings,
    ) -> None:
        self._opened, self._rule = encoder, inputs
        super().__init__(recording, factors, settings)

    def _make_inputs(self, recording: Recording) -> tuple[Inputs, np.ndarray | ReadInputs]:
        return self._rule, self._rule.on(recording)

    def _make_encoder(self) -> Encoder:
        self.regressions, self.hide = {}, 0.0
        return self._opened


def _session(name: str, model: CebraModel, recording: Recording, session: int | None) -> int:
    count = len(model.sessions)
    if session is not None:
        if not 0 <= session < count:
            raise InputError(f"{name} has {count} sessions, from 0 on: there is no {session}.")
        return session
    if count == 1:
        return 0
    cells = [len(weights["mean"]) for weights in model.sessions]
    there = (recording.n_cells, int(np.asarray(recording.accepted).sum()))
    fitting = [number for number, each in enumerate(cells) if each in there]
    if len(fitting) == 1:
        return fitting[0]
    each = ", ".join(f"{number}: {size} cells" for number, size in enumerate(cells))
    raise InputError(
        f"{name} holds {count} sessions ({each}), of which {len(fitting)} fit this recording by "
        "their number of cells: say which it is (`session`)."
    )


def _columns(name: str, cells: int, recording: Recording) -> np.ndarray:
    """Columns of the traces that the model was trained on, by their number."""
    accepted = np.flatnonzero(np.asarray(recording.accepted))
    if cells == len(accepted):
        return accepted
    if cells == recording.n_cells:
        return np.arange(cells)
    raise InputError(
        f"{name} was trained on {cells} cells, and the recording has {recording.n_cells}, of which "
        f"{len(accepted)} are accepted: accept exactly the cells it was trained on."
    )


def _latents(
    name: str, model: CebraModel, factors: Mapping[str, Factor], latents: Latents, total: int
) -> dict[str, list[int]]:
    """Latents of each factor, by the numbers that they have in the file."""
    if unknown := sorted(set(latents) - set(factors)):
        raise InputError(
            f"`latents` names {', '.join(unknown)}, which is no factor here; there are: "
            f"{', '.join(factors) or 'none'}."
        )
    if not latents and factors:
        if len(factors) > 1:
            raise InputError(
                f"{len(factors)} factors are named, and {name} does not say which of its {total} "
                "latents belong to which: say so (`latents`), or put the variables that it was "
                "trained with into one factor."
            )
        if model.labels and not any(model.labels):
            raise InputError(
                f"{name} was trained on time alone, so none of its latents belong to a variable: "
                "open it without factors."
            )
        first = BEHAVIOUR_LATENTS if model.hybrid else total
        return {factor: list(range(min(first, total))) for factor in factors}
    own = {}
    for factor in factors:
        if factor not in latents:
            raise InputError(f"`latents` lacks factor {factor!r}: give its numbers, from 0 on.")
        given = latents[factor]
        own[factor] = list(range(total)[given] if isinstance(given, slice) else map(int, given))
    taken = [latent for each in own.values() for latent in each]
    wrong = not all(own.values()) or len(set(taken)) < len(taken)
    if wrong or not all(0 <= latent < total for latent in taken):
        raise InputError(
            f"{name} has latents 0 to {total - 1}: `latents` needs at least one of them for each "
            "factor, and none for two."
        )
    return own


def _doubts(
    labels: tuple[tuple[int, int], ...], factors: Mapping[str, Factor], recording: Recording
) -> Iterable[str]:
    """Where the labels in the file differ from those that were named, a sentence each."""
    frames = max((size for size, _ in labels), default=0)
    if frames and frames != recording.n_frames:
        yield (
            f"It was trained on {frames:,} frames, and this recording has "
            f"{recording.n_frames:,}: check that it is the recording it was trained on."
        )
    trained = sum(columns for _, columns in labels)
    names = {name for factor in factors.values() for name in factor.variables}
    variables = [recording.variable(name) for name in names]
    named = sum(each.values.shape[1] for each in variables)
    # an angle may have been given as its cosine and sine
    most = named + sum(each.values.shape[1] for each in variables if each.kind == "circular")
    if trained and names and not named <= trained <= most:
        yield (
            f"It was trained with {trained} columns of labels, and the factors named have {named}: "
            "check that they are the same variables."
        )


def _moments(recording: Recording, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and spread of each cell over all frames in use: (cells,) float32 each."""
    kernel = gaussian_kernel(0.0)
    count, sums, squares = 0, np.zeros(len(columns)), np.zeros(len(columns))
    for _, traces in smoothed(recording, columns, kernel):
        count, sums = count + len(traces), sums + traces.sum(0, dtype=np.float64)
    mean = sums / max(count, 1)
    for _, traces in smoothed(recording, columns, kernel):
        squares += np.square(traces - mean).sum(0)
    spread = np.sqrt(squares / max(count, 1))
    spread[~changes(mean, spread)] = 1.0
    return mean.astype(np.float32), spread.astype(np.float32)


def _better(plain: _OpenedTraining, standardised: _OpenedTraining) -> tuple[_OpenedTraining, str]:
    """Of two readings of the traces, the one under which the model's own loss is lower.

    It was trained to lower it, on traces as they were given to it.
    """
    first, second = _loss(plain), _loss(standardised)
    compared = (
        f"its loss is {second:.2f} with z-scored traces and {first:.2f} with those as they are"
    )
    if second < first - BETTER:
        return standardised, f"Traces are given to it z-scored: {compared}."
    if second < first + BETTER:
        return plain, (
            f"Traces are given to it as they are, though z-scored ones would do as well ({compared}"
            "): say which it was trained on (`standardised`)."
        )
    return plain, ""


@torch.no_grad()
def _loss(training: _OpenedTraining) -> float:
    """InfoNCE of all parts on the training frames, less the log of its negatives, in nats."""
    settings, count = training.settings, len(training.parts)
    with limited_threads(settings.threads):
        each = [
            training.objective.loss(
                training.sampler.batch(step, settings.batch_size, settings.seed), [0.0] * count, 0
            )[1][:count].sum()
            for step in range(BATCHES)
        ]
    return float(torch.stack(each).mean()) - count * float(np.log(settings.negatives))
