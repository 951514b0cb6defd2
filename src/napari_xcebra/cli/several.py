"""Commands on several sessions: trained together, or one carried to another."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from napari_xcebra.cli.commands import CHECKPOINT, scored, write_attribution, write_scores
from napari_xcebra.cli.flags import (
    FACTORS_HELP,
    add_attribution_flags,
    add_output_flags,
    add_recording_flags,
    add_settings_flags,
    factors_from,
    frames_from,
    settings_from,
)
from napari_xcebra.cli.given import FIT, loaded_fit, opening_of, output_folder, recording_from
from napari_xcebra.cli.report import GOODNESS, goodness_words, table
from napari_xcebra.cli.saying import Interrupted, say, say_written
from napari_xcebra.recording import InputError, Recording

if TYPE_CHECKING:
    from napari_xcebra.attribution import Attribution
    from napari_xcebra.learn import FitSettings
    from napari_xcebra.learn.joint.result import JointFit
    from napari_xcebra.learn.parts import Factors
    from napari_xcebra.matching import Matching

HOWS = ("auto", "statistics", "input-layer")


def sessions(arguments: argparse.Namespace) -> None:
    """Train several sessions into one embedding, and score the cells of each."""
    from napari_xcebra.learn.joint.consistency import session_consistency
    from napari_xcebra.session_figure import consistency_between_sessions

    out = output_folder(arguments)
    frames_from(arguments.frames)  # a mistake there should not be found after training
    recordings, factors, settings = _asked_for(arguments)
    matching = _matching(arguments, recordings)
    joint = _trained(arguments, recordings, factors, settings)
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
    folders = ", ".join(str(out / _folder(name)) for name in recordings)
    say(arguments, f"  attribution.csv, painted.png and fit of each session: {folders}")


def adapt(arguments: argparse.Namespace) -> None:
    """Carry a fit to another recording, and score its cells."""
    from napari_xcebra.cli.progress import interrupt_as_request, training_bar
    from napari_xcebra.learn.adaptation import STEPS
    from napari_xcebra.learn.adaptation import adapt as carry

    out, before, recording = (
        output_folder(arguments),
        loaded_fit(arguments),
        recording_from(arguments),
    )
    frames_from(arguments.frames)
    steps = arguments.steps or STEPS
    with interrupt_as_request() as request, training_bar(arguments, steps) as bar:
        trained = carry(
            before,
            recording,
            arguments.how,
            matched=_matched_ids(arguments),
            steps=steps,
            on_progress=bar,
            stop=request,
        )
    saved = trained.save(out / FIT)
    opening_of(arguments).save(out)
    write_attribution(arguments, trained, recording, out, [saved])


def _asked_for(
    arguments: argparse.Namespace,
) -> tuple[dict[str, Recording], Factors, FitSettings]:
    """Recordings by name, factors and settings, from the flags or from a file."""
    if len(arguments.paths) == 1 and arguments.paths[0].endswith(".toml"):
        from napari_xcebra.sweeps.config import read_sweep

        asked = read_sweep(arguments.paths[0])
        if len(asked.members) != len(asked.recordings):
            raise InputError(
                f"{arguments.paths[0]} has lists to go through: sessions are trained together "
                "once, with one value for each setting."
            )
        return dict(asked.recordings), asked.factors, asked.settings
    recordings = _opened(arguments)
    return recordings, factors_from(arguments.factor), settings_from(arguments)


def _opened(arguments: argparse.Namespace) -> dict[str, Recording]:
    from napari_xcebra.runs import free_name
    from napari_xcebra.sessions import name_of

    files = arguments.behavior or []
    if files and len(files) != len(arguments.paths):
        raise InputError(
            f"{len(arguments.paths)} recordings and {len(files)} --behavior are given: one for "
            "each is needed, in the same order; a file (CONFIG) can say more."
        )
    recordings: dict[str, Recording] = {}
    for number, path in enumerate(arguments.paths):
        one = argparse.Namespace(**vars(arguments))
        one.path, one.behavior = path, files[number : number + 1]
        opening = opening_of(one)
        # a suffix tells the format, not the session
        called = Path(path).stem if Path(path).is_file() else name_of(path)
        name = free_name(called, list(recordings))
        recordings[name] = opening.open()
        opening.save(output_folder(arguments) / _folder(name))
    return recordings


def _folder(name: str) -> str:
    return re.sub(r"[^\w.-]+", "-", name).strip("-.") or "session"


def _trained(
    arguments: argparse.Namespace,
    recordings: Mapping[str, Recording],
    factors: Factors,
    settings: FitSettings,
) -> JointFit:
    """Train with a progress bar; Ctrl-C stops and leaves a checkpoint."""
    from napari_xcebra.cli.progress import interrupt_as_request, training_bar
    from napari_xcebra.learn import TrainingDiverged
    from napari_xcebra.learn.joint.fitting import fit_sessions

    checkpoint = output_folder(arguments) / CHECKPOINT
    if checkpoint.exists() and not arguments.resume:
        raise InputError(
            f"{checkpoint} is left from a run that was stopped: add --resume to go on with it, or "
            "remove it to start afresh."
        )
    with interrupt_as_request() as request, training_bar(arguments, settings.steps) as bar:
        try:
            joint = fit_sessions(
                recordings,
                factors,
                settings,
                on_progress=bar,
                stop=request,
                checkpoint=checkpoint,
            )
        except TrainingDiverged as error:
            raise InputError(str(error)) from error
    if not all(each.complete for each in joint.fits.values()):
        again = [word for word in arguments.typed if word != "--resume"]
        raise Interrupted(
            f"Stopped after {joint.steps} of {joint.settings.steps} steps. To go on:\n"
            f"  {shlex.join(['napari-xcebra', *again, '--resume'])}"
        )
    return joint


def _write_session(
    arguments: argparse.Namespace, name: str, joint: JointFit, recording: Recording
) -> Attribution:
    from napari_xcebra.figures import painted_field

    folder = output_folder(arguments) / _folder(name)
    joint[name].save(folder / FIT)
    result = scored(arguments, joint[name], recording)
    write_scores(arguments, result, joint[name], recording, folder)
    painted_field(recording, result, folder / "painted.png")
    return result


def _goodness_table(joint: JointFit) -> str:
    rows = [
        [name, factor, *goodness_words(goodness)]
        for name, fit in joint.fits.items()
        for factor, goodness in fit.goodness.items()
    ]
    return table(["session", "factor", *GOODNESS], rows)


def _matching(
    arguments: argparse.Namespace, recordings: Mapping[str, Recording]
) -> Matching | None:
    """Cells that are the same, found wanting now rather than after training."""
    if arguments.matched is None:
        return None
    from napari_xcebra.io.matching import read_matching

    return read_matching(arguments.matched).of(recordings)


def _compare_cells(
    arguments: argparse.Namespace, scores: Mapping[str, Attribution], matching: Matching
) -> list[Path]:
    from napari_xcebra.attribution.matched import matched_scores
    from napari_xcebra.session_figure import matched_cells

    out = output_folder(arguments)
    found = matched_scores(scores, matching)
    matched_cells(found, out / "matched.png")
    say(arguments, "", found.summary())
    return [found.to_csv(out / "matched.csv"), out / "matched.png"]


def _matched_ids(arguments: argparse.Namespace) -> dict[int, int] | None:
    """Ids of the fit's cells to those of the recording, from a table of two sessions."""
    if arguments.matched is None:
        return None
    from napari_xcebra.io.matching import read_matching

    found = read_matching(arguments.matched)
    if len(found.sessions) != 2:
        raise InputError(
            f"{arguments.matched} is of {len(found.sessions)} sessions: two are needed, that of "
            "the fit and that of the recording."
        )
    return replace(found, positions=False).between(*found.sessions)


MATCHED_HELP = (
    "cells that are the same: a table with a column a session, CellReg's cellRegistered….mat or "
    "ROICaT's ….results_clusters.json"
)


def add_sessions_flags(parser: argparse.ArgumentParser) -> None:
    """What `sessions` takes."""
    add_recording_flags(parser, several=True)
    parser.add_argument("--factor", action="append", default=[], metavar="NAME=VARIABLES",
                        help=FACTORS_HELP)  # fmt: skip
    parser.add_argument("--matched", metavar="FILE",
                        help=f"{MATCHED_HELP}; their scores are compared")  # fmt: skip
    add_output_flags(parser)
    parser.add_argument(
        "--resume", action="store_true", help="go on from the checkpoint in --out, if any"
    )
    add_attribution_flags(parser)
    add_settings_flags(parser)


def add_adapt_flags(parser: argparse.ArgumentParser) -> None:
    """What `adapt` takes."""
    parser.add_argument("fit", metavar="FIT", help="folder that fit or run wrote")
    add_recording_flags(parser)
    parser.add_argument("--how", choices=HOWS, default=HOWS[0],
                        help="statistics: the same cells on another day, nothing is trained; "
                        "input-layer: other cells, the first layer is trained on them; auto: the "
                        "first if at least half of the cells are there (default)")  # fmt: skip
    parser.add_argument("--matched", metavar="FILE",
                        help=f"{MATCHED_HELP}; of the fit's session and this one")  # fmt: skip
    parser.add_argument("--steps", type=int, metavar="N",
                        help="steps for which an input layer is trained (default 200)")  # fmt: skip
    add_attribution_flags(parser)
    add_output_flags(parser)
