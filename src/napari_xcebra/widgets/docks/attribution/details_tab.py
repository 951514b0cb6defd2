"""Shows what few need of a map: playback, colours, a second map, and all that was measured."""

from __future__ import annotations

from qtpy.QtCore import Qt, QTimer
from qtpy.QtWidgets import QSizePolicy, QWidget

from napari_xcebra.attribution.methods import method_named, title_of_method
from napari_xcebra.attribution.score_map import ScoreMap
from napari_xcebra.runs import Run
from napari_xcebra.widgets.controls.boxes import PlainLabel, plain
from napari_xcebra.widgets.controls.layouts import VerticalScroll, in_column
from napari_xcebra.widgets.controls.notice import VERDICT_HELP
from napari_xcebra.widgets.docks.attribution.paint_rows import ColorRow, OverTimeRow
from napari_xcebra.widgets.docks.attribution.side_by_side import SideBySide


class DetailsTab(VerticalScroll):
    """Rows that scroll as one; the panel fills them in."""

    def __init__(self) -> None:
        inside = QWidget()
        super().__init__(inside)
        self.colors = ColorRow()
        self.over_time = OverTimeRow()
        self.side_by_side = SideBySide()
        self.about = PlainLabel(wrap=True)
        self.about.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.about.setToolTip(plain(VERDICT_HELP))
        parts = (self.over_time, self.colors, self.side_by_side, self.about)
        in_column(*parts, 1, of=inside, spacing=8).setContentsMargins(0, 6, 0, 0)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Ignored)

    def show_about(self, painted: ScoreMap, run: Run | None) -> None:
        """Say how the scores were made, and all that was measured of the factor."""
        method = painted.attribution.method
        goodness = run.fit.goodness.get(painted.factor) if run is not None else None
        words = [f"{title_of_method(method).capitalize()}: {method_named(method).note}"]
        if goodness is not None and not painted.provisional:
            words.append(f"{painted.factor}: {goodness.measured}.")
        self.about.setText("\n\n".join(words))

    def reveal_comparison(self) -> None:
        """Scroll to the second map, once its plot has its place."""
        QTimer.singleShot(0, self._scroll_to_comparison)

    def _scroll_to_comparison(self) -> None:
        self.ensureWidgetVisible(self.side_by_side)
