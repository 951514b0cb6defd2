"""Trains one embedding on several sessions: pools them, with an input layer for each."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Literal, cast

import numpy as np
import torch
from torch import Tensor, nn

from napari_xcebra.errors import InputError
from napari_xcebra.learn.data.factors import (
    TIME,
    Factor,
    Factors,
    Part,
    TrainingPlan,
    as_factors,
    factor_labels,
    label_offsets,
    lay_out,
    time_offset,
)
from napari_xcebra.learn.data.inputs import Inputs
from napari_xcebra.learn.data.labels import Labels
from napari_xcebra.learn.data.sampling import Batch, Sampler
from napari_xcebra.learn.data.split import Split, UsableFrames, usable_frames
from napari_xcebra.learn.device import FrameData
from napari_xcebra.learn.fitting import finish, train
from napari_xcebra.learn.model.encoder import Encoder
from napari_xcebra.learn.model.frame_encoder import FrameEncoder
from napari_xcebra.learn.model.window_encoder import WindowEncoder
from napari_xcebra.learn.objective.regularised import Objective
from napari_xcebra.learn.quality.goodness import check_measurable
from napari_xcebra.learn.result import JointFit
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.learn.training.lambda_search import UNSEARCHED
from napari_xcebra.learn.training.progress import Progress
from napari_xcebra.learn.training.start import hidden_units, independent_samples
from napari_xcebra.learn.training.training import Training
from napari_xcebra.recording import Recording, Variable

Recordings = Mapping[str, Recording] | Sequence[Recording]

MOST_APART = 1.05
"""Ratio of two frame rates that still count as one: offsets are in frames."""


@dataclass(frozen=True)
class _Pool:
    """Sessions with shared variables.

    Parameters
    ----------
    recordings : mapping of str to Recording
        By the name of the session.
    behavior : Recording
        The shared variables of all sessions, one after the other; it has no cells to speak of.
    first : (sessions + 1,) int64
        Frame at which each session begins there, and the number of frames.
    """

    recordings: Mapping[str, Recording]
    behavior: Recording
    first: np.ndarray

    def session_of(self, frames: np.ndarray) -> np.ndarray:
        """Number of the session of each pooled frame: (frames,) int64."""
        return np.searchsorted(self.first, frames, side="right") - 1


def pooled(recordings: Recordings, factors: Mapping[str, Factor]) -> _Pool:
    """Check that sessions share the variables of these factors, and put them together."""
    named = _named_sessions(recordings)
    if len(named) < 2:
        raise InputError(f"{len(named)} session was given: joint training needs 2 or more.")
    rates = {name: each.rate for name, each in named.items()}
    slow, fast = min(rates, key=lambda n: rates[n]), max(rates, key=lambda n: rates[n])
    if rates[fast] > MOST_APART * rates[slow]:
        raise InputError(
            f"Session {slow!r} has {rates[slow]:g} frames per second and {fast!r} has "
            f"{rates[fast]:g}: joint training needs one rate; resample the others to it first."
        )
    names = dict.fromkeys(v for factor in factors.values() for v in factor.variables)
    frames = [each.n_frames for each in named.values()]
    first = np.r_[0, np.cumsum(frames)].astype(np.int64)
    behavior = Recording(
        traces=np.zeros((first[-1], 1), np.float32),
        rate=float(np.mean(list(rates.values()))),
        behavior={name: _joined(name, named) for name in names},
        starts=np.concatenate(
            [np.asarray(r.starts) + start for r, start in zip(named.values(), first, strict=False)]
        ),
        excluded=np.concatenate([np.asarray(r.excluded) for r in named.values()]),
    )
    return _Pool(named, behavior, first)


def _named_sessions(recordings: Recordings) -> dict[str, Recording]:
    """Sessions by name; "session 1" and so on where none was given."""
    if isinstance(recordings, Mapping):
        return dict(recordings)
    return {f"session {i + 1}": recording for i, recording in enumerate(recordings)}


def _joined(name: str, recordings: Mapping[str, Recording]) -> Variable:
    """One variable over all sessions, of the same kind and unit in each."""
    found = {}
    for session, recording in recordings.items():
        if name not in recording.behavior:
            known = ", ".join(recording.behavior) or "none"
            raise InputError(
                f"Session {session!r} has no variable {name!r}, which the others share; it has: "
                f"{known}."
            )
        found[session] = recording.behavior[name]
    session, one = next(iter(found.items()))
    for other, variable in found.items():
        for what, a, b in (
            ("kind", one.kind, variable.kind),
            ("unit", one.unit, variable.unit),
            ("period", one.period, variable.period),
            ("number of columns", one.values.shape[1], variable.values.shape[1]),
        ):
            if a != b and not (what == "period" and one.kind != "circular"):
                raise InputError(
                    f"Variable {name!r} has the {what} {a!r} in session {session!r} and {b!r} in "
                    f"{other!r}: the same is needed in all sessions."
                )
    return replace(one, values=np.concatenate([v.values for v in found.values()]))


def _joint_plan(pool: _Pool, factors: Mapping[str, Factor], settings: FitSettings) -> TrainingPlan:
    """Labels on one scale, and one embedding; steps are as long as in the usual session."""
    labels = factor_labels(pool.behavior, factors)
    each = [
        label_offsets(recording, part_of(labels, pool, number), settings)
        for number, recording in enumerate(pool.recordings.values())
    ]
    offsets = {name: int(np.median([found[name] for found in each])) for name in labels}
    offset = time_offset(pool.behavior, offsets, settings)
    segment = pool.behavior.segment
    parts = lay_out(factors, labels, segment, {**offsets, TIME: offset}, settings)
    return TrainingPlan(labels, offsets, offset, parts)


def part_of(labels: Mapping[str, Labels], pool: _Pool, number: int) -> dict[str, Labels]:
    """Labels of one session, on the scale of all."""
    own = slice(pool.first[number], pool.first[number + 1])
    return {
        name: Labels(**{field: values[own] for field, values in vars(label).items()})
        for name, label in labels.items()
    }


def _joined_split(splits: Sequence[Split], pool: _Pool) -> Split:
    """Training frames and held-out blocks of all sessions, by pooled frames."""
    blocks = [split.block for split in splits]
    return Split(
        training=_joined_frames([split.training for split in splits], pool),
        held_out=_joined_frames([split.held_out for split in splits], pool),
        block=_counted_through(blocks),
    )


def _joined_frames(frames: Sequence[UsableFrames], pool: _Pool) -> UsableFrames:
    anchors = [each.anchors + start for each, start in zip(frames, pool.first, strict=False)]
    return UsableFrames(np.concatenate(anchors), _counted_through([each.run for each in frames]))


def _counted_through(numbers: Sequence[np.ndarray]) -> np.ndarray:
    """Numbers that go on from session to session, with −1 where there is none."""
    joined, highest = [], 0
    for each in numbers:
        joined.append(np.where(each >= 0, each + highest, -1))
        highest += int(each.max(initial=-1)) + 1
    return np.concatenate(joined)


Own = Literal["input layer", "encoder"]
"""Layers that each session has for itself."""


@dataclass(frozen=True)
class _JointFrames:
    """Inputs of frames of several sessions.

    Parameters
    ----------
    places : sequence of (n,) int64
        Positions of each session's frames among all.
    inputs : sequence of (n, cells) or (n, cells, window)
        Of each session; cells differ.
    own : sequence of (n,) int64
        The positions, ascending, for the host.
    """

    places: Sequence[Tensor]
    inputs: Sequence[Tensor]
    own: Sequence[np.ndarray]


class _JointData:
    """Inputs of all sessions, gathered by pooled frame number.

    Parameters
    ----------
    sessions : sequence of FrameData
    first : (sessions + 1,) int64
        Pooled frame at which each begins.
    """

    def __init__(self, sessions: Sequence[FrameData], first: np.ndarray) -> None:
        self.sessions, self.first = sessions, first
        self.device = sessions[0].device

    def __len__(self) -> int:
        """Frames of all sessions."""
        return int(self.first[-1])

    def digest(self) -> str:
        """Hash of all inputs, to tell recordings apart."""
        return hashlib.sha256("".join(s.digest() for s in self.sessions).encode()).hexdigest()

    def places_of(self, frames: np.ndarray) -> list[Tensor]:
        """Positions of each session's frames among these: (n,) int64 each."""
        return [torch.as_tensor(own, device=self.device) for own in self._own(frames)]

    def _own(self, frames: np.ndarray) -> list[np.ndarray]:
        session = np.searchsorted(self.first, frames, side="right") - 1
        numbers = range(len(self.sessions))
        return [np.flatnonzero(session == s) for s in numbers]

    def __getitem__(self, frames: np.ndarray) -> _JointFrames:
        """Inputs by session, in the order of the frames within each."""
        places = self._own(frames)
        each = zip(self.sessions, places, self.first, strict=False)
        inputs = [data[frames[own] - start] for data, own, start in each]
        return _JointFrames(self.places_of(frames), inputs, places)

    def seen(self, frames: np.ndarray, hide: float, seed: int) -> _JointFrames:
        """The same, with some cells hidden from each frame; other ones in each session."""
        places = self._own(frames)
        each = zip(self.sessions, places, self.first, strict=False)
        inputs = [
            data.seen(frames[own] - start, hide, seed + number)
            for number, (data, own, start) in enumerate(each)
        ]
        return _JointFrames(self.places_of(frames), inputs, places)

    @property
    def bytes_of_frame(self) -> int:
        """Memory that the inputs of a frame take, at most."""
        return max(session.bytes_of_frame for session in self.sessions)


class _JointEncoder(nn.Module):
    """An encoder a session; with `own="input layer"` all that follows the first layer is shared.

    Parameters
    ----------
    encoders : sequence of Encoder
        Of the same shape but for the number of cells.
    own : {"input layer", "encoder"}
    """

    def __init__(self, encoders: Sequence[Encoder], own: Own) -> None:
        super().__init__()
        if own == "input layer":
            for encoder in encoders[1:]:
                _share_after_input(encoders[0], encoder)
        self.encoders = nn.ModuleList(encoders)
        self.latents, self.bound = encoders[0].latents, encoders[0].bound

    def __getitem__(self, session: int) -> Encoder:
        """Encoder of one session."""
        return cast(Encoder, self.encoders[session])

    def forward(self, x: _JointFrames) -> Tensor:
        """Embedding: (frames, latents)."""
        each = [self[number](inputs) for number, inputs in enumerate(x.inputs)]
        return _in_order(each, x.places)

    def embed(self, x: _JointFrames, directions: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """As `Encoder.embed`: Σ_k ‖v_kᵀ J_f‖² counts the cells of a frame's own session alone."""
        found = [
            self[number].embed(inputs, own)
            for number, (inputs, own) in enumerate(
                zip(x.inputs, _by_session(x, directions), strict=True)
            )
        ]
        squared = torch.cat([each for _, each in found])
        return _in_order([embedding for embedding, _ in found], x.places), squared


def _by_session(x: _JointFrames, directions: Tensor | None) -> list[Tensor | None]:
    """Directions for the first frames, which are in their order within each session, too."""
    if directions is None:
        return [None] * len(x.places)
    counts = [int(np.searchsorted(own, len(directions))) for own in x.own]
    each = zip(x.places, counts, strict=True)
    return [directions.index_select(0, place[:count]) for place, count in each]


def _in_order(values: Sequence[Tensor], places: Sequence[Tensor]) -> Tensor:
    """Rows of all sessions, each put in its place."""
    order = torch.argsort(torch.cat(list(places)))
    return torch.cat(list(values)).index_select(0, order)


def _share_after_input(one: Encoder, other: Encoder) -> None:
    """Let an encoder share all layers of another but the first, which sees its own cells."""
    if isinstance(one, FrameEncoder) and isinstance(other, FrameEncoder):
        for number in range(1, len(one.layers)):
            other.layers[number] = one.layers[number]
    elif isinstance(one, WindowEncoder) and isinstance(other, WindowEncoder):
        other.skips, other.last = one.skips, one.last
    else:
        raise TypeError(f"{type(one).__name__} and {type(other).__name__} cannot share layers")


class _JointObjective(Objective):
    """The objective of several sessions: a time pair has negatives of its own session alone."""

    data: _JointData  # type: ignore[assignment]

    def _seen(  # type: ignore[override]
        self, frames: np.ndarray, on_device: Tensor, seed: int
    ) -> _JointFrames:
        return self.data.seen(frames, self.hide, seed)

    def _info_nce(
        self,
        part: Part,
        reference: Tensor,
        positive: Tensor,
        batch: Batch,
        rows: Tensor | None,
    ) -> Tensor:
        if part.name != TIME:
            return super()._info_nce(part, reference, positive, batch, rows)
        terms = [
            len(own) * self.psi.info_nce(part, reference[own], positive[own])
            for own in self.data.places_of(batch.reference)
            if len(own) > 1
        ]
        return torch.stack(terms).sum() / len(reference)


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
    training = _JointTraining(recordings, factors, settings or FitSettings(), own)
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


class _JointTraining(Training):
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
    encoder: _JointEncoder  # type: ignore[assignment]
    data: _JointData  # type: ignore[assignment]

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
        self.plan = _joint_plan(self.pool, self.factors, settings)
        self.labels, self.parts = self.plan.labels, self.plan.parts
        self.sessions = self._sessions()
        each = list(self.sessions.values())
        self.split = _joined_split([session.split for session in each], self.pool)
        self.inputs = _joined_inputs([session.inputs for session in each])
        self._whole = self.sampler_of(self.split.training)
        self.device = each[0].device
        self.data = _JointData([session.data for session in each], self.pool.first)
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
            plan = TrainingPlan(labels, self.plan.offsets, self.plan.time_offset, self.parts)
            try:
                sessions[name] = Training(recording, self.factors, settings, plan)
            except InputError as error:
                raise InputError(f"Session {name!r}: {error}") from error
        return sessions

    def _make_encoder(self) -> _JointEncoder:  # type: ignore[override]
        self.regressions = {}
        self.hide = max(each.hide for each in self.sessions.values())
        return _JointEncoder([each.encoder for each in self.sessions.values()], self.own)

    def _settling(self) -> None:
        """All steps are done: maps of several sessions are not compared."""

    def sampler_of(self, frames: UsableFrames) -> Sampler:
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

    def _make_objective(self) -> _JointObjective:
        # the joint encoder and its data work as those of one session do
        return _JointObjective(
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
