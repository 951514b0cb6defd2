"""Steps through the cells, records decisions by hand, and saves the result."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from qtpy.QtWidgets import QWidget
from superqt.utils import qdebounced

from napari_xcebra.widgets.controls.layouts import (
    TWO_LINES,
    Fold,
    VerticalScroll,
    give_room,
    in_column,
    keep_room,
    spare_from_wheel,
)
from napari_xcebra.widgets.controls.napari_window import Presence, end_with_dock, follow
from napari_xcebra.widgets.controls.notice import NextStep, Notice
from napari_xcebra.widgets.docks.curate.cell_card import AgreementPanel, CellCard, facts_of
from napari_xcebra.widgets.docks.curate.keys import DECISIONS, KeyBindings, KeysAndTags
from napari_xcebra.widgets.docks.curate.rows import (
    TITLES,
    DecisionRow,
    QueueBox,
    SelectionRow,
    TagsAndNote,
    Tally,
)
from napari_xcebra.widgets.docks.curate.saving import FinishRow, JournalLine
from napari_xcebra.widgets.state.shown import chosen_map, shown_map
from napari_xcebra.widgets.window import services_of

if TYPE_CHECKING:
    import napari

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
        self.card = CellCard()
        self.decide = DecisionRow()
        self.words = TagsAndNote()
        self.notice = Notice()
        keep_room(self.notice)  # the buttons must not move when something is said
        self.notice.setMinimumHeight(TWO_LINES + 14)
        self.selection = SelectionRow(self.state, self.services.lasso, self.deciding)
        self.queue_box = QueueBox()
        self.agreement = AgreementPanel()
        self.keys = KeysAndTags(self.state)
        self.finish = FinishRow(self.state, self.curations, self.services.retraining)
        # signals come in groups: what can be seen is brought up to date once
        self._soon = qdebounced(self._catch_up, timeout=0, parent=self)
        # cells that are only passed by are not studied
        self._study_soon = qdebounced(self._study, timeout=PAUSE, parent=self)

    def _lay_out(self) -> None:
        self.words_fold = Fold("Tags and note", "Saved with the decision.", self.words)
        self.queue_fold = Fold("Queue", "Which cells come up, and in which order.", self.queue_box)
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
        folds = (self.words_fold, self.queue_fold, self.many_fold, self.blind_fold, self.keys)
        above = (self.journal, self.tally, (self.card, 1), self.decide)
        in_column(*above, in_column(*folds, spacing=2), of=self._parts, spacing=6)
        inside = QWidget()
        give_room(self.empty)  # it stands alone
        in_column(self.empty, (self._parts, 1), of=inside).setContentsMargins(6, 4, 6, 4)
        # what is said, and the next step, stand below: nothing moves under the mouse
        self._below = QWidget()
        in_column(self.notice, self.finish, of=self._below, spacing=4).setContentsMargins(
            6, 2, 6, 4
        )
        in_column((VerticalScroll(inside, WIDTH), 1), self._below, of=self, spacing=0)
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

    def _go_to(self, frame: int) -> None:
        """Look at the movie at a frame."""
        self.close_up.show_movie()
        self.state.frame = frame

    def _see_all(self) -> None:
        self.close_up.wanted = False

    def _choose_queue(self, choice: Any) -> None:
        self.queue.choice = choice

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

    def _show_cell(self) -> None:
        curation, queue = self.curations.current, self.queue
        assert curation is not None
        selection = self.state.selection
        facts = facts_of(self.state, self.curations, selection)
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
        if seen and len(selection) == 1 and queue is not None:
            self.services.studies.ask(int(selection[0]), queue.next(int(selection[0])))

    def _show_study(self, cell: int | None = None) -> None:
        """Show what is known of the selected cell; `cell` is the one that was studied."""
        opened, selection = self.state.current, self.state.selection
        chosen = int(selection[0]) if len(selection) == 1 else None
        if opened is None or (cell is not None and cell != chosen):
            return
        study = None if chosen is None else self.services.studies.of(chosen)
        self.card.show_study(study, opened, chosen)
        if study is not None and chosen is not None:
            self.close_up.show_neighbors(chosen, study.neighbors)

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
        self.queue_fold.title = f"Queue: {TITLES[self.queue.choice.order]}"

    def _show_agreement(self) -> None:
        curation = self.curations.current
        assert curation is not None
        painted = chosen_map(self.state) if self.blind_fold.unfolded else None
        self.agreement.show_curation(curation, painted, self.state.shown)
