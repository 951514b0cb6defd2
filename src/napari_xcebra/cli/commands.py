"""Lists the commands and their flags, and runs one: or says in a sentence why it cannot be done.

A command's module is imported when the command runs, so help and errors in the arguments come at
once, and a command loads only what it needs.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import signal
import sys
import threading
from argparse import BooleanOptionalAction
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any, NamedTuple, NoReturn, TextIO

import napari_xcebra
from napari_xcebra.attribution.methods import METHODS
from napari_xcebra.attribution.shift_test.result import LEVEL
from napari_xcebra.checksums import settle
from napari_xcebra.cli.flags import (
    ATTRIBUTION,
    DRY_RUN,
    FACTOR,
    FIT,
    FLAGS,
    OPTIONAL_RECORDING,
    OUTPUT,
    PROCESSES,
    QUIET,
    RECORDING,
    RECORDINGS,
    RESUME,
    RUN,
    SCORED_AS_USUAL,
    TRAINING,
    VERBOSE,
    Part,
    file,
    flag,
    folder,
    group,
    matched,
    number,
    one_of,
    preset,
    repeated,
    switch,
)
from napari_xcebra.errors import InputError, TrainingDiverged, is_refusal, printable, refusal
from napari_xcebra.locks import locked
from napari_xcebra.settings import worded
from napari_xcebra.support.leftovers import clear_leftovers
from napari_xcebra.support.logs import LOGGER, start_logging, stop_logging

HOWS = ("auto", "statistics", "input-layer", "all-layers")
# `io.decisions.OUTPUT_KINDS` would bring h5py and pandas with it; a test holds the two together.
OUTPUT_KINDS = ("suite2p", "caiman", "nwb", "csv", "imagej")
REPORT, NWB, FIGURE, PAGE = "report.html", "results.nwb", "painted.pdf", "page.pdf"
"""Files that `report`, `export-nwb` and `figure` write by default."""


class Command(NamedTuple):
    """A command, and the function that runs it, by its module in `cli` and its name."""

    name: str
    function: str
    usage: str
    help: str
    flags: tuple[Part, ...]
    described_in: str = ""
    """Module whose docstring the help ends with."""


# fmt: off
TRAIN = "PATH [--behavior FILE] [--factor NAME=VARIABLES …] --out DIR [settings]"
SCORE = "FIT PATH [--behavior FILE] --out DIR [settings]"
SHARDS = group("in several jobs, such as a SLURM array", one_of(
        flag("--shard", "I/N",
            "run only part I of N, while other jobs run the other parts into the same folder; "
            "parts are numbered from 1"),
        switch("--collect",
            "run nothing: write the summary of what all jobs have finished, and say which "
            "runs are missing"),
))
WHERE_TO_RUN = group("where to run", one_of(
    PROCESSES,
    flag("--cluster", "ADDRESS", "Dask scheduler to run on, such as tcp://10.0.0.5:8786"),
    flag("--slurm", "FILE",
        "start Dask workers as SLURM jobs: a dask-jobqueue configuration in YAML"),
))
COMMANDS = (
    Command("demo", "training.demo", "[--out DIR] [settings]",
        "simulate an imaged field, train, and paint the cells", (
        flag("--cells", None, "cells to simulate (default 200)", type=int),
        flag("--frames", "FRAMES", "frames to simulate (default 20000)",
            type=int, dest="simulated_frames"),
        SCORED_AS_USUAL,
        preset(locks_folder=True),
        folder(default="napari-xcebra-demo"),
        VERBOSE,
        *TRAINING,
    )),
    Command("info", "reporting.info", "PATH [--behavior FILE]",
        "show what a recording holds, or what a run found", RECORDING),
    Command("fit", "training.fit", TRAIN, "train on a recording and measure the fit",
        (*RECORDING, FACTOR, *OUTPUT, VERBOSE, RESUME, *TRAINING)),
    Command("run", "training.run", f"ANALYSIS.toml --out DIR | {TRAIN}",
        "fit, then attribute; or make a run again from the analysis.toml that it wrote", (
        *RECORDING, FACTOR, *OUTPUT, VERBOSE, RESUME, ATTRIBUTION,
        flag("--seeds", "N",
            "train with N seeds and report which scores are stable (default %(default)s)",
            type=int, default=1),
        PROCESSES,
        group("a model of the cebra package, in place of training",
            flag("--model", "FILE", "open a model that cebra saved (.pt); nothing in it is run"),
            flag("--architecture", "NAME",
                "its architecture, such as offset10-model, where the file does not say",
                default=""),
            flag("--session", "N", "which of its sessions this is, from 0 on", type=int),
            repeated("--latents", "NAME=FIRST-LAST",
                "its latents that belong to a factor, from 0 on, such as speed=4-5; may be "
                "repeated"),
            flag("--standardised", None,
                "it was trained on z-scored traces (default: as its loss is lower)",
                action=BooleanOptionalAction, default=None),
        ),
        *TRAINING,
    )),
    Command("dimension", "many_runs.dimension", TRAIN,
        "suggest a number of latents from the consistency between seeds", (
        *RECORDING, FACTOR, *OUTPUT,
        group("numbers of latents",
            flag("--try-time-latents", "LIST",
                "numbers of latents for the unobserved state to try (default %(default)s)",
                default="1-4"),
            flag("--try-latents", "LIST",
                "with a single factor: numbers of latents to try for it, such as 1,2,3 (default: "
                "as many as its variables have)", default=""),
            flag("--seeds", "N", "fits at each number of latents (default %(default)s)",
                type=int, default=3),
            PROCESSES,
        ),
        *TRAINING,
    )),
    Command("hypotheses", "many_runs.hypotheses", TRAIN,
        "compare which variables, alone or together, are in the cells, against shuffled labels", (
        *RECORDING, FACTOR, *OUTPUT,
        group("hypotheses",
            repeated("--together", "NAME+NAME",
                "a combination of factors to try, such as place+speed; may be repeated (default: "
                "every combination)"),
            flag("--seeds", "N", "fits of each combination (default %(default)s)",
                type=int, default=3),
            flag("--shuffles", "N",
                "fits of each with shuffled labels (default %(default)s)", type=int, default=3),
            PROCESSES,
        ),
        *TRAINING,
    )),
    Command("sweep", "many_runs.sweep",
        "CONFIG --out DIR [--processes N | --cluster ADDRESS | --slurm FILE] "
        "[--shard I/N | --collect] [--dry-run]",
        "run many seeds, latents, settings, label shifts or recordings", (
        flag("config", "CONFIG", "TOML file that lists what to run, as described below", nargs="?"),
        folder(required=True),  # it has a lock of its own
        SHARDS,
        WHERE_TO_RUN,
        switch("--dry-run", "only list the runs and the time they will take"),
    ), described_in="analysis_file"),
    Command("project", "many_runs.project",
        "TABLE|PATTERN|FOLDER [--factor NAME=VARIABLES …] [--out DIR] [settings]",
        "run all recordings of many animals: painted grid, cohort and report", (
        flag("where", "TABLE|PATTERN|FOLDER",
            "table with the columns path, animal, day, condition and behaviour (.csv, .xlsx); a "
            "quoted pattern, 'data/*/plane0' or 'data/{animal}/day{day}'; or a folder to search. "
            "Without --out, only what was found and what is missing is shown", nargs="+"),
        FACTOR,
        folder(),
        WHERE_TO_RUN,
        SHARDS,
        *TRAINING,
    )),
    Command("cohort", "many_runs.cohort", "RUNS … [--table FILE] [--pattern TEXT] --out DIR",
        "compare conditions over many animals and days, with the animal as the unit", (
        flag("runs", "RUNS", "folders that run, sessions or sweep wrote, or folders above them",
            nargs="+"),
        group("which animal, day and condition",
            flag("--table", "FILE",
                "CSV with the columns run, animal, day and condition; with --pattern, animal and "
                "condition are enough"),
            flag("--pattern", "TEXT",
                "finds them in the path of a run, or in the name of its recording in a sweep: "
                "'{animal}/{condition}/day{day}'; * is anything"),
        ),
        group("comparison",
            flag("--q", "FLOAT", "q up to which a cell counts as found (default %(default)s)",
                type=number, default=LEVEL),
            flag("--method", "METHOD", "map whose scores are compared (default %(default)s)",
                choices=METHODS, default=METHODS[0]),
        ),
        *OUTPUT,
    )),
    Command("attribute", "scoring.attribute", SCORE, "score the cells with a fit",
        (FIT, *RECORDING, ATTRIBUTION, *OUTPUT, VERBOSE)),
    Command("discover", "scoring.discover", "PATH [--behavior FILE] --out DIR",
        "find what several cells share and nobody recorded: how many factors, their courses "
        "and cells", (
        *RECORDING,
        group("discovery",
            repeated("--given", "VARIABLES",
                "variables to remove first, such as position,speed: what is found is beyond them"),
            flag("--seed", "N", "of the surrogates (default %(default)s)", type=int, default=0),
            repeated("--name", "OLD=NEW", 'name a factor, such as "hidden 1=arousal"'),
        ),
        *OUTPUT,
    )),
    Command("compare", "scoring.compare", SCORE,
        "compare all methods and single-cell statistics side by side",
        (FIT, *RECORDING, *OUTPUT)),
    Command("sessions", "training.sessions",
        "PATH PATH … | CONFIG --factor NAME=VARIABLES … [--matched FILE] --out DIR",
        "train several sessions or animals into one embedding", (
        *RECORDINGS, FACTOR, matched("their scores are compared"),
        *OUTPUT, RESUME, ATTRIBUTION, *TRAINING,
    )),
    Command("match", "training.match", "PATH PATH … [--out FILE.csv]",
        "propose which cells of several days are the same, from their footprints and images", (
        *RECORDINGS,
        file("table to write, with a column a session; its pairs and how sure each is go to "
             "FILE-confidence.csv (default matches.csv)"),
    )),
    Command("adapt", "training.adapt", "FIT PATH [--behavior FILE] [--how HOW] --out DIR",
        "carry a fit to another day of its cells, or to other cells", (
        FIT, *RECORDING,
        flag("--how", None,
            "statistics: the same cells on another day, nothing is trained; input-layer: other "
            "cells, the first layer is trained on them; all-layers: the same cells, training goes "
            "on; auto (default): statistics if at least "
            "half of the cells are present, else input-layer", choices=HOWS, default=HOWS[0]),
        matched("of the fit's session and this one"),
        flag("--steps", "N", "steps to train for (default 200)", type=int),
        ATTRIBUTION, *OUTPUT, VERBOSE,
    )),
    Command("quality", "many_runs.quality", "FIT PATH [--behavior FILE] [--out DIR]",
        "decode the variables from the embedding, on held-out data", (
        FIT, *RECORDING,
        repeated("--also", "FIT",
            "another fit of the same recording, to measure how well the embeddings agree; may be "
            "repeated"),
        preset(locks_folder=True),
        folder(),
    )),
    Command("report", "reporting.report", "RUN [PATH] [--behavior FILE] [--out FILE] [--open]",
        "write one page about a run: verdicts, maps, tables, controls, how to reproduce it", (
        flag("run", "RUN", "folder that run, fit or sweep wrote, or where a run was saved"),
        *OPTIONAL_RECORDING,
        file(f"page to write (default RUN/{REPORT})", switch("--open", "open it in the browser")),
    )),
    Command("export-nwb", "reporting.export_nwb",
        "RUN [PATH] [--behavior FILE] [--out FILE] [--new-file]",
        "write a run with its recording as NWB: traces, ROIs, scores, embedding, settings", (
        RUN, *OPTIONAL_RECORDING,
        group("NWB file",
            switch("--new-file",
                "make a new file also of a recording that is NWB, in place of a copy with the "
                "results added"),
            flag("--journal", "FILE",
                "decisions on the cells (default: those of the recording, if there are any)"),
            flag("--started", "TIME",
                "when the session began, as in 2026-05-06T14:30; archives ask for it"),
            flag("--subject", "ID", "name of the animal"),
            flag("--species", "NAME", "as in Mus musculus"),
            flag("--sex", "SEX", "F, M, U (unknown) or O (other)"),
            flag("--age", "AGE", "as in P90D (90 days) or P12W"),
            flag("--location", "AREA", "where in the brain was imaged, as in VISp"),
        ),
        file(f"file to write (default RUN/{NWB})"),
    )),
    Command("figure", "reporting.figure", "RUN [PATH] [--factor NAME | --page] [--out FILE.pdf]",
        "draw the painted field for a paper, as PDF, SVG or PNG", (
        RUN, *OPTIONAL_RECORDING,
        group("figure",
            switch("--page", "one A4 page instead: verdicts, painted field, best cells, embedding"),
            repeated("--factor", "NAME", "factor to paint; repeat for several (default: all)"),
            flag("--map", "METHOD", "map to paint (default: the one to look at first)"),
            flag("--threshold", "Z", "z above which cells are outlined (default %(default)g)",
                type=number, default=0.0),
        ),
        file(f"PDF, SVG or PNG to write (default RUN/{FIGURE})"),
    )),
    Command("verify", "reporting.verify", "PATH",
        "check that saved runs, fits, sweeps, workspaces and decisions are whole",
        (flag("path", "PATH", "what was saved, or a folder to look through"),)),
    Command("diagnostics", "reporting.diagnostics", "",
        "print versions, device and the last error, for a bug report", ()),
    Command("curation", "decisions.curation", "PATH",
        "show the decisions on the cells of a recording",
        (flag("path", "PATH", "the recording, or the .jsonl file with the decisions"),)),
    Command("agreement", "decisions.agreement", "FILE_A FILE_B",
        "compare the decisions of two curators: Cohen's κ and the table", (
        flag("first", "FILE_A", ".jsonl file of the first curator's decisions"),
        flag("second", "FILE_B", ".jsonl file of the second curator's decisions"),
    )),
    Command("export-decisions", "decisions.export_decisions",
        "PATH --to KIND [--journal FILE] [--out DEST] [--dry-run]",
        "write decisions on cells back to the recording's files, or for other programs", (
        group("decisions",
            flag("--to", "KIND", ", ".join(OUTPUT_KINDS), choices=OUTPUT_KINDS, required=True),
            flag("--journal", "FILE",
                "file with the decisions (default: the usual journal of the recording, or the one "
                "written last)"),
            flag("--table", "FILE",
                "read the decisions from a table written earlier instead; also works for ROIs "
                "that suite2p detected anew"),
            flag("--scores", "FILE", "attribution.csv, for columns of scores (csv, nwb)"),
            flag("--out", "DEST",
                "file or folder to write to (default: where the recording came from; beside it "
                "for csv, imagej and nwb)"),
            switch("--in-place", "nwb: replace the file instead of writing a copy"),
            switch("--alone",
                "suite2p: write only to the opened folder, not to planes and combined together"),
            DRY_RUN, QUIET,
        ),
        *RECORDING,
    )),
    Command("restore", "decisions.restore", "PATH [--previous] [--dry-run]",
        "restore the files as they were before decisions were written", (
        flag("path", "PATH", "file that was written, or suite2p's folder"),
        switch("--previous", "restore the previously written version instead of the original"),
        DRY_RUN, QUIET,
    )),
)
# fmt: on


PROGRAM = "napari-xcebra"
WRONG, INTERRUPTED, TERMINATED = 2, 130, 143


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments; those of the process if not given.

    Returns
    -------
    int
        Exit code: 0 done, 1 `verify` found something that is not whole, 2 it cannot be done (one
        sentence on stderr says why), 130 interrupted, 143 terminated.
    """
    for stream in (sys.stdout, sys.stderr):
        # a terminal that has no λ should not end the program
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    typed = list(sys.argv[1:] if argv is None else argv)
    arguments = make_parser().parse_args(typed or ["--help"])
    arguments.typed = typed
    start_logging("command")
    LOGGER.info("command: %s", typed[0])
    clear_leftovers()
    try:
        if hasattr(arguments, "open_rate"):  # it reads files, in a child that takes its time
            import_module("napari_xcebra.io.guard").start()
        module, name = arguments.command.split(".")
        with _terminated_in_order(), _to_itself(arguments), _printable():
            code = getattr(import_module(f"napari_xcebra.cli.{module}"), name)(arguments)
    except KeyboardInterrupt as stopped:  # what was kept, or nothing
        print(stopped if stopped.args else "Interrupted.", file=sys.stderr)
        return INTERRUPTED
    except (InputError, TrainingDiverged, OSError, MemoryError) as error:
        told = f"This failed because {refusal(error)}." if is_refusal(error) else str(error)
        LOGGER.warning("%s", told)
        print(f"{PROGRAM}: {worded(told, FLAGS)}", file=sys.stderr)
        return WRONG
    except Exception:
        LOGGER.exception("%s failed", typed[0])
        raise
    finally:
        stop_logging()
    return int(code or 0)


@contextlib.contextmanager
def _to_itself(arguments: argparse.Namespace) -> Iterator[None]:
    """Lock the folder to write to: two programs must not mix their results in it."""
    if not getattr(arguments, "locks_folder", False) or not arguments.out:
        yield
        return
    from napari_xcebra.cli.given import output_folder

    out = output_folder(arguments).absolute()
    made = [folder for folder in (out, *out.parents) if not folder.exists()]
    try:
        with locked(out, patience=0):
            settle(out)  # what an interrupted program wrote
            yield
    finally:
        with contextlib.suppress(OSError):  # something was written
            for folder in made:
                folder.rmdir()


class _Printable:
    """A stream to which no character is written that commands a terminal, but for new lines."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(printable(text, "\n\r\t"))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def _printable() -> Iterator[None]:
    """Names of files and columns are printed, whatever they hold."""
    out, err = _Printable(sys.stdout), _Printable(sys.stderr)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        yield


@contextlib.contextmanager
def _terminated_in_order() -> Iterator[None]:
    """Let a request to end, as of a batch system, clean up first; a second one ends at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(*_: object) -> NoReturn:
        signal.signal(signal.SIGTERM, before)
        raise SystemExit(TERMINATED)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class _Parser(argparse.ArgumentParser):
    """Answers a mistake with one sentence instead of the whole usage."""

    described_in = ""

    def format_help(self) -> str:
        """The usual help and, where a file says what to do, how that file is written."""
        if not self.described_in:
            return super().format_help()
        module = import_module(f"napari_xcebra.{self.described_in}")
        _, _, example = (module.__doc__ or "").partition("\n")
        return f"{super().format_help()}\nCONFIG, for example:\n{example.rstrip()}\n"

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and end the program."""
        self.exit(WRONG, f"{self.prog}: {message.rstrip('.')}. See {self.prog} --help.\n")


class _Version(argparse.Action):
    """Prints the version, which is looked up only if it is asked for."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str) -> None:
        super().__init__(option_strings, dest, nargs=0, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        print(f"{PROGRAM} {napari_xcebra.__version__}")
        parser.exit()


def make_parser() -> argparse.ArgumentParser:
    """Parser of all commands."""
    parser = _Parser(
        PROGRAM, description="Which imaged cells carry a variable? Train xCEBRA and find out."
    )
    parser.add_argument("--version", action=_Version, help="show the version and exit")
    add = parser.add_subparsers(title="commands", required=True, metavar="COMMAND").add_parser
    for command in COMMANDS:
        made = add(
            command.name,
            help=command.help,
            description=f"{command.help[0].upper()}{command.help[1:]}.",
            usage=f"{PROGRAM} {command.name} {command.usage}",
            allow_abbrev=False,
        )
        made.set_defaults(command=command.function)
        made.described_in = command.described_in
        for add_flag in command.flags:
            add_flag(made)
    return parser
