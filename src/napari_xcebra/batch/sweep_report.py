"""Composes the report of a sweep: the result of every run, and what it depends on."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from napari_xcebra.attribution.stability import Stability
from napari_xcebra.batch import Member, SweepFolder
from napari_xcebra.batch.folder import decoding_in
from napari_xcebra.batch.plan import knob_name
from napari_xcebra.errors import InputError
from napari_xcebra.files import name_of
from napari_xcebra.learn.quality.verdict import FOUND, NOTHING, TONES, Tone
from napari_xcebra.recording import Recording
from napari_xcebra.report.document import (
    Block,
    Document,
    Entry,
    Heading,
    PagePicture,
    Paragraph,
    PictureRow,
    Section,
    Table,
    TypedCommand,
    data_address,
    download,
    number,
)
from napari_xcebra.report.figures.comparisons import against, agreement_of_seeds
from napari_xcebra.report.figures.run import picture
from napari_xcebra.report.findings import citing_section, describe_making, facts_table
from napari_xcebra.report.material import material_in
from napari_xcebra.report.run_report import run_report, write_report
from napari_xcebra.support.logs import without_folders
from napari_xcebra.text import counted, listed, two

GRID = "grid.png"
"""Painted fields of a project."""
MOST_ROWS = 60
"""Runs in the table; the file below it has all."""
MOST_PICTURES = 9
"""Of the agreement between seeds; the table has all."""


def _sweep_report(folder: SweepFolder) -> Document:
    """Report of a sweep."""
    members, table = folder.members, folder.summary()
    varied = list(dict.fromkeys(name for member in members for name in member.varied))
    measured = [str(column) for column in table if str(column).startswith("goodness ")]
    factors = [column.removeprefix("goodness ") for column in measured]
    counts = table["status"].value_counts() if len(table) else pd.Series(dtype=int)
    status = ", ".join(f"{counts[name]} {name}" for name in counts.index)
    about = folder.about
    sections = [
        *_grid(folder.path),
        _every_run(table, varied, factors),
        _dependence(table, varied, factors),
    ]
    sections += [*_seeds(folder, members), *_failures(table, varied)]
    sections += [_asked(about, varied), _again(about), citing_section(None)]
    return Document(
        f"Sweep · {folder.path.absolute().name}",
        f"{counted(len(members), 'run')} ({status}) · {', '.join(about['recordings'])}",
        _summary(table, factors),
        tuple(section for section in sections if section.blocks or section.parts),
        describe_making(),
    )


def _grid(folder: Path) -> list[Section]:
    """Painted fields of a project, if they were drawn."""
    if not (folder / GRID).exists():
        return []
    address = data_address((folder / GRID).read_bytes(), "image/png")
    shares = folder / "cohort-share.png"
    more: tuple[Block, ...] = ()
    if shares.exists():
        told = "Share of cells found by condition: a large dot an animal, days small and joined."
        more = (PagePicture(data_address(shares.read_bytes(), "image/png"), told, told),)
    words = "Every recording with its factors; grey maps are at chance and mean nothing."
    return [Section("Every field", (PagePicture(address, words, words, width=1100), *more))]


def _summary(table: pd.DataFrame, factors: Iterable[str]) -> tuple[Block, ...]:
    """A sentence for each factor, and what is missing."""
    blocks: list[Block] = []
    moved = table["shift_s"] != 0 if "shift_s" in table else pd.Series(False, index=table.index)
    for factor in factors:
        found, controls = table[~moved], table[moved]
        words = [_found(factor, found)] if len(found) else []
        if len(controls):
            words.append(f"With labels shifted in time: {_found(factor, controls)}")
        tones = {TONES[str(each)] for each in found[f"verdict {factor}"].dropna()}
        best: tuple[Tone, ...] = ("good", "plain", "warning")
        tone = next(each for each in best if each in (*tones, "warning"))
        blocks.append(Paragraph(" ".join(words), tone))
    for status, what in (("failed", "failed; see below"), ("waiting", "not run yet")):
        count = int((table["status"] == status).sum()) if len(table) else 0
        if count:
            blocks.append(Paragraph(f"{count} of {counted(len(table), 'run')} {what}.", "warning"))
    return tuple(blocks)


def _found(factor: str, table: pd.DataFrame) -> str:
    verdicts = table[f"verdict {factor}"].dropna()
    goodness = table[f"goodness {factor}"].dropna()
    if not len(verdicts):
        return f"No run measured {factor}."
    above, untested = int(verdicts.isin(FOUND).sum()), int((verdicts == "not tested").sum())
    span = f"{two(goodness.min())} to {two(goodness.max())}"
    if untested == len(verdicts):
        return f"{factor} could not be tested in {counted(untested, 'run')} ({span} nats)."
    besides = f"; in {untested} it could not be tested" if untested else ""
    runs = counted(len(verdicts), "run")
    return f"{factor} is above chance in {above} of {runs} ({span} nats){besides}."


def _every_run(table: pd.DataFrame, varied: list[str], factors: list[str]) -> Section:
    columns = [Heading("run", numeric=False)]
    columns += [Heading(knob_name(name), numeric=False) for name in varied]
    columns.append(Heading("status", numeric=False))
    for factor in factors:
        columns += [Heading(factor, "Verdict on the factor.", numeric=False, listed=False)]
        columns += [Heading("nats", "Goodness on held-out frames, above chance.", listed=False)]
        columns += [Heading("decoded", "On held-out frames: R², or the accuracy of a discrete "
                           "factor.", listed=False),
                    Heading("ridge", "The same by a ridge regression on the cells themselves.",
                           listed=False),
                    Heading("cells", "Cells that carry it at q ≤ 0.1.", listed=False)]  # fmt: skip
    columns.append(Heading("λ at the end", "The largest of the factors'.", listed=False))
    rows = tuple(_run_row(row, varied, factors) for _, row in table.head(MOST_ROWS).iterrows())
    shown = (
        "All runs" if len(table) <= MOST_ROWS else f"The first {MOST_ROWS} of {len(table):,} runs"
    )
    told = Paragraph("Each run can have a page of its own: napari-xcebra report SWEEP/members/RUN.")
    file = download("summary.csv", table, "has every run and column.")
    return Section(
        "Results of every run",
        (Table(shown, tuple(columns), rows, sortable=True, compact=True), file, told),
    )


def _run_row(row: pd.Series, varied: list[str], factors: list[str]) -> tuple[Entry, ...]:
    entries = [Entry(str(row["id"]))]
    entries += [_value(row.get(_in_summary(name))) for name in varied]
    status = str(row["status"])
    entries.append(Entry(status, tone="plain" if status == "finished" else "warning"))
    for factor in factors:
        verdict = row.get(f"verdict {factor}")
        told = isinstance(verdict, str)
        entries.append(Entry(str(verdict), tone=TONES[str(verdict)]) if told else Entry(NOTHING))
        entries.append(number(_float(row.get(f"goodness {factor}")), ".2f"))
        _, own, ridge = decoding_in(row, factor)
        entries += [number(own, ".2f"), number(ridge, ".2f")]
        entries.append(number(_float(row.get(f"cells {factor}")), ".0f"))
    return (*entries, number(_float(row.get("lambda found"))))


def _in_summary(varied: str) -> str:
    """Column of the summary for what was varied."""
    return {"shift": "shift_s"}.get(varied, varied.rstrip("_"))


def _value(value: Any) -> Entry:
    if isinstance(value, int | float | np.number) and not isinstance(value, bool):
        return Entry(f"{value:g}".replace("-", "−"), float(value))
    return Entry(str(value))


def _float(value: Any) -> float:
    return float(value) if isinstance(value, int | float | np.number) else float("nan")


def _dependence(table: pd.DataFrame, varied: list[str], factors: list[str]) -> Section:
    """A picture for each setting that was varied."""
    title = "What it depends on"
    finished = table[table["status"] == "finished"] if len(table) else table
    if not len(finished) or not factors:
        return Section(title)
    recorded = finished[finished["shift_s"] == 0]
    pictures = []
    for name in varied:
        # runs with shifted labels are controls: no other mean includes them
        mixed = name == "shift" or not len(recorded)
        runs = finished if mixed else recorded
        if runs[_in_summary(name)].nunique() > 1:
            of = "" if mixed or len(recorded) == len(finished) else ", with labels as recorded"
            pictures.append(_picture_of(runs, name, factors, of))
    return Section(title, tuple(pictures))


def _picture_of(runs: pd.DataFrame, name: str, factors: list[str], of: str) -> PagePicture:
    return picture(
        lambda: against(runs, _in_summary(name), knob_name(name), factors),
        f"Goodness and decoding of {listed(factors)} in {counted(len(runs), 'run')} over "
        f"{knob_name(name)}",
        f"By {knob_name(name)}: a dot a run{of}, and the mean at each value; dashed, a ridge "
        "regression on the cells.",
    )


def _seeds(folder: SweepFolder, members: Iterable[Member]) -> list[Section]:
    """Agreement on the cells between runs that differ only in their seed."""
    groups: dict[str, list[Member]] = {}
    for member in members:
        if folder.status(member.id) == "finished":
            words = [f"{knob_name(n)} {v}" for n, v in member.varied.items() if n != "seed"]
            groups.setdefault(", ".join(words) or "all seeds", []).append(member)
    rows: list[tuple[Entry, ...]] = []
    pictures: list[PagePicture] = []
    for title, group in groups.items():
        if len(group) < 2:
            continue
        try:
            found = Stability.of([_scores(folder, member) for member in group])
        except InputError as error:
            rows.append((Entry(title), Entry(str(error)), Entry(NOTHING), Entry(NOTHING)))
            continue
        rows += [_agreement(title, found, factor) for factor in found.factors]
        seeds = [member.settings.seed for member in group]
        if len(pictures) < MOST_PICTURES:
            pictures += [_matrix(title, found, factor, seeds) for factor in found.factors]
    if not rows:
        return []
    columns = (
        Heading("runs", numeric=False),
        Heading("factor", numeric=False),
        Heading("rank correlation", "Mean over pairs of seeds, of the scores of all cells."),
        Heading("stable cells", "On the same side of z = 0 by every seed, ranks within a quarter "
               "of all cells."),
    )  # fmt: skip
    table = Table("Runs that differ only in their seed", columns, tuple(rows), compact=True)
    return [
        Section(
            "Do seeds agree on the cells?", (table, PictureRow(tuple(pictures[:MOST_PICTURES])))
        )
    ]


def _scores(folder: SweepFolder, member: Member) -> Any:
    return next(iter(folder.run(member.id).attributions.values()))


def _agreement(title: str, found: Stability, factor: str) -> tuple[Entry, ...]:
    stable = int(found.stable(factor).sum())
    scored = int((~np.isnan(found.score(factor)).any(0)).sum())
    rho = number(found.agreement(factor), ".2f")
    return Entry(title), Entry(factor), rho, Entry(f"{stable:,} of {scored:,}", float(stable))


def _matrix(title: str, found: Stability, factor: str, seeds: list[int]) -> PagePicture:
    return picture(
        lambda: agreement_of_seeds(found.rank(factor), seeds),
        f"Rank correlation of the scores for {factor} between {len(seeds)} seeds, {title}: "
        f"{found.agreement(factor):.2f} on average",
        f"{factor}, {title}",
    )


def _failures(table: pd.DataFrame, varied: list[str]) -> list[Section]:
    if not len(table) or "failure" not in table or not (table["status"] == "failed").any():
        return []
    columns = [Heading("run", numeric=False)]
    columns += [Heading(knob_name(name), numeric=False) for name in varied]
    columns.append(Heading("why", numeric=False))
    rows = []
    for _, row in table[table["status"] == "failed"].iterrows():
        values = [_value(row.get(_in_summary(name))) for name in varied]
        rows.append((Entry(str(row["id"])), *values, Entry(without_folders(str(row["failure"])))))
    shown = Table("Failed runs; the same command tries them again", tuple(columns), tuple(rows))
    return [Section("What failed", (shown,))]


def _asked(about: dict[str, Any], varied: list[str]) -> Section:
    """Recordings, factors and settings of the sweep."""
    recordings = Table(
        "Recordings",
        (Heading("name", numeric=False), Heading("source", numeric=False), Heading("cells"),
         Heading("frames"), Heading("frames per second")),
        tuple(
            (Entry(str(name)), Entry(name_of(str(one["source"])) if one["source"] else NOTHING),
             number(one["cells"], ",.0f"), number(one["frames"], ",.0f"), number(one["rate"], "g"))
            for name, one in about["recordings"].items()
        ),
        compact=True,
    )  # fmt: skip
    facts = [("factors", "; ".join(f"{n}: {', '.join(f['variables'])}"
                                   for n, f in about["factors"].items()))]  # fmt: skip
    facts += [(knob_name(n), ", ".join(map(str, values))) for n, values in about["grid"].items()]
    facts += [(f"{n} latents", ", ".join(map(str, v))) for n, v in about["latents"].items()]
    if about["shifts"] != [0.0]:
        facts.append(("shift of the labels (s)", ", ".join(f"{s:g}" for s in about["shifts"])))
    facts.append(("method", str(about["method"])))
    return Section("What was requested", (recordings, facts_table("Varied and fixed", facts)))


def _again(about: dict[str, Any]) -> Section:
    command = without_folders(str(about.get("command") or ""))
    told = Paragraph("Run again in the same folder, it computes only what is not finished.")
    python = Paragraph("It was started from Python: run_sweep(sweep, folder, executor).")
    return Section("How to reproduce it", (TypedCommand(command), told) if command else (python,))


def report_on(folder: Path, recording: Recording | None = None) -> Document:
    """Report on what a folder holds: a run of the command line or the window, or a sweep.

    Parameters
    ----------
    folder : Path
    recording : Recording, optional
        If not given, it is looked for where it was when the run was trained.
    """
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder: name the one that run, fit or sweep wrote.")
    if (folder / "sweep.json").exists():
        return _sweep_report(SweepFolder(folder))
    return run_report(material_in(folder, recording))


def write_sweep_report(folder: Path) -> Path:
    """Write one page about a sweep into its folder."""
    return write_report(report_on(folder), folder / "report.html")
