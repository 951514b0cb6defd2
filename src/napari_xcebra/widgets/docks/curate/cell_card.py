"""Shows what is known of the selected cell, hides scores for blind judging, and compares judges."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np
from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import QFileDialog, QFrame, QLabel, QPushButton, QSizePolicy, QWidget

from napari_xcebra.attribution.score_map import ScoreMap
from napari_xcebra.curation import (
    STATUSES,
    UNDECIDED,
    Agreement,
    Curation,
    between,
    read_curation,
    with_model,
)
from napari_xcebra.errors import InputError
from napari_xcebra.text import counted
from napari_xcebra.widgets.controls.boxes import PlainLabel, in_markup
from napari_xcebra.widgets.controls.layouts import in_column, in_row
from napari_xcebra.widgets.controls.notice import Notice
from napari_xcebra.widgets.docks.curate.rows import COLORS, MARKS
from napari_xcebra.widgets.plots.pictures import LEAST, MOST, ClipStrip
from napari_xcebra.widgets.plots.score_plots import ScoreStrip
from napari_xcebra.widgets.services.reading import NO_MOVIE, CellStudy
from napari_xcebra.widgets.state.shown import shown_map

if TYPE_CHECKING:
    from napari_xcebra.recording import Recording
    from napari_xcebra.recording.footprints import Neighbor
    from napari_xcebra.widgets.state.curations import Curations
    from napari_xcebra.widgets.state.shown import Shown
    from napari_xcebra.widgets.state.state import State
    from napari_xcebra.workspace_file import Opened


@dataclass(frozen=True)
class _CellFacts:
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


NO_CELL = _CellFacts(
    "No cell selected", "Click a cell in the image, or go to the next one.", count=0
)


def facts_of(state: State, curations: Curations, cells: np.ndarray) -> _CellFacts:
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
    return _CellFacts(
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


def _facts_of_many(opened: Opened, curations: Curations, cells: np.ndarray) -> _CellFacts:
    ids = [str(number) for number in np.asarray(opened.recording.cell_ids)[cells]]
    more = f" and {len(ids) - MOST_NAMED} more" if len(ids) > MOST_NAMED else ""
    counts = np.bincount(curations.status(opened)[cells], minlength=len(STATUSES))
    said = [f"{count} {status}" for status, count in zip(STATUSES, counts, strict=True) if count]
    curation = curations.of(opened)
    return _CellFacts(
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

    def show_cell(self, facts: _CellFacts, painted: ScoreMap | None, threshold: float) -> None:
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
            row.setText(_named_neighbor(opened.recording, *near[i]) if i < len(near) else "")
            row.setVisible(i < len(near))


def _named_neighbor(recording: Recording, neighbor: Neighbor, alike: float) -> str:
    """A neighbour in a line: how alike its trace is, and how far it overlaps or is away."""
    size = recording.pixel_size
    away = f"{neighbor.distance:.0f} px" if size is None else f"{neighbor.distance * size:.0f} µm"
    where = f"{away} away"
    if neighbor.overlap > 0:
        where = f"overlaps {max(neighbor.overlap, 0.01):.0%}".replace("%", " %")
    double = "  · same cell?" if neighbor.may_be_same(alike) else ""
    r = f"r {alike:.2f}".replace("-", "−")
    return f"cell {np.asarray(recording.cell_ids)[neighbor.cell]}   {r}   {where}{double}"


NEIGHBOR_HELP = "Correlation of its trace with that of this cell. Click to look at it."
LINE = 20
"""Height of a line of text, in pixels."""


class AgreementPanel(QWidget):
    """A button to hide and reveal the scores, and tables of agreement."""

    blind = Signal(bool)
    compared = Signal(str)
    """Path of another curator's journal."""

    def __init__(self) -> None:
        super().__init__()
        self.hide_scores = QPushButton()
        self.hide_scores.setCheckable(True)
        self.sentence = PlainLabel()
        self.table = QLabel()
        self.table.setTextFormat(Qt.TextFormat.RichText)
        self.compare = QPushButton("Compare with another curator …")
        self.compare.setToolTip(
            "Open the journal (.jsonl) of someone else who judged the same cells."
        )
        self.other = Notice()
        self.other_table = QLabel()
        self.other_table.setTextFormat(Qt.TextFormat.RichText)
        self.sentence.setWordWrap(True)
        for label in (self.sentence, self.table, self.other_table):
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        buttons = in_row(self.hide_scores, self.compare)
        in_column(buttons, self.sentence, self.table, self.other, self.other_table, of=self)
        self.hide_scores.clicked.connect(lambda on=False: self.blind.emit(on))
        self.compare.clicked.connect(lambda _=False: self._ask())
        self.show_model(None, blind=False, decided=0)
        self.other_table.hide()

    def show_curation(self, curation: Curation, painted: ScoreMap | None, shown: Shown) -> None:
        """Show how far decisions by hand agree with a map, if there is one to compare with."""
        by_hand = int((curation.by_hand & (curation.status != UNDECIDED)).sum())
        found = None
        if painted is not None and not shown.blind and by_hand:
            selected = np.where(painted.known, painted.above(shown.threshold), np.nan)
            found = with_model(curation, selected, shown.factor)
        self.show_model(found, blind=shown.blind, decided=by_hand)

    def show_model(self, agreement: Agreement | None, *, blind: bool, decided: int) -> None:
        """Show how well curator and model agree, unless scores are hidden."""
        self.hide_scores.setChecked(blind)
        self.hide_scores.setText("Reveal scores" if blind else "Judge blind")
        self.hide_scores.setToolTip(
            "Show the scores again, and how well your decisions agree with them."
            if blind
            else (
                "Hide all scores in the image, tables and plots while you decide; cells are then "
                "shown at random or by position."
            )
        )
        if blind:
            said = f"Scores are hidden. {counted(decided, 'cell')} decided by hand."
        else:
            said = (
                agreement.sentence
                if agreement
                else "Decide on some cells to see how well you agree with the model."
            )
        self.sentence.setText(said)
        shown = agreement is not None and agreement.n_cells > 0 and not blind
        self.table.setVisible(shown)
        self.table.setText(_as_html(agreement) if agreement is not None else "")

    def compare_with(self, path: str, curation: Curation) -> None:
        """Show how well the journal of another curator agrees with these decisions."""
        try:
            with read_curation(path) as other:
                found = between(curation, other)
        except InputError as error:
            self.other.say(str(error), "problem")
            self.other_table.hide()
            return
        self.other.say(found.sentence, "plain")
        self.other_table.setText(_as_html(found))
        self.other_table.setVisible(found.n_cells > 0)

    def forget_recording(self) -> None:
        """Forget the other curator, who judged another recording."""
        self.other.clear()
        self.other_table.hide()

    def _ask(self) -> None:
        path, _ = QFileDialog.getOpenFileName(
            self, "Decisions of another curator", "", "Journals (*.jsonl)"
        )
        if path:
            self.compared.emit(path)


def _as_html(agreement: Agreement) -> str:
    """Confusion table."""
    first, second = map(escape, agreement.names)
    table = agreement.table
    heads = "".join(f"<td align='right'>{name}</td>" for name in table.columns)
    rows = "".join(
        f"<tr><td>{in_markup(first)}: {index}</td>"
        + "".join(f"<td align='right'><b>{int(count)}</b></td>" for count in counts)
        + "</tr>"
        for index, counts in zip(table.index, table.to_numpy(), strict=True)
    )
    return (
        "<table cellspacing='0' cellpadding='3'>"
        f"<tr><td></td><td colspan='2'>{in_markup(second)}</td></tr>"
        f"<tr><td></td>{heads}</tr>{rows}</table>"
    )
