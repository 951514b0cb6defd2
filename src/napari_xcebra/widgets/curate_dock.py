"""Curate: go through the cells, decide on them by hand, and hand the result on."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from qtpy.QtCore import QTimer
from qtpy.QtWidgets import QVBoxLayout, QWidget

from napari_xcebra.curation import UNDECIDED, Status, with_model
from napari_xcebra.widgets.agreement_panel import AgreementPanel
from napari_xcebra.widgets.cell_card import CellCard, DecisionRow
from napari_xcebra.widgets.cell_facts import facts_of
from napari_xcebra.widgets.curation_keys import KeyBindings
from napari_xcebra.widgets.curations import curations_of
from napari_xcebra.widgets.deciding import deciding_of
from napari_xcebra.widgets.empty_state import EmptyState
from napari_xcebra.widgets.fold import Fold
from napari_xcebra.widgets.journal_line import JournalLine
from napari_xcebra.widgets.keys_and_tags import KeysAndTags
from napari_xcebra.widgets.lifetime import Presence, end_with_dock, follow
from napari_xcebra.widgets.many_row import ManyRow
from napari_xcebra.widgets.notice import Notice
from napari_xcebra.widgets.onwards_row import OnwardsRow
from napari_xcebra.widgets.queue_box import QueueBox
from napari_xcebra.widgets.retraining import retraining_of
from napari_xcebra.widgets.score_map import chosen_map, shown_map
from napari_xcebra.widgets.score_painter import painter_of
from napari_xcebra.widgets.session import session_of
from napari_xcebra.widgets.tally import Tally
from napari_xcebra.widgets.trainer import trainer_of
from napari_xcebra.widgets.vertical_scroll import VerticalScroll
from napari_xcebra.widgets.walk import walk_of
from napari_xcebra.widgets.wheel import spare_from_wheel
from napari_xcebra.widgets.workspace import open_dock

if TYPE_CHECKING:
    import napari

    from napari_xcebra.widgets.walk import QueueChoice

WIDTH = 350
DECISIONS: dict[str, Status] = {
    "accept": "accepted",
    "reject": "rejected",
    "undecided": "undecided",
}


class CurateDock(QWidget):
    """Everything about deciding by hand, top to bottom."""

    def __init__(self, napari_viewer: napari.viewer.Viewer) -> None:
        super().__init__()
        self.session = session_of(napari_viewer)
        self.curations = curations_of(self.session)
        self.walk = walk_of(self.session)
        self.deciding = deciding_of(self.session)
        painter_of(self.session)
        self._make_parts()
        self._lay_out()
        self._connect_parts()
        self._follow_session()
        self._show_keys()
        self._refresh()

    # ------------------------------------------------------------ making

    def _make_parts(self) -> None:
        self.empty = EmptyState()
        self.journal = JournalLine(self.curations)
        self.tally = Tally()
        self.card = CellCard()
        self.decide = DecisionRow()
        self.notice = Notice()
        self.many = ManyRow(self.session)
        self.queue = QueueBox()
        self.agreement = AgreementPanel()
        self.keys = KeysAndTags(self.session)
        self.onwards = OnwardsRow(self.session)
        # signals come in groups: what can be seen is brought up to date once
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.setInterval(0)
        self._soon.timeout.connect(self._refresh)
        self._soon.timeout.connect(self._begin)

    def _lay_out(self) -> None:
        self.blind_fold = Fold(
            "Blind judging and agreement",
            "Decide without seeing scores; compare yourself with the model or with others.",
        )
        self.blind_fold.addWidget(self.agreement)
        self._parts = QWidget()
        parts = QVBoxLayout(self._parts)
        parts.setContentsMargins(0, 0, 0, 0)
        parts.setSpacing(6)
        above = (self.journal, self.tally, self.card, self.decide, self.notice)
        for part in (*above, self.queue, self.many, self.onwards, self.blind_fold, self.keys):
            parts.addWidget(part)
        inside = QWidget()
        column = QVBoxLayout(inside)
        column.setContentsMargins(6, 6, 6, 6)
        column.addWidget(self.empty)
        column.addWidget(self._parts)
        column.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(VerticalScroll(inside, WIDTH))
        spare_from_wheel(self)

    def _connect_parts(self) -> None:
        self.empty.asked.connect(lambda name: open_dock(self.session.viewer, name))
        self.journal.named.connect(self._name_curator)
        self.card.tag_toggled.connect(self.deciding.tag)
        self.card.tag_toggled.connect(self._later)  # also if the tag was refused
        self.card.noted.connect(self.deciding.write_note)
        self.decide.asked.connect(self.act)
        self.queue.chosen.connect(self._choose_queue)
        self.queue.factor_chosen.connect(lambda name: self._show(factor=name, latent=None))
        self.queue.centering.connect(self._center)
        self.many.said.connect(self._say)
        self.many.above.connect(self.deciding.accept_above)
        # what is folded away is not computed
        self.blind_fold.button.clicked.connect(self._later)
        self.agreement.blind.connect(self.judge_blind)
        self.agreement.compared.connect(self._compare)
        self.keys.changed.connect(self._show_keys)
        self.onwards.said.connect(self._say)

    def _follow_session(self) -> None:
        session = self.session
        for signal, method in (
            (session.recording_changed, self._show_recording),
            (session.runs_changed, self._later),
            (session.shown_changed, self._later),
            (self.curations.changed, self._later),
            (self.curations.said, self._say),
            (self.walk.moved, self._later),
            (self.walk.said, self._say),
            (self.deciding.said, self._say),
            (retraining_of(session).said, self._say),
            (trainer_of(session).changed, self._later),
        ):
            follow(self, signal, method)
        end_with_dock(self)
        self.presence = Presence(self)
        self.presence.changed.connect(self._come_or_go)
        self.bindings = KeyBindings(self, session.viewer.window._qt_window, self.act)

    # ------------------------------------------------------------ keys

    def _show_keys(self) -> None:
        keys, tags = self.keys.chosen, self.keys.tag_names
        self.bindings.bind(keys)
        self.card.show_tags(tags, keys)
        self.decide.show_keys(keys)
        self.many.show_keys(keys)
        self._later()

    def _come_or_go(self, in_front: bool) -> None:
        """Take the keys and catch up, or give the keys back to napari."""
        self._rest_keys()
        if in_front:
            self._soon.start()
        else:
            self.many.area.put_down()

    def _rest_keys(self) -> None:
        self.bindings.rest(not self.presence.now or self.session.current is None)

    def act(self, name: str) -> None:
        """Do what a key or a button of the table of keys stands for."""
        self.notice.clear()
        if name in DECISIONS:
            self.deciding.decide(DECISIONS[name])
        elif name in ("previous", "next"):
            self.walk.step(-1 if name == "previous" else 1)
        elif name in ("undo", "redo"):
            self.deciding.step_in_time(name)  # type: ignore[arg-type]
        elif name == "note":
            self.card.note.setFocus()
        elif name in ("lasso", "rectangle"):
            self.many.toggle(name)  # type: ignore[arg-type]
        elif name.startswith("tag "):
            number = int(name.removeprefix("tag "))
            if number <= len(self.keys.tag_names):
                self.deciding.tag(self.keys.tag_names[number - 1])

    # ------------------------------------------------------------ what the user does

    def judge_blind(self, blind: bool) -> None:
        """Hide all scores, or reveal them."""
        self._show(blind=blind)
        self.blind_fold.unfolded = True

    def _choose_queue(self, choice: QueueChoice) -> None:
        self.walk.choice = choice

    def _center(self, on: bool) -> None:
        self.walk.centering = on

    def _show(self, **what: Any) -> None:
        self.session.shown = replace(self.session.shown, **what)

    def _name_curator(self, name: str) -> None:
        self.curations.curator = name

    def _compare(self, path: str) -> None:
        curation = self.curations.current
        if curation is not None:
            self.agreement.compare_with(path, curation)

    def _begin(self) -> None:
        """Bring a cell up, if none is and nothing has to be chosen first."""
        if self.presence.now and self.walk.cell is None and not self.curations.offers:
            self.walk.begin()

    # ------------------------------------------------------------ what is shown

    def _later(self, *_: Any) -> None:
        if self.presence.now:
            self._soon.start()

    def _show_recording(self) -> None:
        self.notice.clear()
        self.agreement.forget_other()
        self._later()

    def _refresh(self) -> None:
        there = self.session.current is not None
        self.empty.show_step(
            "" if there else "No recording yet: open one in the Recording dock.", "Recording"
        )
        self._parts.setVisible(there)
        self._rest_keys()
        if not there:
            return
        self.journal.show_state()
        self._show_cell()
        self._show_queue()
        self.many.show_state()
        self.onwards.show_state()
        self._show_agreement()

    def _show_cell(self) -> None:
        curation, walk = self.curations.current, self.walk
        assert curation is not None
        self.card.show_cell(facts_of(self.session, walk.cell))
        self.tally.show_decisions(walk)
        self.decide.show_place(*walk.place)
        deciding = not self.curations.read_only and not self.curations.offers
        self.decide.allow(
            deciding=deciding,
            undo=curation.can_undo and deciding,
            redo=curation.can_redo and deciding,
        )

    def _show_queue(self) -> None:
        session, curation = self.session, self.curations.current
        painted = shown_map(session)
        assert curation is not None
        self.queue.show_choice(
            self.walk.choice,
            self.walk.orders,
            painted.attribution.factors if painted else (),
            session.shown.factor,
            tuple(dict.fromkeys([*self.keys.tag_names, *curation.all_tags])),
            session.shown.threshold if painted else None,
        )

    def _show_agreement(self) -> None:
        curation, shown = self.curations.current, self.session.shown
        assert curation is not None
        by_hand = int((curation.by_hand & (curation.status != UNDECIDED)).sum())
        found = None
        painted = chosen_map(self.session)
        if painted is not None and not shown.blind and by_hand and self.blind_fold.unfolded:
            selected = np.where(painted.known, painted.selected(shown.threshold), np.nan)
            found = with_model(curation, selected, shown.factor)
        self.agreement.show_model(found, blind=shown.blind, decided=by_hand)

    def _say(self, sentence: str, tone: Any, details: str) -> None:
        self.notice.say(sentence, tone, details)
