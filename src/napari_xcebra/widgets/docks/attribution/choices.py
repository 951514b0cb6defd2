"""Chooses the run, factor and method to paint, how they are painted, and what few need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
from napari_xcebra.attribution.score_map import LAG, ScoreMap
from napari_xcebra.learn.data.factors import Part
from napari_xcebra.learn.quality.verdict import FOUND, Goodness
from napari_xcebra.runs import Run
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
from napari_xcebra.widgets.controls.notice import VERDICT_HELP
from napari_xcebra.widgets.docks.attribution.windows import SideBySide
from napari_xcebra.widgets.state.shown import COLORMAPS, LiveRun, Shown

FactorChoice = tuple[str, int | str | None]
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
            factors = factor_choices(live.attribution.parts, {}, shown.method)
            methods = [(title_of_method(shown.method), shown.method)]
        else:
            parts, goodness = (run.fit.parts, run.fit.goodness) if run else ((), {})
            there = run.attributions.get(shown.method) if run else None
            factors = factor_choices(
                parts, goodness, shown.method, lags=there is not None and LAG in there.details
            )
            methods = _method_choices(run)
        fill(self.factor, factors, (shown.factor, shown.latent))
        fill(self.method, methods, shown.method)
        for row, (_, method) in enumerate(methods):
            self.method.setItemData(row, method_named(method).help, Qt.ItemDataRole.ToolTipRole)


def factor_choices(
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


class ColorRow(QWidget):
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


class DetailsTab(VerticalScroll):
    """Rows that scroll as one; the panel fills them in."""

    def __init__(self) -> None:
        inside = QWidget()
        super().__init__(inside)
        self.colors = ColorRow()
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
