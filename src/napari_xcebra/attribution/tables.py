"""Tables of several factors, one below the other in a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from napari_xcebra.files import whole

if TYPE_CHECKING:
    import pandas as pd


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
        pd.concat(tables).to_csv(file, index=False)
    return Path(path)
