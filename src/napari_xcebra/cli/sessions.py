"""Trains several sessions into one embedding: `sessions`."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from napari_xcebra.attribution.matched import matched_scores
from napari_xcebra.cli.given import FIT, frames_from, output_folder, session_folder, sessions_from
from napari_xcebra.cli.printing import GOODNESS, goodness_words, say, say_written, table
from napari_xcebra.cli.scoring import write_scores
from napari_xcebra.cli.training import checkpoint_in, interrupted, with_bar
from napari_xcebra.io.guard import read
from napari_xcebra.io.matching import read_matching
from napari_xcebra.learn.joint.consistency import session_consistency
from napari_xcebra.learn.joint.fitting import fit_sessions
from napari_xcebra.recording import Recording
from napari_xcebra.report.figures.comparisons import consistency_between_sessions, matched_cells

if TYPE_CHECKING:
    from napari_xcebra.attribution import Attribution
    from napari_xcebra.learn.joint.result import JointFit
    from napari_xcebra.recording.matching import Matching


def sessions(arguments: argparse.Namespace) -> None:
    """Train several sessions into one embedding, and score the cells of each."""
    out = output_folder(arguments)
    frames_from(arguments.frames)  # a mistake there should not be found after training
    recordings, factors, settings = sessions_from(arguments)
    matching = None if arguments.matched is None else _matching(arguments, recordings)
    checkpoint = checkpoint_in(arguments)
    train = partial(fit_sessions, recordings, factors, settings, checkpoint=checkpoint)
    joint = with_bar(arguments, settings.steps, train)
    if not all(each.complete for each in joint.fits.values()):
        raise interrupted(arguments, joint.steps, joint.settings.steps)
    joint.save(out / "joint")
    scores = {
        name: _write_session(arguments, name, joint, recording)
        for name, recording in recordings.items()
    }
    agreement = session_consistency(joint.fits, recordings)
    consistency_between_sessions(agreement, out / "consistency.png")
    say(arguments, _goodness_table(joint), "", joint.summary(), "", agreement.summary())
    written = [out / "joint", agreement.to_csv(out / "consistency.csv"), out / "consistency.png"]
    if matching is not None:
        written += _compare_cells(arguments, scores, matching)
    say_written(arguments, written)
    folders = ", ".join(str(session_folder(arguments, name)) for name in recordings)
    say(arguments, f"  attribution.csv, painted.png and fit of each session: {folders}")


def _matching(arguments: argparse.Namespace, recordings: Mapping[str, Recording]) -> Matching:
    """Which cells are the same; columns may also be called by the files of the sessions."""
    path = Path(arguments.matched)
    found, names = read(read_matching, path, paths=(path,)), dict[str, str]()
    if len(arguments.paths) == len(recordings):
        files = map(Path, arguments.paths)
        names = {called: name for file, name in zip(files, recordings, strict=True)
                 for called in (file.name, file.stem)}  # fmt: skip
    sessions = tuple(names.get(each, each) for each in found.sessions)
    return replace(found, sessions=sessions).of(recordings)


def _write_session(
    arguments: argparse.Namespace, name: str, joint: JointFit, recording: Recording
) -> Attribution:
    folder = session_folder(arguments, name)
    joint[name].save(folder / FIT)
    result, _ = write_scores(arguments, joint[name], recording, folder)
    return result


def _goodness_table(joint: JointFit) -> str:
    rows = [
        [name, factor, *goodness_words(goodness)]
        for name, fit in joint.fits.items()
        for factor, goodness in fit.goodness.items()
    ]
    return table(["session", "factor", *GOODNESS], rows)


def _compare_cells(
    arguments: argparse.Namespace, scores: Mapping[str, Attribution], matching: Matching
) -> list[Path]:
    out = output_folder(arguments)
    found = matched_scores(scores, matching)
    matched_cells(found, out / "matched.png")
    say(arguments, "", found.summary())
    return [found.to_csv(out / "matched.csv"), out / "matched.png"]
