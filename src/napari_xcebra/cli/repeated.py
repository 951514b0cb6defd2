"""Trains with several seeds or numbers of latents, and decodes from embeddings."""

from __future__ import annotations

import argparse
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

import numpy as np

from napari_xcebra.cli.given import (
    counts_from,
    factors_from,
    frames_from,
    loaded_fit,
    output_folder,
    processes_from,
    recording_from,
    settings_from,
)
from napari_xcebra.cli.printing import dimension_table, say, say_written, table
from napari_xcebra.cli.progress import Interrupted, count_bar, interrupt_as_request
from napari_xcebra.recording import Recording

if TYPE_CHECKING:
    from napari_xcebra.attribution import Attribution
    from napari_xcebra.attribution.stability import Stability
    from napari_xcebra.jobs.pool import ProcessPool
    from napari_xcebra.learn.quality.embedding import Decoded, EmbeddingQuality
    from napari_xcebra.learn.settings import FitSettings


def quality(arguments: argparse.Namespace) -> None:
    """Decode the variables of a fit from its embedding."""
    from napari_xcebra.learn import Fit
    from napari_xcebra.learn.quality.embedding import embedding_quality

    out = output_folder(arguments) if arguments.out else None
    trained, recording = loaded_fit(arguments), recording_from(arguments)
    others: list[Fit] = []
    for folder in arguments.also:
        arguments.fit = folder
        others.append(loaded_fit(arguments))
    found = embedding_quality(trained, recording, others)
    say(arguments, quality_table(found), "", *trained.notes)
    if found.agreement:
        say(arguments, found.agreement)
    if out is not None:
        say_written(arguments, [found.to_csv(out / "quality.csv")])


def quality_table(found: EmbeddingQuality) -> str:
    """One row per variable and decoder: error beside chance, and R²."""
    header = ["variable", "factor", "decoder", "error", "chance", "p", "R²"]
    return table(header, [_row(each) for each in found.decoded])


def _row(each: Decoded) -> list[str]:
    unit = f" {each.unit}" if each.unit and each.unit != "share wrong" else ""
    number = "{:.0%} wrong" if each.unit == "share wrong" else "{:.3g}" + unit
    decoder = f"{each.decoder}, k {each.neighbours}" if each.neighbours else each.decoder
    return [
        each.variable,
        each.factor,
        decoder,
        number.format(each.error),
        "–" if np.isnan(each.chance) else number.format(each.chance),
        "–" if np.isnan(each.p) else f"{each.p:.2g}",
        "–" if np.isnan(each.r2) else f"{each.r2:.2f}",
    ]


def stability(arguments: argparse.Namespace, recording: Recording, first: Attribution) -> Stability:
    """Train with further seeds; Ctrl-C keeps those that are finished."""
    from napari_xcebra.attribution.stability import across_seeds

    settings = settings_from(arguments)
    seeds = range(settings.seed + 1, settings.seed + arguments.seeds)
    with (
        _several(arguments, recording, settings, len(seeds)) as pool,
        interrupt_as_request() as request,
        count_bar(arguments, "step", "further fits") as bar,
    ):
        found = across_seeds(
            recording,
            factors_from(arguments.factor),
            settings,
            seeds,
            arguments.method,
            done=[first],
            frames=frames_from(arguments.frames),
            aggregate=arguments.aggregate,
            on_progress=bar,
            stop=request,
            executor=pool,
        )
    assert found is not None  # the first seed is there
    return found


def dimension(arguments: argparse.Namespace) -> None:
    """Suggest a number of latents."""
    from napari_xcebra.learn.quality.consistency import suggest_dimension
    from napari_xcebra.report.figures.comparisons import consistency_by_dimension

    out, recording = output_folder(arguments), recording_from(arguments)
    settings = settings_from(arguments)
    time_latents = counts_from(arguments.try_time_latents, "--try-time-latents")
    factor_latents = counts_from(arguments.try_latents, "--try-latents") or None
    fits = arguments.seeds * max(1, len(time_latents)) * len(factor_latents or [0])
    with (
        _several(arguments, recording, settings, fits) as pool,
        interrupt_as_request() as request,
        count_bar(arguments, "step", "further fits") as bar,
    ):
        found = suggest_dimension(
            recording,
            factors_from(arguments.factor),
            settings,
            time_latents=time_latents,
            factor_latents=factor_latents,
            seeds=arguments.seeds,
            on_progress=bar,
            stop=request,
            executor=pool,
        )
    if found is None:
        raise Interrupted("Stopped before two fits could be compared. Nothing was written.")
    consistency_by_dimension(found, out / "dimension.png")
    say(arguments, dimension_table(found), "", found.reason)
    say_written(arguments, [found.to_csv(out / "dimension.csv"), out / "dimension.png"])


def _several(
    arguments: argparse.Namespace, recording: Recording, settings: FitSettings, runs: int
) -> AbstractContextManager[ProcessPool | None]:
    """Processes for these runs; None if there is room for only one, which is this one."""
    from napari_xcebra.jobs.pool import ProcessPool

    processes = min(processes_from(arguments, [recording], settings), runs)
    return ProcessPool(processes) if processes > 1 else nullcontext()
