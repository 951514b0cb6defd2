"""Chooses the cells of the queue and their order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import QGridLayout, QLabel, QWidget

from napari_xcebra.curation import ORDERS
from napari_xcebra.widgets.controls.boxes import fill, small_box
from napari_xcebra.widgets.state.cell_queue import QueueChoice

TITLES = {
    "score": "by score, highest first",
    "q-value": "by q-value, lowest first",
    "instability": "by instability over seeds",
    "disagreement": "by disagreement",
    "position": "by position in the field",
    "random": "at random",
    "id": "by id",
}
HELP = {
    "q-value": (
        "q is the expected share of false discoveries at this score. Available once scores are "
        "tested against chance."
    ),
    "instability": (
        "Cells whose rank varies most with the seed come first. Available once training is "
        "repeated with other seeds."
    ),
    "disagreement": "Cells on which the score and the extractor disagree most come first.",
    "position": "Neighbours follow each other.",
}


class QueueBox(QWidget):
    """Boxes for order, factor and filter."""

    chosen = Signal(object)
    """A QueueChoice."""
    factor_chosen = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self._choice = QueueChoice()
        self.order = small_box("Order in which cells are shown.")
        self.factor = small_box("Factor whose scores are painted, listed and used for the order.")
        self.status = small_box("Show only undecided, accepted or rejected cells.")
        self.above = small_box("Show only cells above the threshold, or only the others.")
        self.tag = small_box("Show only cells with this tag.")
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setSpacing(4)
        grid.addWidget(QLabel("Order"), 0, 0)
        grid.addWidget(self.order, 0, 1, 1, 2)
        grid.addWidget(self.factor, 0, 3)
        grid.addWidget(QLabel("Show"), 1, 0)
        for column, box in enumerate((self.status, self.above, self.tag), start=1):
            grid.addWidget(box, 1, column)
            grid.setColumnStretch(column, 1)
        self.order.activated.connect(lambda i: self._change(order=self.order.itemData(i)))
        self.status.activated.connect(lambda i: self._change(status=self.status.itemData(i)))
        self.above.activated.connect(lambda i: self._change(above=self.above.itemData(i)))
        self.tag.activated.connect(lambda i: self._change(tag=self.tag.itemData(i)))
        self.factor.activated.connect(lambda i: self.factor_chosen.emit(self.factor.itemData(i)))

    def show_choice(
        self,
        choice: QueueChoice,
        orders: tuple[str, ...],
        factors: tuple[str, ...],
        factor: str,
        tags: tuple[str, ...],
        threshold: float | None,
    ) -> None:
        """Show what is chosen and what there is to choose from.

        `threshold` is None without scores, or while they are hidden.
        """
        self._choice = choice
        fill(self.order, [(TITLES[order], order) for order in ORDERS], choice.order)
        for row, order in enumerate(ORDERS):
            item = self.order.model().item(row)
            item.setEnabled(order in orders)
            item.setData(_order_help(order, order in orders), Qt.ItemDataRole.ToolTipRole)
        fill(self.factor, [(name, name) for name in factors], factor)
        self.factor.setEnabled(bool(factors))
        fill(
            self.status,
            [("all", "any"), ("undecided", "undecided"), ("accepted", "accepted"),
             ("rejected", "rejected")],
            choice.status,
        )  # fmt: skip
        above = "" if threshold is None else f" z {threshold:g}".replace("-", "−")
        fill(
            self.above,
            [("any z", None), (f"above{above}", True), (f"not above{above}", False)],
            choice.above,
        )
        self.above.setEnabled(threshold is not None)
        fill(self.tag, [("any tag", ""), *((tag, tag) for tag in tags)], choice.tag)
        self.tag.setEnabled(bool(tags))

    def _change(self, **what: Any) -> None:
        self.chosen.emit(replace(self._choice, **what))


def _order_help(order: str, possible: bool) -> str:
    help = HELP.get(order, "")
    return help if possible else f"Not available for the current scores. {help}".strip()
