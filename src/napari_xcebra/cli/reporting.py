"""Reports on recordings, runs, saved files and this computer: `info`, `report`, `verify`."""

from __future__ import annotations

import argparse
import webbrowser
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from napari_xcebra.checksums import finish_writing
from napari_xcebra.cli.commands import FIGURE, NWB, PAGE, REPORT
from napari_xcebra.cli.flags import FLAGS
from napari_xcebra.cli.given import fit_folder, output_folder, recording_from
from napari_xcebra.cli.printing import factor_table, say, table
from napari_xcebra.errors import InputError
from napari_xcebra.learn import Fit
from napari_xcebra.recording import Recording, Variable
from napari_xcebra.recording.summary import (
    VARIABLE_WORDS,
    duration_of,
    footprints_of,
    further_notes,
    movie_of,
    overlap_of,
    planes_of,
    segments_and_events,
    variable_words,
)
from napari_xcebra.recording.traces import LazyTraces, read_block
from napari_xcebra.runs import problems_in
from napari_xcebra.settings import worded
from napari_xcebra.standardise import standardised

if TYPE_CHECKING:
    import pandas as pd

    from napari_xcebra.report.material import Material


BLOCKS = "▁▂▃▄▅▆▇█"
WIDTH = 40
GROUPS, CELLS_A_GROUP, FRAMES_A_STRETCH = 4, 16, 25
"""Traces on disk are sampled in a few groups of neighbouring cells, and in short stretches of
frames all along the recording: few reads, whichever axis is contiguous."""


def info(arguments: argparse.Namespace) -> None:
    """Show what a recording holds, or what a run found."""
    folder = Path(arguments.path)
    finish_writing(folder)
    if (found := fit_folder(folder)) is not None:
        fit = Fit.load(found)
        wrong = [f"Not whole: {said}" for said in problems_in(folder, fit)]
        print("\n".join([factor_table(fit), "", fit.summary(), *fit.notes, *wrong]))
    else:
        print(worded(_recording_tables(recording_from(arguments)), FLAGS))


def report(arguments: argparse.Namespace) -> None:
    """Write one page about a run or a sweep."""
    from napari_xcebra.batch.sweep_report import report_on
    from napari_xcebra.report import run_report, write_report
    from napari_xcebra.report.material import material_in

    folder = Path(arguments.run)
    path = Path(arguments.out) if arguments.out else folder / REPORT
    path = path if path.suffix else path / REPORT
    output_folder(argparse.Namespace(out=path.parent))  # a sentence now rather than afterwards
    recording = recording_from(arguments) if arguments.path else None
    if (folder / "sweep.json").exists() or not folder.is_dir():
        document = report_on(folder)
    else:
        run = material_in(folder, recording)
        document = run_report(run)
        say(arguments, *run.missing)
    write_report(document, path)
    if not arguments.quiet:
        print(f"Wrote {path} ({path.stat().st_size / 2**20:.1f} MB).")
    if arguments.open:
        webbrowser.open(path.absolute().as_uri())


def verify(arguments: argparse.Namespace) -> int:
    """Say what is whole and what is not; 1 if anything is not."""
    from napari_xcebra.verification import verify as found_in

    findings = found_in(arguments.path)
    for finding in findings:
        print(finding.sentence)
    return int(not all(finding.whole for finding in findings))


def diagnostics(arguments: argparse.Namespace) -> None:
    """Print what a bug report needs to say about this computer."""
    from napari_xcebra.learn.device import describe_device
    from napari_xcebra.support.diagnostics import diagnostics as told
    from napari_xcebra.support.logs import log_folder

    print(told(device=describe_device("auto", 0)))
    print(f"\nMore is in the log, which can be attached: {log_folder()}")


def _sparkline(values: np.ndarray) -> str:
    """One character per value, from the lowest to the highest; a space where unknown.

    >>> _sparkline(np.array([0, 1, 2, np.nan, 7]))
    '▁▂▃ █'
    """
    values = np.asarray(values, np.float64)
    known = np.isfinite(values)
    if not known.any():
        return " " * len(values)
    low, high = values[known].min(), values[known].max()
    # halves, so that numbers near the largest there are do not overflow
    span = high / 2 - low / 2
    share = (values / 2 - low / 2) / span if span > 0 else np.where(known, 0.0, np.nan)
    level = np.round(np.where(known, share, 0) * (len(BLOCKS) - 1)).astype(int)
    return "".join(BLOCKS[i] if there else " " for i, there in zip(level, known, strict=True))


def _in_bins(values: np.ndarray, width: int = WIDTH) -> np.ndarray:
    """Mean of the known values in stretches of equal length; NaN where none is known.

    Parameters
    ----------
    values : (frames,) float64
    width : int
        Stretches; fewer if there are fewer values.
    """
    values = np.asarray(values, np.float64)
    edges = np.linspace(0, len(values), min(width, len(values)) + 1).astype(int)
    known = np.isfinite(values)
    count = np.add.reduceat(known.astype(int), edges[:-1])
    with np.errstate(all="ignore"):
        return np.add.reduceat(np.where(known, values, 0), edges[:-1]) / count


def _picked(values: np.ndarray, width: int = WIDTH) -> np.ndarray:
    """One value from the middle of each stretch, for values without a mean."""
    values = np.asarray(values, np.float64)
    width = min(width, len(values))
    return values[((np.arange(width) + 0.5) * len(values) / max(width, 1)).astype(int)]


def _recording_tables(recording: Recording) -> str:
    """Facts of a recording, its variables, and notes on how it was opened."""
    facts = _facts(recording)
    width = max(len(name) for name, _ in facts)
    lines = [f"{name.ljust(width)}  {value}" for name, value in facts]
    lines += ["", _variable_table(recording)]
    notes = further_notes(recording)
    return "\n".join([*lines, *([""] if notes else []), *notes])


def _facts(recording: Recording) -> list[tuple[str, str]]:
    activity = _TraceSummary.of(recording)
    facts = [
        ("source", recording.source or "–"),
        ("format", recording.origin.format or "–"),
        ("frames", f"{recording.n_frames}"),
        ("frames per second", f"{recording.rate:g}"),
        ("duration", duration_of(recording)),
        *((name.lower(), value) for name, value in segments_and_events(recording)),
        ("excluded frames", f"{int(np.asarray(recording.excluded).sum())}"),
        ("cells", f"{recording.n_cells} ({_counts(recording, activity)})"),
        ("planes", str(planes_of(recording) or "")),
        ("known about cells", ", ".join(recording.cells)),
        ("footprints", footprints_of(recording)),
        ("movie", movie_of(recording) or "none"),
        ("pixel size", f"{recording.pixel_size:.4g} µm" if recording.pixel_size else ""),
        ("images", ", ".join(recording.images) or "none"),
        ("traces", recording.origin.traces or "–"),
        ("mean activity", _sparkline(activity.mean)),
        ("behaviour", overlap_of(recording)),
    ]
    return [(name, value) for name, value in facts if value]


def _counts(recording: Recording, activity: _TraceSummary) -> str:
    accepted = int(np.asarray(recording.accepted).sum())
    sample = f" of a sample of {activity.n_cells}" if activity.sampled else ""
    return f"{accepted} accepted, {activity.n_constant}{sample} constant"


@dataclass(frozen=True)
class _TraceSummary:
    """Activity of the cells, or of a sample of them.

    Parameters
    ----------
    mean : (stretches,) float64
        Mean over cells, each in its own standard deviations.
    n_cells, n_constant : int
        Cells looked at, and those that never change.
    sampled : bool
    """

    mean: np.ndarray
    n_cells: int
    n_constant: int
    sampled: bool

    @classmethod
    def of(cls, recording: Recording) -> _TraceSummary:
        traces = recording.traces
        if isinstance(traces, LazyTraces):
            seen, frames = _sample(traces)
        else:
            seen, frames = np.asarray(traces, np.float32), None
        varied = np.ptp(seen, axis=0) > 0
        used = varied & np.isfinite(seen).all(axis=0)
        mean = np.zeros(len(seen))
        for cell in np.flatnonzero(used):  # one at a time, so as not to copy them all
            mean += standardised(seen[:, cell].astype(np.float64))
        mean /= max(int(used.sum()), 1)
        if frames is not None:
            mean = np.array([mean[part].mean() for part in frames])
        return cls(_in_bins(mean), seen.shape[1], int((~varied).sum()), frames is not None)


def _sample(traces: LazyTraces) -> tuple[np.ndarray, list[slice]]:
    """Traces of some cells in some stretches of frames, and where the stretches lie in them."""
    n_frames, n_cells = traces.shape
    cells = _stretches(n_cells, GROUPS, CELLS_A_GROUP)
    frames = _stretches(n_frames, WIDTH, FRAMES_A_STRETCH)
    seen = [np.concatenate([read_block(traces, f, c) for c in cells], axis=1) for f in frames]
    ends = np.cumsum([len(part) for part in seen])
    return np.concatenate(seen), [slice(e - len(p), e) for e, p in zip(ends, seen, strict=True)]


def _stretches(length: int, count: int, each: int) -> list[slice]:
    """Stretches spread evenly over a length, that do not overlap; all of it if it is short."""
    if length <= count * each:
        edges = np.linspace(0, length, min(count, length) + 1).astype(int)
        return [slice(int(a), int(b)) for a, b in pairwise(edges)]
    starts = np.linspace(0, length - each, count).astype(int)
    return [slice(int(start), int(start) + each) for start in starts]


def _variable_table(recording: Recording) -> str:
    if not recording.behavior:
        return "No behaviour: give --behavior FILE."
    header = [*VARIABLE_WORDS, "over time"]
    return table(header, [_row(name, v) for name, v in recording.behavior.items()])


def _row(name: str, variable: Variable) -> list[str]:
    values = variable.values[:, 0]
    # categories and angles have no mean
    curve = _in_bins(values) if variable.kind == "continuous" else _picked(values)
    return [*variable_words(name, variable), _sparkline(curve)]


def export_nwb(arguments: argparse.Namespace) -> None:
    """Write a run with its recording as NWB."""
    from napari_xcebra.attribution.methods import first_to_look_at
    from napari_xcebra.io.formats.nwb.writing import write_nwb

    path = _file_to_write(arguments, NWB)
    started = _time_from(arguments.started)
    run, recording = _run_and_recording(arguments)
    given = {"subject_id": "subject", "species": "species", "sex": "sex", "age": "age"}
    written = write_nwb(
        recording,
        path,
        first_to_look_at(run.attributions),
        decisions=_decisions(arguments, recording),
        started=started,
        subject={key: v for key, name in given.items() if (v := getattr(arguments, name))},
        location=arguments.location or "",
        new=arguments.new_file,
    )
    say(arguments, *run.missing)
    say(arguments, f"Wrote {written} ({written.stat().st_size / 2**20:.1f} MB).")


def figure(arguments: argparse.Namespace) -> None:
    """Draw the painted field for a paper."""
    from napari_xcebra.attribution.methods import first_to_look_at
    from napari_xcebra.attribution.tables import check_factor
    from napari_xcebra.report.exports import write_picture

    path = _file_to_write(arguments, PAGE if arguments.page else FIGURE)
    run, recording = _run_and_recording(arguments)
    if arguments.page:
        from napari_xcebra.report.run_report import write_page

        if path.suffix.lower() != ".pdf":
            raise InputError(f"--page is a PDF: {path} needs to end in .pdf.")
        say(arguments, *run.missing, f"Wrote {write_page(run, path)}.")
        return
    painted = first_to_look_at(run.attributions)[0]
    if arguments.map is not None:
        if arguments.map not in run.attributions:
            raise InputError(
                f"{arguments.run} has no map {arguments.map!r}; it has: "
                f"{', '.join(run.attributions)}."
            )
        painted = run.attributions[arguments.map]
    for factor in arguments.factor:
        check_factor(factor, painted.factors)
    written = write_picture(recording, painted, path, arguments.threshold, arguments.factor or None)
    say(arguments, *run.missing)
    if recording.pixel_size is None and recording.footprints is not None:
        say(arguments, "There is no scale bar: the recording does not say the size of a pixel.")
    say(arguments, f"Wrote {written}.")


def _file_to_write(arguments: argparse.Namespace, usual: str) -> Path:
    """Path that was asked for, or the usual one in the folder of the run; it can be written."""
    path = Path(arguments.out) if arguments.out else Path(arguments.run) / usual
    path = path / usual if path.is_dir() else path
    output_folder(argparse.Namespace(out=path.parent))  # a sentence now rather than afterwards
    return path


def _run_and_recording(arguments: argparse.Namespace) -> tuple[Material, Recording]:
    from napari_xcebra.report.material import material_in

    folder = Path(arguments.run)
    run = material_in(folder, recording_from(arguments) if arguments.path else None)
    if run.recording is None:
        raise InputError(
            f"The recording of {folder} was not found: name it after the run, as in napari-xcebra "
            f"{arguments.typed[0]} RUN RECORDING."
        )
    if not run.attributions:
        raise InputError(
            f"{folder} has no scores: make some with napari-xcebra attribute, or name the folder "
            "that run wrote."
        )
    return run, run.recording


def _decisions(arguments: argparse.Namespace, recording: Recording) -> pd.DataFrame | None:
    """Decisions in the journal that was named, or that of the recording; None if there is none."""
    from napari_xcebra.curation import journals_of, open_curation

    source = recording.source or None
    if arguments.journal is None and not journals_of(recording, source):
        return None
    with open_curation(recording, source, journal=arguments.journal, read_only=True) as curation:
        say(arguments, *curation.notes)
        return curation.table()


def _time_from(text: str | None) -> datetime | None:
    try:
        return None if text is None else datetime.fromisoformat(text)
    except ValueError as error:
        raise InputError(
            f"--started {text} is not a time: write it as in 2026-05-06T14:30."
        ) from error
