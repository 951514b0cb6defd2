"""The best cells of a factor in a table, and all of them in a file."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from napari_xcebra.attribution import Attribution
from napari_xcebra.attribution.comparison import ranks_of
from napari_xcebra.attribution.method_notes import title_of_method
from napari_xcebra.attribution.single_cell import STATISTICS
from napari_xcebra.report.document import Column, Download, Entry, Table
from napari_xcebra.report.evidence_figures import Q
from napari_xcebra.report.material import Material
from napari_xcebra.report.page import download
from napari_xcebra.report.wording import number

MOST_ROWS = 20
"""Cells in a table; the file below it has all."""


def best_cells(attribution: Attribution, factor: str, count: int) -> np.ndarray:
    """Positions of the cells with the highest scores, the best first: (count or fewer,) int."""
    score = attribution.score(factor)
    order = np.argsort(-np.where(np.isfinite(score), score, -np.inf), kind="stable")
    return order[: min(count, int(np.isfinite(score).sum()))]


def table_of_best(run: Material, factor: str, *, explain: bool) -> Table:
    """The best cells with all that is known of them; columns are explained once."""
    first = run.first
    assert first is not None
    table = whole_table(run, factor)
    best = best_cells(first, factor, MOST_ROWS)
    names = [str(name) for name in table if name not in _IN_FILE_ALONE]
    columns = tuple(replace(_column(name), listed=explain) for name in names)
    rows = tuple(tuple(_entry(name, table[name].iloc[cell]) for name in names) for cell in best)
    scored = int(np.isfinite(first.score(factor)).sum())
    shown = f"The {len(best)} highest of {scored:,} cells" if scored > len(best) else "All cells"
    return Table(
        f"{shown} by {title_of_method(first.method)}", columns, rows, sortable=True, compact=True
    )


def whole_table(run: Material, factor: str) -> pd.DataFrame:
    """One row a cell with everything known of it for a factor."""
    first = run.first
    assert first is not None
    table = first.table(factor)
    table.insert(0, "rank", _blank_zero(ranks_of(first.score(factor))))
    table = table.rename(columns={"p": "p of the cell", "q": "q"})
    if {"stable", "rank_low", "rank_high"} <= set(run.stability.get(factor, ())):
        over = run.stability[factor]
        table["stable"] = over["stable"].to_numpy()
        low, high = over["rank_low"].to_numpy(), over["rank_high"].to_numpy()
        table["ranks"] = [f"{a:.2f} to {b:.2f}" for a, b in zip(low, high, strict=True)]
    for method in run.methods[1:]:
        other = run.attributions[method].score(factor)
        table[f"rank by {title_of_method(method)}"] = _blank_zero(ranks_of(other))
    for name, values in (run.statistics.of(factor) if run.statistics else {}).items():
        table[name] = values
    return table


def _blank_zero(ranks: np.ndarray) -> np.ndarray:
    return np.where(ranks > 0, ranks, np.nan)


_HELP = {
    "rank": "1 for the highest score.",
    "score": "How much the cell carries the factor, by the method named above.",
    "z": "Score standardised over the cells.",
    "low": "Lower end of the score's interval, 5 %.",
    "high": "Upper end of the score's interval, 95 %.",
    "of_explainable": "Score as a share of what is not noise from frame to frame.",
    "interaction": "Share of variance by which the factor scales the tuning to other factors.",
    "lag": "Seconds by which the cell follows the behaviour; negative if it leads.",
    "sign": "Whether the cell rises or falls with the variable; neither, where it does so in part.",
    "p of the cell": "How likely other labels, shifted in time or in another order, reach as much "
    "as this cell.",
    "q": f"p after Benjamini and Hochberg: among cells with q ≤ {Q:g} a tenth is expected by "
    "chance.",
    "stable": "Whether all seeds agree on the cell.",
    "ranks": "Lowest and highest rank over the seeds, from 0 to 1 for the first.",
}
_TITLES = {"p of the cell": "p", "of_explainable": "of explainable", "lag": "lag (s)"}
_FORMS = {"rank": ".0f", "z": ".2f", "lag": ".2f", "p of the cell": ".2g", "q": ".2g"}
_SIGNS = {1: "rises", 0: "neither", -1: "falls"}
_IN_FILE_ALONE = ("at_chance", "selected", "beside_variables", "beside_state", "lag_error")
"""Columns that are the same in nearly every row of the best, or say how another one came about."""


def _column(name: str) -> Column:
    if name in STATISTICS:
        about = STATISTICS[name]
        unit = f" ({about.unit})" if about.unit else ""
        return Column(about.title, f"{name.replace('_', ' ')}{unit}. {about.help}")
    return Column(_TITLES.get(name, name), _HELP.get(name, ""), name != "stable")


def _entry(name: str, value: object) -> Entry:
    if name == "stable":
        return Entry("yes" if value else "no")
    if isinstance(value, str):
        return Entry(value)
    assert isinstance(value, int | float | np.number)
    if name == "cell":
        return Entry(str(value), float(value))
    if name == "sign" and np.isfinite(value):
        return Entry(_SIGNS[int(np.sign(value))], float(value))
    whole = name.startswith("rank by")
    usual = "#.2g" if name in STATISTICS else "#.3g"
    shown = number(float(value), ".0f" if whole else _FORMS.get(name, usual))
    if name == "q" and float(value) <= Q:
        return Entry(shown.text, shown.order, "good")
    return shown


def file_of_all(run: Material, factor: str) -> Download:
    """The same of every cell, to be saved from the page."""
    table = whole_table(run, factor).round(6)
    name = "".join(c if c.isalnum() or c in "-_." else "_" for c in f"cells-{factor}")
    return download(
        f"{name}.csv",
        table.to_csv(index=False),
        f"has all {len(table):,} cells with these columns.",
    )
