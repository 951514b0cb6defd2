"""Shows the painted scores: colours, threshold, tests, cells, and course over time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from qtpy.QtWidgets import QTabWidget, QWidget

from napari_xcebra.attribution.ranking import Ranking, statistic_columns
from napari_xcebra.attribution.score_map import ScoreMap
from napari_xcebra.widgets.controls.layouts import in_column
from napari_xcebra.widgets.controls.napari_window import follow
from napari_xcebra.widgets.docks.attribution.cell_table import CellTable
from napari_xcebra.widgets.docks.attribution.choices import DetailsTab
from napari_xcebra.widgets.docks.attribution.work_rows import SignificanceRow, StabilityRow
from napari_xcebra.widgets.layers.camera import bring_into_view
from napari_xcebra.widgets.layers.scores import colors_of
from napari_xcebra.widgets.plots.plot_style import style_of
from napari_xcebra.widgets.plots.score_plots import ScoreHistogram
from napari_xcebra.widgets.state.shown import painted_map
from napari_xcebra.widgets.window import Services


class ScorePanel(QWidget):
    """Everything there is to see of one map, top to bottom."""

    def __init__(self, services: Services) -> None:
        super().__init__()
        self._state = services.state
        self._painter = services.painter
        self._time_painter = services.time_painter
        self._around = services.around_event
        self._scale = services.color_scale
        self._curations = services.curations
        self._statistics = services.statistics
        self._map: ScoreMap | None = None
        self.histogram = ScoreHistogram()
        self.significance = SignificanceRow(services)
        self.stability = StabilityRow(services)
        self.table = CellTable()
        self.details = details = DetailsTab()
        self.colors, self.over_time = details.colors, details.over_time
        self.side_by_side = details.side_by_side
        self.tabs = QTabWidget()
        self.tabs.setDocumentMode(True)
        self.tabs.addTab(self.table, "Table")
        self.tabs.addTab(self.histogram, "Histogram")
        self.tabs.addTab(self.details, "Details")
        questions = in_column(self.significance, self.stability, spacing=2)
        in_column((self.tabs, 1), questions, of=self, spacing=4)
        self._connect_parts()
        self._follow_state()
        self._show_theme()

    def reveal_comparison(self) -> None:
        """Bring the second map to the front."""
        self.tabs.setCurrentWidget(self.details)
        self.details.reveal_comparison()

    def _connect_parts(self) -> None:
        self.colors.colormap_changed.connect(lambda name: self._change(colormap=name))
        self.colors.limits_changed.connect(self._scale.set_limits)
        self.histogram.threshold_changed.connect(lambda z: self._change(threshold=z))
        self.histogram.dim_changed.connect(lambda dim: self._change(dim=dim))
        self.histogram.brushed.connect(self._state.select)
        self.table.marked.connect(self._mark_from_table)
        self.over_time.toggled.connect(lambda on: self._change(over_time=on))
        self.over_time.smoothing_changed.connect(lambda s: self._change(smoothing=s))
        self.over_time.event_chosen.connect(self._around.ask)
        self.side_by_side.picked.connect(self._state.select)

    def _follow_state(self) -> None:
        state = self._state
        for signal, method in (
            (state.selection_changed, self._show_selection),
            (state.frame_changed, self._show_status),
            (self._scale.changed, self._show_colors),
            (self._time_painter.status_changed, self._show_status),
            (self._statistics.changed, self._show_table),
            (state.viewer.events.theme, self._show_theme),
        ):
            follow(self, signal, method)

    # ------------------------------------------------------------ what the user does

    def _change(self, **what: Any) -> None:
        self._state.shown = replace(self._state.shown, **what)

    def _mark_from_table(self, cells: np.ndarray) -> None:
        self._state.select(cells)
        if (cell := self.table.current_cell) is not None and cell in cells:
            bring_into_view(self._state, cell)

    # ------------------------------------------------------------ what is shown

    def show_map(self, painted: ScoreMap) -> None:
        """Show a map, or the same again with what is chosen now."""
        shown = self._state.shown
        self._show_scores(painted)
        for part in (self.significance, self.stability):
            part.setVisible(not painted.provisional)  # which need a trained run
        self.details.show_about(painted, self._state.shown_run)
        self._show_colors()
        self.over_time.show_state(
            following=shown.over_time,
            smoothing=shown.smoothing,
            why_not=painted.why_not_over_time,
            note=painted.note_over_time,
        )
        self._offer_events(painted)
        self.show_comparison()
        self._show_selection()
        self._show_status()

    def _offer_events(self, painted: ScoreMap) -> None:
        why_not = "Train the run to its end first." if painted.provisional else ""
        if painted.at_chance:
            why_not = f"{painted.factor} is at chance: no time at which it appears would be true."
        self.over_time.offer_events(self._around.events, why_not)

    def forget(self) -> None:
        """Forget the map, as its cells have changed: the next one is drawn whole."""
        self._map = None

    def forget_recording(self) -> None:
        """Show nothing: there is no map."""
        self.forget()
        self.histogram.forget_recording()
        self.table.show_ranking(None)
        self.side_by_side.show_maps(None, None, "", 0.0)

    def show_decisions(self) -> None:
        """Show which cells are accepted."""
        painted = painted_map(self._state)
        if self._map is not None and painted is not None:
            self._show_scores(painted)

    def show_questions(self) -> None:
        """Show the progress of the tests of the run."""
        self.significance.show_shown()
        self.stability.show_shown()

    def show_comparison(self) -> None:
        """Show the second map, if there is one."""
        shown, beside = self._state.shown, self._painter.beside
        self.side_by_side.show_choice(self._state.runs, shown, beside)
        title = f"{beside[1]} · {beside[0]}" if beside else ""
        self.side_by_side.show_maps(self._map, self._painter.map_beside(), title, shown.threshold)
        self.side_by_side.mark(self._state.selection)

    def _show_scores(self, painted: ScoreMap) -> None:
        shown = self._state.shown
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
        painted, shown = self._map, self._state.shown
        opened, run = self._state.current, self._state.shown_run
        if painted is None or opened is None:
            return
        colors = colors_of(
            painted.scores, shown.colormap, self._painter.limits, at_chance=painted.at_chance
        )
        found = self._statistics.of(opened, run) if run is not None else None
        more = statistic_columns(found, painted.factor, shown.statistics)
        accepted = self._curations.accepted(opened)
        ranking = Ranking.of(opened.recording, painted, shown.threshold, accepted)
        self.table.narrow(shown.q_limit if shown.q_only else None, stable_only=shown.stable_only)
        self.table.show_ranking(ranking.with_columns(more), colors[1:])

    def _show_colors(self) -> None:
        painted, shown = self._map, self._state.shown
        if painted is None:
            return
        scale, limits = self._scale.now, self._painter.limits
        colormap = "gray" if painted.at_chance else shown.colormap
        self.colors.setEnabled(not painted.at_chance)
        if scale is None:
            self.colors.show_colors(colormap, limits, chosen=self._painter.limits_chosen)
        else:
            self.colors.show_colors(scale.colormap, scale.limits, chosen=scale.chosen)
        # scores of a frame have other colours than their mean
        mapped = scale is None or scale.of_map
        self.histogram.show_colors(colormap if mapped else "gray", limits)

    def _show_selection(self) -> None:
        cells = self._state.selection
        self.table.mark(cells)
        self.histogram.mark(cells)
        self.side_by_side.mark(cells)

    def _show_status(self) -> None:
        self.over_time.show_status(self._time_painter.status)

    def _show_theme(self) -> None:
        style = style_of(self._state.viewer.theme)
        self.histogram.follow_theme(style)
        self.side_by_side.follow_theme(style)
