"""Composes the report of one run, renders it as one HTML page, and writes it.

The page needs no network and no other file.
"""

from __future__ import annotations

import base64
import hashlib
import io
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from jinja2 import Environment, StrictUndefined
from matplotlib.figure import Figure
from matplotlib.image import imread

from napari_xcebra.analysis_file import Analysis
from napari_xcebra.attribution import Attribution
from napari_xcebra.attribution.comparison import title_of
from napari_xcebra.attribution.methods import method_named, title_of_method
from napari_xcebra.attribution.ranks import ranks_of
from napari_xcebra.attribution.single_cell import STATISTICS
from napari_xcebra.errors import InputError
from napari_xcebra.files import whole
from napari_xcebra.learn.data.factors import TIME
from napari_xcebra.recording.recording import Recording
from napari_xcebra.report.document import (
    Block,
    Document,
    Download,
    Entry,
    Heading,
    PagePicture,
    Paragraph,
    PictureRow,
    Section,
    Table,
    download,
    number,
)
from napari_xcebra.report.exports import in_a_sentence
from napari_xcebra.report.figures.comparisons import methods_side_by_side
from napari_xcebra.report.figures.field import painted_field
from napari_xcebra.report.figures.paper import in_picture
from napari_xcebra.report.figures.run import (
    CELLS_ACROSS,
    MOST_POINTS,
    Q,
    embedding_by_variable,
    picture,
    responses_in_words,
    score_histogram,
    tuning_in_words,
    tuning_of_cells,
)
from napari_xcebra.report.findings import (
    cells_in_words,
    citing_section,
    controls,
    decoding,
    describe_making,
    learning,
    recording_section,
    reproduction_section,
    settings_section,
    summary,
    verdicts,
)
from napari_xcebra.report.material import Material
from napari_xcebra.text import counted, listed

if TYPE_CHECKING:
    from napari_xcebra.attribution.single_cell import CellStatistics
    from napari_xcebra.io.opening import Opening
    from napari_xcebra.runs import Run


def run_report(run: Material) -> Document:
    """Report of a run: first whether to believe it, then which cells, then how it was made."""
    sections = [verdicts(run), *decoding(run), controls(run), _cell_sections(run)]
    sections += _methods(run)
    sections += [learning(run), recording_section(run), settings_section(run)]
    sections += [reproduction_section(run), citing_section(run)]
    return Document(
        f"{run.source} · {run.name}" if run.name != run.source else run.name,
        _subtitle(run),
        summary(run),
        tuple(sections),
        describe_making(),
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


def _rendered(document: Document) -> str:
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
    """Write one page about a run that the window holds, and beside it what makes it again."""
    material = Material.of_run(run, recording, opening, statistics)
    analysis = None if opening is None else Analysis.of_run(run, opening)
    if analysis is not None:
        beside = analysis.save(path.with_suffix(".toml"), recording)
        material = replace(material, analysis=beside.name)
    return write_report(run_report(material), path)


def write_report(document: Document, path: Path) -> Path:
    """Write the page, whole or not at all."""
    page = _rendered(document)
    with in_a_sentence(path), whole(path) as file:
        file.write_text(page, encoding="utf-8")
    return path


PAGE, PAGE_DPI = (8.27, 11.69), 250
"""A4, in inches, and dots per inch of the pictures on it."""


def write_page(run: Material, path: Path) -> Path:
    """One A4 page as PDF: verdicts, painted field, best cells, embedding and statistics."""
    first, recording = run.first, run.recording
    if first is None or recording is None:
        raise InputError("A page needs the recording and its scores, and one is missing.")
    factors = [name for name in first.factors if name != TIME]
    best = max(factors, key=lambda name: np.nan_to_num(run.fit.goodness[name].r2), default=TIME)
    part, cells = run.fit.part(best), _best_cells(first, best, CELLS_ACROSS)
    drawn = [painted_field(recording, first, factors=factors[:3] or None)]
    if part.variables and len(cells):
        drawn.append(tuning_of_cells(recording, part.variables, cells))
    if (found := _embedding(run)) is not None:
        latents, frames = found
        drawn.append(embedding_by_variable(latents[:, part.latents], frames, recording, part))
    page = Figure(PAGE)
    page.text(0.07, 0.965, in_picture(run.source), fontsize=14, fontweight="bold", va="top")
    page.text(0.07, 0.94, in_picture(_subtitle(run)), fontsize=8, va="top", wrap=True)
    words = [line for name in factors for line in _page_lines(run, name)]
    said = "\n".join(in_picture("\n   ".join(wrap(line, 118))) for line in words)
    page.text(0.07, 0.905, said, fontsize=9, va="top", linespacing=1.35)
    top = 0.895 - 0.0165 * (said.count("\n") + 1)
    # a field fills the page; an embedding of one panel takes a third of it
    shares = [min(1.0, each.get_size_inches()[0] / 9.4) if number else 1.0
              for number, each in enumerate(drawn)]  # fmt: skip
    sizes = [share * each.get_size_inches()[1] / each.get_size_inches()[0]
             for share, each in zip(shares, drawn, strict=True)]  # fmt: skip
    titles = ["", f"Best cells for {best}", f"Embedding: latents of {best}"]
    scale = min(1.0, (top - 0.06 - 0.03 * len(drawn)) * PAGE[1] / (0.86 * PAGE[0] * sum(sizes)))
    for each, size, share, title in zip(drawn, sizes, shares, titles, strict=False):
        width = 0.86 * scale * share
        height = 0.86 * scale * PAGE[0] * size / PAGE[1]
        page.text(0.07, top, in_picture(title), fontsize=9, fontweight="bold", va="top")
        ax = page.add_axes((0.5 - width / 2, top - 0.02 - height, width, height))
        ax.set_axis_off()
        with io.BytesIO() as content:
            each.savefig(content, format="png", dpi=PAGE_DPI)
            content.seek(0)
            ax.imshow(imread(content), aspect="auto", interpolation="none")
        top -= height + 0.03
    page.text(
        0.07,
        0.03,
        in_picture(describe_making().partition(" This page")[0]),
        fontsize=6,
        color="0.4",
    )
    with in_a_sentence(path), whole(path) as file:
        page.savefig(file, format="pdf", dpi=PAGE_DPI)
    return path


def _page_lines(run: Material, factor: str) -> list[str]:
    """Verdict on a factor, what was measured, and how many cells carry it."""
    first, goodness = run.first, run.fit.goodness[factor]
    assert first is not None
    lines = [goodness.verdict, f"   {goodness.measured}"]
    if first.significance is not None and first.was_found(factor):
        q = first.significance.q(factor)
        lines.append(f"   {int((q <= Q).sum())} of {int(np.isfinite(q).sum())} cells at q ≤ {Q:g}")
    return lines


@cache
def _environment() -> Environment:
    return Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )


@cache
def _part(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")


MOST_ROWS = 20
"""Cells in a table; the file below it has all."""


def _best_cells(attribution: Attribution, factor: str, count: int) -> np.ndarray:
    """Positions of the cells with the highest scores, the best first: (count or fewer,) int."""
    score = attribution.score(factor)
    order = np.argsort(-np.where(np.isfinite(score), score, -np.inf), kind="stable")
    return order[: min(count, int(np.isfinite(score).sum()))]


def _table_of_best(run: Material, factor: str, *, explain: bool) -> Table:
    """Table of the best cells, whose columns are explained if asked."""
    first = run.first
    assert first is not None
    table = _whole_table(run, factor)
    best = _best_cells(first, factor, MOST_ROWS)
    names = [str(name) for name in table if name not in _IN_FILE_ALONE]
    columns = tuple(replace(_column(name), listed=explain) for name in names)
    rows = tuple(tuple(_entry(name, table[name].iloc[cell]) for name in names) for cell in best)
    scored = int(np.isfinite(first.score(factor)).sum())
    shown = f"The {len(best)} highest of {scored:,} cells" if scored > len(best) else "All cells"
    return Table(
        f"{shown} by {title_of_method(first.method)}", columns, rows, sortable=True, compact=True
    )


def _whole_table(run: Material, factor: str) -> pd.DataFrame:
    """One row a cell with all its scores and statistics for a factor."""
    first = run.first
    assert first is not None
    table = first.table(factor)
    table.insert(0, "rank", _blank_zero(ranks_of(first.score(factor))))
    table = table.rename(columns={"p": "p of the cell", "q": "q"})
    if {"stable", "rank_low", "rank_high"} <= set(run.stability.get(factor, ())):
        over = run.stability[factor]
        table["stable"] = over["stable"].to_numpy()
        low, high = over["rank_low"].to_numpy(), over["rank_high"].to_numpy()
        table["ranks"] = [f"{a:.2f} to {b:.2f}" for a, b in zip(low, high, strict=True)]
    for method in run.methods[1:]:
        other = run.attributions[method].score(factor)
        table[f"{_RANK_BY}{title_of_method(method)}"] = _blank_zero(ranks_of(other))
    for name, values in (run.statistics.of(factor) if run.statistics else {}).items():
        table[name] = values
    return table


def _blank_zero(ranks: np.ndarray) -> np.ndarray:
    return np.where(ranks > 0, ranks, np.nan)


_RANK_BY = "rank by "
"""Begins the name of a column with the ranks by another method."""
_HELP = {
    "rank": "1 for the highest score.",
    "score": "How much the cell carries the factor, by the method named above.",
    "z": "Score standardised over the cells.",
    "low": "Lower end of the score's interval, 5 %.",
    "high": "Upper end of the score's interval, 95 %.",
    "of_explainable": "Score as a share of the variance that is not frame-to-frame noise.",
    "interaction": "Share of variance by which the factor scales the tuning to other factors.",
    "lag": "Seconds by which the cell follows the behaviour; negative if it leads.",
    "sign": "Whether the cell rises or falls with the variable; neither if it does both.",
    "p of the cell": "Probability that labels shifted, reordered or permuted over trials reach as "
    "much as this cell.",
    "q": f"p adjusted by Benjamini and Hochberg: among cells with q ≤ {Q:g}, a tenth is expected "
    "by chance.",
    "stable": "Whether all seeds agree on the cell.",
    "ranks": "Lowest and highest rank over the seeds, from 0 to 1 for the first.",
}
_TITLES = {"p of the cell": "p", "of_explainable": "of explainable", "lag": "lag (s)"}
_FORMS = {"rank": ".0f", "z": ".2f", "lag": ".2f", "p of the cell": ".2g", "q": ".2g"}
_SIGNS = {1: "rises", 0: "neither", -1: "falls"}
_IN_FILE_ALONE = ("at_chance", "selected", "beside_variables", "beside_state", "lag_error")
"""Columns that hardly differ among the best cells, or only explain another column."""


def _column(name: str) -> Heading:
    if name in STATISTICS:
        about = STATISTICS[name]
        unit = f" ({about.unit})" if about.unit else ""
        return Heading(about.title, f"{name.replace('_', ' ')}{unit}. {about.help}")
    return Heading(_TITLES.get(name, name), _HELP.get(name, ""), name != "stable")


def _entry(name: str, value: object) -> Entry:
    if name == "stable":
        return Entry("yes" if value else "no")
    if isinstance(value, str):
        return Entry(value)
    assert isinstance(value, int | float | np.number)
    if name == "cell":
        return Entry(str(value), float(value))
    if name == "sign" and np.isfinite(value):
        return Entry(_SIGNS[int(np.sign(value))], float(value))
    usual = ".0f" if name.startswith(_RANK_BY) else "#.2g" if name in STATISTICS else "#.3g"
    shown = number(float(value), _FORMS.get(name, usual))
    if name == "q" and float(value) <= Q:
        return Entry(shown.text, shown.order, "good")
    return shown


def _offer_all_cells(run: Material, factor: str) -> Download:
    """The same table of all cells, to save from the page."""
    table = _whole_table(run, factor).round(6)
    name = "".join(c if c.isalnum() or c in "-_." else "_" for c in f"cells-{factor}")
    return download(
        f"{name}.csv",
        table,
        f"has all {counted(len(table), 'cell')} with these columns.",
    )


def _cell_sections(run: Material) -> Section:
    """A part for each factor, or a sentence if nothing was scored."""
    if run.first is None:
        told = "No cells were scored yet: napari-xcebra attribute RUN RECORDING --out RUN."
        return Section("Which cells?", (Paragraph(told, "warning"),))
    embedding = _embedding(run)
    factors = [factor for factor in run.fit.factors if factor in run.first.factors]
    notes = tuple(Paragraph(_describe_method(run.attributions[method])) for method in run.methods)
    listed = [factor for factor in factors if not run.first.at_chance(factor)]
    parts = tuple(_factor(run, f, embedding, explain=f in listed[:1]) for f in factors)
    return Section("Which cells?", notes, parts)


def _factor(
    run: Material,
    factor: str,
    embedding: tuple[np.ndarray, np.ndarray] | None,
    *,
    explain: bool,
) -> Section:
    first = run.first
    assert first is not None
    about = run.fit.part(factor)
    title = factor if about.variables in ((), (factor,)) else (
        f"{factor} ({', '.join(about.variables)})")  # fmt: skip
    if first.at_chance(factor):
        told = f"{run.fit.goodness[factor].verdict} So no cells are listed; scores are in the file."
        shown = (Paragraph(told, "warning"), *_maps(run, factor), _offer_all_cells(run, factor))
        return Section(title, shown)
    blocks: list[Block] = [Paragraph(cells_in_words(run, factor))]
    if first.not_tested(factor):
        blocks.insert(0, Paragraph(run.fit.goodness[factor].verdict))
    if first.significance is not None:
        blocks.append(Paragraph(first.significance.how(factor)))
    blocks += _maps(run, factor)
    blocks += _tuning(run, factor)
    blocks += [_table_of_best(run, factor, explain=explain), _offer_all_cells(run, factor)]
    blocks += _cloud(run, factor, embedding)
    return Section(title, tuple(blocks))


def _describe_method(attribution: Attribution) -> str:
    """What a method computes, and the notes on its scores."""
    told = method_named(attribution.method).note
    title = title_of_method(attribution.method).capitalize()
    return " ".join([f"{title}: {told[:1].lower()}{told[1:]}", *attribution.notes])


def _maps(run: Material, factor: str) -> list[Block]:
    """Painted field by the methods to look at first, and the spread of scores."""
    pictures: list[PagePicture] = []
    for method in run.methods[:2] if run.recording is not None else ():
        pictures.append(_map(run, run.attributions[method], factor))
    assert run.first is not None
    pictures.append(_histogram(run.first, factor))
    return [PictureRow(tuple(pictures))]


def _map(run: Material, attribution: Attribution, factor: str) -> PagePicture:
    recording = run.recording
    assert recording is not None
    where = "the imaged field" if recording.footprints is not None else "a grid, in their order"
    meaning = "at chance, the map means nothing" if attribution.at_chance(factor) else (
        "cells above threshold are outlined")  # fmt: skip
    return picture(
        lambda: painted_field(recording, attribution, factors=[factor]),
        f"Cells on {where}, coloured by how much they carry {factor}; {meaning}",
        f"Score by {title_of_method(attribution.method)}.",
        "webp",
    )


def _histogram(attribution: Attribution, factor: str) -> PagePicture:
    score = attribution.score(factor)
    low, middle, high = np.nanmin(score), np.nanmedian(score), np.nanmax(score)
    line = "; the dashed line is the threshold, at their mean"
    line = "" if attribution.at_chance(factor) else line
    return picture(
        lambda: score_histogram(attribution, factor),
        f"Histogram of the scores for {factor}: {low:.3g} to {high:.3g}, median {middle:.3g}",
        f"Scores of all cells by {title_of_method(attribution.method)}{line}.",
    )


def _tuning(run: Material, factor: str) -> list[Block]:
    recording, first, variables = run.recording, run.first, run.fit.part(factor).variables
    if recording is None or first is None or not variables:
        return []
    if absent := [name for name in variables if name not in recording.behavior]:
        return [Paragraph(f"No tuning: the recording was opened without {listed(absent)}. Name "
                          "its behaviour file with --behavior.", "warning")]  # fmt: skip
    best = _best_cells(first, factor, CELLS_ACROSS)
    try:
        around = responses_in_words(recording, factor, variables, best)
        return [around or tuning_in_words(recording, factor, variables, best)]
    except InputError as error:
        return [Paragraph(f"No tuning: {error}", "warning")]


def _embedding(run: Material) -> tuple[np.ndarray, np.ndarray] | None:
    """Embedding at some frames, evenly spaced: (n, latents), (n,)."""
    if run.recording is None or not run.fit.weights:
        return None
    from napari_xcebra.attribution.over_time import embedding_by_frame

    frames = np.arange(0, run.recording.n_frames, -(-run.recording.n_frames // MOST_POINTS))
    return embedding_by_frame(run.fit, run.recording, frames), frames


def _cloud(
    run: Material, factor: str, embedding: tuple[np.ndarray, np.ndarray] | None
) -> list[Block]:
    recording, part = run.recording, run.fit.part(factor)
    if embedding is None or recording is None:
        return []
    if any(name not in recording.behavior for name in part.variables):
        return []
    latents, frames = embedding
    by = "time" if factor == TIME else factor
    one = part.stop - part.start == 1
    told = "" if one else " Where the colour changes smoothly, nearby frames have similar values."
    return [
        picture(
            lambda: embedding_by_variable(latents[:, part.latents], frames, recording, part),
            f"Embedding of {len(frames)} frames in the latents of {factor}, by {by}",
            f"Embedding of {len(frames):,} evenly spaced frames, from training and held out.{told}",
        )
    ]
