"""Trains one embedding on several sessions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from os import PathLike

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.learn.data.factors import Factors, Plan, as_factors
from napari_xcebra.learn.data.inputs import Inputs
from napari_xcebra.learn.data.length import hidden_units, independent_samples
from napari_xcebra.learn.data.sampling import Sampler
from napari_xcebra.learn.data.split import Frames, usable_frames
from napari_xcebra.learn.fitting import finish, train
from napari_xcebra.learn.joint.encoder import JointData, JointEncoder, JointObjective, Own
from napari_xcebra.learn.joint.pooling import (
    Recordings,
    joined_split,
    joint_plan,
    part_of,
    pooled,
)
from napari_xcebra.learn.joint.result import JointFit
from napari_xcebra.learn.quality.goodness import check_measurable
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.learn.training.lambda_search import UNSEARCHED
from napari_xcebra.learn.training.progress import Progress
from napari_xcebra.learn.training.training import Training


def fit_sessions(
    recordings: Recordings,
    factors: Factors | None = None,
    settings: FitSettings | None = None,
    *,
    own: Own = "input layer",
    on_progress: Callable[[Progress], object] | None = None,
    stop: Callable[[], bool] | None = None,
    checkpoint: str | PathLike[str] | None = None,
    every: int = 10,
) -> JointFit:
    """Train one embedding on several sessions or animals, whose cells may all differ.

    Each session has an input layer for its own cells; what follows is shared, and a label's
    positive pairs reach from session to session. Variables are standardised over all sessions.

    Parameters
    ----------
    recordings : mapping of str to Recording, or sequence of Recording
        Sessions by name, at one frame rate; all have the variables of the factors, of the same
        kind and unit.
    factors, settings, on_progress, stop, checkpoint, every
        As `fit` takes them; `batch_size` frames a step are drawn from all sessions together.
    own : {"input layer", "encoder"}
        What each session has for itself.

    Returns
    -------
    JointFit
        With a fit for each session, measured on its own held-out blocks.
    """
    training = JointTraining(recordings, factors, settings or FitSettings(), own)
    for name, session in training.sessions.items():
        try:
            check_measurable(session)
        except InputError as error:
            raise InputError(f"Session {name!r}: {error}") from error
    kept = train(training, on_progress=on_progress, stop=stop, checkpoint=checkpoint, every=every)
    fits = {}
    for name, recording in training.pool.recordings.items():
        found = finish(training.session(name), recording)
        others = tuple(other for other in training.sessions if other != name)
        notes = (f"Trained together with {', '.join(others)}.", *found.notes)
        fits[name] = replace(found, notes=notes, together=others)
    result = JointFit(fits, own)
    if kept is not None and result.steps == training.steps:
        kept.remove()
    return result


class JointTraining(Training):
    """A training run on several sessions.

    References are drawn equally often from each session. A label's positive is the frame of any
    session whose label is nearest; a time pair stays in its session, and so do its negatives, or
    the time latents would learn to tell the sessions apart.

    Parameters
    ----------
    recordings : mapping of str to Recording, or sequence of Recording
    factors : mapping of str to variables or Factor
        Of variables that all sessions have.
    settings : FitSettings
    own : {"input layer", "encoder"}
        What each session has for itself.

    Attributes
    ----------
    sessions : dict of str to Training
        Each session as a training of its own would see it, on its own frames and cells.
    """

    # they work as one encoder and its inputs do, but their frames come by session
    encoder: JointEncoder  # type: ignore[assignment]
    data: JointData  # type: ignore[assignment]

    def __init__(
        self,
        recordings: Recordings,
        factors: Factors | None,
        settings: FitSettings,
        own: Own = "input layer",
    ) -> None:
        self.settings, self.own = settings, own
        self.factors = as_factors(factors, settings)
        self.pool = pooled(recordings, self.factors)
        self.segment, self.rate = self.pool.behavior.segment, self.pool.behavior.rate
        self.usable = usable_frames(self.pool.behavior, settings.window)
        self.plan = joint_plan(self.pool, self.factors, settings)
        self.labels, self.parts = self.plan.labels, self.plan.parts
        self.sessions = self._sessions()
        each = list(self.sessions.values())
        self.split = joined_split([session.split for session in each], self.pool)
        self.inputs = _joined_inputs([session.inputs for session in each])
        self._whole = self.sampler_of(self.split.training)
        self.device = each[0].device
        self.data = JointData([session.data for session in each], self.pool.first)
        self._build()

    def _sessions(self) -> dict[str, Training]:
        # λ is searched for once, for all of them; layers that are shared have the same units
        frames = round((1 - self.settings.held_out) * self.pool.behavior.n_frames)
        smoothing = self.settings.smoothing * self.pool.behavior.rate
        hidden = hidden_units(
            self.settings.hidden_units,
            self.parts[-1].stop,
            independent_samples(frames, smoothing),
        )
        settings = replace(self.settings, lambda_=UNSEARCHED, hidden_units=hidden)
        sessions = {}
        for number, (name, recording) in enumerate(self.pool.recordings.items()):
            labels = part_of(self.labels, self.pool, number)
            plan = Plan(labels, self.plan.offsets, self.plan.time_offset, self.parts)
            try:
                sessions[name] = Training(recording, self.factors, settings, plan)
            except InputError as error:
                raise InputError(f"Session {name!r}: {error}") from error
        return sessions

    def _make_encoder(self) -> JointEncoder:  # type: ignore[override]
        self.regressions = {}
        self.hide = max(each.hide for each in self.sessions.values())
        return JointEncoder([each.encoder for each in self.sessions.values()], self.own)

    def _settling(self) -> None:
        """All steps are done: maps of several sessions are not compared."""

    def sampler_of(self, frames: Frames) -> Sampler:
        """Draws batches from these frames, as often from each session."""
        sampler = super().sampler_of(frames)
        session = self.pool.session_of(sampler.references)
        most = np.bincount(session).max()
        each = [sampler.references[session == s] for s in range(len(self.pool.recordings))]
        sampler.references = np.concatenate([np.resize(own, most) for own in each if len(own)])
        return sampler

    def session(self, name: str) -> Training:
        """One session with what was learned of it so far."""
        session = self.sessions[name]
        number = list(self.sessions).index(name)
        session.settings, session.search = self.settings, self.search
        session.encoder = self.encoder[number]
        session.psi, session.batch_size = self.psi, self.batch_size
        session.history, session.step = self.history, self.step
        return session

    def _make_objective(self) -> JointObjective:
        # the joint encoder and its data work as those of one session do
        return JointObjective(
            self.encoder,  # type: ignore[arg-type]
            self.data,  # type: ignore[arg-type]
            self.labels,
            self.parts,
            self.settings,
            self.hide,
        )


def _joined_inputs(inputs: Sequence[Inputs]) -> Inputs:
    return Inputs(
        np.concatenate([each.cell_ids for each in inputs]),
        np.concatenate([each.mean for each in inputs]),
        np.concatenate([each.scale for each in inputs]),
        inputs[0].smoothing,
    )
