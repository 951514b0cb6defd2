"""The command that tells how good an embedding is."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import numpy as np

from napari_xcebra.cli.flags import add_output_flags, add_recording_flags
from napari_xcebra.cli.given import loaded_fit, output_folder, recording_from
from napari_xcebra.cli.report import table
from napari_xcebra.cli.saying import say, say_written

if TYPE_CHECKING:
    from napari_xcebra.learn.quality import Decoded, EmbeddingQuality


def quality(arguments: argparse.Namespace) -> None:
    """Decode the variables of a fit from its embedding."""
    from napari_xcebra.learn import Fit
    from napari_xcebra.learn.quality import embedding_quality

    out = output_folder(arguments) if arguments.out else None
    trained, recording = loaded_fit(arguments), recording_from(arguments)
    others: list[Fit] = []
    for folder in arguments.also:
        arguments.fit = folder
        others.append(loaded_fit(arguments))
    found = embedding_quality(trained, recording, others)
    say(arguments, quality_table(found), "", *trained.notes)
    if found.runs > 1:
        say(arguments, found.summary().splitlines()[-1])
    if out is not None:
        say_written(arguments, [found.to_csv(out / "quality.csv")])


def quality_table(found: EmbeddingQuality) -> str:
    """A row a variable and decoder: error beside chance, and R²."""
    header = ["variable", "factor", "decoder", "error", "chance", "p", "R²"]
    return table(header, [_row(each) for each in found.decoded])


def _row(each: Decoded) -> list[str]:
    unit = f" {each.unit}" if each.unit and each.unit != "share wrong" else ""
    number = "{:.0%} wrong" if each.unit == "share wrong" else "{:.3g}" + unit
    decoder = f"{each.decoder}, k {each.neighbours}" if each.neighbours else each.decoder
    return [
        each.variable,
        each.factor,
        decoder,
        number.format(each.error),
        "–" if np.isnan(each.chance) else number.format(each.chance),
        "–" if np.isnan(each.p) else f"{each.p:.2g}",
        "–" if np.isnan(each.r2) else f"{each.r2:.2f}",
    ]


def add_flags(parser: argparse.ArgumentParser) -> None:
    """What `quality` takes."""
    parser.add_argument("fit", metavar="FIT", help="folder that fit or run wrote")
    add_recording_flags(parser)
    parser.add_argument("--also", action="append", default=[], metavar="FIT",
                        help="another fit of the same recording, to tell how far the embeddings "
                        "agree; may be given several times")  # fmt: skip
    add_output_flags(parser, required=False)
