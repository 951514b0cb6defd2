"""How well the variables can be read from the embedding."""

from __future__ import annotations

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.learn.parts import TIME
from napari_xcebra.report.document import Column, Entry, Paragraph, Section, Table
from napari_xcebra.report.material import Material
from napari_xcebra.report.wording import number


def decoding(run: Material) -> list[Section]:
    """Error of decoders beside chance, if the recording and its variables are there."""
    recording = run.recording
    wanted = {name for part in run.fit.parts if part.name != TIME for name in part.variables}
    if recording is None or not run.fit.weights or not wanted or wanted - set(recording.behavior):
        return []
    from napari_xcebra.learn.quality import Decoded, embedding_quality

    title = "How well can it be decoded?"
    try:
        found = embedding_quality(run.fit, recording)
    except InputError as error:
        return [Section(title, (Paragraph(str(error), "warning"),))]

    def row(each: Decoded) -> tuple[Entry, ...]:
        share = each.unit == "share wrong"
        form = ".0%" if share else "#.3g"
        unit = f" {each.unit}" if each.unit and not share else ""
        error, chance = (
            Entry(f"{number(v, form).text}{unit}" if np.isfinite(v) else "–", v)
            for v in (each.error, each.chance)
        )
        decoder = f"{each.decoder}, k = {each.neighbours}" if each.neighbours else each.decoder
        words = (Entry(each.factor), Entry(each.variable), Entry(decoder))
        return (*words, error, chance, number(each.p, ".2g"), number(each.r2, ".2f"))

    columns = (
        Column("factor", numeric=False),
        Column("variable", numeric=False),
        Column("decoder", "From the factor's latents: k nearest neighbours, or a linear map.",
               numeric=False),
        Column("error", "Median absolute error on held-out blocks of time; the share of wrong "
               "values of a discrete variable."),
        Column("by chance", "The same with the variable shifted in time, the median over shifts."),
        Column("p", "Share of the shifts, and the variable itself, with an error as small: of this "
               "decoder alone, where the verdict looks at the strongest cell as well."),
        Column("R²", "Share of variance explained, frame by frame; the verdict's decoder looks at "
               "the frames around as well where that helps."),
    )  # fmt: skip
    rows = tuple(row(each) for each in found.decoded)
    return [Section(title, (Table("Decoded on held-out blocks of time", columns, rows),))]
