"""The command that runs a sweep."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any

from napari_xcebra.cli.commands import Interrupted, output_folder, say, say_written
from napari_xcebra.cli.flags import add_output_flags
from napari_xcebra.cli.repeated import add_processes_flag, processes_for
from napari_xcebra.cli.report import table
from napari_xcebra.recording import InputError

if TYPE_CHECKING:
    from napari_xcebra.sweeps import Sweep, SweepFolder


def sweep(arguments: argparse.Namespace) -> None:
    """Run what a file asks for; what is in the folder already is not run again."""
    from napari_xcebra.cli.progress import interrupt_as_request, sweep_bar
    from napari_xcebra.sweeps import SweepFolder, run_sweep
    from napari_xcebra.sweeps.config import read_sweep

    out = output_folder(arguments)
    asked = read_sweep(arguments.config)
    if arguments.dry_run:
        _foretell(arguments, asked, SweepFolder(out))
        return
    again = shlex.join(["napari-xcebra", *arguments.typed])
    with (
        _executor(arguments, asked) as executor,
        interrupt_as_request() as request,
        sweep_bar(arguments, len(asked.members)) as bar,
    ):
        kept = run_sweep(asked, out, executor, on_progress=bar, stop=request, command=again)
    found = kept.summary()
    say(arguments, _what_came(kept), "")
    say_written(arguments, [out / "summary.csv", out / "members", out / "sweep.json"])
    waiting = int((found["status"] == "waiting").sum())
    if waiting:
        raise Interrupted(
            f"Stopped with {waiting} of {len(found)} runs to go; those finished are kept. To go "
            f"on:\n  {again}"
        )
    if failed := int((found["status"] == "failed").sum()):
        why = found.loc[found["status"] == "failed", "failure"].iloc[0]
        raise InputError(
            f"{failed} of {len(found)} runs failed, the first because: {why} The others are kept; "
            f"the same command tries these again. Details are in {out}/members/…/failed.json."
        )


def add_flags(parser: argparse.ArgumentParser) -> None:
    """What `sweep` takes."""
    parser.add_argument("config", metavar="CONFIG",
                        help="TOML file that says what to run (see the README)")  # fmt: skip
    add_output_flags(parser)
    group = parser.add_argument_group("where to run")
    add_processes_flag(group)
    parser.add_argument("--dry-run", action="store_true",
                        help="list the runs and the time they will take, and do "
                        "nothing")  # fmt: skip


def _executor(arguments: argparse.Namespace, asked: Sweep) -> Executor:
    """Where the runs go."""
    from napari_xcebra.jobs.pool import ProcessPool

    runs = len(asked.members)
    possible = processes_for(arguments, asked.recordings.values(), asked.settings)
    pool = ProcessPool(min(possible, runs))
    say(arguments, f"{runs} runs, {pool.processes} at a time on this computer.")
    return pool


def _foretell(arguments: argparse.Namespace, asked: Sweep, folder: SweepFolder) -> None:
    """List the members, and say how long they will take."""
    from napari_xcebra.sweeps.estimate import in_words, seconds_for

    status = {member.id: folder.status(member.id) for member in asked.members}
    rows = [[member.title, member.id, status[member.id]] for member in asked.members]
    waiting = [member for member in asked.members if status[member.id] != "finished"]
    say(arguments, table(["run", "id", "status"], rows), "")
    if not waiting:
        say(arguments, f"All {len(rows)} runs are finished.")
        return
    possible = processes_for(arguments, asked.recordings.values(), asked.settings)
    processes = min(possible, len(waiting))
    seconds = seconds_for(asked, waiting, folder)
    say(
        arguments,
        f"{len(waiting)} of {len(rows)} runs to go: about {in_words(seconds)} of computing, "
        f"{in_words(seconds / processes)} with {processes} at a time on this computer.",
    )


def _what_came(kept: SweepFolder) -> str:
    """A row a run: what tells it from the others, and the verdict on each factor."""
    from napari_xcebra.sweeps.plan import knob_name

    members = kept.members
    known = {member.id: kept.read(member.id) for member in members}
    varied = list(dict.fromkeys(name for member in members for name in member.varied))
    factors = list(
        dict.fromkeys(name for each in known.values() for name in each.get("goodness", ()))
    )
    rows = []
    for member in members:
        about = known[member.id]
        values = [str(member.varied.get(name, "–")) for name in varied]
        words = [_verdict(about, factor) for factor in factors]
        rows.append([member.id, *values, about.get("status", "waiting"), *words])
    header = ["run", *map(knob_name, varied), "status", *(f"{name} (nats)" for name in factors)]
    return table(header, rows)


def _verdict(about: Mapping[str, Any], factor: str) -> str:
    if factor not in about.get("goodness", {}):
        return "–"
    return f"{about['goodness'][factor]['goodness']:.2f} {about['strength'][factor]}"
