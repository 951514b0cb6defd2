"""Curate: go through the cells, decide on them by hand, and hand the result on."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from qtpy.QtCore import QTimer
from qtpy.QtGui import QKeySequence
from qtpy.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QProgressBar,
    QShortcut,
    QVBoxLayout,
    QWidget,
)

from napari_xcebra.curation import UNDECIDED, Status, with_model
from napari_xcebra.widgets.agreement_panel import AgreementPanel
from napari_xcebra.widgets.area import area_of
from napari_xcebra.widgets.cell_card import CellCard, DecisionRow, counts_in_words
from napari_xcebra.widgets.cell_facts import facts_of
from napari_xcebra.widgets.curation_keys import (
    MOST_TAGS,
    KeyBindings,
    Keys,
    chosen_keys,
    keep_keys,
    keys_of_menus,
)
from napari_xcebra.widgets.curations import curations_of
from napari_xcebra.widgets.deciding import deciding_of
from napari_xcebra.widgets.empty_state import EmptyState
from napari_xcebra.widgets.fold import Fold
from napari_xcebra.widgets.journal_line import JournalLine
from napari_xcebra.widgets.kept import keep, kept_list
from napari_xcebra.widgets.key_list import KeyList
from napari_xcebra.widgets.lifetime import Presence, end_with_dock, follow
from napari_xcebra.widgets.many_row import ManyRow
from napari_xcebra.widgets.notice import Notice
from napari_xcebra.widgets.onwards_row import OnwardsRow
from napari_xcebra.widgets.preferences import KEYS, changes_of
from napari_xcebra.widgets.queue_box import QueueBox
from napari_xcebra.widgets.retraining import retraining_of
from napari_xcebra.widgets.score_map import chosen_map, shown_map
from napari_xcebra.widgets.score_painter import painter_of
from napari_xcebra.widgets.session import session_of
from napari_xcebra.widgets.trainer import trainer_of
from napari_xcebra.widgets.vertical_scroll import VerticalScroll
from napari_xcebra.widgets.walk import walk_of
from napari_xcebra.widgets.wheel import spare_from_wheel
from napari_xcebra.widgets.workspace import open_dock

if TYPE_CHECKING:
    import napari

    from napari_xcebra.widgets.area import Form
    from napari_xcebra.widgets.walk import QueueChoice

WIDTH = 350
DEFAULT_TAGS = ["place", "speed", "red"]
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
        self.area = area_of(self.session)
        painter_of(self.session)
        self._make_parts()
        self._lay_out()
        self._connect_parts()
        self._follow_session()
        self._choosing = False
        self._bind_keys(chosen_keys())
        if (changes := changes_of(KEYS)) is not None:
            follow(self, changes, self._rebind)
        self._refresh()

    # ------------------------------------------------------------ making

    def _make_parts(self) -> None:
        self.empty = EmptyState()
        self.journal = JournalLine(self.curations)
        self.progress = QProgressBar()
        self.progress.setToolTip("How many cells of the queue are decided.")
        self.counts = QLabel()
        self.counts.setToolTip("Of all cells, with the colours of the lines in the image.")
        self.card = CellCard()
        self.decide = DecisionRow()
        self.notice = Notice()
        self.many = ManyRow()
        self.queue = QueueBox()
        self.agreement = AgreementPanel()
        self.tags = QLineEdit(", ".join(kept_list("tags") or DEFAULT_TAGS))
        self.tags.setToolTip(f"Names with commas between them; the first {MOST_TAGS} have a key.")
        self.keys = KeyList()
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
        self.keys_fold = Fold("Keys and tags", "Every key of this dock, to see and to change.")
        self.keys_fold.addWidget(self._tags_row())
        self.keys_fold.addWidget(self.keys)
        self._parts = QWidget()
        parts = QVBoxLayout(self._parts)
        parts.setContentsMargins(0, 0, 0, 0)
        parts.setSpacing(6)
        above = (self.journal, self.progress, self.counts, self.card, self.decide, self.notice)
        for part in (*above, self.queue, self.many, self.onwards, self.blind_fold, self.keys_fold):
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

    def _tags_row(self) -> QWidget:
        row = QWidget()
        line = QHBoxLayout(row)
        line.setContentsMargins(0, 0, 0, 0)
        line.addWidget(QLabel("Tags"))
        line.addWidget(self.tags, 1)
        return row

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
        self.many.armed.connect(self._arm)
        self.many.above.connect(self.deciding.accept_above)
        # what is folded away is not computed
        self.blind_fold.button.clicked.connect(self._later)
        self.agreement.blind.connect(self.judge_blind)
        self.agreement.compared.connect(self._compare)
        self.tags.editingFinished.connect(self._name_tags)
        self.tags.returnPressed.connect(self.tags.clearFocus)
        self.keys.changed.connect(self._choose_keys)
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
            (self.area.changed, self._later),
            (self.area.drawn, self._select_drawn),
        ):
            follow(self, signal, method)
        end_with_dock(self)
        area = self.area
        self.destroyed.connect(lambda *_: area.put_down())
        self.presence = Presence(self)
        self.presence.changed.connect(self._come_or_go)
        window = session.viewer.window._qt_window
        self.bindings = KeyBindings(self, window, self.act)
        self._escape = QShortcut(window)
        self._escape.setKey(QKeySequence("Esc"))
        self._escape.setEnabled(False)
        self._escape.activated.connect(self.area.put_down)
        self.destroyed.connect(self._escape.deleteLater)

    # ------------------------------------------------------------ keys

    def _choose_keys(self, keys: Keys) -> None:
        self._choosing = True  # one after the other they would be taken for the user's
        keep_keys(keys)
        self._choosing = False
        self._bind_keys(keys)

    def _rebind(self, _: object = None) -> None:
        """Take keys that were changed in napari's Preferences."""
        if not self._choosing and (keys := chosen_keys()) != self._keys:
            self._bind_keys(keys)

    def _bind_keys(self, keys: Keys) -> None:
        self._keys = keys
        self.bindings.bind(keys)
        self.keys.menus = keys_of_menus(self.session.viewer.window._qt_window)
        self.keys.show_keys(keys, self.tag_names)
        self.card.show_tags(self.tag_names, keys)
        self.decide.show_keys(keys)
        self.many.show_keys(keys)
        self._later()

    def _come_or_go(self, in_front: bool) -> None:
        """Take the keys and catch up, or give the keys back to napari."""
        self._rest_keys()
        if in_front:
            self._soon.start()
        else:
            self.area.put_down()

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
            self._arm(None if self.area.form == name else name)  # type: ignore[arg-type]
        elif name.startswith("tag "):
            number = int(name.removeprefix("tag "))
            if number <= len(self.tag_names):
                self.deciding.tag(self.tag_names[number - 1])

    # ------------------------------------------------------------ what the user does

    def judge_blind(self, blind: bool) -> None:
        """Hide all scores, or reveal them."""
        self._show(blind=blind)
        self.blind_fold.unfolded = True

    def _arm(self, form: Form | None) -> None:
        if form is not None and self.session.viewer.dims.ndisplay == 3:
            self._say("Cells can be drawn around in the 2-D view only.", "warning", "")
            form = None
        self.area.arm(form)
        self._later()

    def _select_drawn(self, cells: np.ndarray, add: bool) -> None:
        before = self.session.selection.tolist() if add else []
        self.session.select([*before, *cells.tolist()])
        if not len(cells):
            self._say("No cell has its middle inside what you drew.", "plain", "")

    def _choose_queue(self, choice: QueueChoice) -> None:
        self.walk.choice = choice

    def _center(self, on: bool) -> None:
        self.walk.centering = on

    def _show(self, **what: Any) -> None:
        self.session.shown = replace(self.session.shown, **what)

    def _name_curator(self, name: str) -> None:
        self.curations.curator = name

    def _name_tags(self) -> None:
        keep("tags", list(self.tag_names))
        self._bind_keys(self._keys)

    def _compare(self, path: str) -> None:
        curation = self.curations.current
        if curation is not None:
            self.agreement.compare_with(path, curation)

    @property
    def tag_names(self) -> tuple[str, ...]:
        """Tags on offer, each once."""
        names = (name.strip() for name in self.tags.text().replace(";", ",").split(","))
        return tuple(dict.fromkeys(name for name in names if name))

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
        self._escape.setEnabled(self.area.form is not None)
        if not there:
            return
        self.journal.show_state()
        self._show_cell()
        self._show_queue()
        self._show_many()
        self.onwards.show_state()
        self._show_agreement()

    def _show_cell(self) -> None:
        curation, walk = self.curations.current, self.walk
        assert curation is not None
        self.card.show_cell(facts_of(self.session, walk.cell))
        queue = walk.queue
        done, of = walk.progress
        self.progress.setRange(0, max(of, 1))
        self.progress.setValue(done)
        self.progress.setFormat(f"{done} of {of} decided")
        undecided, accepted, rejected = np.bincount(walk.status, minlength=3)
        self.counts.setText(counts_in_words(accepted, rejected, undecided))
        known = queue is not None and walk.cell is not None and bool(queue.keep[walk.cell])
        number = queue.number(walk.cell) + 1 if known and queue and walk.cell is not None else 0
        total = len(queue) if queue is not None else 0
        self.decide.place.setText(f"{number} of {total}" if number else f"– of {total}")
        deciding = not self.curations.read_only and not self.curations.offers
        for name in DECISIONS:
            self.decide.buttons[name].setEnabled(deciding)
        self.decide.buttons["undo"].setEnabled(curation.can_undo and deciding)
        self.decide.buttons["redo"].setEnabled(curation.can_redo and deciding)

    def _show_queue(self) -> None:
        session, curation = self.session, self.curations.current
        painted = shown_map(session)
        assert curation is not None
        self.queue.show_choice(
            self.walk.choice,
            self.walk.orders,
            painted.attribution.factors if painted else (),
            session.shown.factor,
            tuple(dict.fromkeys([*self.tag_names, *curation.all_tags])),
            session.shown.threshold if painted else None,
        )

    def _show_many(self) -> None:
        painted, shown = shown_map(self.session), self.session.shown
        self.many.show_state(self.area.form, len(self.session.selection))
        above = None if painted is None else int(painted.selected(shown.threshold).sum())
        self.many.show_threshold(shown.factor, shown.threshold, above)

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
