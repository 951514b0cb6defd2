"""Chooses what is painted, and shows its scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from napari.utils.colormaps import ensure_colormap
from qtpy.QtCore import Qt, QTimer, Signal
from qtpy.QtGui import QImage, QPixmap
from qtpy.QtWidgets import (
    QCheckBox,
    QComboBox,
    QFormLayout,
    QGridLayout,
    QLabel,
    QMenu,
    QPushButton,
    QSizePolicy,
    QTabWidget,
    QWidget,
)
from superqt.utils import signals_blocked

from napari_xcebra.attribution.methods import (
    METHODS,
    WHICH_FIRST,
    consensus_of,
    method_named,
    title_of_method,
)
from napari_xcebra.attribution.ranking import CellColumn, Ranking, statistic_columns
from napari_xcebra.attribution.score_map import LAG, Latent, ScoreMap
from napari_xcebra.curation.order import properties_of
from napari_xcebra.learn.quality.verdict import FOUND, Goodness
from napari_xcebra.widgets.controls.boxes import (
    NumberBox,
    PlainLabel,
    choice_box,
    fill,
    plain,
    small_button,
)
from napari_xcebra.widgets.controls.forms import in_dock
from napari_xcebra.widgets.controls.layouts import VerticalScroll, in_column, in_row
from napari_xcebra.widgets.controls.napari_window import follow
from napari_xcebra.widgets.controls.notice import VERDICT_HELP
from napari_xcebra.widgets.docks.attribution.cell_table import CellTable
from napari_xcebra.widgets.docks.attribution.windows import SideBySide
from napari_xcebra.widgets.docks.attribution.work_rows import SignificanceRow, StabilityRow
from napari_xcebra.widgets.layers.camera import bring_into_view
from napari_xcebra.widgets.layers.scores import colors_of
from napari_xcebra.widgets.plots.plot_style import style_of
from napari_xcebra.widgets.plots.score_plots import ScoreHistogram
from napari_xcebra.widgets.state.shown import COLORMAPS, LiveRun, Shown, painted_map

if TYPE_CHECKING:
    from napari_xcebra.learn.data.factors import Part
    from napari_xcebra.runs import Run
    from napari_xcebra.widgets.window import Services

FactorChoice = tuple[str, Latent]
"""Factor, and one of its latents, the lag of its cells, or None."""


class ShownChoice(QWidget):
    """Three boxes; each says what the user chose."""

    run_chosen = Signal(str)
    factor_chosen = Signal(object)
    method_chosen = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.run = choice_box("Training run whose scores are painted.")
        self.factor = choice_box("The factor that cells are scored for, or one of its latents.")
        self.method = choice_box(
            f"How the scores are computed from the trained encoder. {WHICH_FIRST}"
        )
        form = QFormLayout(self)
        form.setContentsMargins(0, 0, 0, 0)
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        for title, box in (("Run", self.run), ("Factor", self.factor), ("Method", self.method)):
            form.addRow(title, box)
        self.run.activated.connect(lambda i: self.run_chosen.emit(self.run.itemData(i)))
        self.factor.activated.connect(lambda i: self.factor_chosen.emit(self.factor.itemData(i)))
        self.method.activated.connect(lambda i: self.method_chosen.emit(self.method.itemData(i)))

    def show_choice(self, runs: list[Run], shown: Shown, live: LiveRun | None = None) -> None:
        """Show what there is to choose from, and what is chosen.

        `live` is a run that is being trained; it has one method.
        """
        titles = {run.name: f"{run.name} · {run.verdict}" for run in runs}
        if live is not None:
            titles[live.name] = live.title
        fill(self.run, [(title, name) for name, title in titles.items()], shown.run)
        run = next((run for run in runs if run.name == shown.run), None)
        if live is not None and live.name == shown.run:
            factors = _factor_choices(live.attribution.parts, {}, shown.method)
            methods = [(title_of_method(shown.method), shown.method)]
        else:
            parts, goodness = (run.fit.parts, run.fit.goodness) if run else ((), {})
            there = run.attributions.get(shown.method) if run else None
            factors = _factor_choices(
                parts, goodness, shown.method, lags=there is not None and LAG in there.details
            )
            methods = _method_choices(run)
        fill(self.factor, factors, (shown.factor, shown.latent))
        fill(self.method, methods, shown.method)
        for row, (_, method) in enumerate(methods):
            self.method.setItemData(row, method_named(method).help, Qt.ItemDataRole.ToolTipRole)


def _factor_choices(
    parts: Sequence[Part], goodness: Mapping[str, Goodness], method: str, *, lags: bool = False
) -> list[tuple[str, FactorChoice]]:
    """Factors of a run, each followed by its latents if it has several and the method tells.

    With `lags`, those tied to variables are followed by the lags of the cells.
    """
    choices: list[tuple[str, FactorChoice]] = []
    for part in parts:
        measured = goodness.get(part.name)
        doubt = measured is not None and measured.strength not in FOUND
        title = f"{part.name} ({measured.strength})" if measured and doubt else part.name
        choices.append((title, (part.name, None)))
        latents = part.stop - part.start
        if latents > 1 and method_named(method).has_latents:
            titles = [f"{part.name}, latent {i + 1} of {latents}" for i in range(latents)]
            choices += [(f"    {title}", (part.name, i)) for i, title in enumerate(titles)]
        if lags and part.variables and not doubt:
            choices.append((f"    {part.name}, lag of the cells in seconds", (part.name, LAG)))
    return choices


def _method_choices(run: Run | None) -> list[tuple[str, str]]:
    """Methods, each followed by its consensus over seeds; those not computed yet say so."""
    done = run.attributions if run else {}
    choices = []
    for name in METHODS:
        there = name in done
        choices.append((title_of_method(name) + ("" if there else " (not computed yet)"), name))
        if (consensus := done.get(consensus_of(name))) and consensus.stability:
            count = len(consensus.stability.seeds)
            title = f"{title_of_method(consensus.method)} ({count} seeds)"
            choices.append((title, consensus.method))
    return choices


STRIP = 14
"""Height of the colour bar in pixels."""


class _ColorRow(QWidget):
    """Colour map, colour bar, and the scores at its two ends."""

    colormap_changed = Signal(str)
    limits_changed = Signal(object)
    """(low, high), or None for those made from the scores."""

    def __init__(self) -> None:
        super().__init__()
        self.colormap = QComboBox()
        self.colormap.addItems(list(COLORMAPS))
        self.colormap.setToolTip("Colour map of the scores.")
        self.automatic = QPushButton("Auto limits")
        self.automatic.setToolTip(
            "From the lowest score to the 99th percentile, so that one outlier does not darken "
            "all other cells."
        )
        self.low = NumberBox("Score at the lower end of the colours.")
        self.high = NumberBox("Score at the upper end of the colours.")
        self.bar = QLabel()
        self.bar.setToolTip("Colours from low to high scores.")
        self.bar.setScaledContents(True)
        self.bar.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.bar.setFixedHeight(STRIP)
        self.bar.setMinimumWidth(60)
        layout = QGridLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(QLabel("Colours"), 0, 0)
        layout.addWidget(self.colormap, 0, 1)
        layout.addWidget(self.automatic, 0, 2)
        layout.addWidget(self.low, 1, 0)
        layout.addWidget(self.bar, 1, 1)
        layout.addWidget(self.high, 1, 2)
        layout.setColumnStretch(1, 1)
        self.colormap.currentTextChanged.connect(self.colormap_changed)
        self.automatic.clicked.connect(lambda _=False: self.limits_changed.emit(None))
        self.low.valueChanged.connect(self._tell)
        self.high.valueChanged.connect(self._tell)

    def show_colors(self, colormap: str, limits: tuple[float, float], *, chosen: bool) -> None:
        """Show a colour map and limits, which the user may have chosen."""
        with signals_blocked(self.colormap):
            self.colormap.setCurrentText(colormap)
        self.bar.setPixmap(_strip(colormap))
        for box, limit in ((self.low, limits[0]), (self.high, limits[1])):
            box.suit(*limits)
            box.show_number(limit)
        self.automatic.setEnabled(chosen)

    def _tell(self) -> None:
        low, high = self.low.value(), self.high.value()
        if high > low:
            self.limits_changed.emit((low, high))


AROUND = (
    "Score the painted factor by the time from an event: when does it appear, in which cells? Then "
    "move or play the time slider."
)
MOST_SECONDS = 60.0
FOLLOW = "Paint the scores at the current frame instead of their mean over frames."


def _strip(colormap: str) -> QPixmap:
    """Colours from low to high scores; in several rows, as Qt cannot stretch a single one."""
    row = ensure_colormap(colormap).map(np.linspace(0, 1, 256))
    pixels = np.tile(255 * row, (STRIP, 1)).astype(np.uint8)
    image = QImage(pixels.tobytes(), 256, STRIP, 4 * 256, QImage.Format.Format_RGBA8888)
    return QPixmap.fromImage(image)


class _OverTimeRow(QWidget):
    """A tick, a number of seconds, and what is being computed."""

    toggled = Signal(bool)
    smoothing_changed = Signal(float)
    event_chosen = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.follow = QCheckBox("Follow the time slider")
        self.follow.setToolTip(FOLLOW)
        self.seconds = NumberBox("Seconds over which the scores are averaged.")
        self.seconds.setRange(0, MOST_SECONDS)
        self.seconds.setSingleStep(0.5)
        self.seconds.setDecimals(1)
        self.seconds.setSuffix(" s")
        self.status = PlainLabel(wrap=True)
        self._averaged = QLabel("mean over")
        self.events = QMenu(self)
        self.around = small_button("Around an event", AROUND, self.events)
        choices = in_row(self.follow, 1, self._averaged, self.seconds, spacing=3)
        in_column(choices, in_row(self.around, 1), self.status, of=self)
        self.show_status("")
        self.follow.toggled.connect(self.toggled)
        self.seconds.valueChanged.connect(self.smoothing_changed)

    def show_state(
        self, *, following: bool, smoothing: float, why_not: str, note: str = ""
    ) -> None:
        """Show the choice, or why this map cannot follow; `note` is added where it can."""
        with signals_blocked(self.follow):
            self.follow.setChecked(following and not why_not)
        self.follow.setEnabled(not why_not)
        self.follow.setToolTip(why_not or f"{FOLLOW} {note}".strip())
        self.seconds.show_number(smoothing)
        self.seconds.setEnabled(following and not why_not)
        self._averaged.setEnabled(following and not why_not)

    def offer_events(self, events: Sequence[tuple[str, str]], why_not: str) -> None:
        """Offer events by title and name, or say why they cannot be used."""
        self.around.setVisible(bool(events))
        self.around.setEnabled(not why_not)
        self.around.setToolTip(why_not or AROUND)
        self.events.clear()
        for title, name in events:
            # an ampersand would underline what follows
            action = self.events.addAction(title.replace("&", "&&"))
            action.triggered.connect(lambda _=False, name=name: self.event_chosen.emit(name))

    def show_status(self, sentence: str) -> None:
        """Say what is being computed."""
        self.status.setText(in_dock(sentence))
        self.status.setVisible(bool(sentence))


class _DetailsTab(VerticalScroll):
    """Rows that scroll as one; the panel fills them in."""

    def __init__(self) -> None:
        inside = QWidget()
        super().__init__(inside)
        self.colors = _ColorRow()
        self.over_time = _OverTimeRow()
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
        self.details = details = _DetailsTab()
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
        self.side_by_side.show_maps(self._map, self._painter.second_map(), title, shown.threshold)
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
        if shown.properties:
            known = properties_of(opened.recording)
            more += [CellColumn(n, known[n]) for n in shown.properties if n in known]
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
