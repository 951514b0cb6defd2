"""Shows, compares, writes and restores decisions on cells."""

from __future__ import annotations

import argparse
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_xcebra.cli.given import recording_from
from napari_xcebra.cli.printing import table
from napari_xcebra.curation import (
    ACCEPTED,
    REJECTED,
    STATUSES,
    Curation,
    between,
    journal_path,
    journals_beside,
    journals_of,
    open_curation,
    read_curation,
    summary_of,
)
from napari_xcebra.curation.changes import BY, HAND, read_journal
from napari_xcebra.errors import InputError
from napari_xcebra.io import open_recording
from napari_xcebra.io.decisions.outputs import extractor_accepted, plan_output
from napari_xcebra.io.decisions.plan import Plan
from napari_xcebra.io.decisions.restoring import Version, plan_restore, recall, repair
from napari_xcebra.recording import Recording
from napari_xcebra.recording.fingerprint import Fingerprint
from napari_xcebra.spreadsheets import read_csv
from napari_xcebra.text import counted

if TYPE_CHECKING:
    import pandas as pd


def curation(arguments: argparse.Namespace) -> None:
    """Show the decisions on the cells of a recording."""
    print("\n\n".join(_curation_tables(journal) for journal in _journals(Path(arguments.path))))


def agreement(arguments: argparse.Namespace) -> None:
    """Compare the decisions of two curators."""
    print(_agreement_tables(Path(arguments.first), Path(arguments.second)))


def export_decisions(arguments: argparse.Namespace) -> None:
    """Write the decisions in a journal."""
    options: dict[str, Any] = {}
    for flag, kind, option in (("in_place", "nwb", "in_place"), ("alone", "suite2p", "together")):
        if getattr(arguments, flag):
            if arguments.to != kind:
                raise InputError(f"--{flag.replace('_', '-')} goes with --to {kind} only.")
            options[option] = flag == "in_place"
    undone = _repaired(arguments)
    recording = recording_from(arguments)
    extractor = extractor_accepted(recording, arguments.path)
    accepted, table, notes = _decisions(arguments, recording, extractor)
    plan = plan_output(
        arguments.to,
        recording,
        arguments.path,
        accepted,
        table,
        _scores(arguments.scores),
        arguments.out,
        **options,
    )
    _write(arguments, plan, [*undone, *notes])


def restore(arguments: argparse.Namespace) -> None:
    """Restore the original."""
    undone = _repaired(arguments)
    version: Version = "previous" if arguments.previous else "original"
    _write(arguments, plan_restore(arguments.path, version, needed=not undone), undone)


def _curation_tables(journal: Path) -> str:
    """Decisions in a journal: who and when, counts, tags and notes."""
    curation, summary = read_curation(journal), summary_of(journal)
    tags = [f"{tag} {int(curation.tagged(tag).sum())}" for tag in curation.all_tags]
    noted = sum(bool(curation.note(cell)) for cell in range(curation.n_cells))
    lines = [
        str(journal),
        summary.sentence if summary else "no decisions",
        "",
        _counts(curation),
        "",
        f"tags   {', '.join(tags) or 'none'}",
        f"notes  {noted or 'none'}",
    ]
    return "\n".join([*lines, *([""] if curation.notes else []), *curation.notes])


def _agreement_tables(first: Path, second: Path) -> str:
    """Cohen's κ between the decisions by hand in two journals, and the table it comes from."""
    one, other = read_curation(first), read_curation(second)
    names = one.curator or first.stem, other.curator or second.stem
    if names[0] == names[1]:
        names = f"{names[0]} ({first.name})", f"{names[1]} ({second.name})"
    result = between(one, other, names)
    header = [names[0], *(f"{names[1]}: {each}" for each in result.table.columns)]
    rows = [[str(each), *map(str, row)] for each, row in result.table.iterrows()]
    notes = [*one.notes, *other.notes, *_other_cells(first, second)]
    return "\n".join([table(header, rows), "", result.sentence, *notes])


def _counts(curation: Curation) -> str:
    said = curation.table()
    who = [each for each in BY[HAND:] + BY[:HAND] if each == "hand" or (said["by"] == each).any()]
    rows = []
    for status in (ACCEPTED, REJECTED):
        these = said["by"][curation.status == status]
        rows.append([STATUSES[status], *(str(int((these == each).sum())) for each in who)])
    return table(["cells", *(f"by {each}" for each in who)], rows)


def _other_cells(first: Path, second: Path) -> list[str]:
    """A sentence if the two journals are of different cells."""
    try:
        headers = [read_journal(path).header or {} for path in (first, second)]
        one, other = (Fingerprint.from_dict(header["fingerprint"]) for header in headers)
    except (KeyError, TypeError):  # a first line that is damaged, which is told already
        return []
    if one is None or other is None or one.has_same_cells(other):
        return []
    return [
        f"The two are from different extractions ({one.n_cells} and {other.n_cells} cells): the "
        "same id may be another cell."
    ]


def _journals(path: Path) -> list[Path]:
    """The journal itself, or all of a recording."""
    if path.suffix == ".jsonl" and path.is_file():
        return [path]
    # opening the recording takes time, and only serves to look in the data directory
    found = journals_beside(path) or journals_of(open_recording(path), path)
    if not found:
        raise InputError(f"There are no decisions on the cells of {path} yet.")
    return found


def _repaired(arguments: argparse.Namespace) -> list[str]:
    """Undo an interrupted write, unless only asked what would be done; a sentence if there was."""
    undone = [] if arguments.dry_run else repair(arguments.path)
    files = counted(len(undone), "file")
    return [f"An earlier write was interrupted and has been undone ({files})."] if undone else []


def _write(arguments: argparse.Namespace, plan: Plan, notes: list[str]) -> None:
    """Write, and list what was or would be written."""
    written = None if arguments.dry_run else plan.write()
    lines = [*notes, *plan.lines()]
    if written is None:
        lines.append("Nothing was written (--dry-run).")
    elif plan.kind != "restore" and written.files:
        # naming one of suite2p's files brings all of them back
        lines.append(f"Written. To undo: napari-xcebra restore {plan.files[0].path}")
    if not arguments.quiet:
        print("\n".join(lines))


def _decisions(
    arguments: argparse.Namespace, recording: Recording, extractor: np.ndarray
) -> tuple[np.ndarray, pd.DataFrame, list[str]]:
    """Accepted cells, the table of decisions, and notes on them."""
    if arguments.table:
        if arguments.journal:
            raise InputError("--table and --journal exclude each other: give only one.")
        found = recall(arguments.table, recording)
        table = found.decisions(np.asarray(recording.cell_ids))
        return found.accepted(extractor), table, [found.summary()]
    journal, note = _journal(arguments, recording)
    curation = open_curation(recording, arguments.path, journal=journal, read_only=True)
    return curation.accepted(extractor), curation.table(), [note, *curation.notes]


def _journal(arguments: argparse.Namespace, recording: Recording) -> tuple[Path, str]:
    """The journal that was named, the usual one, or the one written last; and a sentence on it."""
    usual = journal_path(recording, arguments.path)
    named = [Path(arguments.journal)] if arguments.journal else None
    files = named or journals_of(recording, arguments.path)
    found = [summary for file in files if (summary := summary_of(file)) is not None]
    if not found:
        raise InputError(
            f"{arguments.journal or usual} holds no decisions: curate the recording first, or name "
            "another journal with --journal."
        )
    taken = max(found, key=lambda s: (s.path == usual, datetime.fromisoformat(s.last)))
    note = f"Decisions of {taken.path}: {taken.sentence}."
    others = [str(summary.path) for summary in found if summary is not taken]
    if others:
        note += f" Choose another with --journal: {', '.join(others)}."
    return taken.path, note


def _scores(path: str | None) -> pd.DataFrame | None:
    if path is None:
        return None
    try:
        return read_csv(path)
    except (ValueError, OSError) as error:  # ParserError and EmptyDataError are ValueErrors
        raise InputError(f"{path} is not a table of scores ({error}).") from error
