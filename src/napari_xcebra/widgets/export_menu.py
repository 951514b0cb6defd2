"""Writes what is shown to files that other programs read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from qtpy.QtCore import Signal
from qtpy.QtWidgets import QFileDialog, QMenu, QPushButton

from napari_xcebra import exports
from napari_xcebra.attribution.method_notes import FIRST
from napari_xcebra.widgets.background import in_background
from napari_xcebra.widgets.compared import comparison_of
from napari_xcebra.widgets.reporting import HELP, ask_for_report
from napari_xcebra.widgets.score_map import ScoreMap, attribution_of, shown_map
from napari_xcebra.widgets.session import Session

Write = Callable[[Path], Path]


class ExportButton(QPushButton):
    """A button with a menu; every entry asks where to, and writes in the background."""

    said = Signal(str, str, str)
    """A sentence for a notice, its tone, and details."""

    def __init__(self, session: Session) -> None:
        super().__init__("Export")
        self._session = session
        self.setToolTip("Write the scores or a picture of them to a file.")
        menu = QMenu(self)
        menu.setToolTipsVisible(True)
        for title, tooltip, called in (
            ("Report (HTML) …", HELP, self.export_report),
            ("Table of all factors (CSV) …",
             "Score, z and selected of every cell and factor, by the present threshold.",
             self.export_table),
            ("Scores of every latent (npz) …",
             "For Python: Attribution.load reads it.", self.export_scores),
            ("Picture of the painted field (PNG) …",
             "A panel a factor, with the selected cells outlined.", self.export_picture),
            ("Colours for suite2p (npy) …",
             "In suite2p: Visualizations, Load custom hue for ROIs.", self.export_hue),
            ("Methods side by side (CSV) …",
             "Score and rank by every method and statistic that is computed.",
             self.export_comparison),
            ("Methods side by side (PNG) …",
             "How far the rankings agree, and where they do not.", self.export_agreement),
            ("Screenshot of the canvas (PNG) …",
             "The image as it is on the screen.", self.export_screenshot),
        ):  # fmt: skip
            action = menu.addAction(title)
            action.setToolTip(tooltip)
            action.triggered.connect(lambda _=False, call=called: call())
        self.setMenu(menu)

    def export_report(self, path: str | Path | None = None) -> None:
        """Write a page about the run that is shown, and open it in the browser."""
        opened, run = self._session.current, self._session.shown_run
        if opened is not None and run is not None:
            ask_for_report(self._session, opened, run, self.said.emit, path, self)

    def export_table(self, path: str | Path | None = None) -> None:
        """Write a table of all factors."""
        painted, threshold = shown_map(self._session), self._session.shown.threshold
        if painted is not None:
            attribution, run = painted.attribution, self._session.shown_run
            made = (attribution_of(run, method, self._session.recording) for method in FIRST)
            # the other of the maps made of every run, as on the command line
            beside = [map_ for map_ in made if map_ and map_.method != attribution.method]
            self._export(
                path,
                lambda to: exports.write_table(attribution, to, threshold, beside),
                ("attribution",),
                ".csv",
            )

    def export_scores(self, path: str | Path | None = None) -> None:
        """Write the scores of all latents."""
        painted = shown_map(self._session)
        if painted is not None:
            attribution = painted.attribution
            self._export(
                path,
                lambda to: exports.write_scores(attribution, to),
                ("attribution", attribution.method),
                ".npz",
            )

    def export_picture(self, path: str | Path | None = None) -> None:
        """Write a picture of the painted field."""
        painted, recording = shown_map(self._session), self._session.recording
        threshold = self._session.shown.threshold
        if painted is not None and recording is not None:
            attribution = painted.attribution
            self._export(
                path,
                lambda to: exports.write_picture(recording, attribution, to, threshold),
                ("painted",),
                ".png",
            )

    def export_hue(self, path: str | Path | None = None) -> None:
        """Write colours for suite2p."""
        painted, recording = shown_map(self._session), self._session.recording
        if painted is not None and recording is not None:
            self._export(
                path,
                lambda to: exports.write_hue(recording, painted.scores, to),
                (_title(painted), "hue"),
                ".npy",
            )

    def export_comparison(self, path: str | Path | None = None) -> None:
        """Write what all methods and statistics say, as a table."""
        comparison = comparison_of(self._session)
        if comparison is not None:
            self._export(
                path, lambda to: exports.write_comparison(comparison, to), ("methods",), ".csv"
            )

    def export_agreement(self, path: str | Path | None = None) -> None:
        """Write what all methods and statistics say, as a picture."""
        comparison = comparison_of(self._session)
        if comparison is not None:
            self._export(
                path,
                lambda to: exports.write_comparison_picture(comparison, to),
                ("methods",),
                ".png",
            )

    def export_screenshot(self, path: str | Path | None = None) -> None:
        """Write the canvas as it is on the screen."""
        painted = shown_map(self._session)
        pixels = self._session.viewer.screenshot(canvas_only=True, flash=False)
        if painted is not None:
            self._export(
                path,
                lambda to: exports.write_pixels(pixels, to),
                (_title(painted), "canvas"),
                ".png",
            )

    def _export(
        self, path: str | Path | None, write: Write, words: tuple[str, ...], suffix: str
    ) -> None:
        recording, run = self._session.recording, self._session.shown.run
        if recording is None:
            return
        if path is None:
            start = exports.default_path(recording, run, *words, suffix=suffix)
            path, _ = QFileDialog.getSaveFileName(self, "Export", str(start), f"*{suffix}")
        if not path:
            return
        target = Path(path)
        if not target.suffix:
            target = target.with_suffix(suffix)
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
