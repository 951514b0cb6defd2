"""Scores factors by what both routes to a map agree on: from the variables, and from the encoder.

The two share the traces and the unobserved state, and little else: a cell that both find is rarely
wrong. Only the variables can tell of a cell that carries a factor nearly alone, as the other cells
do not know it: hence the encoder lowers a score only so far. A factor that the encoder decodes
while no cell follows it is read from how much cells vary, and is scored by |J|.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from napari_xcebra.attribution.maps.conditional import (
    WORTH,
    FactorScores,
    conditional_encoding,
    in_cells,
)
from napari_xcebra.attribution.maps.from_encoder import generative_gradient, neuron_gradient
from napari_xcebra.attribution.stream import Stream
from napari_xcebra.attribution.watching import Watch
from napari_xcebra.learn.data.factors import TIME, Part
from napari_xcebra.learn.quality.verdict import Goodness
from napari_xcebra.text import counted, listed

LOWERED = 0.1
"""Share of the variables' score that the encoder's counts for at least.

Chosen on seed 3 of benchmarks/maps.py: without it, a sole carrier is lost.
"""
APART = 0.1
"""Share of the other route's score below which a route does not see a cell."""
ALONE = 0.5
"""The same where only one cell is seen: frames it was trained on tell the encoder a fifth of it."""
DECODED = 0.3
"""R² of the encoder from which on a factor that no cell follows is read from how cells vary."""
NAMED = 8
"""Cells that a note names at most."""
NEARLY_ALL, FEW_CELLS = 0.8, 10
"""Share of the cells from which on an artefact is suspected, and cells below which it is not."""
GRADIENT_FRAMES = 2000
"""Evenly spaced frames over which |J| is averaged."""


def agreement(variables: np.ndarray, encoder: np.ndarray) -> np.ndarray:
    """Geometric mean of both scores; the first where it is not above 0.

    >>> agreement(np.array([0.4, 0.4, 0.0]), np.array([0.1, 0.0, 0.3])).round(2).tolist()
    [0.2, 0.13, 0.0]
    """
    above = np.maximum(variables, 0)
    mean = np.sqrt(above * np.maximum(encoder, LOWERED * above))
    return np.where(variables > 0, mean, variables)


def both_routes(stream: Stream, watch: Watch) -> FactorScores:
    """Share of variance that each factor carries, by the variables and by the encoder."""
    whole, watch.share = watch.share, watch.share / 2
    variables = conditional_encoding(stream, watch)
    encoder = generative_gradient(stream, watch)
    watch.share = whole
    scores = agreement(variables.scores, encoder.scores)
    details = variables.details | {
        end: agreement(variables.details[end], encoder.details[end]) for end in ("low", "high")
    }
    details |= {"from_variables": variables.scores, "from_encoder": encoder.scores}
    notes, unheard = ["Scores are what two routes agree on."], []
    for route, found in (("variables", variables), ("encoder", encoder)):
        first, *others = found.notes
        notes += [first.replace("Scores are", f"From the {route}:"), *others]
    for row, part in enumerate(stream.fit.parts):
        if part.name == TIME:
            continue
        present = in_cells(stream.fit, part.name)
        goodness = stream.fit.goodness.get(part.name)
        if goodness is not None and not goodness.learned:
            scores[row] = variables.scores[row]
            for name in ("low", "high"):
                details[name][row] = variables.details[name][row]
            if present:
                notes.append(
                    f"The encoder did not learn {part.name}: its map is from the variables alone."
                )
        elif (sizes := _varying(stream, part, goodness, variables.scores[row])) is not None:
            scores[row] = sizes
            for name in ("low", "high"):
                details[name][row] = np.nan
            unheard.append(part.name)
            notes.append(
                f"{part.name} is read from how much cells vary, not from how high they are: hardly "
                "any cell follows it by itself, and its map shows |J|, what the encoder uses. The "
                "test of cells looks at how high they are, and may miss them."
            )
            continue
        elif present:
            notes += _disagreements(stream, part.name, row, variables, encoder)
        if present:
            notes += _everywhere(part.name, row, variables)
    notes = [n for n in notes if not any(f"cells that follow {name}," in n for name in unheard)]
    return FactorScores(scores, tuple(dict.fromkeys(notes)), details, encoder.latents)


def _varying(
    stream: Stream, part: Part, goodness: Goodness | None, followed: np.ndarray
) -> np.ndarray | None:
    """|J| of a factor that the encoder decodes from cells that do not follow it, else None."""
    if goodness is None or goodness.r2 < DECODED or goodness.ridge_r2 > APART * goodness.r2:
        return None
    sizes = _sizes(stream, part)
    # cells that the encoder uses count: of many others, some seem to follow anything a little
    mean = np.average(np.maximum(followed, 0), weights=np.square(sizes))
    return sizes if mean < APART * goodness.r2 else None


def _sizes(stream: Stream, part: Part) -> np.ndarray:
    """Mean |J| of a factor's latents, as a share of its largest: (cells,)."""
    some, _ = stream.thin(GRADIENT_FRAMES)
    total, frames = np.zeros(len(stream.fit.inputs.cell_ids)), 0
    with torch.no_grad():
        for local in neuron_gradient(some):
            size = local[:, part.latents].abs()
            size = size.mean(3) if size.ndim == 4 else size
            total += size.mean(1).sum(0).cpu().numpy()
            frames += len(local)
    mean: np.ndarray = total / frames
    return mean / max(mean.max(), 1e-12)


def _disagreements(
    stream: Stream, factor: str, row: int, variables: FactorScores, encoder: FactorScores
) -> Iterator[str]:
    """Cells that only one route sees, a sentence each."""
    one, other = variables.scores[row], encoder.scores[row]
    seen = [
        (scores[row] > WORTH) & (low[row] > 0)
        for scores, low in (
            (variables.scores, variables.details["low"]),
            (encoder.scores, encoder.details["low"]),
        )
    ]
    both = seen[0] & (other > (APART if seen[0].sum() > 1 else ALONE) * one)
    alone, unseen = seen[0] & ~both, seen[1] & (one < APART * other)
    ids = stream.fit.inputs.cell_ids
    if alone.any():
        why = (
            "too few cells carry it for the others to know it, so only the variables can tell"
            if both.sum() < 2
            else "perhaps what no other cell carries, or something that goes with it"
        )
        yield f"{_cells(ids[alone])} {factor} by the variables, not by the encoder: {why}."
    if unseen.any():
        yield (
            f"{_cells(ids[unseen])} {factor} by the encoder, not by the variables: "
            "perhaps something else that is shared with the cells that carry it."
        )


def _everywhere(factor: str, row: int, variables: FactorScores) -> Iterator[str]:
    """A warning where nearly all cells follow a factor in one direction."""
    sign = variables.details["sign"][row]
    followed = (variables.details["low"][row] > 0) & (variables.scores[row] > WORTH)
    if len(sign) < FEW_CELLS or followed.mean() < NEARLY_ALL:
        return
    same = max((sign[followed] > 0).mean(), (sign[followed] < 0).mean())
    if same >= NEARLY_ALL:
        yield (
            f"{followed.sum()} of {len(sign)} cells follow {factor} in the same direction: check "
            "motion of the tissue and light of the neuropil, which move all traces together."
        )


def _cells(ids: np.ndarray) -> str:
    """Count and first ids, with the verb."""
    named = listed([str(number) for number in ids[:NAMED]])
    more = " …" if len(ids) > NAMED else ""
    verb = "follows" if len(ids) == 1 else "follow"
    return f"{counted(len(ids), 'cell')} ({named}{more}) {verb}"
