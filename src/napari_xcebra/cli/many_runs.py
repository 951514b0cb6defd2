"""Trains many times and compares: `sweep`, `cohort`, `hypotheses`, `dimension`; and `quality`."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_xcebra.analysis_file import factors_typed
from napari_xcebra.batch import Member, Shard, Sweep, SweepFolder, run_sweep
from napari_xcebra.batch.plan import knob_name, read_sweep
from napari_xcebra.batch.running import seconds_for
from napari_xcebra.cli.given import (
    chosen_factors,
    counts_from,
    frames_from,
    loaded_fit,
    output_folder,
    processes_from,
    recording_from,
    settings_from,
)
from napari_xcebra.cli.printing import (
    Interrupted,
    count_bar,
    dimension_table,
    hypotheses_table,
    interrupt_as_request,
    say,
    say_written,
    sweep_bar,
    table,
)
from napari_xcebra.errors import InputError
from napari_xcebra.recording import Recording
from napari_xcebra.text import about, counted, percent

if TYPE_CHECKING:
    import pandas as pd

    from napari_xcebra.attribution import Attribution
    from napari_xcebra.attribution.stability import Stability
    from napari_xcebra.batch.cohorts import Cohort
    from napari_xcebra.batch.project import Project
    from napari_xcebra.jobs.pool import ProcessPool
    from napari_xcebra.learn.quality.decoding import Decoded, EmbeddingQuality
    from napari_xcebra.learn.settings import FitSettings


SHOWN = 5
"""Missing runs that a sentence names."""


def sweep(arguments: argparse.Namespace) -> None:
    """Run what a file asks for, or a shard of it, except what is finished in the folder."""
    out = output_folder(arguments)
    if arguments.collect:
        _collect(arguments, SweepFolder(out))
        return
    if arguments.config is None:
        raise InputError("No file says what to run: name it, as in napari-xcebra sweep sweep.toml.")
    shard = None if arguments.shard is None else Shard.typed(arguments.shard)
    asked = read_sweep(arguments.config)
    if arguments.dry_run:
        members = asked.members if shard is None else shard.of(asked)
        _foretell(arguments, asked, SweepFolder(out), members)
        return
    _run_members(arguments, asked, shard)


def project(arguments: argparse.Namespace) -> None:
    """Open a folder of animals, run all recordings, and put grid, cohort and report together."""
    from napari_xcebra.batch.project import find_sessions, finish_project, open_project

    sessions = find_sessions(*arguments.where)
    shard = None if arguments.shard is None else Shard.typed(arguments.shard)
    if arguments.out:
        output_folder(arguments)  # a sentence now rather than after all are opened
    settings = settings_from(arguments)
    with count_bar(arguments, "recording", "opening") as bar:
        opened = open_project(sessions, settings, factors_typed(arguments.factor), on_progress=bar)
    say(arguments, _session_table(opened), "")
    if not arguments.out:
        say(arguments, "Add --out DIR to run them all.")
        return
    asked = opened.sweep(settings)
    if not arguments.collect:
        _run_members(arguments, asked, shard, complain=False)
    if shard is not None:
        return
    out = output_folder(arguments)
    written, said = finish_project(opened, out)
    say(arguments, "", *said)
    say_written(arguments, written)
    _complain(SweepFolder(out).summary(), out, "the same command tries these again")


def _session_table(opened: Project) -> str:
    """A row a recording: what was found, what is run, and what is missing."""
    lines = []
    width = max(len(each.name) for each in opened.sessions)
    for each in opened.sessions:
        recording, found = opened.recordings.get(each.name), f"left out: {each.missing}"
        if recording is not None:
            factors = ", ".join(opened.factors[each.name])
            guess = f" (behaviour: {each.note})" if each.note else ""
            found = f"{counted(recording.n_cells, 'cell')}: {factors}{guess}"
        lines.append(f"{each.name.ljust(width)}  {found}")
    return "\n".join(lines)


def _run_members(
    arguments: argparse.Namespace, asked: Sweep, shard: Shard | None, *, complain: bool = True
) -> None:
    """Run a sweep, or a shard of it, and say what came of it."""
    out = output_folder(arguments)
    members = asked.members if shard is None else shard.of(asked)
    again = shlex.join(["napari-xcebra", *arguments.typed])
    with (
        _executor(arguments, asked, len(members)) as executor,
        interrupt_as_request() as request,
        sweep_bar(arguments, len(members)) as bar,
    ):
        kept = run_sweep(
            asked, out, executor, on_progress=bar, stop=request, command=again, shard=shard
        )
    found = _tell(arguments, kept, members)
    if shard is None:
        say_written(arguments, [out / "summary.csv", out / "members", out / "sweep.json"])
    else:
        say(arguments, "", f"When all {shard.count} shards are done, write the summary:")
        words = ["--collect" if word.startswith("--shard") else word for word in arguments.typed
                 if word != arguments.shard]  # fmt: skip
        say(arguments, f"  {shlex.join(['napari-xcebra', *words])}")
    waiting = int((found["status"] == "waiting").sum()) if len(found) else 0
    if waiting:
        raise Interrupted(
            f"Stopped with {waiting} of {len(found)} runs to go; finished ones are kept. To "
            f"continue:\n  {again}"
        )
    if complain:
        _complain(found, out, "the same command tries these again")


def _collect(arguments: argparse.Namespace, kept: SweepFolder) -> None:
    """Write the summary of what all shards have finished, and say what is missing."""
    members = kept.members  # or a sentence, before anything is written
    with kept.locked():
        kept.write_summary()
    found = _tell(arguments, kept, members)
    say_written(arguments, [kept.path / name for name in ("summary.csv", "members", "sweep.json")])
    status = dict(zip(found["id"], found["status"], strict=True))
    missing = [f"{each.id} ({each.title})" for each in members if status[each.id] == "waiting"]
    if missing:
        more = f", and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
        raise InputError(
            f"{len(missing)} of {len(members)} runs are missing: {'; '.join(missing[:SHOWN])}"
            f"{more}. Run their shards again: only what is missing is computed."
        )
    _complain(found, kept.path, "run their shards again to try these again")


def _tell(
    arguments: argparse.Namespace, kept: SweepFolder, members: Sequence[Member]
) -> pd.DataFrame:
    """Print what came of these members, and give their part of the summary."""
    found = kept.summary(members)
    say(arguments, _what_came(kept, members), "")
    for row in found.to_dict("records"):
        if isinstance(row.get("note"), str):
            say(arguments, f"{row['id']}: {row['note']}")
    return found


def _complain(found: pd.DataFrame, out: Path, advice: str) -> None:
    """Raise a sentence if runs failed."""
    failed = found[found["status"] == "failed"] if len(found) else found
    if len(failed):
        # settings are keys of the file here, and not flags
        why = failed["failure"].iloc[0].replace("`", "")
        raise InputError(
            f"{len(failed)} of {len(found)} runs failed, the first because: {why} The others are "
            f"kept; {advice}. Details are in {out}/members/…/failed.json."
        )


def _executor(arguments: argparse.Namespace, asked: Sweep, count: int) -> Executor:
    """Executor for that many runs."""
    runs = counted(count, "run")
    if arguments.cluster:
        from napari_xcebra.batch.cluster import Cluster, look_at

        found = look_at(arguments.cluster)
        say(arguments, f"{runs} on {found.address}: {found.sentence}")
        return Cluster(arguments.cluster)
    if arguments.slurm:
        from napari_xcebra.batch.cluster import SlurmCluster

        say(arguments, f"{runs} on SLURM jobs as described in {arguments.slurm}.")
        return SlurmCluster(arguments.slurm)
    from napari_xcebra.jobs.pool import ProcessPool

    possible = processes_from(arguments, asked.recordings.values(), asked.settings)
    pool = ProcessPool(max(1, min(possible, count)))
    say(arguments, f"{runs}, {pool.processes} at a time on this computer.")
    return pool


def _foretell(
    arguments: argparse.Namespace, asked: Sweep, folder: SweepFolder, members: Sequence[Member]
) -> None:
    """List these members, and estimate how long they will take."""
    status = {member.id: folder.status(member.id) for member in members}
    rows = [[member.title, member.id, status[member.id]] for member in members]
    waiting = [member for member in members if status[member.id] != "finished"]
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


def _what_came(kept: SweepFolder, members: Sequence[Member]) -> str:
    """One row per run: what distinguishes it, and verdict and cells found of each factor."""
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
    header = [
        "run",
        *map(knob_name, varied),
        "status",
        *(f"{name} (nats, q ≤ 0.1)" for name in factors),
    ]
    return table(header, rows)


def _verdict(about: Mapping[str, Any], factor: str) -> str:
    if factor not in about.get("goodness", {}):
        return "–"
    words = f"{about['goodness'][factor]['goodness']:.2f} {about['strength'][factor]}"
    found = about.get("found", {}).get(factor)
    return words if found is None else f"{words}, {found[0]} of {found[1]}"


def quality(arguments: argparse.Namespace) -> None:
    """Decode the variables of a fit from its embedding."""
    from napari_xcebra.learn import Fit
    from napari_xcebra.learn.quality.decoding import embedding_quality

    out = output_folder(arguments) if arguments.out else None
    trained, recording = loaded_fit(arguments), recording_from(arguments)
    others: list[Fit] = []
    for folder in arguments.also:
        arguments.fit = folder
        others.append(loaded_fit(arguments))
    found = embedding_quality(trained, recording, others)
    say(arguments, _quality_table(found), "", *trained.notes)
    if found.agreement:
        say(arguments, found.agreement)
    if out is not None:
        say_written(arguments, [found.to_csv(out / "quality.csv")])


def _quality_table(found: EmbeddingQuality) -> str:
    """One row per variable and decoder: error beside chance, and R²."""
    header = ["variable", "factor", "decoder", "error", "chance", "p", "R²"]
    return table(header, [_row(each) for each in found.decoded])


def _row(each: Decoded) -> list[str]:
    unit = f" {each.unit}" if each.unit and each.unit != "share wrong" else ""
    number = "{:.0%} wrong" if each.unit == "share wrong" else "{:.3g}" + unit
    decoder = f"{each.decoder}, k {each.neighbours}" if each.neighbours else each.decoder
    return [
        each.variable,
        each.factor,
        decoder,
        number.format(each.error),
        "–" if np.isnan(each.chance) else number.format(each.chance),
        "–" if np.isnan(each.p) else f"{each.p:.2g}",
        "–" if np.isnan(each.r2) else f"{each.r2:.2f}",
    ]


def stability(arguments: argparse.Namespace, recording: Recording, first: Attribution) -> Stability:
    """Train with further seeds; Ctrl-C keeps those that are finished."""
    from napari_xcebra.attribution.stability import across_seeds

    settings = settings_from(arguments)
    seeds = range(settings.seed + 1, settings.seed + arguments.seeds)
    with (
        _several(arguments, recording, settings, len(seeds)) as pool,
        interrupt_as_request() as request,
        count_bar(arguments, "step", "further fits") as bar,
    ):
        found = across_seeds(
            recording,
            chosen_factors(arguments, recording, tell=False),
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
    from napari_xcebra.learn.quality.consistency import suggest_dimension
    from napari_xcebra.report.figures.comparisons import consistency_by_dimension

    out, recording = output_folder(arguments), recording_from(arguments)
    settings = settings_from(arguments)
    time_latents = counts_from(arguments.try_time_latents, "--try-time-latents")
    factor_latents = counts_from(arguments.try_latents, "--try-latents") or None
    fits = arguments.seeds * max(1, len(time_latents)) * len(factor_latents or [0])
    with (
        _several(arguments, recording, settings, fits) as pool,
        interrupt_as_request() as request,
        count_bar(arguments, "step", "further fits") as bar,
    ):
        found = suggest_dimension(
            recording,
            chosen_factors(arguments, recording),
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


def hypotheses(arguments: argparse.Namespace) -> None:
    """Compare combinations of variables, each against shuffled labels."""
    from napari_xcebra.batch.hypotheses import hypotheses as compare
    from napari_xcebra.report.figures.comparisons import hypotheses_side_by_side

    out, recording = output_folder(arguments), recording_from(arguments)
    settings = settings_from(arguments)
    together = [each.split("+") for each in arguments.together]
    with (
        _several(arguments, recording, settings, arguments.seeds + arguments.shuffles) as pool,
        interrupt_as_request() as request,
        count_bar(arguments, "step", "further fits") as bar,
    ):
        found = compare(
            recording,
            chosen_factors(arguments, recording),
            settings,
            together=together or None,
            seeds=arguments.seeds,
            shuffles=arguments.shuffles,
            on_progress=bar,
            stop=request,
            executor=pool,
        )
    if found is None:
        raise Interrupted("Stopped before all were trained. Nothing was written.")
    hypotheses_side_by_side(found, out / "hypotheses.png")
    say(arguments, hypotheses_table(found), "", found.reason)
    say_written(arguments, [found.to_csv(out / "hypotheses.csv"), out / "hypotheses.png"])


def _several(
    arguments: argparse.Namespace, recording: Recording, settings: FitSettings, runs: int
) -> AbstractContextManager[ProcessPool | None]:
    """Processes for these runs; None if there is room for only one, which is this one."""
    from napari_xcebra.jobs.pool import ProcessPool

    processes = min(processes_from(arguments, [recording], settings), runs)
    return ProcessPool(processes) if processes > 1 else nullcontext()


def cohort(arguments: argparse.Namespace) -> None:
    """Put the runs of many animals and days into one table, and compare conditions."""
    from napari_xcebra.batch.cohort_files import write_cohort
    from napari_xcebra.batch.cohorts import cohort as gathered

    out = output_folder(arguments)
    labels = Path(arguments.table) if arguments.table else None
    found = gathered(
        arguments.runs, labels, arguments.pattern, level=arguments.q, method=arguments.method
    )
    say(arguments, _condition_table(found), "", found.summary())
    say_written(arguments, write_cohort(found, out))


def _condition_table(found: Cohort) -> str:
    """One row per factor and condition: animals, sessions, and means over animals."""
    rows = []
    for factor in found.factors:
        for condition in found.conditions:
            own = found.animals.query("factor == @factor and condition == @condition")
            tested = own["share"].dropna()
            shares = f"{percent(tested.min())} to {percent(tested.max())}" if len(tested) else "–"
            share = "–" if not len(tested) else percent(tested.mean())
            score = own["score"].mean()
            rows.append([factor, condition, str(len(own)), str(int(own["days"].sum())), share,
                         shares, "–" if np.isnan(score) else f"{score:.3f}"])  # fmt: skip
    header = ["factor", "condition", "animals", "sessions", f"cells at q ≤ {found.level:g}",
              "by animal", "mean score"]  # fmt: skip
    return table(header, rows)
