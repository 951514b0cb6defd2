"""What can be typed, and what happens when it cannot be done.

Nothing here imports torch: help and errors in the arguments come at once.
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

from napari_xcebra.cli import commands, decisions, quality, repeated, reporting, several, sweeping
from napari_xcebra.cli.flags import (
    FACTORS_HELP,
    FLAGS,
    add_attribution_flags,
    add_output_flags,
    add_recording_flags,
    add_settings_flags,
)
from napari_xcebra.cli.saying import Interrupted
from napari_xcebra.knobs import worded
from napari_xcebra.logs import LOGGER, start_logging, stop_logging
from napari_xcebra.recording import InputError

PROGRAM = "napari-xcebra"
DEMO_FOLDER = "napari-xcebra-demo"
WRONG, INTERRUPTED = 2, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments; those of the process if not given.

    Returns
    -------
    int
        Exit code: 0 done, 2 it cannot be done (one sentence on stderr says why), 130 interrupted.
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
    try:
        arguments.command(arguments)
    except Interrupted as stopped:
        print(stopped, file=sys.stderr)
        return INTERRUPTED
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        return INTERRUPTED
    except (InputError, OSError) as error:
        LOGGER.warning("%s", error)
        print(f"{PROGRAM}: {worded(str(error), FLAGS)}", file=sys.stderr)
        return WRONG
    except Exception:
        LOGGER.exception("%s failed", typed[0])
        raise
    finally:
        stop_logging()
    return 0


class Parser(argparse.ArgumentParser):
    """Answers a mistake with one sentence instead of the whole usage."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and end the program."""
        self.exit(WRONG, f"{self.prog}: {message.rstrip('.')}. See {self.prog} --help.\n")


def make_parser() -> argparse.ArgumentParser:
    """Parser of all commands."""
    parser = Parser(
        PROGRAM, description="Which imaged cells carry a variable? Train xCEBRA and find out."
    )
    add = parser.add_subparsers(title="commands", required=True, metavar="COMMAND").add_parser

    def command(
        name: str, run: Callable[[argparse.Namespace], None], usage: str, help: str
    ) -> Parser:
        made: Parser = add(
            name,
            help=help,
            description=f"{help[0].upper()}{help[1:]}.",
            usage=f"{PROGRAM} {name} {usage}",
            allow_abbrev=False,
        )
        made.set_defaults(command=run)
        return made

    demo = command(
        "demo",
        commands.demo,
        "[--out DIR] [settings]",
        "simulate an imaged field, train, and paint the cells",
    )
    demo.add_argument("--cells", type=int, help="cells to simulate (default 200)")
    demo.add_argument("--frames", type=int, help="frames to simulate (default 20000)")
    add_output_flags(demo, default=DEMO_FOLDER)
    add_settings_flags(demo)

    info = command(
        "info",
        commands.info,
        "PATH [--behavior FILE]",
        "show what a recording holds, or what a run found",
    )
    add_recording_flags(info)

    training = "PATH [--behavior FILE] --factor NAME=VARIABLES … --out DIR [settings]"
    fit = command("fit", commands.fit, training, "train on a recording and measure the fit")
    run = command("run", commands.run, training, "fit, then attribute")
    for made in (fit, run):
        add_recording_flags(made)
        made.add_argument("--factor", action="append", default=[], metavar="NAME=VARIABLES",
                          help=FACTORS_HELP)  # fmt: skip
        add_output_flags(made)
        made.add_argument(
            "--resume", action="store_true", help="go on from the checkpoint in --out, if any"
        )
        if made is run:
            add_attribution_flags(made)
            made.add_argument("--seeds", type=int, default=1, metavar="N",
                              help="train with so many seeds, and tell which "
                              "scores stay (default 1)")  # fmt: skip
            repeated.add_processes_flag(made)
        add_settings_flags(made)

    sizes = command("dimension", repeated.dimension, training,
                    "suggest a number of latents from the consistency between seeds")  # fmt: skip
    repeated.add_flags(sizes)

    where = "[--processes N | --cluster ADDRESS | --slurm FILE]"
    many = command("sweep", sweeping.sweep, f"CONFIG --out DIR {where} [--dry-run]",
                   "run many seeds, latents, settings, label shifts or recordings")  # fmt: skip
    sweeping.add_flags(many)

    scoring = "FIT PATH [--behavior FILE] --out DIR [settings]"
    attribute = command("attribute", commands.attribute, scoring, "score the cells with a fit")
    compare = command("compare", commands.compare, scoring,
                      "put all methods, and single-cell statistics, side by side")  # fmt: skip
    for made in (attribute, compare):
        made.add_argument("fit", metavar="FIT", help="folder that fit or run wrote")
        add_recording_flags(made)
        if made is attribute:
            add_attribution_flags(made)
        add_output_flags(made)

    joint = command("sessions", several.sessions,
                    "PATH PATH … | CONFIG --factor NAME=VARIABLES … [--matched FILE] --out DIR",
                    "train several sessions or animals into one embedding")  # fmt: skip
    several.add_sessions_flags(joint)
    carry = command("adapt", several.adapt,
                    "FIT PATH [--behavior FILE] [--how HOW] --out DIR",
                    "carry a fit to another day of its cells, or to other cells")  # fmt: skip
    several.add_adapt_flags(carry)

    decoding = command("quality", quality.quality, "FIT PATH [--behavior FILE] [--out DIR]",
                       "decode the variables from the embedding, on held-out data")  # fmt: skip
    quality.add_flags(decoding)

    reporting.add_flags(
        command(
            "report",
            reporting.report,
            "RUN [PATH] [--behavior FILE] [--out FILE] [--open]",
            "write one page about a run: verdicts, maps, tables, controls, how to make it again",
        )
    )

    command("diagnostics", reporting.diagnostics, "",
            "print versions, device and the last error, for a report of it")  # fmt: skip

    curation = command(
        "curation", decisions.curation, "PATH", "show what was decided on the cells of a recording"
    )
    curation.add_argument("path", metavar="PATH",
                          help="the recording, or the .jsonl file of the decisions")  # fmt: skip
    agreement = command(
        "agreement",
        decisions.agreement,
        "FILE_A FILE_B",
        "compare the decisions of two curators: Cohen's κ and the table",
    )
    for place in ("first", "second"):
        agreement.add_argument(place, metavar=f"FILE_{'AB'[place == 'second']}",
                               help=f".jsonl file of the {place} curator's decisions")  # fmt: skip

    export = command(
        "export-decisions",
        decisions.export_decisions,
        "PATH --to KIND [--journal FILE] [--out DEST] [--dry-run]",
        "write decisions on cells to where the recording came from, or for other programs",
    )
    decisions.add_flags(export)
    restore = command(
        "restore",
        decisions.restore,
        "PATH [--previous] [--dry-run]",
        "put back what was there before decisions were written",
    )
    decisions.add_restore_flags(restore)
    return parser
