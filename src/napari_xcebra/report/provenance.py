"""Documents where a run came from: recording, settings, versions, the command to reproduce it."""

from __future__ import annotations

import platform
import shlex
from collections.abc import Iterable
from dataclasses import MISSING, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.files import named_by_suite2p
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.learn.data.factors import TIME
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.recording.recording import Recording
from napari_xcebra.recording.summary import (
    VARIABLE_WORDS,
    duration_of,
    footprints_of,
    further_notes,
    overlap_of,
    planes_of,
    segments_and_events,
    variable_words,
)
from napari_xcebra.report.document import (
    Block,
    Entry,
    Heading,
    Paragraph,
    Reference,
    Section,
    Table,
    TypedCommand,
)
from napari_xcebra.report.material import Material
from napari_xcebra.runs import now
from napari_xcebra.settings import flag_of
from napari_xcebra.support.logs import without_folders

CITATIONS = (
    Reference(
        "xCEBRA, the method: S. Schneider, R. González Laiz, A. Filippova, M. Frey, M. W. Mathis. "
        "Time-series attribution maps with regularized contrastive learning. AISTATS 2025.",
        "https://arxiv.org/abs/2502.12977",
    ),
    Reference(
        "CEBRA: S. Schneider, J. H. Lee, M. W. Mathis. Learnable latent embeddings for joint "
        "behavioural and neural analysis. Nature 617, 360–368 (2023).",
        "https://doi.org/10.1038/s41586-023-06031-6",
    ),
    Reference(
        "napari: napari contributors. napari: a multi-dimensional image viewer for Python (2019).",
        "https://doi.org/10.5281/zenodo.3555620",
    ),
    Reference(
        "captum, for integrated gradients, feature ablation and Shapley values: N. Kokhlikyan et "
        "al. Captum: a unified and generic model interpretability library for PyTorch (2020).",
        "https://arxiv.org/abs/2009.07896",
    ),
)


def recording_section(run: Material) -> Section:
    """What the recording holds."""
    recording = run.recording
    cells = len(run.fit.inputs.cell_ids)
    if recording is None:
        facts = [("source", run.source), ("cells trained on", f"{cells:,}")]
        return Section("Recording", (facts_table("The recording", facts),))
    accepted = int(np.asarray(recording.accepted).sum())
    facts = [
        ("source", run.source),
        ("format", recording.origin.format),
        ("cells", f"{recording.n_cells:,}, of which {accepted:,} accepted"),
        ("cells trained on", f"{cells:,}"),
        ("frames", f"{recording.n_frames:,} at {recording.rate:g} per second"),
        ("duration", duration_of(recording)),
        *((name.lower(), value) for name, value in segments_and_events(recording)),
        ("excluded frames", f"{int(np.asarray(recording.excluded).sum()):,}"),
        ("planes", str(planes_of(recording) or "")),
        ("footprints", footprints_of(recording)),
        ("traces", recording.origin.traces),
        ("behaviour", overlap_of(recording)),
    ]
    notes = [without_folders(note, *_paths(run)) for note in further_notes(recording)]
    return Section(
        "Recording",
        (
            facts_table("The recording", [(name, value) for name, value in facts if value]),
            *_variables(recording),
            *(Paragraph(note) for note in notes),
        ),
    )


def facts_table(caption: str, facts: Iterable[tuple[str, str]]) -> Table:
    """A table of names and values."""
    rows = tuple((Entry(name), Entry(value)) for name, value in facts)
    columns = (Heading("", numeric=False), Heading("", numeric=False))
    return Table(caption, columns, rows, compact=True)


def _variables(recording: Recording) -> list[Block]:
    if not recording.behavior:
        return []
    columns = tuple(Heading(name, numeric=False) for name in VARIABLE_WORDS)
    rows = tuple(
        tuple(Entry(word) for word in variable_words(name, variable))
        for name, variable in recording.behavior.items()
    )
    return [Table("Behaviour", columns, rows, compact=True)]


def _paths(run: Material) -> list[Path | str]:
    opening = run.opening
    if opening is None:
        return [run.fit.source]
    return [opening.path, *opening.behavior, *([opening.footprints] if opening.footprints else [])]


def settings_section(run: Material) -> Section:
    """All settings of the training, changed ones first."""
    changed = _changed_knobs(run.fit.settings)
    rows = []
    for knob in sorted(fields(FitSettings), key=lambda knob: knob.name not in changed):
        value = getattr(run.fit.settings, knob.name)
        tone = "good" if knob.name in changed else "plain"
        default = "" if knob.name not in changed else _said(knob.default)
        help = knob.metadata["help"].replace("`", "")
        rows.append((Entry(flag_of(knob.name)), Entry(_said(value), tone=tone),  # type: ignore[arg-type]
                     Entry(default), Entry(help)))  # fmt: skip
    columns = (
        Heading("setting", numeric=False),
        Heading("value", numeric=False),
        Heading("default", "Where the setting was changed.", numeric=False),
        Heading("meaning", numeric=False),
    )
    words = "All settings have their defaults." if not changed else (
        f"{len(changed)} of {len(rows)} settings were changed; they come first.")  # fmt: skip
    return Section(
        "Settings",
        (Paragraph(words), Table("Settings of the training", columns, tuple(rows), compact=True)),
    )


def _changed_knobs(settings: FitSettings) -> list[str]:
    """Names of the settings that differ from their defaults."""
    return [
        knob.name
        for knob in fields(settings)
        if knob.default is not MISSING and getattr(settings, knob.name) != knob.default
    ]


def _said(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def reproduction_section(run: Material) -> Section:
    """The command that reproduces the run, and the versions it was made with."""
    facts = list(run.fit.versions.items())
    facts += [("seed", str(run.fit.settings.seed)), ("device", run.fit.settings.device)]
    return Section(
        "How to reproduce it",
        (
            Paragraph("Run this in the folder that holds the recording. The same seed and versions "
                      "give the same result on the same device."),
            TypedCommand(_command_of(run)),
            *(Paragraph(note, "warning") for note in _not_said_by_command(run)),
            facts_table("Made with", facts),
        ),
    )  # fmt: skip


def _command_of(run: Material) -> str:
    """The `napari-xcebra run` that trains the same."""
    fit, opening = run.fit, run.opening
    words = ["napari-xcebra", "run", _place(opening.path if opening else fit.source)]
    if opening is not None:
        words += [word for path in opening.behavior for word in ("--behavior", _place(path))]
        words += ["--footprints", _place(opening.footprints)] if opening.footprints else []
        words += [w for n, kind in opening.kinds.items() for w in ("--kind", f"{n}={kind}")]
        words += _flags(opening.settings)
    for part in fit.parts:
        if part.name != TIME:
            latents = part.stop - part.start
            words += ["--factor", f"{part.name}={','.join(part.variables)}:{latents}"]
    words += _flags(fit.settings)
    if run.first is not None:
        words += ["--method", run.first.method]
        words += ["--no-significance"] if run.first.significance is None else []
    return shlex.join([*words, "--out", "again"])


def _flags(settings: FitSettings | OpenSettings) -> list[str]:
    words = []
    for knob in fields(settings):
        value = getattr(settings, knob.name)
        if value == knob.default:
            continue
        if isinstance(value, bool):
            words.append(
                flag_of(knob.name) if value else flag_of(knob.name).replace("--", "--no-", 1)
            )
        else:
            words += [flag_of(knob.name), str(value)]
    return words


def _place(path: Path | str) -> str:
    """Path from the folder whose name identifies the recording."""
    parts = Path(path).parts if str(path) else ("RECORDING",)
    telling = (i for i in range(1, len(parts) + 1) if not named_by_suite2p(parts[-i]))
    return str(Path(*parts[-next(telling, 1) :]))


def _not_said_by_command(run: Material) -> list[str]:
    """What the command leaves out, a sentence each."""
    notes = []
    if run.opening is None and not Path(run.fit.source or "-").suffix:
        notes.append("How the recording was opened is not known: fill in its path and those of the "
                     "behaviour files.")  # fmt: skip
    for name, factor in run.factors.items():
        if factor.similarity is not None or factor.temperature is not None:
            notes.append(f"{name} has a similarity or temperature of its own, which only Python "
                         f"can give: {factor}.")  # fmt: skip
    if run.recording is not None and run.fit.settings.accepted_only:
        recording = run.recording
        accepted = np.asarray(recording.cell_ids)[np.asarray(recording.accepted)]
        unlike = np.setxor1d(accepted, run.fit.inputs.cell_ids).size
        if unlike:
            notes.append(f"Cells were accepted or rejected by hand, or are constant: {unlike} "
                         "differ between the file and the training.")  # fmt: skip
    return notes


def citing_section() -> Section:
    """What to cite."""
    return Section("How to cite", CITATIONS)


def made_now() -> str:
    """When and by which versions a page is made."""
    try:
        ours = version("napari-xcebra")
    except PackageNotFoundError as error:  # run from a folder that was never installed
        raise InputError("napari-xcebra is not installed.") from error
    return (
        f"Made on {now().replace('T', ' at ')} with napari-xcebra {ours}, Python "
        f"{platform.python_version()}. This page needs no network."
    )
