"""What each command does. Heavy libraries are imported inside, so that help comes at once."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from napari_xcebra.cli.flags import (
    FLAGS,
    factors_from,
    frames_from,
    kinds_from,
    opening_from,
    settings_from,
)
from napari_xcebra.knobs import worded
from napari_xcebra.recording import InputError, Recording

if TYPE_CHECKING:
    from napari_xcebra.attribution import Attribution
    from napari_xcebra.learn import Fit
    from napari_xcebra.learn.parts import Factors
    from napari_xcebra.opening import Opening

FIT, CHECKPOINT = "fit", "checkpoint.safetensors"


class Interrupted(Exception):
    """The user pressed Ctrl-C; says what was kept."""


def info(arguments: argparse.Namespace) -> None:
    """Show what a recording holds."""
    from napari_xcebra.cli.recording_report import recording_tables

    print(worded(recording_tables(recording_from(arguments)), FLAGS))


def fit(arguments: argparse.Namespace) -> None:
    """Train on a recording and measure the fit."""
    from napari_xcebra.cli.report import factor_table

    recording = recording_from(arguments)
    trained = _trained(arguments, recording)
    written = _write_fit(arguments, trained)
    opening_of(arguments).save(output_folder(arguments))
    say(arguments, factor_table(trained), "", trained.summary(), *trained.notes)
    say_written(arguments, written)


def attribute(arguments: argparse.Namespace) -> None:
    """Score the cells with a fit."""
    out, loaded = output_folder(arguments), loaded_fit(arguments)
    write_attribution(arguments, loaded, recording_from(arguments), out)


def compare(arguments: argparse.Namespace) -> None:
    """Put all methods, and single-cell statistics, side by side."""
    from napari_xcebra.attribution.comparison import compare as side_by_side
    from napari_xcebra.attribution.single_cell import cell_statistics
    from napari_xcebra.cli.report import agreement_table
    from napari_xcebra.method_figure import methods_side_by_side

    out, loaded, recording = (
        output_folder(arguments),
        loaded_fit(arguments),
        recording_from(arguments),
    )
    variables = {part.name: part.variables for part in loaded.parts}
    statistics = cell_statistics(recording, variables, cells=loaded.inputs.columns(recording))
    found = side_by_side(_scored_by_all(arguments, loaded, recording), statistics)
    methods_side_by_side(found, out / "methods.png")
    tables = [found.to_csv(out / "methods.csv"), statistics.to_csv(out / "statistics.csv")]
    say(arguments, agreement_table(found), "", loaded.summary(), *statistics.notes)
    say_written(arguments, [out / "methods.png", *tables])


def run(arguments: argparse.Namespace) -> None:
    """Fit, then attribute."""
    recording = recording_from(arguments)
    frames_from(arguments.frames)  # a mistake there should not be found after training
    trained = _trained(arguments, recording)
    written = _write_fit(arguments, trained)
    opening_of(arguments).save(output_folder(arguments))  # by which `report` finds it again
    result = write_attribution(arguments, trained, recording, output_folder(arguments), written)
    if arguments.seeds > 1:
        from napari_xcebra.cli.repeated import stability

        found = stability(arguments, recording, result)
        say(arguments, "", found.summary())
        say_written(arguments, [found.to_csv(output_folder(arguments) / "stability.csv")])


def demo(arguments: argparse.Namespace) -> None:
    """Simulate an imaged field, train, and paint the cells."""
    from napari_xcebra.attribution.method_notes import METHODS
    from napari_xcebra.cli.flags import AGGREGATES
    from napari_xcebra.io import save_recording
    from napari_xcebra.simulate import field

    out, settings = output_folder(arguments), settings_from(arguments)
    simulation = field(cells=arguments.cells, frames=arguments.frames, seed=settings.seed)
    recording = simulation.recording
    say(arguments, *recording.notes, "")
    arguments.resume = False
    trained = _trained(arguments, recording, simulation.factors, keep=False)
    written = [save_recording(recording, out / "recording.npz")]
    written += _write_fit(arguments, trained)
    arguments.method, arguments.aggregate, arguments.frames = METHODS[0], AGGREGATES[0], None
    arguments.significance = False
    write_attribution(arguments, trained, recording, out, written, simulation.truth)
    factors = " ".join(f"--factor {name}={','.join(v)}" for name, v in simulation.factors.items())
    say(
        arguments,
        "",
        f"Look at {out / 'painted.png'} first. The same with your own recording:",
        "  napari-xcebra info PATH --behavior FILE",
        "  napari-xcebra run PATH --behavior FILE --factor NAME=VARIABLES --out DIR",
        f"and with this one: napari-xcebra run {out / 'recording.npz'} {factors} --out again",
    )


def curation(arguments: argparse.Namespace) -> None:
    """Show what was decided on the cells of a recording."""
    from napari_xcebra.cli.curation_report import curation_tables

    print("\n\n".join(curation_tables(journal) for journal in _journals(Path(arguments.path))))


def agreement(arguments: argparse.Namespace) -> None:
    """Compare the decisions of two curators."""
    from napari_xcebra.cli.curation_report import agreement_tables

    print(agreement_tables(Path(arguments.first), Path(arguments.second)))


def _journals(path: Path) -> list[Path]:
    """The journal itself, or all of a recording."""
    from napari_xcebra.curation import journals_beside, journals_of
    from napari_xcebra.io import open_recording

    if path.suffix == ".jsonl" and path.is_file():
        return [path]
    # opening the recording takes time, and only serves to look in the data directory
    found = journals_beside(path) or journals_of(open_recording(path), path)
    if not found:
        raise InputError(f"Nothing was decided on the cells of {path} yet.")
    return found


def recording_from(arguments: argparse.Namespace) -> Recording:
    """The recording that was named, opened as the flags say."""
    return opening_of(arguments).open()


def opening_of(arguments: argparse.Namespace) -> Opening:
    """How the recording is to be opened."""
    from napari_xcebra.opening import Opening

    return Opening(
        Path(arguments.path),
        tuple(Path(path) for path in arguments.behavior or ()),
        Path(arguments.footprints) if arguments.footprints else None,
        kinds_from(arguments.kind),
        opening_from(arguments),
    )


def loaded_fit(arguments: argparse.Namespace) -> Fit:
    """Fit in a folder; `run` and `fit` write DIR/fit, and DIR itself will do."""
    from napari_xcebra.learn import Fit

    folder = Path(arguments.fit)
    if not (folder / "fit.json").exists() and (folder / FIT / "fit.json").exists():
        folder = folder / FIT
    return Fit.load(folder)


def _trained(
    arguments: argparse.Namespace,
    recording: Recording,
    factors: Factors | None = None,
    keep: bool = True,
) -> Fit:
    """Train with a progress bar; Ctrl-C stops, and unless `keep` is False leaves a checkpoint."""
    from napari_xcebra import learn
    from napari_xcebra.cli.progress import interrupt_as_request, training_bar

    out, settings = output_folder(arguments), settings_from(arguments)
    checkpoint = out / CHECKPOINT
    if keep and checkpoint.exists() and not arguments.resume:
        raise InputError(
            f"{checkpoint} is left from a run that was stopped: add --resume to go on with it, or "
            "remove it to start afresh."
        )
    factors = factors_from(arguments.factor) if factors is None else factors
    with interrupt_as_request() as request, training_bar(arguments, settings.steps) as bar:
        try:
            trained = learn.fit(
                recording,
                factors,
                settings,
                on_progress=bar,
                stop=request,
                checkpoint=checkpoint if keep else None,
            )
        except learn.TrainingDiverged as error:
            raise InputError(str(error)) from error
    if keep and not trained.complete:
        trained.save(out / FIT)
        again = [word for word in arguments.typed if word != "--resume"]
        raise Interrupted(
            f"Stopped after {trained.steps} of {settings.steps} steps; {out / FIT} holds what was "
            f"learned so far. To go on:\n  {shlex.join(['napari-xcebra', *again, '--resume'])}"
        )
    return trained


def _write_fit(arguments: argparse.Namespace, trained: Fit) -> list[Path]:
    from napari_xcebra.figures import learning_curves

    out = output_folder(arguments)
    learning_curves(trained, out / "learning.png")
    return [trained.save(out / FIT), out / "learning.png"]


def write_attribution(
    arguments: argparse.Namespace,
    trained: Fit,
    recording: Recording,
    out: Path,
    written: list[Path] | None = None,
    truth: Mapping[str, np.ndarray] | None = None,
) -> Attribution:
    """Score the cells, write all that comes of it, and print the table."""
    from napari_xcebra.cli.report import factor_table
    from napari_xcebra.figures import painted_field

    result = scored(arguments, trained, recording)
    tables = [result.to_csv(out / "attribution.csv"), result.to_npz(out / "attribution.npz")]
    painted_field(recording, result, out / "painted.png", truth)
    say(arguments, factor_table(trained, result, truth), "", trained.summary())
    say(arguments, *trained.notes, *result.notes)
    if result.significance is not None:
        say(arguments, *(result.significance.how(factor) for factor in result.factors))
    say_written(arguments, [out / "painted.png", *tables, *(written or [])])
    return result


def scored(arguments: argparse.Namespace, trained: Fit, recording: Recording) -> Attribution:
    """Score the cells, and test them if asked for; Ctrl-C stops."""
    from napari_xcebra import attribution
    from napari_xcebra.cli.progress import attribution_bar, interrupt_as_request

    with interrupt_as_request() as request:
        try:
            with attribution_bar(arguments) as bar:
                result = attribution.attribute(
                    trained,
                    recording,
                    arguments.method,
                    frames=frames_from(arguments.frames),
                    aggregate=arguments.aggregate,
                    on_progress=bar,
                    stop=request,
                )
            if not arguments.significance:
                return result
            seconds = attribution.seconds_to_test(trained, recording)
            say(arguments, f"Testing which cells are above chance: about {seconds:.0f} s.")
            with attribution_bar(arguments, "testing") as bar:
                tested = attribution.significance(
                    trained,
                    recording,
                    frames=frames_from(arguments.frames),
                    on_progress=bar,
                    stop=request,
                )
            return result.with_significance(tested)
        except attribution.AttributionStopped as stopped:
            raise Interrupted(f"{stopped} No scores were written.") from stopped


def _scored_by_all(
    arguments: argparse.Namespace, trained: Fit, recording: Recording
) -> dict[str, Attribution]:
    """By every method; Ctrl-C stops."""
    from napari_xcebra.attribution import AttributionStopped
    from napari_xcebra.attribution.comparison import attribute_all
    from napari_xcebra.cli.progress import comparison_bar, interrupt_as_request

    with interrupt_as_request() as request, comparison_bar(arguments) as bar:
        try:
            return attribute_all(
                trained,
                recording,
                on_progress=bar,
                stop=request,
                on_failure=lambda method, why: say(arguments, f"No {method}: {why}"),
            )
        except AttributionStopped as stopped:
            raise Interrupted(f"{stopped} Nothing was written.") from stopped


def output_folder(arguments: argparse.Namespace) -> Path:
    """Folder to write to; found wanting now rather than after an hour of training."""
    out = Path(arguments.out)
    nearest = next(folder for folder in (out, *out.absolute().parents) if folder.exists())
    if not nearest.is_dir():
        raise InputError(f"--out {out} cannot be a folder: {nearest} is a file.")
    if not os.access(nearest, os.W_OK):
        raise InputError(f"--out {out} cannot be written: {nearest} is read-only.")
    return out


def say(arguments: argparse.Namespace, *lines: str) -> None:
    """Print these lines, unless nothing is to be said."""
    if not arguments.quiet:
        for line in lines:
            print(worded(line, FLAGS))


WHAT = {
    "recording.npz": "the recording",
    "fit": "the trained encoder, its settings and goodness",
    "learning.png": "loss, penalty and λ over the steps",
    "painted.png": "cells coloured by their score, a panel a factor",
    "attribution.csv": "score, z and selection of every cell for every factor",
    "attribution.npz": "the same for programs, per latent",
    "stability.csv": "spread of score and rank of every cell over seeds, and what is stable",
    "dimension.csv": "consistency between seeds for every number of latents",
    "dimension.png": "the same as a picture",
    "joint": "the encoders of all sessions, in one embedding",
    "consistency.csv": "R² between the embeddings of each two sessions, beside chance",
    "consistency.png": "the same as a picture, a matrix a factor",
    "matched.csv": "score, z and rank of every matched cell in every session",
    "matched.png": "correlation of the scores between sessions, and the rank of every cell",
    "quality.csv": "error of decoding every variable from the embedding, beside chance",
    "methods.png": "rank correlations of all methods, and the rank of every cell by each",
    "methods.csv": "score and rank of every cell by every method and statistic",
    "summary.csv": "a row a run: what was varied, goodness, p, R² and verdict of every factor",
    "members": "a folder a run: fit, scores, what it took",
    "sweep.json": "what was asked for",
    "statistics.csv": "single-cell statistics with their signs",
}


def say_written(arguments: argparse.Namespace, written: list[Path]) -> None:
    """Print what was written, and what it holds."""
    width = max(len(str(path)) for path in written)
    lines = [f"  {str(path).ljust(width)}  {WHAT[path.name]}" for path in written]
    say(arguments, "", "Written:", *lines)
