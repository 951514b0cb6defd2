"""What the commands print: tables in plain text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from napari_xcebra.verdicts import decoded_of, nats_of, share_of

if TYPE_CHECKING:
    from napari_xcebra.attribution import Attribution
    from napari_xcebra.attribution.comparison import Comparison
    from napari_xcebra.learn import Fit, Goodness
    from napari_xcebra.learn.consistency import Dimensions


GOODNESS = ("goodness (nats)", "of possible", "decoded", "ridge", "verdict")
"""Columns of `goodness_words`."""


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Text in columns: the first to the left, the others to the right."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]

    def line(row: Sequence[str]) -> str:
        first, *others = zip(row, widths, strict=True)
        return "  ".join([first[0].ljust(first[1]), *(text.rjust(w) for text, w in others)])

    return "\n".join([line(header), "  ".join("─" * w for w in widths), *map(line, rows)])


def dimension_table(dimensions: Dimensions) -> str:
    """A row a number of latents: consistency between seeds."""
    rows = [
        [
            d.words,
            f"{d.mean:.3f} ± {d.error:.3f}",
            str(len(d.r2)),
            "←" * (d is dimensions.suggested),
        ]
        for d in dimensions.tried
    ]
    return table(["latents", "consistency R²", "pairs of seeds", ""], rows)


def factor_table(
    fit: Fit,
    attribution: Attribution | None = None,
    truth: Mapping[str, np.ndarray] | None = None,
) -> str:
    """A row a factor: `goodness_words`; selected cells and auROC where there are such."""
    from napari_xcebra.attribution import auroc

    header = ["factor", *GOODNESS]
    rows = [[name, *goodness_words(goodness)] for name, goodness in fit.goodness.items()]
    if attribution is not None:
        header.append("selected")
        for row in rows:
            scored = int((~np.isnan(attribution.score(row[0]))).sum())
            selected = int(attribution.selected(row[0]).sum())
            row.append("–" if attribution.at_chance(row[0]) else f"{selected} of {scored}")
    if attribution is not None and attribution.significance is not None:
        header.append("q ≤ 0.1")
        for row in rows:
            q = attribution.significance.q(row[0])
            row.append("–" if np.isnan(q).all() else f"{int((q <= 0.1).sum())}")
    if attribution is not None and truth:
        header.append("auROC")
        for row in rows:
            carries = truth.get(row[0], np.zeros(0, bool))
            # neither all nor none: else there is nothing to tell apart
            mixed = 0 < carries.sum() < len(carries)
            row.append(f"{auroc(attribution.score(row[0]), carries):.3f}" if mixed else "–")
    return table(header, rows)


def agreement_table(comparison: Comparison) -> str:
    """A row a method or statistic: Spearman's ρ of its ranking with that of the first method."""
    from napari_xcebra.attribution.comparison import title_of

    names = list(dict.fromkeys(n for f in comparison.factors for n in comparison.of(f)))
    with_first = {f: comparison.correlations(f).iloc[0] for f in comparison.factors}
    rows = []
    for name in names[1:]:
        found = [with_first[f].get(name, np.nan) for f in comparison.factors]
        rows.append([title_of(name), *("–" if np.isnan(v) else f"{v:.2f}" for v in found)])
    return table([f"rank correlation with {title_of(names[0])}", *comparison.factors], rows)


def goodness_words(goodness: Goodness) -> list[str]:
    """Goodness, its share of what is possible, decoding beside a ridge regression, and verdict."""
    return [nats_of(goodness), share_of(goodness), *decoded_of(goodness), goodness.strength]
