"""Parses the command line, runs a command, and says in one sentence why it cannot be done."""

from __future__ import annotations

import argparse
import contextlib
import io
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any, NoReturn, TextIO

from napari_xcebra.cli.commands import COMMANDS
from napari_xcebra.cli.flags import FLAGS
from napari_xcebra.errors import InputError, TrainingDiverged, is_refusal, printable, refusal
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
    for command in COMMANDS:
        made = add(
            command.name,
            help=command.help,
            description=f"{command.help[0].upper()}{command.help[1:]}.",
            usage=f"{PROGRAM} {command.name} {command.usage}",
            allow_abbrev=False,
        )
        made.set_defaults(command=command.function)
        for add_flag in command.flags:
            add_flag(made)
    return parser
