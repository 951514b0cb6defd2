"""The table of a sweep: a row a member."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from napari_xcebra.sweeps.plan import Member

if TYPE_CHECKING:
    from napari_xcebra.sweeps.folder import SweepFolder

MEASURES = ("goodness", "p", "r2", "verdict", "auroc")
"""Columns of every factor: ``goodness place`` and so on. auROC only where the truth is known."""


def summary_of(folder: SweepFolder) -> pd.DataFrame:
    """One row a member, in the order of the sweep.

    Columns: id, recording, shift_s, what was varied, status, and for each factor its goodness in
    nats, p, held-out R², verdict in a word and auROC; then λ as given or found, steps, seconds, and
    why it failed.
    """
    members = folder.members
    rows = [_row(folder, member) for member in members]
    table = pd.DataFrame(rows)
    return table.dropna(axis=1, how="all") if len(table) else table


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
        row[f"r2 {factor}"] = goodness["r2"]
        row[f"verdict {factor}"] = known["strength"][factor]
        row[f"auroc {factor}"] = known["auroc"].get(factor)
    row["lambda found"] = known.get("lambda")
    row["steps"] = known.get("steps")
    row["seconds"] = known.get("seconds")
    row["failure"] = known.get("sentence")
    return row
