"""From several recordings to one embedding, in one call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from os import PathLike

from napari_xcebra.learn.fitting import finish, train
from napari_xcebra.learn.goodness import check_measurable
from napari_xcebra.learn.joint.encoder import Own
from napari_xcebra.learn.joint.pooling import Recordings
from napari_xcebra.learn.joint.result import JointFit
from napari_xcebra.learn.joint.training import JointTraining
from napari_xcebra.learn.parts import Factors
from napari_xcebra.learn.progress import Progress
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.recording import InputError


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
        found = finish(training.session(name), recording.source)
        others = tuple(other for other in training.sessions if other != name)
        notes = (f"Trained together with {', '.join(others)}.", *found.notes)
        fits[name] = replace(found, notes=notes, together=others)
    result = JointFit(fits, own)
    if kept is not None and result.steps == training.steps:
        kept.remove()
    return result
