"""Tabulates a sweep: one row per member."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_xcebra.sweeps.plan import Member

if TYPE_CHECKING:
    import pandas as pd

    from napari_xcebra.sweeps.folder import SweepFolder

DECODING = ("r2", "ridge_r2", "accuracy", "ridge_accuracy")


def summary_of(folder: SweepFolder, members: Sequence[Member]) -> pd.DataFrame:
    """One row per member, in their order.

    Columns: id, recording, shift_s, what was varied, status, and for each factor its goodness in
    nats, p, held-out R² and that of a ridge regression (the accuracy as well if it is discrete),
    verdict in a word, cells found at q ≤ 0.1, cells tested, and auROC; then λ as given or found
    (the largest of the factors'), steps, seconds, why it failed, and why it is or was run again.
    """
    import pandas as pd  # which a window that only shows a table does without

    rows = [_row(folder, member) for member in members]
    table = pd.DataFrame(rows)
    return table.dropna(axis=1, how="all") if len(table) else table


def decoded_in(row: pd.Series, factor: str) -> str:
    """How well a factor is decoded in a row of the summary: "R² 0.76 (ridge 0.75)"."""
    what, own, ridge = decoding_in(row, factor)
    if np.isnan(own):
        return ""
    return f"{what} {own:.2f}" + ("" if np.isnan(ridge) else f" (ridge {ridge:.2f})")


def decoding_in(row: pd.Series, factor: str) -> tuple[str, float, float]:
    """The accuracy of a discrete factor or R² of another, and the same of a ridge regression."""
    r2, ridge_r2, accuracy, ridge_accuracy = (
        _float(row.get(f"{name} {factor}")) for name in DECODING
    )
    return ("R²", r2, ridge_r2) if np.isnan(accuracy) else ("accuracy", accuracy, ridge_accuracy)


def found_in(row: pd.Series, factor: str) -> str:
    """Cells found for a factor in a row of the summary: "12 of 44 cells"; empty if not tested."""
    found, tested = _float(row.get(f"cells {factor}")), _float(row.get(f"tested {factor}"))
    return "" if np.isnan(tested) else f"{found:.0f} of {tested:.0f} cells"


def _float(value: Any) -> float:
    return float("nan") if value is None else float(value)


def _row(folder: SweepFolder, member: Member) -> dict[str, Any]:
    known = folder.read(member.id)
    row: dict[str, Any] = {
        "id": member.id,
        "recording": member.recording,
        "shift_s": member.shift,
        **{
            name.rstrip("_"): value
            for name, value in member.varied.items()
            if name not in ("recording", "shift")
        },
        "status": known.get("status", "waiting"),
    }
    for factor, goodness in known.get("goodness", {}).items():
        row[f"goodness {factor}"] = goodness["goodness"]
        row[f"p {factor}"] = goodness["p"]
        # sweeps of earlier versions have no ridge regression
        row |= {f"{name} {factor}": goodness.get(name) for name in DECODING}
        row[f"verdict {factor}"] = known["strength"][factor]
        # nor has the test been made of every run
        found, tested = known.get("found", {}).get(factor, (None, None))
        row |= {f"cells {factor}": found, f"tested {factor}": tested}
        row[f"auroc {factor}"] = known["auroc"].get(factor)
    row["lambda found"] = known.get("lambda")
    row["steps"] = known.get("steps")
    row["seconds"] = known.get("seconds")
    row["failure"] = known.get("sentence")
    row["note"] = known.get("note") or None
    return row
