"""Composes the report of one run, renders it as one HTML page, and writes it.

The page needs no network and no other file.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, StrictUndefined

from napari_xcebra.attribution.comparison import title_of
from napari_xcebra.files import whole
from napari_xcebra.recording import Recording
from napari_xcebra.report.cells import cell_sections
from napari_xcebra.report.document import Document, Paragraph, Section
from napari_xcebra.report.exports import in_a_sentence
from napari_xcebra.report.figures.comparisons import methods_side_by_side
from napari_xcebra.report.figures.run import picture
from napari_xcebra.report.findings import controls, decoding, learning, summary, verdicts
from napari_xcebra.report.material import Material
from napari_xcebra.report.provenance import (
    citing_section,
    made_now,
    recording_section,
    reproduction_section,
    settings_section,
)
from napari_xcebra.text import counted, listed

if TYPE_CHECKING:
    from napari_xcebra.attribution.single_cell import CellStatistics
    from napari_xcebra.io.opening import Opening
    from napari_xcebra.runs import Run


def run_report(run: Material) -> Document:
    """Report of a run: first whether to believe it, then which cells, then how it was made."""
    sections = [verdicts(run), *decoding(run), controls(run), cell_sections(run)]
    sections += _methods(run)
    sections += [learning(run), recording_section(run), settings_section(run)]
    sections += [reproduction_section(run), citing_section()]
    return Document(
        f"{run.source} · {run.name}" if run.name != run.source else run.name,
        _subtitle(run),
        summary(run),
        tuple(sections),
        made_now(),
    )


def _subtitle(run: Material) -> str:
    words = [counted(len(run.fit.inputs.cell_ids), "cell")]
    if run.recording is not None:
        words.append(f"{run.recording.n_frames:,} frames at {run.recording.rate:g} per second")
    words.append(f"factors: {', '.join(run.fit.factors)}")
    if run.created:
        words.append(f"trained {run.created.replace('T', ' ')}")
    return " · ".join(words)


def _methods(run: Material) -> list[Section]:
    comparison = run.comparison
    if comparison is None or all(len(comparison.of(f)) < 2 for f in comparison.factors):
        return []
    names = dict.fromkeys(n for factor in comparison.factors for n in comparison.of(factor))
    titles = listed(title_of(name) for name in names)
    shown = picture(
        lambda: methods_side_by_side(comparison),
        f"For every factor the rank correlations of {titles}, and the rank of every cell by each",
        "Left: Spearman's ρ between methods and statistics. Right: a column a cell, from the "
        "highest mean rank to the lowest; a row that mixes bright and dark ranks them differently.",
        "webp",
    )
    told = Paragraph("A cell that methods agree on is easier to believe. Where they disagree, "
                     "variables are correlated or the recording is short.")  # fmt: skip
    return [Section("Methods side by side", (told, shown))]


def rendered(document: Document) -> str:
    """HTML of a document; names from files are escaped wherever they appear."""
    script = _part("page.js")
    # should anything slip through, the browser refuses every other script
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    template = _environment().from_string(_part("page.html.jinja"))
    return template.render(document=document, style=_part("page.css"), script=script, digest=digest)


def write_run_report(
    run: Run,
    recording: Recording,
    path: Path,
    opening: Opening | None = None,
    statistics: CellStatistics | None = None,
) -> Path:
    """Write one page about a run that the window holds."""
    return write_report(run_report(Material.of_run(run, recording, opening, statistics)), path)


def write_report(document: Document, path: Path) -> Path:
    """Write the page, whole or not at all."""
    page = rendered(document)
    with in_a_sentence(path), whole(path) as file:
        file.write_text(page, encoding="utf-8")
    return path


@cache
def _environment() -> Environment:
    return Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )


@cache
def _part(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")
