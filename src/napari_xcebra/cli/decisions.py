"""Decisions on cells: looked at, compared, written without a window and put back again."""

from __future__ import annotations

import argparse
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_xcebra.cli.flags import add_recording_flags
from napari_xcebra.cli.given import recording_from
from napari_xcebra.recording import InputError, Recording

if TYPE_CHECKING:
    import pandas as pd

    from napari_xcebra.io.decisions import Plan

# `io.decisions.OUTPUT_KINDS` would bring h5py and pandas with it; a test holds the two together.
KINDS = ("suite2p", "caiman", "nwb", "csv", "imagej")


def curation(arguments: argparse.Namespace) -> None:
    """Show what was decided on the cells of a recording."""
    from napari_xcebra.cli.curation_report import curation_tables

    print("\n\n".join(curation_tables(journal) for journal in _journals(Path(arguments.path))))


def agreement(arguments: argparse.Namespace) -> None:
    """Compare the decisions of two curators."""
    from napari_xcebra.cli.curation_report import agreement_tables

    print(agreement_tables(Path(arguments.first), Path(arguments.second)))


def _journals(path: Path) -> list[Path]:
    """The journal itself, or all of a recording."""
    from napari_xcebra.curation import journals_beside, journals_of
    from napari_xcebra.io import open_recording

    if path.suffix == ".jsonl" and path.is_file():
        return [path]
    # opening the recording takes time, and only serves to look in the data directory
    found = journals_beside(path) or journals_of(open_recording(path), path)
    if not found:
        raise InputError(f"Nothing was decided on the cells of {path} yet.")
    return found


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Flags for what `plan_output` takes."""
    group = parser.add_argument_group("decisions")
    group.add_argument("--to", choices=KINDS, required=True, metavar="KIND",
                       help=f"{', '.join(KINDS)}")  # fmt: skip
    group.add_argument("--journal", metavar="FILE",
                       help="where the decisions are (default: the usual journal of the "
                       "recording, or the one written to last)"
                       )  # fmt: skip
    group.add_argument("--table", metavar="FILE",
                       help="take decisions from a table that was written here instead, also onto "
                       "ROIs that suite2p found anew")  # fmt: skip
    group.add_argument("--scores", metavar="FILE",
                       help="attribution.csv, for columns of scores (csv, nwb)")  # fmt: skip
    group.add_argument("--out", metavar="DEST",
                       help="file or folder to write to (default: where the recording came from; "
                       "beside it for csv, imagej and nwb)")  # fmt: skip
    group.add_argument("--in-place", action="store_true",
                       help="nwb: replace the file instead of writing a copy")  # fmt: skip
    group.add_argument("--alone", action="store_true",
                       help="suite2p: write to the opened folder alone, not to planes and combined "
                       "together")  # fmt: skip
    _add_common_flags(group)
    add_recording_flags(parser)


def add_restore_flags(parser: argparse.ArgumentParser) -> None:
    """Flags for what `restore` takes."""
    parser.add_argument("path", metavar="PATH", help="a file that was written, or suite2p's folder")
    parser.add_argument("--previous", action="store_true",
                        help="not the original, but what was written here the time before"
                        )  # fmt: skip
    _add_common_flags(parser)


def export_decisions(arguments: argparse.Namespace) -> None:
    """Write the decisions in a journal."""
    from napari_xcebra.io.decisions import extractor_accepted, plan_output

    options: dict[str, Any] = {}
    for flag, kind, option in (("in_place", "nwb", "in_place"), ("alone", "suite2p", "together")):
        if getattr(arguments, flag):
            if arguments.to != kind:
                raise InputError(f"--{flag.replace('_', '-')} goes with --to {kind} alone.")
            options[option] = flag == "in_place"
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
    _write(arguments, plan, notes)


def restore(arguments: argparse.Namespace) -> None:
    """Put the original back."""
    from napari_xcebra.io.decisions import plan_restore

    version = "previous" if arguments.previous else "original"
    _write(arguments, plan_restore(arguments.path, version), [])  # type: ignore[arg-type]


def _add_common_flags(parser: Any) -> None:
    parser.add_argument("--dry-run", action="store_true", help="only say what would be written")
    parser.add_argument("--quiet", action="store_true", help="say nothing but errors")


def _write(arguments: argparse.Namespace, plan: Plan, notes: list[str]) -> None:
    """Say what is going to be written, then write it."""
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
    """Which cells are accepted, the table of decisions, and what to say about them."""
    from napari_xcebra.curation import open_curation
    from napari_xcebra.io.decisions import recall

    if arguments.table:
        if arguments.journal:
            raise InputError("--table and --journal exclude each other: give one of them.")
        found = recall(arguments.table, recording)
        table = found.decisions(np.asarray(recording.cell_ids))
        return found.accepted(extractor), table, [found.summary()]
    journal, note = _journal(arguments, recording)
    curation = open_curation(recording, arguments.path, journal=journal, read_only=True)
    return curation.accepted(extractor), curation.table(), [note, *curation.notes]


def _journal(arguments: argparse.Namespace, recording: Recording) -> tuple[Path, str]:
    """The journal that was named, the usual one, or that written to last; and a sentence on it."""
    from napari_xcebra.curation import journal_path, journals_of, summary_of

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
        note += f" --journal takes others there are: {', '.join(others)}."
    return taken.path, note


def _scores(path: str | None) -> pd.DataFrame | None:
    if path is None:
        return None
    import pandas as pd

    try:
        return pd.read_csv(path)
    except (ValueError, OSError) as error:  # ParserError and EmptyDataError are ValueErrors
        raise InputError(f"{path} is no table of scores ({error}).") from error
