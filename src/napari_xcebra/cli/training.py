"""Trains on one recording: `fit`, `run`, `adapt` and `demo`."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from napari_xcebra import learn
from napari_xcebra.cli.given import (
    FIT,
    factors_from,
    frames_from,
    loaded_fit,
    opening_of,
    output_folder,
    recording_from,
    settings_from,
)
from napari_xcebra.cli.printing import factor_table, say, say_written
from napari_xcebra.cli.progress import Interrupted, interrupt_as_request, training_bar
from napari_xcebra.cli.scoring import write_attribution
from napari_xcebra.errors import InputError
from napari_xcebra.recording import Recording
from napari_xcebra.results import note_results

if TYPE_CHECKING:
    from napari_xcebra.learn import Fit
    from napari_xcebra.learn.data.factors import Factors

CHECKPOINT = "checkpoint.safetensors"
Learned = TypeVar("Learned")


def fit(arguments: argparse.Namespace) -> None:
    """Train on a recording and measure the fit."""
    trained = trained_on(arguments, recording_from(arguments), checkpoint_in(arguments))
    written = write_fit(arguments, trained)
    opening_of(arguments).save(output_folder(arguments))
    say(arguments, factor_table(trained), "", trained.summary(), *trained.notes)
    say_written(arguments, written)


def run(arguments: argparse.Namespace) -> None:
    """Fit, then attribute."""
    recording, out = recording_from(arguments), output_folder(arguments)
    frames_from(arguments.frames)  # a mistake there should not be found after training
    trained = trained_on(arguments, recording, checkpoint_in(arguments))
    written = write_fit(arguments, trained)
    opening_of(arguments).save(out)  # by which `report` finds it again
    result = write_attribution(arguments, trained, recording, out, written)
    if arguments.seeds > 1:
        from napari_xcebra.cli.repeated import stability

        found = stability(arguments, recording, result)
        say(arguments, "", found.summary())
        table = found.to_csv(out / "stability.csv")
        note_results(out, trained, [table])
        say_written(arguments, [table])


def adapt(arguments: argparse.Namespace) -> None:
    """Carry a fit to another recording, and score its cells."""
    from napari_xcebra.learn.adaptation import STEPS, adapt

    out, before = output_folder(arguments), loaded_fit(arguments)
    recording = recording_from(arguments)
    frames_from(arguments.frames)
    steps = arguments.steps or STEPS
    matched = _matched_ids(arguments)
    carry = partial(adapt, before, recording, arguments.how, matched=matched, steps=steps)
    trained = with_bar(arguments, steps, carry)
    saved = trained.save(out / FIT)
    opening_of(arguments).save(out)
    write_attribution(arguments, trained, recording, out, [saved])


def demo(arguments: argparse.Namespace) -> None:
    """Simulate an imaged field, train, and paint the cells."""
    from napari_xcebra.io import save_recording
    from napari_xcebra.simulate import field

    out, seed = output_folder(arguments), settings_from(arguments).seed
    simulation = field(cells=arguments.cells, frames=arguments.simulated_frames, seed=seed)
    recording = simulation.recording
    say(arguments, *recording.notes, "")
    trained = trained_on(arguments, recording, None, simulation.factors)
    written = [save_recording(recording, out / "recording.npz")]
    written += write_fit(arguments, trained)
    write_attribution(arguments, trained, recording, out, written, simulation.truth)
    factors = " ".join(f"--factor {name}={','.join(v)}" for name, v in simulation.factors.items())
    say(
        arguments,
        "",
        f"Look at {out / 'painted.png'} first. To do the same with your own recording:",
        "  napari-xcebra info PATH --behavior FILE",
        "  napari-xcebra run PATH --behavior FILE --factor NAME=VARIABLES --out DIR",
        f"and with this one: napari-xcebra run {out / 'recording.npz'} {factors} --out again",
    )


def trained_on(
    arguments: argparse.Namespace,
    recording: Recording,
    checkpoint: Path | None,
    factors: Factors | None = None,
) -> Fit:
    """Train; Ctrl-C stops and leaves the checkpoint, if there is one."""
    settings = settings_from(arguments)
    factors = factors_from(arguments.factor) if factors is None else factors
    train = partial(learn.fit, recording, factors, settings, checkpoint=checkpoint)
    trained = with_bar(arguments, settings.steps, train)
    if checkpoint is not None and not trained.complete:
        saved = trained.save(output_folder(arguments) / FIT)
        kept = f"; {saved} holds what was learned so far"
        raise interrupted(arguments, trained.steps, settings.steps, kept)
    return trained


def with_bar(arguments: argparse.Namespace, steps: int, train: Callable[..., Learned]) -> Learned:
    """Train with a progress bar and Ctrl-C as a request to stop."""
    with interrupt_as_request() as request, training_bar(arguments, steps) as bar:
        return train(on_progress=bar, stop=request)


def checkpoint_in(arguments: argparse.Namespace) -> Path:
    """Where training keeps its state; one that is there already is used only if asked for."""
    checkpoint = output_folder(arguments) / CHECKPOINT
    if checkpoint.exists() and not arguments.resume:
        raise InputError(
            f"{checkpoint} is left from a run that was stopped: add --resume to continue it, or "
            "remove the file to start afresh."
        )
    return checkpoint


def interrupted(
    arguments: argparse.Namespace, done: int, steps: int, kept: str = ""
) -> Interrupted:
    """Training was stopped: says what was kept, and what to type to continue."""
    again = [word for word in arguments.typed if word != "--resume"]
    return Interrupted(
        f"Stopped after {done} of {steps} steps{kept}. To continue:\n"
        f"  {shlex.join(['napari-xcebra', *again, '--resume'])}"
    )


def write_fit(arguments: argparse.Namespace, trained: Fit) -> list[Path]:
    """Save a fit and its learning curves."""
    from napari_xcebra.report.figures.comparisons import learning_curves

    out = output_folder(arguments)
    saved = trained.save(out / FIT)  # first, as its checkpoint is gone
    learning_curves(trained, out / "learning.png")
    note_results(out, trained, [out / "learning.png"])
    return [saved, out / "learning.png"]


def _matched_ids(arguments: argparse.Namespace) -> dict[int, int] | None:
    """Ids of the fit's cells to those of the recording, from a table of two sessions."""
    if arguments.matched is None:
        return None
    from napari_xcebra.io.guard import read
    from napari_xcebra.io.matching import read_matching

    path = Path(arguments.matched)
    found = read(read_matching, path, paths=(path,))
    if len(found.sessions) != 2:
        raise InputError(
            f"{arguments.matched} has {len(found.sessions)} sessions: two are needed, the fit's "
            "and the recording's."
        )
    return replace(found, positions=False).between(*found.sessions)
