"""Commands that train more than once."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from napari_xcebra.cli.commands import (
    Interrupted,
    output_folder,
    recording_from,
    say,
    say_written,
)
from napari_xcebra.cli.flags import (
    FACTORS_HELP,
    add_output_flags,
    add_recording_flags,
    add_settings_flags,
    factors_from,
    frames_from,
    settings_from,
)
from napari_xcebra.recording import InputError, Recording

if TYPE_CHECKING:
    from napari_xcebra.attribution import Attribution
    from napari_xcebra.attribution.stability import Stability


def stability(arguments: argparse.Namespace, recording: Recording, first: Attribution) -> Stability:
    """Train with further seeds; Ctrl-C keeps those that are finished."""
    from napari_xcebra.attribution.stability import across_seeds
    from napari_xcebra.cli.progress import interrupt_as_request, seeds_bar

    settings = settings_from(arguments)
    seeds = range(settings.seed + 1, settings.seed + arguments.seeds)
    with interrupt_as_request() as request, seeds_bar(arguments) as bar:
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
        )
    assert found is not None  # the first seed is there
    return found


def dimension(arguments: argparse.Namespace) -> None:
    """Suggest a number of latents."""
    from napari_xcebra.cli.progress import interrupt_as_request, seeds_bar
    from napari_xcebra.cli.report import dimension_table
    from napari_xcebra.dimension_figure import consistency_by_dimension
    from napari_xcebra.learn.consistency import suggest_dimension

    out, recording = output_folder(arguments), recording_from(arguments)
    with interrupt_as_request() as request, seeds_bar(arguments) as bar:
        found = suggest_dimension(
            recording,
            factors_from(arguments.factor),
            settings_from(arguments),
            time_latents=counts_from(arguments.try_time_latents, "--try-time-latents"),
            factor_latents=counts_from(arguments.try_latents, "--try-latents") or None,
            seeds=arguments.seeds,
            on_progress=bar,
            stop=request,
        )
    if found is None:
        raise Interrupted("Stopped before two fits could be compared. Nothing was written.")
    consistency_by_dimension(found, out / "dimension.png")
    say(arguments, dimension_table(found), "", found.reason)
    say_written(arguments, [found.to_csv(out / "dimension.csv"), out / "dimension.png"])


def add_flags(parser: argparse.ArgumentParser) -> None:
    """What `dimension` takes."""
    add_recording_flags(parser)
    parser.add_argument("--factor", action="append", default=[], metavar="NAME=VARIABLES",
                        help=FACTORS_HELP)  # fmt: skip
    add_output_flags(parser)
    group = parser.add_argument_group("numbers of latents")
    group.add_argument("--try-time-latents", default="1-4", metavar="LIST",
                       help="numbers of time latents to try (default 1-4)")  # fmt: skip
    group.add_argument("--try-latents", default="", metavar="LIST",
                       help="numbers of latents to try for the one factor there is, such as 1,2,3 "
                       "(default: as many as its variables have)")  # fmt: skip
    group.add_argument("--seeds", type=int, default=3, metavar="N",
                       help="fits at each number of latents (default 3)")  # fmt: skip
    add_settings_flags(parser)


def counts_from(text: str, flag: str) -> list[int]:
    """Numbers as typed: ``1,2,4`` or ``1-4``."""
    counts: list[int] = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        if not first.isdecimal() or not (last or first).isdecimal():
            raise InputError(f"{flag} {text} is not of the form 1,2,4 or 1-4.")
        counts += range(int(first), int(last or first) + 1)
    return counts
