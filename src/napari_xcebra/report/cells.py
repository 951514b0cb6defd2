"""Which cells: for every factor its map, the spread of scores, the best cells and their tuning."""

from __future__ import annotations

import numpy as np

from napari_xcebra.attribution import Attribution
from napari_xcebra.attribution.method_notes import note_on, title_of_method
from napari_xcebra.errors import InputError
from napari_xcebra.figures import painted_field
from napari_xcebra.learn.parts import TIME
from napari_xcebra.report.cell_figures import (
    CELLS_ACROSS,
    MOST_POINTS,
    embedding_by_variable,
    tuning_of_cells,
)
from napari_xcebra.report.cell_table import best_cells, file_of_all, table_of_best
from napari_xcebra.report.document import Block, Paragraph, Picture, Row, Section
from napari_xcebra.report.drawing import picture
from napari_xcebra.report.evidence_figures import score_histogram
from napari_xcebra.report.findings import cells_in_words
from napari_xcebra.report.material import Material
from napari_xcebra.tuning import columns_of


def cell_sections(run: Material) -> Section:
    """A part a factor; a sentence where nothing was scored."""
    if run.first is None:
        how = "napari-xcebra attribute RUN RECORDING --out RUN"
        return Section("Which cells?", (Paragraph(f"No cells were scored yet: {how}.", "warning"),))
    embedding = _embedding(run)
    factors = [factor for factor in run.fit.factors if factor in run.first.factors]
    notes = tuple(Paragraph(_about(run.attributions[method])) for method in run.methods)
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
        shown = (Paragraph(told, "warning"), *_maps(run, factor), file_of_all(run, factor))
        return Section(title, shown)
    blocks: list[Block] = [Paragraph(cells_in_words(run, factor))]
    if first.not_tested(factor):
        blocks.insert(0, Paragraph(run.fit.goodness[factor].verdict))
    if first.significance is not None:
        blocks.append(Paragraph(first.significance.how(factor)))
    blocks += _maps(run, factor)
    blocks += _tuning(run, factor)
    blocks += [table_of_best(run, factor, explain=explain), file_of_all(run, factor)]
    blocks += _cloud(run, factor, embedding)
    return Section(title, tuple(blocks))


def _about(attribution: Attribution) -> str:
    """What a method does, without how long it takes, and what is to be known of its scores."""
    told = note_on(attribution.method).split(" Takes ")[0]
    title = title_of_method(attribution.method).capitalize()
    return " ".join([f"{title}: {told[:1].lower()}{told[1:]}", *attribution.notes])


def _maps(run: Material, factor: str) -> list[Block]:
    """Painted field by the methods to look at first, and the spread of scores."""
    pictures: list[Picture] = []
    for method in run.methods[:2] if run.recording is not None else ():
        pictures.append(_map(run, run.attributions[method], factor))
    assert run.first is not None
    pictures.append(_histogram(run.first, factor))
    return [Row(tuple(pictures))]


def _map(run: Material, attribution: Attribution, factor: str) -> Picture:
    recording = run.recording
    assert recording is not None
    where = "the imaged field" if recording.footprints is not None else "a grid, in their order"
    meaning = "at chance, the map means nothing" if attribution.at_chance(factor) else (
        "selected cells are outlined")  # fmt: skip
    return picture(
        lambda: painted_field(recording, attribution, factors=[factor]),
        f"Cells on {where}, coloured by how much they carry {factor}; {meaning}",
        f"Score by {title_of_method(attribution.method)}.",
        "webp",
    )


def _histogram(attribution: Attribution, factor: str) -> Picture:
    score = attribution.score(factor)
    low, middle, high = np.nanmin(score), np.nanmedian(score), np.nanmax(score)
    line = "; the dashed line is the mean, above which a cell is called selected"
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
        return [Paragraph(f"No tuning: the recording was opened without {', '.join(absent)}. Name "
                          "its behaviour file with --behavior.", "warning")]  # fmt: skip
    best = best_cells(first, factor, CELLS_ACROSS)
    columns = len(columns_of(recording, variables))
    what = "Mean activity over the variable, with its standard error over blocks of time"
    if columns > 1:
        what = "Mean activity, each map from its lowest (dark) to its highest value"
        what += f"; the first 2 of {columns} columns" if columns > 2 else ""
    names = ", ".join(str(np.asarray(recording.cell_ids)[cell]) for cell in best)
    try:
        return [picture(lambda: tuning_of_cells(recording, variables, best),
                        f"Tuning of the cells {names} to {factor}",
                        f"The {len(best)} cells with the highest score. {what}.")]  # fmt: skip
    except InputError as error:
        return [Paragraph(f"No tuning: {error}", "warning")]


def _embedding(run: Material) -> tuple[np.ndarray, np.ndarray] | None:
    """Embedding at some frames, evenly spaced: (n, latents), (n,)."""
    if run.recording is None or not run.fit.weights:
        return None
    from napari_xcebra.attribution.by_frame import embedding_by_frame

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
            f"Embedding: {len(frames):,} frames, evenly spaced, trained on or not.{told}",
        )
    ]
