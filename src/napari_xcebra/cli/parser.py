"""Parses the command line, runs a command, and says in one sentence why it cannot be done.

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
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from typing import NamedTuple, NoReturn

from napari_xcebra.cli import export_flags, flags
from napari_xcebra.cli.flags import FLAGS
from napari_xcebra.errors import InputError, TrainingDiverged, is_refusal, refusal
from napari_xcebra.locks import locked
from napari_xcebra.settings import worded
from napari_xcebra.support.leftovers import clear_leftovers
from napari_xcebra.support.logs import LOGGER, start_logging, stop_logging

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
        module, name = arguments.command.split(".")
        with _terminated_in_order(), _to_itself(arguments):
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
    if not getattr(arguments, "alone", False) or not arguments.out:
        yield
        return
    from napari_xcebra.cli.given import output_folder

    out = output_folder(arguments).absolute()
    made = [folder for folder in (out, *out.parents) if not folder.exists()]
    try:
        with locked(out, patience=0):
            yield
    finally:
        with contextlib.suppress(OSError):  # something was written
            for folder in made:
                folder.rmdir()


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


class Parser(argparse.ArgumentParser):
    """Answers a mistake with one sentence instead of the whole usage."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and end the program."""
        self.exit(WRONG, f"{self.prog}: {message.rstrip('.')}. See {self.prog} --help.\n")


class Command(NamedTuple):
    """A command, and the function that runs it, by its module in `cli` and its name."""

    name: str
    function: str
    add_flags: Callable[[argparse.ArgumentParser], object]
    usage: str
    help: str


TRAINING = "PATH [--behavior FILE] --factor NAME=VARIABLES … --out DIR [settings]"
SCORING = "FIT PATH [--behavior FILE] --out DIR [settings]"
COMMANDS = (
    Command("demo", "training.demo", flags.add_demo_flags, "[--out DIR] [settings]",
            "simulate an imaged field, train, and paint the cells"),
    Command("info", "reporting.info", flags.add_recording_flags, "PATH [--behavior FILE]",
            "show what a recording holds, or what a run found"),
    Command("fit", "training.fit", flags.add_training_flags, TRAINING,
            "train on a recording and measure the fit"),
    Command("run", "training.run", partial(flags.add_training_flags, scores=True), TRAINING,
            "fit, then attribute"),
    Command("dimension", "repeated.dimension", flags.add_dimension_flags, TRAINING,
            "suggest a number of latents from the consistency between seeds"),
    Command("sweep", "sweeping.sweep", flags.add_sweep_flags,
            "CONFIG --out DIR [--processes N | --cluster ADDRESS | --slurm FILE] "
            "[--shard I/N | --collect] [--dry-run]",
            "run many seeds, latents, settings, label shifts or recordings"),
    Command("cohort", "cohorts.cohort", flags.add_cohort_flags,
            "RUNS … [--table FILE] [--pattern TEXT] --out DIR",
            "compare conditions over many animals and days, with the animal as the unit"),
    Command("attribute", "scoring.attribute", partial(flags.add_scoring_flags, method=True),
            SCORING, "score the cells with a fit"),
    Command("compare", "scoring.compare", flags.add_scoring_flags, SCORING,
            "compare all methods and single-cell statistics side by side"),
    Command("sessions", "sessions.sessions", flags.add_sessions_flags,
            "PATH PATH … | CONFIG --factor NAME=VARIABLES … [--matched FILE] --out DIR",
            "train several sessions or animals into one embedding"),
    Command("adapt", "training.adapt", flags.add_adapt_flags,
            "FIT PATH [--behavior FILE] [--how HOW] --out DIR",
            "carry a fit to another day of its cells, or to other cells"),
    Command("quality", "repeated.quality", flags.add_quality_flags,
            "FIT PATH [--behavior FILE] [--out DIR]",
            "decode the variables from the embedding, on held-out data"),
    Command("report", "reporting.report", flags.add_report_flags,
            "RUN [PATH] [--behavior FILE] [--out FILE] [--open]",
            "write one page about a run: verdicts, maps, tables, controls, how to reproduce it"),
    Command("export-nwb", "exporting.export_nwb", export_flags.add_nwb_flags,
            "RUN [PATH] [--behavior FILE] [--out FILE] [--new-file]",
            "write a run with its recording as NWB: traces, ROIs, scores, embedding, settings"),
    Command("figure", "exporting.figure", export_flags.add_figure_flags,
            "RUN [PATH] [--factor NAME] [--out FILE.pdf]",
            "draw the painted field for a paper, as PDF, SVG or PNG"),
    Command("verify", "reporting.verify", flags.add_verify_flags, "PATH",
            "check that saved runs, fits, sweeps, workspaces and decisions are whole"),
    Command("diagnostics", "reporting.diagnostics", lambda parser: None, "",
            "print versions, device and the last error, for a bug report"),
    Command("curation", "decisions.curation", flags.add_curation_flags, "PATH",
            "show the decisions on the cells of a recording"),
    Command("agreement", "decisions.agreement", flags.add_agreement_flags, "FILE_A FILE_B",
            "compare the decisions of two curators: Cohen's κ and the table"),
    Command("export-decisions", "decisions.export_decisions", flags.add_export_flags,
            "PATH --to KIND [--journal FILE] [--out DEST] [--dry-run]",
            "write decisions on cells back to the recording's files, or for other programs"),
    Command("restore", "decisions.restore", flags.add_restore_flags,
            "PATH [--previous] [--dry-run]",
            "restore the files as they were before decisions were written"),
)  # fmt: skip


def make_parser() -> argparse.ArgumentParser:
    """Parser of all commands."""
    parser = Parser(
        PROGRAM, description="Which imaged cells carry a variable? Train xCEBRA and find out."
    )
    add = parser.add_subparsers(title="commands", required=True, metavar="COMMAND").add_parser
    for name, function, add_flags, usage, help in COMMANDS:
        made = add(
            name,
            help=help,
            description=f"{help[0].upper()}{help[1:]}.",
            usage=f"{PROGRAM} {name} {usage}",
            allow_abbrev=False,
        )
        made.set_defaults(command=function)
        add_flags(made)
    return parser
