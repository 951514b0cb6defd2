"""What each command does. Heavy libraries are imported inside, so that help comes at once."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from napari_xcebra.cli.flags import (
    FLAGS,
    factors_from,
    frames_from,
    settings_from,
)
from napari_xcebra.cli.given import (
    FIT,
    fit_folder,
    loaded_fit,
    opening_of,
    output_folder,
    recording_from,
)
from napari_xcebra.cli.saying import Interrupted, say, say_written
from napari_xcebra.knobs import worded
from napari_xcebra.recording import InputError, Recording

if TYPE_CHECKING:
    from napari_xcebra.attribution import Attribution
    from napari_xcebra.learn import Fit
    from napari_xcebra.learn.parts import Factors

CHECKPOINT = "checkpoint.safetensors"


def info(arguments: argparse.Namespace) -> None:
    """Show what a recording holds, or what a run found."""
    from napari_xcebra.cli.recording_report import recording_tables

    found = fit_folder(Path(arguments.path))
    if found is not None:
        from napari_xcebra.cli.report import factor_table
        from napari_xcebra.learn import Fit

        loaded = Fit.load(found)
        print("\n".join([factor_table(loaded), "", loaded.summary(), *loaded.notes]))
        return
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
    arguments.significance = True
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
            f"Stopped after {trained.steps} of {trained.settings.steps} steps; {out / FIT} holds "
            "what was learned so far. To go on:\n"
            f"  {shlex.join(['napari-xcebra', *again, '--resume'])}"
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
    tables = write_scores(arguments, result, trained, recording, out)
    painted_field(recording, result, out / "painted.png", truth)
    say(arguments, factor_table(trained, result, truth), "", trained.summary())
    say(arguments, *trained.notes, *result.notes)
    if result.significance is not None:
        say(arguments, *(result.significance.how(factor) for factor in result.factors))
    say_written(arguments, [out / "painted.png", *tables, *(written or [])])
    return result


def write_scores(
    arguments: argparse.Namespace,
    result: Attribution,
    trained: Fit,
    recording: Recording,
    out: Path,
) -> list[Path]:
    """Write scores as a table, beside those of the other maps made of every run, and as arrays."""
    others = _other_maps(arguments, trained, recording)
    table = result.to_csv(out / "attribution.csv", beside=others)
    return [table, result.to_npz(out / "attribution.npz")]


def _other_maps(
    arguments: argparse.Namespace, trained: Fit, recording: Recording
) -> list[Attribution]:
    """Maps that are made of every run, beside the one that was asked for; Ctrl-C stops.

    One that cannot be made costs its column, not the table.
    """
    from napari_xcebra import attribution
    from napari_xcebra.attribution.method_notes import FIRST, title_of_method
    from napari_xcebra.cli.progress import attribution_bar, interrupt_as_request

    found = []
    for method in FIRST:
        if method == arguments.method:
            continue
        with (
            interrupt_as_request() as request,
            attribution_bar(arguments, title_of_method(method)) as bar,
        ):
            try:
                other = attribution.attribute(
                    trained,
                    recording,
                    method,
                    frames=frames_from(arguments.frames),
                    aggregate=arguments.aggregate,
                    on_progress=bar,
                    stop=request,
                )
            except attribution.AttributionStopped as stopped:
                raise Interrupted(f"{stopped} No scores were written.") from stopped
            except InputError as error:
                say(arguments, f"No {method}: {error}")
            else:
                found.append(other)
    return found


def scored(arguments: argparse.Namespace, trained: Fit, recording: Recording) -> Attribution:
    """Score the cells, and test them if that is wanted and can be done; Ctrl-C stops."""
    from napari_xcebra import attribution
    from napari_xcebra.cli.progress import attribution_bar, interrupt_as_request

    result: Attribution | None = None
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
        except InputError as error:
            if result is None:
                raise
            # too little to test with is no reason to lose the scores
            note = f"No p and q: {error}"
            return replace(result, notes=(*result.notes, note))
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
