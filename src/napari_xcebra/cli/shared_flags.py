"""Flags that several commands take."""

from __future__ import annotations

from argparse import BooleanOptionalAction

from napari_xcebra.attribution.methods import METHODS
from napari_xcebra.cli.flags import Part, flag, group, knobs, preset, repeated, switch
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.recording import KINDS

# fmt: off
AGGREGATES = ("mean", "median", "max")
SCORED_AS_USUAL = preset(method=METHODS[0], frames=None, aggregate=AGGREGATES[0], significance=True)
"""What `ATTRIBUTION` holds if nothing is given."""

FIT = flag("fit", "FIT", "folder that fit or run wrote")
RUN = flag("run", "RUN", "folder that run or attribute wrote, or where a run was saved")
FACTOR = repeated("--factor", "NAME=VARIABLES",
    "a factor and its behaviour variables, such as place=x_cm,y_cm; place=x_cm,y_cm:3 also sets "
    "its number of latents; give one --factor for each")
METHOD = flag("--method", "METHOD", f"{', '.join(METHODS)} (default %(default)s)",
    choices=METHODS, default=METHODS[0])
PROCESSES = flag("--processes", "N",
    "runs at a time on this computer (default: as many as cores and memory allow)",
    type=int, default=0)
RESUME = switch("--resume", "continue from the checkpoint in --out, if any")
DRY_RUN = switch("--dry-run", "only list what would be written")
QUIET = switch("--quiet", "print only errors")
PROGRESS = switch("--progress", "show progress bars even if stderr is not a terminal")

ATTRIBUTION = group("attribution",
    METHOD,
    flag("--frames", "FROM:TO[:EVERY]", "frames to score, such as 0:500 (default all)"),
    flag("--aggregate", None, "over frames (default %(default)s)",
        choices=AGGREGATES, default=AGGREGATES[0]),
    flag("--significance", None,
        "test which cells carry a factor above chance: adds p and q, takes seconds to minutes "
        "(default yes)", action=BooleanOptionalAction, default=True),
)
_OPENING = (
    repeated("--behavior", "FILE",
        "behaviour or trials: a table, arrays, poses or NWB; may be repeated"),
    repeated("--trials", "FILE",
        "table with a row for each trial: start, stop, and what is known of it; may be repeated"),
    repeated("--events", "FILE",
        "table with a row for each event: its time, and which it was; may be repeated"),
    flag("--footprints", "FILE",
        "label image (.tif, .npy) or ImageJ RoiSet.zip, for traces without footprints"),
    flag("--movie", "FILE",
        "what was imaged: data.bin, TIFF, HDF5, zarr or .mmap (default: one beside the recording)"),
    repeated("--kind", "VARIABLE=KIND", f"{', '.join(KINDS)}; where the guess is wrong"),
    knobs(OpenSettings, "open_", advanced=False),
)
# fmt: on


def _recording(name: str, **how: str) -> tuple[Part, Part]:
    help = (
        "output of suite2p, CaImAn or another extractor, NWB, traces as an array, or a recording "
        "saved by napari-xcebra"
    )
    return (
        group("recording", flag(name, "PATH", help, **how), *_OPENING),
        group("recording, advanced", knobs(OpenSettings, "open_", advanced=True)),
    )


RECORDING = _recording("path")
OPTIONAL_RECORDING = _recording("path", nargs="?")
RECORDINGS = _recording("paths", nargs="+")
TRAINING = (
    group("training", knobs(FitSettings, "setting_", advanced=False)),
    group("training, advanced", knobs(FitSettings, "setting_", advanced=True)),
)


def folder(**how: str | bool) -> Part:
    """Flags on the folder to write to, and on what to print meanwhile."""
    default = f" (default {how['default']})" if "default" in how else ""
    out = flag("--out", "DIR", f"folder to write to{default}", **how)
    return group("output", out, QUIET, PROGRESS)


OUTPUT = (preset(locks_folder=True), folder(required=True))


def file(help: str, *others: Part) -> Part:
    """Flags on the file to write, and on what to print meanwhile."""
    return group("output", flag("--out", "FILE", help), *others, QUIET)


def matched(use: str) -> Part:
    """A table of cells that are the same."""
    formats = "CellReg's cellRegistered….mat or ROICaT's ….results_clusters.json"
    table = f"which cells are the same: a table with one column per session, {formats}"
    return flag("--matched", "FILE", f"{table}; {use}")
