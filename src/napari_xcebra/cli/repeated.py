"""Commands that train more than once."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from napari_xcebra.cli.flags import (
    FACTORS_HELP,
    add_output_flags,
    add_recording_flags,
    add_settings_flags,
    factors_from,
    frames_from,
    settings_from,
)
from napari_xcebra.cli.given import output_folder, recording_from
from napari_xcebra.cli.saying import Interrupted, say, say_written
from napari_xcebra.recording import InputError, Recording

if TYPE_CHECKING:
    from napari_xcebra.attribution import Attribution
    from napari_xcebra.attribution.stability import Stability
    from napari_xcebra.jobs.pool import ProcessPool
    from napari_xcebra.learn.settings import FitSettings


def stability(arguments: argparse.Namespace, recording: Recording, first: Attribution) -> Stability:
    """Train with further seeds; Ctrl-C keeps those that are finished."""
    from napari_xcebra.attribution.stability import across_seeds
    from napari_xcebra.cli.progress import interrupt_as_request, seeds_bar

    settings = settings_from(arguments)
    seeds = range(settings.seed + 1, settings.seed + arguments.seeds)
    with (
        _several(arguments, recording, settings, len(seeds)) as pool,
        interrupt_as_request() as request,
        seeds_bar(arguments) as bar,
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
    from napari_xcebra.cli.progress import interrupt_as_request, seeds_bar
    from napari_xcebra.cli.report import dimension_table
    from napari_xcebra.dimension_figure import consistency_by_dimension
    from napari_xcebra.learn.consistency import suggest_dimension

    out, recording = output_folder(arguments), recording_from(arguments)
    settings = settings_from(arguments)
    time_latents = counts_from(arguments.try_time_latents, "--try-time-latents")
    factor_latents = counts_from(arguments.try_latents, "--try-latents") or None
    fits = arguments.seeds * max(1, len(time_latents)) * len(factor_latents or [0])
    with (
        _several(arguments, recording, settings, fits) as pool,
        interrupt_as_request() as request,
        seeds_bar(arguments) as bar,
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
    add_processes_flag(group)
    add_settings_flags(parser)


def add_processes_flag(group: argparse._ActionsContainer) -> None:
    """How many processes to use on this computer."""
    group.add_argument("--processes", type=int, default=0, metavar="N",
                       help="runs at a time on this computer (default: as cores and memory "
                       "allow)")  # fmt: skip


def _several(
    arguments: argparse.Namespace, recording: Recording, settings: FitSettings, runs: int
) -> AbstractContextManager[ProcessPool | None]:
    """Processes for so many runs; None where there is room for one only, which this one is."""
    from napari_xcebra.jobs.pool import ProcessPool

    processes = min(processes_for(arguments, [recording], settings), runs)
    return ProcessPool(processes) if processes > 1 else nullcontext()


def processes_for(
    arguments: argparse.Namespace, recordings: Iterable[Recording], settings: FitSettings
) -> int:
    """Processes, as many as were asked for or as there is room for."""
    from napari_xcebra.jobs.capacity import room_for

    if arguments.processes < 0:
        raise InputError(f"--processes is {arguments.processes}: 1 or more is needed.")
    return arguments.processes or room_for(
        recordings, device=settings.device, threads=settings.threads
    )


def counts_from(text: str, flag: str) -> list[int]:
    """Numbers as typed: ``1,2,4`` or ``1-4``."""
    counts: list[int] = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        if not first.isdecimal() or not (last or first).isdecimal():
            raise InputError(f"{flag} {text} is not of the form 1,2,4 or 1-4.")
        counts += range(int(first), int(last or first) + 1)
    return counts
