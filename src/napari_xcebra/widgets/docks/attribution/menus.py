"""The menus below the scores: exports to files, and single-cell statistics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from napari.utils.colormaps import ensure_colormap
from qtpy.QtCore import Signal
from qtpy.QtWidgets import QMenu, QPushButton

from napari_xcebra.attribution.methods import FIRST
from napari_xcebra.attribution.ranking import help_on
from napari_xcebra.attribution.score_map import ScoreMap, attribution_of
from napari_xcebra.attribution.single_cell import STATISTICS, applicable
from napari_xcebra.report import exports
from napari_xcebra.report.figures.look import Colors
from napari_xcebra.report.figures.paper import FORMATS
from napari_xcebra.widgets.controls.boxes import menu_of
from napari_xcebra.widgets.services.jobs import in_background
from napari_xcebra.widgets.services.run_jobs import HELP as REPORT
from napari_xcebra.widgets.services.run_jobs import NWB_HELP, RunWriter, chosen_target
from napari_xcebra.widgets.state.shown import shown_map
from napari_xcebra.widgets.window import Services

KINDS = tuple(f".{each}" for each in FORMATS)
"""Endings of figures."""
Write = Callable[[Path], Path]


class ExportButton(QPushButton):
    """A button with a menu; every entry asks for a path, and writes in the background."""

    said = Signal(str, str, str)
    """A sentence for a notice, its tone, and details."""

    def __init__(self, services: Services) -> None:
        super().__init__("Export")
        self._services, self._state = services, services.state
        self._writer = RunWriter(services, self.said.emit, self)
        self.setToolTip("Write the scores, or a picture of them, to a file.")
        entries = (
            ("Report (HTML) …", REPORT, self.export_report),
            ("Recording and results (NWB) …", NWB_HELP, self.export_nwb),
            ("Table of all factors (CSV) …",
             "Score, z and whether it is above the current threshold, for every cell and factor.",
             self.export_table),
            ("Scores of every latent (npz) …",
             "For Python: Attribution.load reads it.", self.export_scores),
            ("Painted field, this map (PDF, SVG, PNG) …",
             "For a paper: with colour bar, scale bar (if the size of a pixel is known), and text "
             "as text. Cells above the threshold are outlined.", self.export_factor),
            ("Painted field, all factors (PDF, SVG, PNG) …",
             "The same with one panel per factor.", self.export_picture),
            ("Colours for suite2p (npy) …",
             "To open in suite2p: Visualizations, Load custom hue for ROIs.", self.export_hue),
            ("Methods side by side (CSV) …",
             "Score and rank by every computed method and statistic.",
             self.export_comparison),
            ("Methods side by side (PDF, SVG, PNG) …",
             "How well the rankings agree, and where they differ.", self.export_agreement),
            ("Screenshot of the canvas (PNG) …",
             "The image as shown on screen.", self.export_screenshot),
        )  # fmt: skip
        self.setMenu(menu_of(self, entries))

    def export_report(self, path: str | Path | None = None) -> None:
        """Write a page about the painted run, and open it in the browser."""
        opened, run = self._state.current, self._state.shown_run
        if opened is not None and run is not None:
            self._writer.report(opened, run, path)

    def export_nwb(self, path: str | Path | None = None) -> None:
        """Write the recording with the painted run as NWB."""
        opened, run = self._state.current, self._state.shown_run
        if opened is not None and run is not None:
            self._writer.nwb(opened, run, path)

    def export_table(self, path: str | Path | None = None) -> None:
        """Write a table of all factors."""
        painted, threshold = shown_map(self._state), self._state.shown.threshold
        if painted is not None:
            attribution, run = painted.attribution, self._state.shown_run
            made = (attribution_of(run, method, self._state.recording) for method in FIRST)
            # the other maps made for every run, as on the command line
            beside = [map_ for map_ in made if map_ and map_.method != attribution.method]
            write = partial(exports.write_table, attribution, threshold=threshold, beside=beside)
            self._export(path, write, ".csv", "attribution")

    def export_scores(self, path: str | Path | None = None) -> None:
        """Write the scores of all latents."""
        if (painted := shown_map(self._state)) is not None:
            write = partial(exports.write_scores, painted.attribution)
            self._export(path, write, ".npz", "attribution", painted.attribution.method)

    def export_factor(self, path: str | Path | None = None) -> None:
        """Write a figure of the field, painted as on the canvas."""
        if (painted := shown_map(self._state)) is not None:
            table = ensure_colormap(self._state.shown.colormap).map(np.linspace(0, 1, 256))
            colors = Colors(*self._services.painter.limits, table)
            how = {"factors": [painted.factor], "latent": painted.latent, "colors": colors}
            self._export_field(path, _title(painted), **how)

    def export_picture(self, path: str | Path | None = None) -> None:
        """Write a figure of the field with a panel for each factor."""
        self._export_field(path)

    def _export_field(self, path: str | Path | None, *words: str, **how: Any) -> None:
        painted, recording = shown_map(self._state), self._state.recording
        if painted is not None and recording is not None:
            write = partial(
                exports.write_picture,
                recording,
                painted.attribution,
                threshold=self._state.shown.threshold,
                **how,
            )
            self._export(path, write, KINDS, *words, "painted")

    def export_hue(self, path: str | Path | None = None) -> None:
        """Write colours for suite2p."""
        painted, recording = shown_map(self._state), self._state.recording
        if painted is not None and recording is not None:
            write = partial(exports.write_hue, recording, painted.scores)
            self._export(path, write, ".npy", _title(painted), "hue")

    def export_comparison(self, path: str | Path | None = None) -> None:
        """Write scores and ranks by all methods and statistics as a table."""
        if (comparison := self._services.statistics.comparison()) is not None:
            self._export(path, partial(exports.write_comparison, comparison), ".csv", "methods")

    def export_agreement(self, path: str | Path | None = None) -> None:
        """Draw how well all methods and statistics agree."""
        if (comparison := self._services.statistics.comparison()) is not None:
            write = partial(exports.write_comparison_picture, comparison)
            self._export(path, write, KINDS, "methods")

    def export_screenshot(self, path: str | Path | None = None) -> None:
        """Write the canvas as shown on screen."""
        pixels = self._state.viewer.screenshot(canvas_only=True, flash=False)
        if (painted := shown_map(self._state)) is not None:
            write = partial(exports.write_pixels, pixels)
            self._export(path, write, ".png", _title(painted), "canvas")

    def _export(
        self, path: str | Path | None, write: Write, suffix: str | tuple[str, ...], *words: str
    ) -> None:
        suffixes = (suffix,) if isinstance(suffix, str) else suffix
        recording, run = self._state.recording, self._state.shown.run
        if recording is None:
            return
        start = exports.default_path(recording, run, *words, suffix=suffixes[0])
        target = chosen_target(self, "Export", start, suffixes, path)
        if target is None:
            return
        in_background(
            lambda: write(target),
            lambda written: self.said.emit(f"Wrote {written}.", "good", ""),
            lambda sentence, details: self.said.emit(sentence, "problem", details),
            self,
        )


def _title(painted: ScoreMap) -> str:
    if painted.latent is None:
        return painted.factor
    part = painted.latent if isinstance(painted.latent, str) else painted.latent + 1
    return f"{painted.factor}-{part}"


STATISTICS_HELP = "Add table columns with common single-cell statistics for the same variables."


class StatisticsButton(QPushButton):
    """Button with a menu of statistics; the ticked ones are computed."""

    def __init__(self, services: Services) -> None:
        super().__init__("Statistics")
        self._state, self._statistics = services.state, services.statistics
        self.setToolTip(STATISTICS_HELP)
        menu = QMenu(self)
        menu.setToolTipsVisible(True)
        self.entries = {}
        for name, statistic in STATISTICS.items():
            unit = f", {statistic.unit}" if statistic.unit else ""
            title = f"{name.replace('_', ' ').capitalize()} ({statistic.title}{unit})"
            action = menu.addAction(title)
            action.setCheckable(True)
            action.setToolTip(help_on(name))
            action.triggered.connect(lambda _=False: self._choose())
            self.entries[name] = action
        self.setMenu(menu)

    def show_shown(self) -> None:
        """Show which statistics are ticked and which apply to the painted factor.

        Ticked ones are computed for every run painted.
        """
        opened, run, shown = self._state.current, self._state.shown_run, self._state.shown
        if opened is None or run is None:
            return
        possible = applicable(opened.recording, run.fit.part(shown.factor).variables)
        for name, action in self.entries.items():
            action.setChecked(name in shown.statistics)
            action.setEnabled(name in possible)
        self.setEnabled(bool(possible))
        why = "" if possible else " This factor has no variable to compute them for."
        self.setToolTip(STATISTICS_HELP + why)
        self._statistics.ask(opened, run, shown.statistics)

    def _choose(self) -> None:
        names = tuple(name for name, action in self.entries.items() if action.isChecked())
        opened, run = self._state.current, self._state.shown_run
        if opened is not None and run is not None:
            # also what was stopped before
            self._statistics.ask(opened, run, names, again=True)
        self._state.shown = replace(self._state.shown, statistics=names)
