"""Chooses the run, factor and method to paint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import QFormLayout, QWidget

from napari_xcebra.attribution.methods import (
    METHODS,
    WHICH_FIRST,
    consensus_of,
    method_named,
    title_of_method,
)
from napari_xcebra.attribution.score_map import LAG
from napari_xcebra.learn.data.factors import Part
from napari_xcebra.learn.quality.verdict import FOUND, Goodness
from napari_xcebra.runs import Run
from napari_xcebra.widgets.controls.boxes import choice_box, fill
from napari_xcebra.widgets.state.shown import LiveRun, Shown

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
            methods = method_choices(run)
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


def method_choices(run: Run | None) -> list[tuple[str, str]]:
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
