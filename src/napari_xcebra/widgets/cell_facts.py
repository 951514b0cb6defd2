"""What is known of a cell, in the words of the Curate dock."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from napari_xcebra.curation import STATUSES
from napari_xcebra.widgets.cell_card import CellFacts
from napari_xcebra.widgets.curations import curations_of
from napari_xcebra.widgets.score_map import ScoreMap, shown_map

if TYPE_CHECKING:
    from napari_xcebra.recording import Recording
    from napari_xcebra.widgets.session import Session
    from napari_xcebra.widgets.shown import Shown


def facts_of(session: Session, cell: int | None) -> CellFacts | None:
    """What to show of a cell; None if none is up."""
    opened, curations = session.current, curations_of(session)
    if opened is None or cell is None:
        return None
    recording, curation = opened.recording, curations.of(opened)
    title = f"Cell {np.asarray(recording.cell_ids)[cell]}"
    if "name" in recording.cells:
        title += f" · {recording.cells['name'][cell]}"
    status = STATUSES[curations.status(opened)[cell]]
    by_threshold = bool(curation.by_threshold[cell]) and status != "undecided"
    return CellFacts(
        title=title,
        scores=_scores(shown_map(session), cell, session.shown),
        extractor=_extractor(recording, cell, accepted=bool(curations.extractor(opened)[cell])),
        status=status,
        by="by threshold" if by_threshold else "",
        tags=curation.tags(cell),
        note=curation.note(cell),
    )


def _scores(painted: ScoreMap | None, cell: int, shown: Shown) -> str:
    if painted is None:
        return "Scores are hidden" if shown.blind else "No scores yet"
    if painted.at_chance:
        return f"{painted.factor} is at chance: its scores mean nothing"
    if not painted.known[cell]:
        return f"{painted.factor}: no score, as it took no part in the run"
    words = [f"{painted.factor} {painted.scores[cell]:.3g}", f"z {painted.z[cell]:.1f}"]
    if painted.q is not None and np.isfinite(painted.q[cell]):
        words.append(f"q {painted.q[cell]:.2g}")
    words.append(f"rank {painted.ranks[cell]} of {int(painted.known.sum())}")
    if painted.over_seeds is not None and painted.places is not None:
        best, worst = painted.places[:, cell]
        stable = "stable" if painted.stable(shown.threshold)[cell] else "not stable"
        words.append(f"{best}–{worst} over {len(painted.over_seeds.seeds)} seeds: {stable}")
    return " · ".join(words).replace("-", "−")


def _extractor(recording: Recording, cell: int, *, accepted: bool) -> str:
    said = "a cell" if accepted else "not a cell"
    probability = recording.cells.get("probability")
    if probability is None or not np.isfinite(float(probability[cell])):
        return f"Extractor: {said}"
    return f"Extractor: {said}, probability {float(probability[cell]):.2f}"
