"""Runs a sweep: `sweep`."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping
from concurrent.futures import Executor
from typing import Any

from napari_xcebra.cli.given import output_folder, processes_from
from napari_xcebra.cli.printing import say, say_written, table
from napari_xcebra.cli.progress import Interrupted, interrupt_as_request, sweep_bar
from napari_xcebra.errors import InputError
from napari_xcebra.sweeps import Sweep, SweepFolder, run_sweep
from napari_xcebra.sweeps.config import read_sweep
from napari_xcebra.sweeps.plan import knob_name
from napari_xcebra.sweeps.running import seconds_for
from napari_xcebra.text import about


def sweep(arguments: argparse.Namespace) -> None:
    """Run what a file asks for, except what is finished in the folder."""
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
    for row in found.to_dict("records"):
        if isinstance(row.get("note"), str):
            say(arguments, f"{row['id']}: {row['note']}")
    say_written(arguments, [out / "summary.csv", out / "members", out / "sweep.json"])
    waiting = int((found["status"] == "waiting").sum())
    if waiting:
        raise Interrupted(
            f"Stopped with {waiting} of {len(found)} runs to go; finished ones are kept. To "
            f"continue:\n  {again}"
        )
    if failed := int((found["status"] == "failed").sum()):
        why = found.loc[found["status"] == "failed", "failure"].iloc[0]
        why = why.replace("`", "")  # settings are keys of the file here, and not flags
        raise InputError(
            f"{failed} of {len(found)} runs failed, the first because: {why} The others are kept; "
            f"the same command tries these again. Details are in {out}/members/…/failed.json."
        )


def _executor(arguments: argparse.Namespace, asked: Sweep) -> Executor:
    """Executor for the runs."""
    runs = "1 run" if len(asked.members) == 1 else f"{len(asked.members)} runs"
    if arguments.cluster:
        from napari_xcebra.jobs.cluster import Cluster
        from napari_xcebra.jobs.cluster_check import look_at

        found = look_at(arguments.cluster)
        say(arguments, f"{runs} on {found.address}: {found.sentence}")
        return Cluster(arguments.cluster)
    if arguments.slurm:
        from napari_xcebra.jobs.slurm import SlurmCluster

        say(arguments, f"{runs} on SLURM jobs as described in {arguments.slurm}.")
        return SlurmCluster(arguments.slurm)
    from napari_xcebra.jobs.pool import ProcessPool

    possible = processes_from(arguments, asked.recordings.values(), asked.settings)
    pool = ProcessPool(min(possible, len(asked.members)))
    say(arguments, f"{runs}, {pool.processes} at a time on this computer.")
    return pool


def _foretell(arguments: argparse.Namespace, asked: Sweep, folder: SweepFolder) -> None:
    """List the members, and estimate how long they will take."""
    status = {member.id: folder.status(member.id) for member in asked.members}
    rows = [[member.title, member.id, status[member.id]] for member in asked.members]
    waiting = [member for member in asked.members if status[member.id] != "finished"]
    say(arguments, table(["run", "id", "status"], rows), "")
    if not waiting:
        say(arguments, f"All {len(rows)} runs are finished.")
        return
    possible = processes_from(arguments, asked.recordings.values(), asked.settings)
    processes = min(possible, len(waiting))
    seconds = seconds_for(asked, waiting, folder)
    say(
        arguments,
        f"{len(waiting)} of {len(rows)} runs to go: {about(seconds)} of computing, "
        f"{about(seconds / processes)} with {processes} at a time on this computer.",
    )


def _what_came(kept: SweepFolder) -> str:
    """One row per run: what distinguishes it, and the verdict on each factor."""
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
    header = ["run", *map(knob_name, varied), "status", *(f"{name} (nats, q ≤ 0.1)" for name in factors)]
    return table(header, rows)


def _verdict(about: Mapping[str, Any], factor: str) -> str:
    if factor not in about.get("goodness", {}):
        return "–"
    words = f"{about['goodness'][factor]['goodness']:.2f} {about['strength'][factor]}"
    found = about.get("found", {}).get(factor)
    return words if found is None else f"{words}, {found[0]} of {found[1]}"
