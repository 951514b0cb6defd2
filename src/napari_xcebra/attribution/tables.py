"""Tabulates scores, a row a cell, and writes the tables of several factors to one file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from napari_xcebra.errors import InputError
from napari_xcebra.files import whole
from napari_xcebra.spreadsheets import write_csv

if TYPE_CHECKING:
    import pandas as pd

    from napari_xcebra.attribution.result import Attribution

_OVER_SEEDS = {
    "score_mean": "score",
    "score_sd": "score_sd",
    "z_mean": "z",
    "rank_low": "rank_low",
    "rank_high": "rank_high",
    "stable": "stable",
}
"""Columns of the table, and what they are called in that of `Stability`."""


def check_factor(factor: str, factors: Sequence[str]) -> None:
    """Raise a sentence that lists the factors if this is not one of them."""
    if factor not in factors:
        raise InputError(f"There is no factor {factor!r} here; there are: {', '.join(factors)}.")


def score_table(attribution: Attribution, factor: str, threshold: float = 0.0) -> pd.DataFrame:
    """One row a ROI with its scores, its test and its stability; see `Attribution.table`."""
    import pandas as pd

    table = pd.DataFrame(
        {
            "cell": attribution.cell_ids,
            "score": attribution.score(factor),
            "z": attribution.z(factor),
            "selected": attribution.selected(factor, threshold),
            "at_chance": attribution.at_chance(factor),
        }
    )
    for name in attribution.details:
        table[name] = attribution.detail(factor, name)
    verdict = attribution.verdicts[factor]
    table.attrs.update(factor=factor, method=attribution.method, verdict=verdict)
    if (tested := attribution.significance) is not None:
        table["p"], table["q"] = tested.p(factor), tested.q(factor)
        if (alone := tested.beside_variables(factor)) is not None:
            table["q_beside_variables"] = alone
        table.attrs["significance"] = tested.how(factor)
    if attribution.stability is not None:
        by_seed = attribution.stability.table(factor, threshold)
        for name, source in _OVER_SEEDS.items():
            table[name] = by_seed[source]
    return table


def write_tables(
    path: str | os.PathLike[str], factors: Iterable[str], table: Callable[[str], pd.DataFrame]
) -> Path:
    """Write the table of every factor, which is named in the second column; whole or not at all.

    Parameters
    ----------
    path : path
    factors : iterable of str
    table : callable
        Gives a new table for a factor, one row a ROI.
    """
    import pandas as pd

    tables = []
    for factor in factors:
        rows = table(factor)
        rows.insert(1, "factor", factor)
        tables.append(rows)
    with whole(path) as file:
        write_csv(pd.concat(tables), file)
    return Path(path)
