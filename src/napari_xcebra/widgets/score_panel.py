"""The scores that are painted: their colours, threshold and tests, cell by cell and over time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from qtpy.QtWidgets import QVBoxLayout, QWidget

from napari_xcebra.widgets.camera import bring_into_view
from napari_xcebra.widgets.cell_table import CellTable
from napari_xcebra.widgets.color_bar import ColorRow
from napari_xcebra.widgets.curations import curations_of
from napari_xcebra.widgets.lifetime import follow
from napari_xcebra.widgets.over_time_row import OverTimeRow
from napari_xcebra.widgets.painting import colors_of
from napari_xcebra.widgets.plot_style import style_of
from napari_xcebra.widgets.ranking import Ranking
from napari_xcebra.widgets.score_histogram import ScoreHistogram
from napari_xcebra.widgets.score_map import ScoreMap, painted_map
from napari_xcebra.widgets.score_painter import painter_of
from napari_xcebra.widgets.session import Session
from napari_xcebra.widgets.side_by_side import SideBySide
from napari_xcebra.widgets.significance_row import SignificanceRow
from napari_xcebra.widgets.stability_row import StabilityRow
from napari_xcebra.widgets.statistics_store import statistic_columns, statistics_of
from napari_xcebra.widgets.time_painter import time_painter_of


class ScorePanel(QWidget):
    """Everything there is to see of one map, top to bottom.

    Parameters
    ----------
    session : Session
    """

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._painter = painter_of(session)
        self._time_painter = time_painter_of(session)
        self._curations = curations_of(session)
        self._statistics = statistics_of(session)
        self._map: ScoreMap | None = None
        self.colors = ColorRow()
        self.histogram = ScoreHistogram()
        self.significance = SignificanceRow(session)
        self.stability = StabilityRow(session)
        self.table = CellTable()
        self.over_time = OverTimeRow()
        self.side_by_side = SideBySide()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        for part in (self.colors, self.histogram, self.significance, self.stability):
            column.addWidget(part)
        column.addWidget(self.table, 1)
        for part in (self.over_time, self.side_by_side):
            column.addWidget(part)
        self._connect_parts()
        self._follow_session()
        self._show_theme()

    def _connect_parts(self) -> None:
        self.colors.colormap_changed.connect(lambda name: self._change(colormap=name))
        self.colors.limits_changed.connect(self._set_limits)
        self.histogram.threshold_changed.connect(lambda z: self._change(threshold=z))
        self.histogram.dim_changed.connect(lambda dim: self._change(dim=dim))
        self.histogram.brushed.connect(self._session.select)
        self.table.marked.connect(self._mark_from_table)
        self.over_time.toggled.connect(lambda on: self._change(over_time=on))
        self.over_time.smoothing_changed.connect(lambda s: self._change(smoothing=s))
        self.side_by_side.picked.connect(self._session.select)

    def _follow_session(self) -> None:
        session = self._session
        for signal, method in (
            (session.selection_changed, self._show_selection),
            (session.frame_changed, self._show_status),
            (self._painter.limits_changed, self._show_colors),
            (self._time_painter.status_changed, self._show_status),
            (self._statistics.changed, self._show_table),
            (session.viewer.events.theme, self._show_theme),
        ):
            follow(self, signal, method)

    # ------------------------------------------------------------ what the user does

    def _change(self, **what: Any) -> None:
        self._session.shown = replace(self._session.shown, **what)

    def _set_limits(self, limits: tuple[float, float] | None) -> None:
        if self._time_painter.limits is not None:
            self._time_painter.set_limits(limits)
            self._show_colors()
        else:
            self._painter.set_limits(limits)

    def _mark_from_table(self, cells: np.ndarray) -> None:
        self._session.select(cells)
        if (cell := self.table.current_cell) is not None and cell in cells:
            bring_into_view(self._session, cell)

    # ------------------------------------------------------------ what is shown

    def show_map(self, painted: ScoreMap) -> None:
        """Show a map, or the same again with what is chosen now."""
        shown = self._session.shown
        self._show_scores(painted)
        for part in (self.significance, self.stability):
            part.setVisible(not painted.provisional)  # which need a trained run
        self._show_colors()
        self.over_time.show_state(
            following=shown.over_time,
            smoothing=shown.smoothing,
            why_not=painted.why_not_over_time,
            note=painted.note_over_time,
        )
        self.show_comparison()
        self._show_selection()
        self._show_status()

    def forget(self) -> None:
        """There is no map, or its cells are no longer the same."""
        self._map = None

    def show_decisions(self) -> None:
        """Show which cells are accepted by now."""
        # where another recording is turned to, the map in this panel is not of it
        painted = painted_map(self._session)
        if self._map is not None and painted is not None:
            self._show_scores(painted)

    def show_questions(self) -> None:
        """Show how far the tests of the run are."""
        self.significance.show_shown()
        self.stability.show_shown()

    def show_comparison(self) -> None:
        """Show the map that is painted beside this one, if any."""
        shown, beside = self._session.shown, self._painter.beside
        self.side_by_side.show_choice(self._session.runs, shown, beside)
        title = f"{beside[1]} · {beside[0]}" if beside else ""
        self.side_by_side.show_maps(self._map, self._painter.map_beside(), title, shown.threshold)
        self.side_by_side.mark(self._session.selection)

    def _show_scores(self, painted: ScoreMap) -> None:
        shown = self._session.shown
        before, self._map = self._map, painted
        same = before is not None and (
            (before.attribution, before.factor, before.latent)
            == (painted.attribution, painted.factor, painted.latent)
        )
        if not same:
            self.histogram.show_map(painted)
        self.histogram.show_threshold(shown.threshold, dim=shown.dim)
        self._show_table()

    def _show_table(self) -> None:
        painted, shown = self._map, self._session.shown
        opened, run = self._session.current, self._session.shown_run
        if painted is None or opened is None:
            return
        grey = np.full(len(painted.scores), np.nan)
        colors = colors_of(
            grey if painted.at_chance else painted.scores, shown.colormap, self._painter.limits
        )
        found = self._statistics.of(opened, run) if run is not None else None
        more = statistic_columns(found, painted.factor, shown.statistics)
        accepted = self._curations.accepted(opened)
        ranking = Ranking.of(opened.recording, painted, shown.threshold, accepted)
        self.table.narrow(shown.q_limit if shown.q_only else None, stable_only=shown.stable_only)
        self.table.show_ranking(ranking.with_columns(more), colors[1:])

    def _show_colors(self) -> None:
        painted, shown = self._map, self._session.shown
        if painted is None:
            return
        moving = self._time_painter.limits
        chosen = self._time_painter.limits_chosen if moving else self._painter.limits_chosen
        colormap = "gray" if painted.at_chance else shown.colormap
        self.colors.setEnabled(not painted.at_chance)
        self.colors.show_colors(colormap, moving or self._painter.limits, chosen=chosen)
        self.histogram.show_colors(colormap, self._painter.limits)

    def _show_selection(self) -> None:
        cells = self._session.selection
        self.table.mark(cells)
        self.histogram.mark(cells)
        self.side_by_side.mark(cells)

    def _show_status(self) -> None:
        self.over_time.show_status(self._time_painter.status)

    def _show_theme(self) -> None:
        style = style_of(self._session.viewer.theme)
        self.histogram.follow_theme(style)
        self.side_by_side.follow_theme(style)
