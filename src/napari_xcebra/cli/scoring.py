"""Scores cells with a fit: `attribute` and `compare`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from napari_xcebra import attribution
from napari_xcebra.attribution.methods import FIRST, title_of_method
from napari_xcebra.cli.given import frames_from, loaded_fit, output_folder, recording_from
from napari_xcebra.cli.printing import (
    agreement_table,
    comparison_bar,
    count_bar,
    say,
    say_found,
    say_written,
    stoppable,
)
from napari_xcebra.errors import InputError
from napari_xcebra.recording import Recording
from napari_xcebra.recording.fingerprint import note_on_another
from napari_xcebra.runs import results_to

if TYPE_CHECKING:
    from napari_xcebra.attribution import Attribution
    from napari_xcebra.learn import Fit


def attribute(arguments: argparse.Namespace) -> None:
    """Score the cells with a fit."""
    out, loaded = output_folder(arguments), loaded_fit(arguments)
    recording = recording_from(arguments)
    if note := note_on_another(loaded.fingerprint, recording):
        print(f"Warning: {note}", file=sys.stderr)  # also where nothing else is to be said
    with results_to(out, loaded) as new:
        write_attribution(arguments, loaded, recording, new)


def discover(arguments: argparse.Namespace) -> None:
    """Find what several cells share and nobody recorded."""
    from napari_xcebra.attribution.discovery.finding import discover

    out, recording = output_folder(arguments), recording_from(arguments)
    given = tuple(name for text in arguments.given for name in text.split(",") if name.strip())
    for name in given:
        recording.variable(name)
    names = [text.partition("=")[::2] for text in arguments.name]
    for old, new in names:
        if not old or not new:
            raise InputError('--name is of the form "hidden 1=arousal".')
    with (
        stoppable("Nothing was written.") as request,
        count_bar(arguments, "%", "discovering") as bar,
    ):
        found = discover(recording, given=given, seed=arguments.seed, on_progress=bar, stop=request)
    for old, new in names:
        found = found.renamed(old, new)
    say(arguments, found.summary())
    say_written(arguments, found.write(out, recording.times))


def compare(arguments: argparse.Namespace) -> None:
    """Compare all methods and single-cell statistics side by side."""
    from napari_xcebra.attribution.comparison import attribute_all, compare
    from napari_xcebra.attribution.single_cell import cell_statistics
    from napari_xcebra.report.figures.comparisons import methods_side_by_side

    out, loaded = output_folder(arguments), loaded_fit(arguments)
    recording = recording_from(arguments)
    variables = {part.name: part.variables for part in loaded.parts}
    statistics = cell_statistics(recording, variables, cells=loaded.inputs.columns(recording))
    with stoppable("Nothing was written.") as request, comparison_bar(arguments) as bar:
        by_all = attribute_all(
            loaded,
            recording,
            on_progress=bar,
            stop=request,
            on_failure=lambda method, why: say(arguments, f"No {method}: {why}"),
        )
    found = compare(by_all, statistics)
    with results_to(out, loaded) as new:
        methods_side_by_side(found, new / "methods.png")
        found.to_csv(new / "methods.csv")
        statistics.to_csv(new / "statistics.csv")
    say(arguments, agreement_table(found), "", loaded.summary(), *statistics.notes)
    written = ("methods.png", "methods.csv", "statistics.csv")
    say_written(arguments, [out / name for name in written])


def write_attribution(
    arguments: argparse.Namespace,
    trained: Fit,
    recording: Recording,
    new: Path,
    truth: Mapping[str, np.ndarray] | None = None,
) -> Attribution:
    """Score the cells, write the results to a folder of `results_to`, and print the table."""
    result, names = write_scores(arguments, trained, recording, new, truth)
    say_found(arguments, trained, result, truth)
    say_written(arguments, [output_folder(arguments) / name for name in names])
    return result


def write_scores(
    arguments: argparse.Namespace,
    trained: Fit,
    recording: Recording,
    new: Path,
    truth: Mapping[str, np.ndarray] | None = None,
) -> tuple[Attribution, list[str]]:
    """Score the cells and write a picture, a table that also has the other maps, and arrays.

    The first map is the one that the window shows first, unless another is asked for.
    """
    from napari_xcebra.report.figures.field import painted_field

    result = _tested(arguments, _scored(arguments, trained, recording), trained, recording)
    others = []
    for method in FIRST:
        if method == arguments.method:
            continue
        try:
            others.append(_scored(arguments, trained, recording, method))
        except InputError as error:  # costs a column, not the table
            say(arguments, f"No {method}: {error}")
    files = [
        new / "painted.png",
        result.to_csv(new / "attribution.csv", beside=others),
        result.to_npz(new / "attribution.npz"),
    ]
    for other in others:
        if result.significance is not None:
            other = other.with_significance(result.significance)
        files.append(other.to_npz(new / f"{other.method}.npz"))
    painted_field(recording, result, files[0], truth)
    return result, [file.name for file in files]


def _scored(
    arguments: argparse.Namespace, trained: Fit, recording: Recording, method: str = ""
) -> Attribution:
    """Score the cells, by the method that was asked for if none is given; Ctrl-C stops."""
    doing = title_of_method(method) if method else "attributing"
    with (
        stoppable("No scores were written.") as request,
        count_bar(arguments, "frame", doing) as bar,
    ):
        return attribution.attribute(
            trained,
            recording,
            method or arguments.method,
            frames=frames_from(arguments.frames),
            aggregate=arguments.aggregate,
            on_progress=bar,
            stop=request,
        )


def _tested(
    arguments: argparse.Namespace, result: Attribution, trained: Fit, recording: Recording
) -> Attribution:
    """Add p and q, if asked for and possible; Ctrl-C stops."""
    if not arguments.significance:
        return result
    try:
        seconds = attribution.seconds_to_test(trained, recording)
        say(arguments, f"Testing which cells are above chance: about {seconds:.0f} s.")
        with (
            stoppable("No scores were written.") as request,
            count_bar(arguments, "frame", "testing") as bar,
        ):
            tested = attribution.significance(
                trained,
                recording,
                frames=frames_from(arguments.frames),
                on_progress=bar,
                stop=request,
            )
        return result.with_significance(tested)
    except InputError as error:  # too little to test with is no reason to lose the scores
        return replace(result, notes=(*result.notes, f"No p and q: {error}"))
