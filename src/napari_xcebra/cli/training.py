"""Trains on one recording or several: `fit`, `run`, `adapt`, `demo` and `sessions`."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from napari_xcebra import learn
from napari_xcebra.cli.given import (
    chosen_factors,
    counts_from,
    fit_folder,
    frames_from,
    loaded_fit,
    opened_sessions,
    opening_of,
    output_folder,
    recording_from,
    session_folder,
    sessions_from,
    settings_from,
    take_analysis,
    write_analysis,
)
from napari_xcebra.cli.printing import (
    GOODNESS,
    Interrupted,
    goodness_words,
    interrupt_as_request,
    say,
    say_found,
    say_written,
    table,
    training_bar,
)
from napari_xcebra.cli.scoring import write_attribution, write_scores
from napari_xcebra.errors import InputError
from napari_xcebra.recording import Recording
from napari_xcebra.runs import ANALYSIS, FIT, results_in, results_to

if TYPE_CHECKING:
    from napari_xcebra.attribution import Attribution
    from napari_xcebra.learn import Fit
    from napari_xcebra.learn.data.factors import Factors
    from napari_xcebra.learn.result import JointFit
    from napari_xcebra.recording.matching import Matching


CHECKPOINT, LEARNING = "checkpoint.safetensors", "learning.png"
Learned = TypeVar("Learned")


def fit(arguments: argparse.Namespace) -> None:
    """Train on a recording and measure the fit."""
    trained = _trained_on(arguments, recording_from(arguments), _checkpoint_in(arguments))
    written = _write_fit(arguments, trained)
    say_found(arguments, trained)
    say_written(arguments, written)


def run(arguments: argparse.Namespace) -> None:
    """Fit, then attribute."""
    take_analysis(arguments)
    recording, out = recording_from(arguments), output_folder(arguments)
    frames_from(arguments.frames)  # a mistake there should not be found after training
    if arguments.model is None:
        trained = _trained_on(arguments, recording, _checkpoint_in(arguments))
    else:
        trained = _opened_model(arguments, recording)
    result = _write_run(arguments, trained, recording, curves=arguments.model is None)
    if arguments.seeds > 1:
        from napari_xcebra.cli.many_runs import stability

        found = stability(arguments, recording, result)
        say(arguments, "", found.summary())
        with results_to(out, trained) as new:
            found.to_csv(new / "stability.csv")
        say_written(arguments, [out / "stability.csv"])


def _opened_model(arguments: argparse.Namespace, recording: Recording) -> Fit:
    """The model of `cebra` that was named."""
    from napari_xcebra.interop.cebra_fit import open_cebra

    if arguments.seeds > 1:
        raise InputError("--model is not trained here: leave out --seeds.")
    latents = {}
    for text in arguments.latents:
        name, _, numbers = text.partition("=")
        latents[name] = counts_from(numbers, "--latents")
    return open_cebra(
        arguments.model,
        recording,
        chosen_factors(arguments, recording),
        latents=latents,
        architecture=arguments.architecture,
        session=arguments.session,
        standardised=arguments.standardised,
        settings=settings_from(arguments),
    )


def adapt(arguments: argparse.Namespace) -> None:
    """Carry a fit to another recording, and score its cells."""
    from napari_xcebra.learn.adaptation import STEPS, adapt

    output_folder(arguments)  # a mistake there should not be found after training
    before, recording = loaded_fit(arguments), recording_from(arguments)
    frames_from(arguments.frames)
    steps = arguments.steps or STEPS
    matched = _matched_ids(arguments)
    carry = partial(adapt, before, recording, arguments.how, matched=matched, steps=steps)
    trained = _with_bar(arguments, steps, carry)
    say(arguments, trained.notes[0])  # what was carried, and of how many cells
    _write_run(arguments, trained, recording, curves=False)


def demo(arguments: argparse.Namespace) -> None:
    """Simulate an imaged field, train, and paint the cells."""
    from napari_xcebra.io import save_recording
    from napari_xcebra.report.figures.comparisons import learning_curves
    from napari_xcebra.simulate import field

    out, seed = output_folder(arguments), settings_from(arguments).seed
    simulation = field(cells=arguments.cells, frames=arguments.simulated_frames, seed=seed)
    recording = simulation.recording
    say(arguments, *recording.notes, "")
    trained = _trained_on(arguments, recording, None, simulation.factors)
    with results_to(out, trained, with_fit=True) as new:
        save_recording(recording, new / "recording.npz")
        learning_curves(trained, new / LEARNING)
        write_attribution(arguments, trained, recording, new, simulation.truth)
    say_written(arguments, [out / "recording.npz", out / FIT, out / LEARNING])
    factors = " ".join(f"--factor {name}={','.join(v)}" for name, v in simulation.factors.items())
    say(
        arguments,
        "",
        f"Look at {out / 'painted.png'} first. To do the same with your own recording:",
        "  napari-xcebra info PATH --behavior FILE",
        "  napari-xcebra run PATH --behavior FILE --factor NAME=VARIABLES --out DIR",
        f"and with this one: napari-xcebra run {out / 'recording.npz'} {factors} --out again",
    )


def _trained_on(
    arguments: argparse.Namespace,
    recording: Recording,
    checkpoint: Path | None,
    factors: Factors | None = None,
) -> Fit:
    """Train; Ctrl-C stops and leaves the checkpoint, if there is one."""
    settings = settings_from(arguments)
    factors = chosen_factors(arguments, recording) if factors is None else factors
    train = partial(learn.fit, recording, factors, settings, checkpoint=checkpoint)
    trained = _with_bar(arguments, settings.steps, train)
    if checkpoint is not None and not trained.complete:
        saved, kept = output_folder(arguments) / FIT, ""
        if not results_in(saved.parent):  # an earlier run stays as it is
            kept = f"; {trained.save(saved)} holds what was learned so far"
        raise _interrupted(arguments, trained.steps, settings.steps, kept)
    return trained


def _with_bar(arguments: argparse.Namespace, steps: int, train: Callable[..., Learned]) -> Learned:
    """Train with a progress bar and Ctrl-C as a request to stop."""
    with interrupt_as_request() as request, training_bar(arguments, steps) as bar:
        return train(on_progress=bar, stop=request)


def _checkpoint_in(arguments: argparse.Namespace) -> Path:
    """Where training keeps its state; one that is there already is used only if asked for."""
    checkpoint = output_folder(arguments) / CHECKPOINT
    if checkpoint.exists() and not arguments.resume:
        raise InputError(
            f"{checkpoint} is left from a run that was stopped: add --resume to continue it, or "
            "remove the file to start afresh."
        )
    return checkpoint


def _interrupted(
    arguments: argparse.Namespace, done: int, steps: int, kept: str = ""
) -> Interrupted:
    """Training was stopped: says what was kept, and what to type to continue."""
    again = [word for word in arguments.typed if word != "--resume"]
    return Interrupted(
        f"Stopped after {done} of {steps} steps{kept}. To continue:\n"
        f"  {shlex.join(['napari-xcebra', *again, '--resume'])}"
    )


def _write_fit(arguments: argparse.Namespace, trained: Fit, *, curves: bool = True) -> list[Path]:
    """Save a fit, its learning curves, and how its recording was opened."""
    out = output_folder(arguments)
    with results_to(out, trained, with_fit=True) as new:
        written = _write_learning(arguments, trained, new, curves=curves)
    return [out / FIT, *written]


def _write_learning(
    arguments: argparse.Namespace, trained: Fit, new: Path, *, curves: bool
) -> list[Path]:
    from napari_xcebra.report.figures.comparisons import learning_curves

    out = output_folder(arguments)
    opening_of(arguments).save(new, seen_from=out)  # by which `report` finds the recording again
    if not curves:
        return []
    learning_curves(trained, new / LEARNING)
    return [out / LEARNING]


def _write_run(
    arguments: argparse.Namespace, trained: Fit, recording: Recording, *, curves: bool
) -> Attribution:
    """Score the cells and save the fit with the scores; an earlier run is replaced as a whole."""
    out = output_folder(arguments)
    if fit_folder(out) is None:
        _write_fit(arguments, trained, curves=curves)  # at once, as its checkpoint is gone
    try:
        with results_to(out, trained, with_fit=True) as new:
            written = _write_learning(arguments, trained, new, curves=curves)
            if hasattr(arguments, "seeds"):  # of `run`; what was adapted depends on another fit
                write_analysis(arguments, trained, recording, new)
                written.append(out / ANALYSIS)
            result = write_attribution(arguments, trained, recording, new)
    except Exception:  # what was learned is kept without scores
        _write_fit(arguments, trained, curves=curves)
        raise
    say_written(arguments, [out / FIT, *written])
    return result


def _read_matching(arguments: argparse.Namespace) -> Matching:
    from napari_xcebra.io.guard import read
    from napari_xcebra.io.sessions import read_matching

    path = Path(arguments.matched)
    return read(read_matching, path, paths=(path,))


def _matched_ids(arguments: argparse.Namespace) -> dict[int, int] | None:
    """Ids of the fit's cells to those of the recording, from a table of two sessions."""
    if arguments.matched is None:
        return None
    found = _read_matching(arguments)
    if len(found.sessions) != 2:
        raise InputError(
            f"{arguments.matched} has {len(found.sessions)} sessions: two are needed, the fit's "
            "and the recording's."
        )
    return replace(found, positions=False).between(*found.sessions)


def sessions(arguments: argparse.Namespace) -> None:
    """Train several sessions into one embedding, and score the cells of each."""
    from napari_xcebra.learn.joint.consistency import session_consistency
    from napari_xcebra.learn.joint.fitting import fit_sessions
    from napari_xcebra.report.figures.comparisons import consistency_between_sessions

    out = output_folder(arguments)
    frames_from(arguments.frames)  # a mistake there should not be found after training
    recordings, factors, settings = sessions_from(arguments)
    matching = None if arguments.matched is None else _matching(arguments, recordings)
    checkpoint = _checkpoint_in(arguments)
    train = partial(fit_sessions, recordings, factors, settings, checkpoint=checkpoint)
    joint = _with_bar(arguments, settings.steps, train)
    if not all(each.complete for each in joint.fits.values()):
        raise _interrupted(arguments, joint.steps, joint.settings.steps)
    joint.save(out / "joint")
    scores = {
        name: _write_session(arguments, name, joint, recording)
        for name, recording in recordings.items()
    }
    agreement = session_consistency(joint.fits, recordings)
    consistency_between_sessions(agreement, out / "consistency.png")
    say(arguments, _goodness_table(joint), "", joint.summary(), "", agreement.summary())
    written = [out / "joint", agreement.to_csv(out / "consistency.csv"), out / "consistency.png"]
    if matching is not None:
        written += _compare_cells(arguments, scores, matching)
    say_written(arguments, written)
    folders = ", ".join(str(session_folder(arguments, name)) for name in recordings)
    say(arguments, f"  attribution.csv, painted.png and fit of each session: {folders}")


def match(arguments: argparse.Namespace) -> None:
    """Propose which cells of several days are the same, and write it as a table to be checked."""
    from napari_xcebra.recording.matching import propose_matching

    out = Path(arguments.out or "matches.csv")
    output_folder(argparse.Namespace(out=out.parent))  # a sentence now rather than afterwards
    found = propose_matching(opened_sessions(arguments))
    say(arguments, *found.notes)
    say(arguments, "", f"Written: {', '.join(map(str, found.to_csv(out)))}.")
    say(arguments, f"Look at unsure pairs; then: napari-xcebra sessions … --matched {out}")


def _matching(arguments: argparse.Namespace, recordings: Mapping[str, Recording]) -> Matching:
    """Which cells are the same; columns may also be called by the files of the sessions."""
    if arguments.matched == "propose":
        from napari_xcebra.recording.matching import propose_matching

        proposed = propose_matching(recordings)
        say(arguments, *proposed.notes)
        proposed.to_csv(output_folder(arguments) / "matches.csv")
        return proposed.matching
    found, names = _read_matching(arguments), dict[str, str]()
    if len(arguments.paths) == len(recordings):
        files = map(Path, arguments.paths)
        names = {called: name for file, name in zip(files, recordings, strict=True)
                 for called in (file.name, file.stem)}  # fmt: skip
    sessions = tuple(names.get(each, each) for each in found.sessions)
    return replace(found, sessions=sessions).of(recordings)


def _write_session(
    arguments: argparse.Namespace, name: str, joint: JointFit, recording: Recording
) -> Attribution:
    with results_to(session_folder(arguments, name), joint[name], with_fit=True) as new:
        return write_scores(arguments, joint[name], recording, new)[0]


def _goodness_table(joint: JointFit) -> str:
    rows = [
        [name, factor, *goodness_words(goodness)]
        for name, fit in joint.fits.items()
        for factor, goodness in fit.goodness.items()
    ]
    return table(["session", "factor", *GOODNESS], rows)


def _compare_cells(
    arguments: argparse.Namespace, scores: Mapping[str, Attribution], matching: Matching
) -> list[Path]:
    from napari_xcebra.attribution.comparison import matched_scores
    from napari_xcebra.report.figures.comparisons import matched_cells

    out = output_folder(arguments)
    found = matched_scores(scores, matching)
    matched_cells(found, out / "matched.png")
    say(arguments, "", found.summary())
    return [found.to_csv(out / "matched.csv"), out / "matched.png"]
