"""Shows the selected cell: its score, its transients, its neighbours, and what was decided."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from qtpy.QtCore import Signal
from qtpy.QtWidgets import QFrame, QLabel, QPushButton, QSizePolicy

from napari_xcebra.attribution.score_map import ScoreMap
from napari_xcebra.curation import STATUSES
from napari_xcebra.widgets.controls.boxes import PlainLabel
from napari_xcebra.widgets.controls.layouts import in_column, in_row
from napari_xcebra.widgets.docks.curate.decision_row import COLORS, MARKS
from napari_xcebra.widgets.layers.close_up import ALIKE
from napari_xcebra.widgets.plots.pictures import LEAST, MOST, ClipStrip
from napari_xcebra.widgets.plots.score_plots import ScoreStrip
from napari_xcebra.widgets.services.reading import NO_MOVIE, CellStudy
from napari_xcebra.widgets.state.shown import shown_map

if TYPE_CHECKING:
    from napari_xcebra.recording import Recording
    from napari_xcebra.recording.cell_shapes import Neighbor
    from napari_xcebra.widgets.state.curations import Curations
    from napari_xcebra.widgets.state.shown import Shown
    from napari_xcebra.widgets.state.state import State
    from napari_xcebra.workspace_file import Opened


@dataclass(frozen=True)
class CellFacts:
    """What the card says of a cell; `by` is "by threshold", or empty for a decision by hand."""

    title: str
    scores: str = ""
    extractor: str = ""
    status: str = ""
    by: str = ""
    tags: frozenset[str] = frozenset()
    note: str = ""
    count: int = 1
    cell: int | None = None
    words: tuple[str, str] | None = None


NO_CELL = CellFacts(
    "No cell selected", "Click a cell in the image, or go to the next one.", count=0
)


def facts_of(state: State, curations: Curations, cells: np.ndarray) -> CellFacts:
    """What to show of the selected cells, given by their positions."""
    opened = state.current
    if opened is None or not len(cells):
        return NO_CELL
    if len(cells) > 1:
        return _facts_of_many(opened, curations, cells)
    cell = int(cells[0])
    recording, curation = opened.recording, curations.of(opened)
    title = f"Cell {np.asarray(recording.cell_ids)[cell]}"
    if "name" in recording.cells:
        title += f" · {recording.cells['name'][cell]}"
    status = STATUSES[curations.status(opened)[cell]]
    painted = shown_map(state)
    by_threshold = bool(curation.by_threshold[cell]) and status != "undecided"
    return CellFacts(
        title=title,
        scores=_scores(painted, cell, state.shown),
        extractor=_extractor(recording, cell, accepted=bool(curations.extractor(opened)[cell])),
        status=status,
        by="by threshold" if by_threshold else "",
        tags=curation.tags(cell),
        note=curation.note(cell),
        cell=cell,
        words=_words(painted, cell),
    )


def _facts_of_many(opened: Opened, curations: Curations, cells: np.ndarray) -> CellFacts:
    ids = [str(number) for number in np.asarray(opened.recording.cell_ids)[cells]]
    more = f" and {len(ids) - MOST_NAMED} more" if len(ids) > MOST_NAMED else ""
    counts = np.bincount(curations.status(opened)[cells], minlength=len(STATUSES))
    said = [f"{count} {status}" for status, count in zip(STATUSES, counts, strict=True) if count]
    curation = curations.of(opened)
    return CellFacts(
        title=f"{len(cells)} cells",
        scores=f"Cells {', '.join(ids[:MOST_NAMED])}{more}",
        extractor=", ".join(said),
        status=STATUSES[int(counts.argmax())] if len(said) == 1 else "",
        tags=frozenset.intersection(*(curation.tags(int(cell)) for cell in cells)),
        count=len(cells),
    )


def _words(painted: ScoreMap | None, cell: int) -> tuple[str, str] | None:
    """Score and rank of a cell; None where there is no score that means something."""
    if painted is None or painted.at_chance or not painted.known[cell]:
        return None
    rank = f"rank {painted.ranks[cell]} of {int(painted.known.sum())}"
    return f"{painted.factor} {painted.scores[cell]:.3g}".replace("-", "−"), rank


def _scores(painted: ScoreMap | None, cell: int, shown: Shown) -> str:
    if painted is None:
        return "Scores are hidden" if shown.blind else "No scores yet"
    if painted.at_chance:
        return f"{painted.factor} is at chance: its scores mean nothing"
    if not painted.known[cell]:
        return f"{painted.factor}: no score (this cell was not in the run)"
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


MOST_NAMED = 12
"""Cells that are named where several are selected."""
ROWS = 3
"""Neighbours that are listed."""


class CellCard(QFrame):
    """What one cell is judged by; nothing moves from cell to cell."""

    asked = Signal(int)
    """Position of a neighbour to look at."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("card")
        self.title = PlainLabel()
        self.title.setStyleSheet("font-weight: bold; font-size: 15px;")
        self.status = QLabel()
        self.status.setToolTip("The decision on this cell, made by hand unless it says otherwise.")
        self.scores = ScoreStrip()
        self.extractor = PlainLabel()
        self.extractor.setToolTip("Verdict of the program that extracted the cell.")
        self.clips = ClipStrip()
        self.neighbors = [self._row() for _ in range(ROWS)]
        self._shown: tuple[int, ...] = ()
        for label in (self.title, self.extractor):
            # long names are cut off rather than making the dock wide
            label.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        top = in_row((self.title, 1), self.status)
        beside = in_column(*self.neighbors, spacing=0)
        parts = (top, self.scores, self.extractor, (self.clips, 1), beside)
        in_column(*parts, of=self, spacing=4).setContentsMargins(8, 6, 8, 6)

    def _row(self) -> QPushButton:
        number = len(self.findChildren(QPushButton))
        row = QPushButton(self)
        row.setFlat(True)
        row.setToolTip(NEIGHBOR_HELP)
        row.setAccessibleName(f"Neighbour {number + 1} of this cell")
        row.setFixedHeight(19)
        policy = QSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        policy.setRetainSizeWhenHidden(True)  # what is below stays in place
        row.setSizePolicy(policy)
        row.setStyleSheet("text-align: left; padding: 0px; background: transparent;")
        row.clicked.connect(lambda _=False: self.asked.emit(self._shown[number]))
        return row

    def show_cell(self, facts: CellFacts, painted: ScoreMap | None, threshold: float) -> None:
        """Show another cell, or what several have in common."""
        self.setEnabled(facts.count > 0)
        style = f"#card {{ border-left: 3px solid {COLORS[facts.status]}; }}"
        if style != self.styleSheet():  # which takes Qt milliseconds
            self.setStyleSheet(style)
        self.title.setText(" · ".join([facts.title, *sorted(facts.tags)]))
        by = f" · {facts.by}" if facts.by else ""
        self.status.setText(f"{MARKS[facts.status]} {facts.status}{by}")
        self.extractor.setText(facts.extractor)
        if painted is None or facts.words is None or facts.cell is None:
            self.scores.say(facts.scores)
        else:
            self.scores.show_cell(painted, facts.cell, threshold, facts.words, facts.scores)

    def show_study(self, study: CellStudy | None, opened: Opened, cell: int | None) -> None:
        """Show clips and neighbours of a cell; None while they are being read."""
        has_movie = opened.recording.movie is not None
        self.clips.setMinimumHeight(LEAST if has_movie else LINE)
        self.clips.setMaximumHeight(MOST if has_movie else LINE)
        if study is None or cell is None:
            self.clips.show_clips(None, (), "" if has_movie else NO_MOVIE)
        else:
            self.clips.show_clips(study.clips, opened.shapes.outline(cell), study.why_no_clips)
        near = study.neighbors[:ROWS] if study else ()
        self._shown = tuple(neighbor.cell for neighbor, _ in near)
        for i, row in enumerate(self.neighbors):
            row.setText(named_neighbor(opened.recording, *near[i]) if i < len(near) else "")
            row.setVisible(i < len(near))


def named_neighbor(recording: Recording, neighbor: Neighbor, alike: float) -> str:
    """A neighbour in a line: how alike its trace is, and how far it overlaps or is away."""
    size = recording.pixel_size
    away = f"{neighbor.distance:.0f} px" if size is None else f"{neighbor.distance * size:.0f} µm"
    where = f"{away} away"
    if neighbor.overlap > 0:
        where = f"overlaps {max(neighbor.overlap, 0.01):.0%}".replace("%", " %")
    double = "  · same cell?" if alike >= ALIKE else ""
    r = f"r {alike:.2f}".replace("-", "−")
    return f"cell {np.asarray(recording.cell_ids)[neighbor.cell]}   {r}   {where}{double}"


NEIGHBOR_HELP = "Correlation of its trace with that of this cell. Click to look at it."
LINE = 20
"""Height of a line of text, in pixels."""
