"""Carries a trained encoder to another recording: a new day of its cells, or new cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal, cast, get_args

import numpy as np
import torch
from torch import nn

from napari_xcebra.errors import InputError
from napari_xcebra.learn.data.factors import TIME, Factor, TrainingPlan, factor_labels, time_offset
from napari_xcebra.learn.fitting import finish, train
from napari_xcebra.learn.model import kernels_of, widths_of
from napari_xcebra.learn.model.encoder import Encoder
from napari_xcebra.learn.model.frame_encoder import FrameEncoder
from napari_xcebra.learn.model.window_encoder import WindowEncoder
from napari_xcebra.learn.quality.goodness import check_measurable
from napari_xcebra.learn.result import Fit
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.learn.training.lambda_search import UNSEARCHED
from napari_xcebra.learn.training.progress import Progress
from napari_xcebra.learn.training.training import Training
from napari_xcebra.recording import Recording

How = Literal["auto", "statistics", "input-layer", "all-layers"]

STEPS = 200
"""Steps for which layers are trained by default."""

BY_ID = (
    "Cells with the same id were treated as the same cells. If this is another animal, or cells "
    "were renumbered, give a table that matches them, or train the input layer."
)
"""Cells of other animals have the same ids."""

LEAST_KEPT = 0.5
"""Share of the cells of a fit that must be found on a new day to treat them as the same cells."""


def adapt(
    fit: Fit,
    recording: Recording,
    how: How = "auto",
    *,
    matched: Mapping[int, int] | None = None,
    steps: int = STEPS,
    on_progress: Callable[[Progress], object] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Fit:
    """Carry a trained encoder to another recording, and measure it there.

    Parameters
    ----------
    fit : Fit
    recording : Recording
        With the variables of the fit's factors.
    how : {"auto", "statistics", "input-layer", "all-layers"}
        "statistics": the same cells on another day. Nothing is trained; traces are standardised
        by that day's own mean and spread, and cells that are missing count as at their mean.
        "input-layer": other cells. The first layer is trained on them; what follows stays.
        "all-layers": the same cells. Training goes on from the fit's weights.
        "auto": the first if at least half of the cells are found again, else the second.
    matched : mapping of int to int, optional
        Ids of the fit's cells to ids in the recording, if they are not the same.
    steps : int
        Training steps, where anything is trained.
    on_progress, stop
        As `fit` takes them.

    Returns
    -------
    Fit
        With goodness measured on held-out blocks of this recording, and its cells.
    """
    if fit.architecture:
        raise InputError(
            "This model was opened from cebra: it cannot be carried over here. Adapt it there "
            "(`fit` with adapt=True), and open what it saves on this recording."
        )
    found = _found_again(fit, recording, matched)
    if how == "auto":
        how = "statistics" if len(found) >= LEAST_KEPT * len(fit.inputs.cell_ids) else "input-layer"
    if how == "input-layer":
        return _trained_on(fit, recording, None, steps, on_progress, stop)
    if how not in get_args(How):
        raise InputError(f"how is {how!r}: one of {', '.join(get_args(How))} is needed.")
    if not found:
        raise InputError(
            "None of the fit's cells are in this recording: match them with `matched`, or train "
            "the input layer on the new cells (how='input-layer')."
        )
    if how == "all-layers":
        carried = _trained_on(fit, recording, found, steps, on_progress, stop)
    else:
        carried = _with_new_statistics(fit, recording, found)
    return carried if matched is not None else replace(carried, notes=(*carried.notes, BY_ID))


def _found_again(
    fit: Fit, recording: Recording, matched: Mapping[int, int] | None
) -> dict[int, int]:
    """Ids of accepted cells in the recording, with their position among the fit's cells."""
    known = np.asarray(recording.cell_ids)
    if fit.settings.accepted_only:
        known = known[np.asarray(recording.accepted)]
    there, found = {int(cell) for cell in known}, {}
    for position, cell in enumerate(fit.inputs.cell_ids):
        other = int(cell) if matched is None else matched.get(int(cell))
        if other in there:
            found[other] = position
    return found


class _CarriedTraining(Training):
    """A training run on another recording, with the layers and the parts of a fit.

    Parameters
    ----------
    fit : Fit
    recording : Recording
    settings : FitSettings
    cells : mapping of int to int, optional
        Id in the recording to position among the fit's cells, if these are the same cells: the
        first layer is the fit's as well. Otherwise it starts afresh, and nothing else is trained.
    """

    def __init__(
        self,
        fit: Fit,
        recording: Recording,
        settings: FitSettings,
        cells: Mapping[int, int] | None = None,
    ) -> None:
        self.fit, self.cells = fit, cells
        parts = [part for part in fit.parts if part.name != TIME]
        factors = {part.name: Factor(part.variables) for part in parts}
        offsets = {part.name: part.offset for part in parts}
        timed = [part.offset for part in fit.parts if part.name == TIME]
        offset = timed[0] if timed else time_offset(recording, offsets, settings)
        plan = TrainingPlan(
            factor_labels(recording, factors), offsets, offset, fit.parts, fit.inputs.filter
        )
        if settings.mode == "supervised":
            _check_targets(plan)
        self.kernels, self.widths = kernels_of(fit.weights), widths_of(fit.weights)
        super().__init__(recording, factors, settings, plan)

    def lambdas_at(self, step: int) -> list[float]:
        """λ of each part, in the proportion that the fit ended with."""
        own = np.array([part.lambda_ for part in self.parts])
        shares = own / own.max() if own.max() > 0 else np.ones(len(own))
        each = zip(shares.tolist(), super().lambdas_at(step), strict=True)
        return [share * value for share, value in each]

    def _make_encoder(self) -> Encoder:
        encoder = super()._make_encoder()
        weights = {name: torch.as_tensor(np.array(w)) for name, w in self.fit.weights.items()}
        first = _input_layer(encoder)
        if self.cells is None:
            new = {id(parameter) for parameter in first.parameters()}
            weights = {n: weights[n] for n, p in encoder.named_parameters() if id(p) not in new}
            for parameter in encoder.parameters():
                parameter.requires_grad_(id(parameter) in new)
        else:
            positions = [self.cells[int(cell)] for cell in self.inputs.cell_ids]
            name = next(n for n, p in encoder.named_parameters() if p is first.weight)
            weights[name] = weights[name][:, positions]
        encoder.load_state_dict(weights, strict=False)
        return encoder


def _check_targets(plan: TrainingPlan) -> None:
    """Check that there are as many targets as in the fit: a regression has an output for each."""
    for part in plan.parts:
        there, needed = plan.labels[part.name].targets().shape[1], part.stop - part.start
        if there != needed:
            raise InputError(
                f"Factor {part.name!r} has {there} coordinates or values in this recording and "
                f"{needed} in that of the fit: a supervised fit cannot be carried over."
            )


def _input_layer(encoder: Encoder) -> nn.Linear | nn.Conv1d:
    """The layer that sees the cells."""
    if isinstance(encoder, WindowEncoder):
        return encoder.first
    assert isinstance(encoder, FrameEncoder)
    return cast(nn.Linear, encoder.layers[0])


def _with_new_statistics(fit: Fit, recording: Recording, found: Mapping[int, int]) -> Fit:
    """The same weights, with mean and spread of the cells as they are in this recording."""
    accepted = np.isin(np.asarray(recording.cell_ids), list(found))
    same = replace(recording, accepted=accepted)
    training = _CarriedTraining(fit, same, _settings(fit, accepted_only=True), found)
    check_measurable(training)
    training.settings, training.step = fit.settings, fit.settings.steps
    result = finish(training, recording)
    kept, there = len(training.inputs.cell_ids), len(fit.inputs.cell_ids)
    note = (
        f"Trained on {fit.source or 'another recording'} and carried to this one, with its own "
        f"mean and spread for {kept} of {there} cells; nothing was trained here."
    )
    own = (each for each in result.notes if "set frames aside" not in each)
    return replace(
        result,
        history=fit.history,
        steps=fit.steps,
        lambda_reason=fit.lambda_reason,
        stop_reason=fit.stop_reason,
        notes=(note, *own),
    )


def _trained_on(
    fit: Fit,
    recording: Recording,
    cells: Mapping[int, int] | None,
    steps: int,
    on_progress: Callable[[Progress], object] | None,
    stop: Callable[[], bool] | None,
) -> Fit:
    """The fit, with a first layer for the cells of this recording, or all layers, trained here."""
    if cells is not None:
        accepted = np.isin(np.asarray(recording.cell_ids), list(cells))
        recording = replace(recording, accepted=accepted)
    own = {} if cells is None else {"accepted_only": True}
    training = _CarriedTraining(fit, recording, _settings(fit, steps=steps, **own), cells)
    check_measurable(training)
    train(training, on_progress=on_progress, stop=stop)
    result = finish(training, recording)
    what = "only its input layer was trained" if cells is None else "training went on"
    note = (
        f"Trained on {fit.source or 'another recording'} and carried to the "
        f"{len(result.inputs.cell_ids)} cells of this one: {what}, for {training.step} steps."
    )
    return replace(result, notes=(note, *result.notes))


def _settings(fit: Fit, **changes: Any) -> FitSettings:
    """Settings of the fit, with the λ it ended with: λ is not searched for again."""
    lambda_ = fit.settings.lambda_
    if lambda_ == "auto":
        lambda_ = UNSEARCHED if np.isnan(fit.lambda_) else fit.lambda_
    return replace(fit.settings, lambda_=lambda_, **changes)
