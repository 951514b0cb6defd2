"""Which cells come up, and in which order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import QCheckBox, QGridLayout, QLabel, QWidget

from napari_xcebra.curation import ORDERS
from napari_xcebra.widgets.panel import small_box
from napari_xcebra.widgets.shown_choice import fill
from napari_xcebra.widgets.walk import QueueChoice

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
    "q-value": "q is the share of false discoveries among cells with such a score: it is there "
    "once scores have been tested against chance.",
    "instability": "First the cells whose rank changes most with the seed: it is there once "
    "training has been repeated with other seeds.",
    "disagreement": "First the cells that the score and the extractor's class rank most "
    "differently.",
    "position": "Neighbours follow each other.",
}


class QueueBox(QWidget):
    """Boxes for order, factor and filter."""

    chosen = Signal(object)
    """A QueueChoice."""
    factor_chosen = Signal(str)
    centering = Signal(bool)

    def __init__(self) -> None:
        super().__init__()
        self._choice = QueueChoice()
        self.order = small_box("In which order cells come up.")
        self.factor = small_box("Whose scores are meant: painted, listed and put in order.")
        self.status = small_box("Only cells that are undecided, accepted or rejected.")
        self.selected = small_box("Only cells above the threshold, or only those that are not.")
        self.tag = small_box("Only cells with a tag.")
        self.center = QCheckBox("Centre each cell")
        self.center.setToolTip("Move the image so that the cell that is up is in the middle.")
        self.center.setChecked(True)
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setSpacing(4)
        grid.addWidget(QLabel("Order"), 0, 0)
        grid.addWidget(self.order, 0, 1, 1, 2)
        grid.addWidget(self.factor, 0, 3)
        grid.addWidget(QLabel("Show"), 1, 0)
        for column, box in enumerate((self.status, self.selected, self.tag), start=1):
            grid.addWidget(box, 1, column)
            grid.setColumnStretch(column, 1)
        grid.addWidget(self.center, 2, 1, 1, 3)
        self.order.activated.connect(lambda i: self._change(order=self.order.itemData(i)))
        self.status.activated.connect(lambda i: self._change(status=self.status.itemData(i)))
        self.selected.activated.connect(lambda i: self._change(selected=self.selected.itemData(i)))
        self.tag.activated.connect(lambda i: self._change(tag=self.tag.itemData(i)))
        self.factor.activated.connect(lambda i: self.factor_chosen.emit(self.factor.itemData(i)))
        self.center.toggled.connect(self.centering)

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

        `threshold` is None where there are no scores, or nobody is to see them.
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
            self.selected,
            [("any z", None), (f"above{above}", True), (f"not above{above}", False)],
            choice.selected,
        )
        self.selected.setEnabled(threshold is not None)
        fill(self.tag, [("any tag", ""), *((tag, tag) for tag in tags)], choice.tag)
        self.tag.setEnabled(bool(tags))

    def _change(self, **what: Any) -> None:
        self.chosen.emit(replace(self._choice, **what))


def _order_help(order: str, possible: bool) -> str:
    help = HELP.get(order, "")
    return help if possible else f"Not possible now: no such scores are shown. {help}".strip()
