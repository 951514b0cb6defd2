"""Writes a run for other programs and for papers: `export-nwb` and `figure`."""

from __future__ import annotations

import argparse
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from napari_xcebra.attribution.methods import first_to_look_at
from napari_xcebra.attribution.tables import check_factor
from napari_xcebra.cli.commands import FIGURE, NWB
from napari_xcebra.cli.given import output_folder, recording_from
from napari_xcebra.cli.printing import say
from napari_xcebra.curation import journals_of, open_curation
from napari_xcebra.errors import InputError
from napari_xcebra.io.nwb.writing import write_nwb
from napari_xcebra.report.exports import write_picture
from napari_xcebra.report.material import Material, material_in

if TYPE_CHECKING:
    import pandas as pd

    from napari_xcebra.recording import Recording


def export_nwb(arguments: argparse.Namespace) -> None:
    """Write a run with its recording as NWB."""
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
    path = _file_to_write(arguments, FIGURE)
    run, recording = _run_and_recording(arguments)
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
