"""The command that runs a sweep."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any

from napari_xcebra.cli.flags import add_output_flags
from napari_xcebra.cli.given import output_folder
from napari_xcebra.cli.repeated import add_processes_flag, processes_for
from napari_xcebra.cli.report import table
from napari_xcebra.cli.saying import Interrupted, say, say_written
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
        why = why.replace("`", "")  # settings are keys of the file here, and not flags
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
    one_of = group.add_mutually_exclusive_group()
    add_processes_flag(one_of)
    one_of.add_argument("--cluster", metavar="ADDRESS",
                        help="Dask scheduler to run on, such as tcp://10.0.0.5:8786")  # fmt: skip
    one_of.add_argument("--slurm", metavar="FILE",
                        help="start Dask workers as SLURM jobs: a configuration of dask-jobqueue "
                        "in YAML")  # fmt: skip
    parser.add_argument("--dry-run", action="store_true",
                        help="list the runs and the time they will take, and do "
                        "nothing")  # fmt: skip


def _executor(arguments: argparse.Namespace, asked: Sweep) -> Executor:
    """Where the runs go."""
    runs = "1 run" if len(asked.members) == 1 else f"{len(asked.members)} runs"
    if arguments.cluster:
        from napari_xcebra.jobs.cluster import Cluster
        from napari_xcebra.jobs.cluster_check import look_at

        found = look_at(arguments.cluster)
        say(arguments, f"{runs} on {found.address}: {found.sentence}")
        return Cluster(arguments.cluster)
    if arguments.slurm:
        from napari_xcebra.jobs.slurm import SlurmCluster

        say(arguments, f"{runs} on jobs of SLURM as {arguments.slurm} asks for them.")
        return SlurmCluster(arguments.slurm)
    from napari_xcebra.jobs.pool import ProcessPool

    possible = processes_for(arguments, asked.recordings.values(), asked.settings)
    pool = ProcessPool(min(possible, len(asked.members)))
    say(arguments, f"{runs}, {pool.processes} at a time on this computer.")
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
