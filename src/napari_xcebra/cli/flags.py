"""Adds flags to the parser; those of training and of opening are made from their settings."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from typing import Any, get_type_hints

from napari_xcebra.attribution.methods import METHODS
from napari_xcebra.attribution.shift_test.result import LEVEL
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.recording import KINDS
from napari_xcebra.settings import choices_of, flag, number_of, worded, words_of

AGGREGATES = ("mean", "median", "max")
HOWS = ("auto", "statistics", "input-layer")
# `io.decisions.OUTPUT_KINDS` would bring h5py and pandas with it; a test holds the two together.
OUTPUT_KINDS = ("suite2p", "caiman", "nwb", "csv", "imagej")
REPORT = "report.html"
MATCHED_HELP = (
    "which cells are the same: a table with one column per session, CellReg's "
    "cellRegistered….mat or ROICaT's ….results_clusters.json"
)


def add_recording_flags(
    parser: argparse.ArgumentParser, *, required: bool = True, several: bool = False
) -> None:
    """Flags for what `open_recording` takes; of several recordings, the paths are `paths`."""
    group = parser.add_argument_group("recording")
    number = "+" if several else None if required else "?"
    group.add_argument("paths" if several else "path", metavar="PATH", nargs=number,
                       help="output of suite2p, CaImAn or another extractor, NWB, traces as an "
                       "array, or a recording saved by napari-xcebra")  # fmt: skip
    group.add_argument("--behavior", metavar="FILE", action="append",
                       help="behaviour or trials: a table, arrays, poses or NWB; may be "
                       "repeated")  # fmt: skip
    group.add_argument("--trials", metavar="FILE", action="append",
                       help="table with a row for each trial: start, stop, and what is known of "
                       "it; may be repeated")  # fmt: skip
    group.add_argument("--events", metavar="FILE", action="append",
                       help="table with a row for each event: its time, and which it was; may be "
                       "repeated")  # fmt: skip
    group.add_argument("--footprints", metavar="FILE",
                       help="label image (.tif, .npy) or ImageJ RoiSet.zip, for traces without "
                       "footprints")  # fmt: skip
    group.add_argument("--movie", metavar="FILE",
                       help="what was imaged: data.bin, TIFF, HDF5, zarr or .mmap (default: one "
                       "beside the recording)")  # fmt: skip
    group.add_argument("--kind", action="append", default=[], metavar="VARIABLE=KIND",
                       help=f"{', '.join(KINDS)}; where the guess is wrong")  # fmt: skip
    _add_knobs(OpenSettings, group, parser.add_argument_group("recording, advanced"), "open_")


def add_fit_flag(parser: argparse.ArgumentParser) -> None:
    """Which fit to use."""
    parser.add_argument("fit", metavar="FIT", help="folder that fit or run wrote")


def add_factor_flag(parser: argparse.ArgumentParser) -> None:
    """Which factors to train on."""
    parser.add_argument("--factor", action="append", default=[], metavar="NAME=VARIABLES",
                        help="a factor and its behaviour variables, such as place=x_cm,y_cm; "
                        "place=x_cm,y_cm:3 also sets its number of latents; give one --factor "
                        "for each")  # fmt: skip


def add_resume_flag(parser: argparse.ArgumentParser) -> None:
    """Whether to continue a training that was stopped."""
    parser.add_argument("--resume", action="store_true",
                        help="continue from the checkpoint in --out, if any")  # fmt: skip


def add_output_flags(
    parser: argparse.ArgumentParser, default: str | None = None, *, required: bool = True
) -> None:
    """Where to write, and how much to print."""
    parser.set_defaults(alone=True)
    group = parser.add_argument_group("output")
    text = f"folder to write to{f' (default {default})' if default else ''}"
    group.add_argument("--out", metavar="DIR", default=default, required=required and not default,
                       help=text)  # fmt: skip
    group.add_argument("--quiet", action="store_true", help="print only errors")
    group.add_argument("--progress", action="store_true",
                       help="show progress bars even if stderr is not a terminal")  # fmt: skip


def add_attribution_flags(parser: argparse.ArgumentParser) -> None:
    """Flags for what `attribute` takes."""
    group = parser.add_argument_group("attribution")
    group.add_argument("--method", choices=METHODS, default=METHODS[0], metavar="METHOD",
                       help=f"{', '.join(METHODS)} (default {METHODS[0]})")  # fmt: skip
    group.add_argument("--frames", metavar="FROM:TO[:EVERY]",
                       help="frames to score, such as 0:500 (default all)")  # fmt: skip
    group.add_argument("--aggregate", choices=AGGREGATES, default=AGGREGATES[0],
                       help=f"over frames (default {AGGREGATES[0]})")  # fmt: skip
    group.add_argument("--significance", action=argparse.BooleanOptionalAction, default=True,
                       help="test which cells carry a factor above chance: adds p and q, takes "
                       "seconds to minutes (default yes)")  # fmt: skip


def add_settings_flags(parser: argparse.ArgumentParser) -> None:
    """One flag for every knob of `FitSettings`, with its help, default and bounds."""
    common = parser.add_argument_group("training")
    advanced = parser.add_argument_group("training, advanced")
    _add_knobs(FitSettings, common, advanced, "setting_")


FLAGS = {
    knob.name: flag(knob.name)
    for settings in (OpenSettings, FitSettings)
    for knob in fields(settings)
} | {"factors": "--factor"}
"""Flags for the names in the library's sentences."""


def _add_knobs(settings: Any, common: Any, advanced: Any, prefix: str) -> None:
    hints = get_type_hints(settings)
    for knob in fields(settings):
        group = advanced if knob.metadata["advanced"] else common
        how: dict[str, Any] = {"dest": f"{prefix}{knob.name}", "help": _help(knob)}
        if hints[knob.name] is bool:
            how |= {"action": argparse.BooleanOptionalAction}
        elif choices := choices_of(settings, knob.name):
            how |= {"choices": choices}
        else:
            words, number = words_of(settings, knob.name), number_of(settings, knob.name)
            metavar = "|".join([*words, number.__name__.upper()])
            how |= {"type": _number_or(words, number), "metavar": metavar}
        group.add_argument(flag(knob.name), **how)


def _number_or(words: tuple[str, ...], number: type) -> Callable[[str], Any]:
    def typed(text: str) -> Any:
        return text if text in words else number(text)

    # its name in the error for a mistyped value
    typed.__name__ = " or ".join([*words, number.__name__])
    return typed


def _help(knob: Field[Any]) -> str:
    low, high = knob.metadata["low"], knob.metadata["high"]
    assert knob.default is not MISSING
    default = {True: "yes", False: "no"}.get(knob.default) if knob.type == "bool" else knob.default
    bounds = "" if low is None else f"; {low:g} to {high:g}"
    return f"{worded(knob.metadata['help'], FLAGS)} (default {default}{bounds})".replace("%", "%%")


def add_processes_flag(group: argparse._ActionsContainer) -> None:
    """How many processes to use on this computer."""
    group.add_argument("--processes", type=int, default=0, metavar="N",
                       help="runs at a time on this computer (default: as many as cores and "
                       "memory allow)")  # fmt: skip


def add_demo_flags(parser: argparse.ArgumentParser) -> None:
    """Flags of `demo`."""
    parser.add_argument("--cells", type=int, help="cells to simulate (default 200)")
    parser.add_argument("--frames", type=int, dest="simulated_frames", metavar="FRAMES",
                        help="frames to simulate (default 20000)")  # fmt: skip
    # cells are scored as usual
    scored = {"method": METHODS[0], "frames": None, "aggregate": AGGREGATES[0]}
    parser.set_defaults(**scored, significance=True)
    add_output_flags(parser, default="napari-xcebra-demo")
    add_settings_flags(parser)


def add_training_flags(parser: argparse.ArgumentParser, *, scores: bool = False) -> None:
    """Flags of `fit` and, with `scores`, of `run`."""
    add_recording_flags(parser)
    add_factor_flag(parser)
    add_output_flags(parser)
    add_resume_flag(parser)
    if scores:
        add_attribution_flags(parser)
        parser.add_argument("--seeds", type=int, default=1, metavar="N",
                            help="train with N seeds and report which scores are stable "
                            "(default 1)")  # fmt: skip
        add_processes_flag(parser)
    add_settings_flags(parser)


def add_dimension_flags(parser: argparse.ArgumentParser) -> None:
    """Flags of `dimension`."""
    add_recording_flags(parser)
    add_factor_flag(parser)
    add_output_flags(parser)
    group = parser.add_argument_group("numbers of latents")
    group.add_argument("--try-time-latents", default="1-4", metavar="LIST",
                       help="numbers of time latents to try (default 1-4)")  # fmt: skip
    group.add_argument("--try-latents", default="", metavar="LIST",
                       help="with a single factor: numbers of latents to try for it, such as "
                       "1,2,3 (default: as many as its variables have)")  # fmt: skip
    group.add_argument("--seeds", type=int, default=3, metavar="N",
                       help="fits at each number of latents (default 3)")  # fmt: skip
    add_processes_flag(group)
    add_settings_flags(parser)


def add_sweep_flags(parser: argparse.ArgumentParser) -> None:
    """Flags of `sweep`."""
    parser.add_argument("config", metavar="CONFIG", nargs="?",
                        help="TOML file that lists what to run (see the README)")  # fmt: skip
    add_output_flags(parser)
    shards = parser.add_argument_group("in several jobs, such as a SLURM array")
    shards = shards.add_mutually_exclusive_group()
    shards.add_argument("--shard", metavar="I/N",
                        help="run only part I of N, while other jobs run the other parts into the "
                        "same folder; parts are numbered from 1")  # fmt: skip
    shards.add_argument("--collect", action="store_true",
                        help="run nothing: write the summary of what all jobs have finished, and "
                        "say which runs are missing")  # fmt: skip
    parser.set_defaults(alone=False)  # it has a lock of its own
    one_of = parser.add_argument_group("where to run").add_mutually_exclusive_group()
    add_processes_flag(one_of)
    one_of.add_argument("--cluster", metavar="ADDRESS",
                        help="Dask scheduler to run on, such as tcp://10.0.0.5:8786")  # fmt: skip
    one_of.add_argument("--slurm", metavar="FILE",
                        help="start Dask workers as SLURM jobs: a dask-jobqueue configuration in "
                        "YAML")  # fmt: skip
    parser.add_argument("--dry-run", action="store_true",
                        help="only list the runs and the time they will take")  # fmt: skip


def add_cohort_flags(parser: argparse.ArgumentParser) -> None:
    """Flags of `cohort`."""
    parser.add_argument("runs", metavar="RUNS", nargs="+",
                        help="folders that run, sessions or sweep wrote, or folders above "
                        "them")  # fmt: skip
    group = parser.add_argument_group("which animal, day and condition")
    group.add_argument("--table", metavar="FILE",
                       help="CSV with the columns run, animal, day and condition; with --pattern, "
                       "animal and condition are enough")  # fmt: skip
    group.add_argument("--pattern", metavar="TEXT",
                       help="finds them in the path of a run, or in the name of its recording in a "
                       "sweep: '{animal}/{condition}/day{day}'; * is anything")  # fmt: skip
    group = parser.add_argument_group("comparison")
    group.add_argument("--q", type=float, default=LEVEL, metavar="FLOAT",
                       help=f"q up to which a cell counts as found (default {LEVEL})")  # fmt: skip
    group.add_argument("--method", choices=METHODS, default=METHODS[0], metavar="METHOD",
                       help=f"map whose scores are compared (default {METHODS[0]})")  # fmt: skip
    add_output_flags(parser)


def add_scoring_flags(parser: argparse.ArgumentParser, *, method: bool = False) -> None:
    """Flags of `compare` and, with `method`, of `attribute`."""
    add_fit_flag(parser)
    add_recording_flags(parser)
    if method:
        add_attribution_flags(parser)
    add_output_flags(parser)


def add_quality_flags(parser: argparse.ArgumentParser) -> None:
    """Flags of `quality`."""
    add_fit_flag(parser)
    add_recording_flags(parser)
    parser.add_argument("--also", action="append", default=[], metavar="FIT",
                        help="another fit of the same recording, to measure how well the "
                        "embeddings agree; may be repeated")  # fmt: skip
    add_output_flags(parser, required=False)


def add_sessions_flags(parser: argparse.ArgumentParser) -> None:
    """Flags of `sessions`."""
    add_recording_flags(parser, several=True)
    add_factor_flag(parser)
    parser.add_argument("--matched", metavar="FILE",
                        help=f"{MATCHED_HELP}; their scores are compared")  # fmt: skip
    add_output_flags(parser)
    add_resume_flag(parser)
    add_attribution_flags(parser)
    add_settings_flags(parser)


def add_adapt_flags(parser: argparse.ArgumentParser) -> None:
    """Flags of `adapt`."""
    add_fit_flag(parser)
    add_recording_flags(parser)
    parser.add_argument("--how", choices=HOWS, default=HOWS[0],
                        help="statistics: the same cells on another day, nothing is trained; "
                        "input-layer: other cells, the first layer is trained on them; auto "
                        "(default): statistics if at least half of the cells are present, else "
                        "input-layer")  # fmt: skip
    parser.add_argument("--matched", metavar="FILE",
                        help=f"{MATCHED_HELP}; of the fit's session and this one")  # fmt: skip
    parser.add_argument("--steps", type=int, metavar="N",
                        help="steps to train an input layer for (default 200)")  # fmt: skip
    add_attribution_flags(parser)
    add_output_flags(parser)


def add_report_flags(parser: argparse.ArgumentParser) -> None:
    """Flags of `report`."""
    parser.add_argument("run", metavar="RUN",
                        help="folder that run, fit or sweep wrote, or where a run was "
                        "saved")  # fmt: skip
    add_recording_flags(parser, required=False)
    group = parser.add_argument_group("output")
    group.add_argument("--out", metavar="FILE", help=f"page to write (default RUN/{REPORT})")
    group.add_argument("--open", action="store_true", help="open it in the browser")
    group.add_argument("--quiet", action="store_true", help="print only errors")


def add_verify_flags(parser: argparse.ArgumentParser) -> None:
    """Flags of `verify`."""
    parser.add_argument("path", metavar="PATH",
                        help="what was saved, or a folder to look through")  # fmt: skip


def add_curation_flags(parser: argparse.ArgumentParser) -> None:
    """Flags of `curation`."""
    parser.add_argument("path", metavar="PATH",
                        help="the recording, or the .jsonl file with the decisions")  # fmt: skip


def add_agreement_flags(parser: argparse.ArgumentParser) -> None:
    """Flags of `agreement`."""
    for place, letter in (("first", "A"), ("second", "B")):
        parser.add_argument(place, metavar=f"FILE_{letter}",
                            help=f".jsonl file of the {place} curator's decisions")  # fmt: skip


def add_export_flags(parser: argparse.ArgumentParser) -> None:
    """Flags of `export-decisions`."""
    group = parser.add_argument_group("decisions")
    group.add_argument("--to", choices=OUTPUT_KINDS, required=True, metavar="KIND",
                       help=", ".join(OUTPUT_KINDS))  # fmt: skip
    group.add_argument("--journal", metavar="FILE",
                       help="file with the decisions (default: the usual journal of the "
                       "recording, or the one written last)")  # fmt: skip
    group.add_argument("--table", metavar="FILE",
                       help="read the decisions from a table written earlier instead; also works "
                       "for ROIs that suite2p detected anew")  # fmt: skip
    group.add_argument("--scores", metavar="FILE",
                       help="attribution.csv, for columns of scores (csv, nwb)")  # fmt: skip
    group.add_argument("--out", metavar="DEST",
                       help="file or folder to write to (default: where the recording came from; "
                       "beside it for csv, imagej and nwb)")  # fmt: skip
    group.add_argument("--in-place", action="store_true",
                       help="nwb: replace the file instead of writing a copy")  # fmt: skip
    group.add_argument("--alone", action="store_true",
                       help="suite2p: write only to the opened folder, not to planes and combined "
                       "together")  # fmt: skip
    _add_writing_flags(group)
    add_recording_flags(parser)


def add_restore_flags(parser: argparse.ArgumentParser) -> None:
    """Flags of `restore`."""
    parser.add_argument("path", metavar="PATH", help="file that was written, or suite2p's folder")
    parser.add_argument("--previous", action="store_true",
                        help="restore the previously written version instead of the "
                        "original")  # fmt: skip
    _add_writing_flags(parser)


def _add_writing_flags(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("--dry-run", action="store_true", help="only list what would be written")
    parser.add_argument("--quiet", action="store_true", help="print only errors")
