"""Steps through the cells, records decisions by hand, and saves the result."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import QFrame, QLabel, QPushButton, QSizePolicy, QWidget
from superqt.utils import qdebounced

from napari_xcebra.attribution.score_map import ScoreMap
from napari_xcebra.curation import (
    STATUSES,
    UNDECIDED,
)
from napari_xcebra.text import chance_text
from napari_xcebra.widgets.controls.boxes import PlainLabel, primary_button
from napari_xcebra.widgets.controls.layouts import (
    TWO_LINES,
    Fold,
    VerticalScroll,
    give_room,
    in_column,
    in_row,
    keep_room,
    spare_from_wheel,
)
from napari_xcebra.widgets.controls.napari_window import Presence, end_with_dock, follow
from napari_xcebra.widgets.controls.notice import NextStep, Notice
from napari_xcebra.widgets.docks.curate.by_exception import PropertyRow, ProposalPanel
from napari_xcebra.widgets.docks.curate.keys import DECISIONS, KeyBindings, KeysAndTags, readable
from napari_xcebra.widgets.docks.curate.rows import (
    COLORS,
    MARKS,
    TITLES,
    AgreementPanel,
    DecisionRow,
    QueueBox,
    SelectionRow,
    TagsAndNote,
    Tally,
)
from napari_xcebra.widgets.docks.curate.saving import FinishRow, JournalLine
from napari_xcebra.widgets.layers.scores import color_by
from napari_xcebra.widgets.plots.pictures import LEAST, MOST, ClipStrip
from napari_xcebra.widgets.plots.score_plots import ScoreStrip
from napari_xcebra.widgets.services.reading import NO_MOVIE, CellStudy
from napari_xcebra.widgets.state.shown import chosen_map, shown_map
from napari_xcebra.widgets.window import services_of

if TYPE_CHECKING:
    import napari

    from napari_xcebra.recording import Recording
    from napari_xcebra.recording.footprints import Neighbor
    from napari_xcebra.widgets.state.curations import Curations
    from napari_xcebra.widgets.state.shown import Shown
    from napari_xcebra.widgets.state.state import State
    from napari_xcebra.workspace_file import Opened


@dataclass(frozen=True)
class _CellFacts:
    """What the card says of a cell; `by` is empty for a decision by hand, else "by threshold"."""

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


def _facts_of(state: State, curations: Curations, cells: np.ndarray) -> _CellFacts:
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
    if len(others := curation.merged.get(cell, ())) > 1:
        ids = np.asarray(recording.cell_ids)[[part for part in others if part != cell]]
        title += f" · merged with {', '.join(map(str, ids))}"
    status = STATUSES[curations.status(opened)[cell]]
    painted = shown_map(state)
    by = curation.by(cell) if status != "undecided" else ""
    return _CellFacts(
        title=title,
        scores=_scores(painted, cell, state.shown),
        extractor=_extractor(recording, cell, accepted=bool(curations.extractor(opened)[cell])),
        status=status,
        by="" if by in ("", "hand") else f"by {by}",
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
        words.append(f"q {chance_text(painted.q[cell])}")
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


class _CellCard(QFrame):
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
        self.reason = PlainLabel(wrap=True)
        self.reason.setAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)
        self.reason.setToolTip("Why the call of the extractor is doubtful; what is proposed.")
        self.clips = ClipStrip()
        self.neighbors = [self._row() for _ in range(ROWS)]
        self._shown: tuple[int, ...] = ()
        for label in (self.title, self.extractor):
            # long names are cut off rather than making the dock wide
            label.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        top = in_row((self.title, 1), self.status)
        beside = in_column(*self.neighbors, spacing=0)
        parts = (top, self.scores, self.extractor, self.reason, (self.clips, 1), beside)
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

    def show_reason(self, *sentences: str) -> None:
        """Say why to look at it; the room for it stays, said or not."""
        self.reason.setFixedHeight(3 * TWO_LINES // 2 + max(0, len(sentences) - 1) * TWO_LINES)
        self.reason.setText("\n".join(filter(None, sentences)))

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


WIDTH = 350
PAUSE = 120
"""Milliseconds that a cell is looked at before its clips are read."""


class CurateDock(QWidget):
    """Everything about deciding by hand, top to bottom."""

    def __init__(self, napari_viewer: napari.viewer.Viewer) -> None:
        super().__init__()
        self.services = services_of(napari_viewer)
        self.state = self.services.state
        self.curations = self.services.curations
        self.queue = self.services.queue
        self.deciding = self.services.deciding
        self.close_up = self.services.close_up
        self._make_parts()
        self._lay_out()
        self._connect_parts()
        self._follow_state()
        self._show_keys()
        self._refresh()
        self._soon()

    # ------------------------------------------------------------ making

    def _make_parts(self) -> None:
        self.empty = NextStep()
        self.journal = JournalLine(self.curations)
        self.tally = Tally(self.journal.place)
        self.card = _CellCard()
        self.start = primary_button("")
        self.start.setToolTip(
            "Take over what the extractor decided, in one step that can be undone; then only the "
            "doubtful ROIs come up, each with its reason."
        )
        self.decide = DecisionRow()
        self.words = TagsAndNote()
        self.notice = Notice()
        keep_room(self.notice)  # the buttons must not move when something is said
        self.notice.setMinimumHeight(TWO_LINES + 14)
        self.selection = SelectionRow(self.state, self.services.lasso, self.deciding)
        self.queue_box = QueueBox()
        self.property_row = PropertyRow(self.state, self.queue)
        self.proposal = ProposalPanel(self.services.checks, self.deciding)
        self.agreement = AgreementPanel()
        self.keys = KeysAndTags(self.state)
        self.finish = FinishRow(self.state, self.curations, self.services.retraining)
        # signals come in groups: what can be seen is brought up to date once
        self._soon = qdebounced(self._catch_up, timeout=0, parent=self)
        # once what was unfolded has its place
        self._reveal_soon = qdebounced(self._reveal, timeout=50, parent=self)
        # cells that are only passed by are not studied
        self._study_soon = qdebounced(self._study, timeout=PAUSE, parent=self)

    def _lay_out(self) -> None:
        self.words_fold = Fold("Tags and note", "Saved with the decision.", self.words)
        self.queue_fold = Fold("Queue", "Which cells come up, and in which order.", self.queue_box,
                               self.property_row)  # fmt: skip
        self.proposal_fold = Fold(
            "Proposal", "Learns from your decisions what you would decide on the other cells.",
            self.proposal,
        )  # fmt: skip
        self.many_fold = Fold(
            "Several cells at once", "Draw around cells, or accept by score.", self.selection
        )
        self.blind_fold = Fold(
            "Blind judging",
            "Decide without seeing scores; compare with the model or another curator.",
            self.agreement,
        )
        self.keys.addWidget(self.journal.curator)
        self._parts = QWidget()
        folds = (self.words_fold, self.queue_fold, self.proposal_fold, self.many_fold,
                 self.blind_fold, self.keys)  # fmt: skip
        above = (self.journal, self.tally, self.start, (self.card, 1), self.decide)
        in_column(*above, in_column(*folds, spacing=2), of=self._parts, spacing=6)
        inside = QWidget()
        give_room(self.empty)  # it stands alone
        in_column(self.empty, (self._parts, 1), of=inside).setContentsMargins(6, 4, 6, 4)
        # what is said, and the next step, stand below: nothing moves under the mouse
        self._below = QWidget()
        in_column(self.notice, self.finish, of=self._below, spacing=4).setContentsMargins(
            6, 2, 6, 4
        )
        self._scroll = VerticalScroll(inside, WIDTH)
        for fold in folds:
            fold.button.clicked.connect(lambda _=False, fold=fold: self._reveal_soon(fold))
        in_column((self._scroll, 1), self._below, of=self, spacing=0)
        spare_from_wheel(self)

    def _connect_parts(self) -> None:
        self.empty.asked.connect(self.services.open_dock)
        self.journal.named.connect(self._name_curator)
        self.words.tag_toggled.connect(self.deciding.tag)
        self.words.tag_toggled.connect(self._later)  # also if the tag was refused
        self.words.noted.connect(self.deciding.write_note)
        self.card.asked.connect(lambda cell: self.state.select([cell]))
        self.card.clips.chosen.connect(self._go_to)
        self.decide.asked.connect(self.act)
        self.queue_box.chosen.connect(self._choose_queue)
        self.start.clicked.connect(lambda _=False: self.act("extractor"))
        self.property_row.chosen.connect(self._choose_queue)
        self.property_row.painted.connect(self._color_by)
        self.proposal_fold.button.clicked.connect(self._later)
        self.proposal.grown.connect(lambda: self._reveal_soon(self.proposal_fold))
        self.queue_box.factor_chosen.connect(lambda name: self._show(factor=name, latent=None))
        self.selection.said.connect(self.notice.say)
        self.selection.drawing.connect(self._see_all)
        # what is folded away is not computed
        self.blind_fold.button.clicked.connect(self._later)
        self.agreement.blind.connect(self.judge_blind)
        self.agreement.compared.connect(self._compare)
        self.keys.changed.connect(self._show_keys)
        self.finish.said.connect(self.notice.say)

    def _follow_state(self) -> None:
        state = self.state
        for signal, method in (
            (state.recording_changed, self._later),
            (state.runs_changed, self._later),
            (state.shown_changed, self._later),
            (self.curations.changed, self._later),
            (self.curations.said, self.notice.say),
            (self.queue.moved, self._later),
            (self.queue.said, self.notice.say),
            (self.deciding.said, self.notice.say),
            (self.services.retraining.said, self.notice.say),
            (self.services.training.changed, self._later),
            (self.services.studies.ready, self._show_study),
            (self.services.checks.changed, self._later),
            (self.close_up.changed, self._later),
        ):
            follow(self, signal, method)
        end_with_dock(self)
        close_up = self.close_up
        self.destroyed.connect(lambda *_: close_up.come_or_go(False))
        self.presence = Presence(self)
        self.presence.changed.connect(self._come_or_go)
        self.bindings = KeyBindings(self, state.viewer, self.act)

    # ------------------------------------------------------------ keys

    def _show_keys(self) -> None:
        keys, tags = self.keys.chosen, self.keys.tag_names
        self.bindings.bind(keys)
        self.words.show_tags(tags, keys)
        self.decide.show_keys(keys)
        self.selection.show_keys(keys)
        self._later()

    def _come_or_go(self, in_front: bool) -> None:
        """Take the keys and catch up, or give the keys back to napari."""
        self._rest_keys()
        self.close_up.come_or_go(in_front)
        if in_front:
            self._soon()
        else:
            self.selection.area.put_down()

    def _rest_keys(self) -> None:
        self.bindings.rest(not self.presence.now or self.state.current is None)

    def act(self, name: str) -> None:
        """Do what a key or a button of the table of keys stands for."""
        self.notice.clear()
        if name in DECISIONS:
            self.deciding.decide(DECISIONS[name])
        elif name == "flip":
            self.deciding.flip()
        elif name == "extractor":
            self.deciding.start_from_extractor()
        elif name == "merge":
            self.selection.join()
        elif name == "save":
            self.finish.open_dialog()
        elif name in ("previous", "next"):
            self.queue.step(-1 if name == "previous" else 1)
        elif name in ("undo", "redo"):
            self.deciding.step_in_time(name)  # type: ignore[arg-type]
        elif name == "note":
            self.words_fold.unfolded = True
            self.words.note.setFocus()
        elif name == "close up":
            self.close_up.wanted = not self.close_up.wanted
        elif name in ("lasso", "rectangle"):
            self.many_fold.unfolded = True
            self.selection.toggle(name)  # type: ignore[arg-type]
        elif name.startswith("tag "):
            number = int(name.removeprefix("tag "))
            if number <= len(self.keys.tag_names):
                self.deciding.tag(self.keys.tag_names[number - 1])

    # ------------------------------------------------------------ what the user does

    def judge_blind(self, blind: bool) -> None:
        """Hide all scores, or reveal them."""
        self._show(blind=blind)
        self.blind_fold.unfolded = True

    def _reveal(self, fold: Fold) -> None:
        """Scroll to what was unfolded."""
        if fold.unfolded:
            self._scroll.ensureWidgetVisible(fold, 0, 40)

    def _go_to(self, frame: int) -> None:
        """Look at the movie at a frame."""
        self.close_up.show_movie()
        self.state.frame = frame

    def _see_all(self) -> None:
        self.close_up.wanted = False

    def _choose_queue(self, choice: Any) -> None:
        self.queue.choice = choice

    def _color_by(self, name: str) -> None:
        """Colour the field by a property of the cells; not at all without a name."""
        self.close_up.wanted = self.close_up.wanted and not name
        color_by(self.state, name, self.queue.properties.get(name))

    def _show(self, **what: Any) -> None:
        self.state.shown = replace(self.state.shown, **what)

    def _name_curator(self, name: str) -> None:
        self.curations.curator = name

    def _compare(self, path: str) -> None:
        curation = self.curations.current
        if curation is not None:
            self.agreement.compare_with(path, curation)

    def _begin(self) -> None:
        """Go to the first cell, if there is no current one and nothing to choose first."""
        if self.presence.now and self.queue.cell is None and not self.curations.offers:
            self.queue.begin()

    # ------------------------------------------------------------ what is shown

    def _later(self, *_: Any) -> None:
        if self.presence.now:
            self._soon()

    def _catch_up(self) -> None:
        self.close_up.come_or_go(self.presence.now and self.isVisible())
        self._refresh()
        self._begin()

    def _refresh(self) -> None:
        there = self.state.current is not None
        self.empty.say(
            "" if there else "No recording yet: open one in the Recording dock.", "Recording"
        )
        self._parts.setVisible(there)
        self._below.setVisible(there)
        self._rest_keys()
        if not there:
            return
        self.journal.show_state()
        self._show_cell()
        self._show_queue()
        self.selection.show_state()
        self.finish.show_state()
        self._show_agreement()
        status = self.queue.status
        what = "Start from the extractor's decisions" if (status == UNDECIDED).any() else (
            "Show the doubtful ROIs only"
        )  # fmt: skip
        self.start.setText(f"{what}   {readable(self.keys.chosen['extractor'])}")
        self.start.setEnabled(not self.curations.offers)
        if self.proposal_fold.unfolded:
            self.proposal.show_state(status)

    def _show_cell(self) -> None:
        curation, queue = self.curations.current, self.queue
        assert curation is not None
        selection = self.state.selection
        facts = _facts_of(self.state, self.curations, selection)
        self.card.show_cell(facts, shown_map(self.state), self.state.shown.threshold)
        self.words.show_cell(facts.title, facts.tags, facts.note, facts.count)
        self.decide.show_meant(len(selection))
        self.decide.buttons["close up"].setChecked(self.close_up.wanted)
        self._show_study()
        self._study_soon()
        self.tally.show_decisions(queue)
        self.decide.show_place(*queue.place)
        deciding = not self.curations.read_only and not self.curations.offers
        self.decide.allow(
            deciding=deciding and len(selection) > 0,
            undo=curation.can_undo and deciding,
            redo=curation.can_redo and deciding,
        )

    def _study(self) -> None:
        """Read clips and neighbours of the cell, then those of the one that comes next."""
        selection, queue = self.state.selection, self.queue.queue
        seen = self.presence.now and self.isVisible()
        if seen:
            self.services.checks.ask(proposal=self.proposal_fold.unfolded)
        if seen and len(selection) == 1 and queue is not None:
            self.services.studies.ask(int(selection[0]), queue.next(int(selection[0])))

    def _show_study(self, cell: int | None = None) -> None:
        """Show what is known of the selected cell; `cell` is the one that was studied."""
        opened, selection = self.state.current, self.state.selection
        chosen = int(selection[0]) if len(selection) == 1 else None
        self._show_reason(chosen)
        if opened is None or (cell is not None and cell != chosen):
            return
        study = None if chosen is None else self.services.studies.of(chosen)
        self.card.show_study(study, opened, chosen)
        if study is not None and chosen is not None:
            self.close_up.show_neighbors(chosen, study.neighbors)

    def _show_reason(self, cell: int | None) -> None:
        doubts, proposal = self.queue.doubts, self.services.checks.proposal
        blind = self.state.shown.blind
        said = [] if doubts is None or blind else ["" if cell is None else doubts.reasons[cell]]
        if proposal is not None and self.proposal_fold.unfolded:
            said.append("" if cell is None else proposal.sentence(cell))
        self.card.show_reason(*said)

    def _show_queue(self) -> None:
        state, curation = self.state, self.curations.current
        painted = shown_map(state)
        assert curation is not None
        self.queue_box.show_choice(
            self.queue.choice,
            self.queue.orders,
            painted.attribution.factors if painted else (),
            state.shown.factor,
            tuple(dict.fromkeys([*self.keys.tag_names, *curation.all_tags])),
            state.shown.threshold if painted else None,
        )
        self.property_row.show_choice(self.queue.choice)
        self.queue_fold.title = f"Queue: {TITLES[self.queue.choice.order]}"

    def _show_agreement(self) -> None:
        curation = self.curations.current
        assert curation is not None
        painted = chosen_map(self.state) if self.blind_fold.unfolded else None
        self.agreement.show_curation(curation, painted, self.state.shown)
