"""Writes decisions on cells back to their source and to other programs.

    decisions ──plan_output──▶ Plan ──write──▶ Written ──restore──▶ as it was before

A plan says what will be written where, and writes all of it or nothing. What it replaces is kept
beside it, and one call puts it back.
"""

from __future__ import annotations

from napari_xcebra.io.decisions.originally import extractor_accepted
from napari_xcebra.io.decisions.outputs import (
    OUTPUT_KINDS,
    Output,
    OutputKind,
    accepted_labels,
    plan_output,
    possible_outputs,
)
from napari_xcebra.io.decisions.recalling import Recalled, recall
from napari_xcebra.io.decisions.restoring import plan_restore, repair, restore
from napari_xcebra.io.suite2p.decisions import table_beside
from napari_xcebra.io.transaction.plan import FileChange, Plan, Written, plan_together

__all__ = [
    "OUTPUT_KINDS",
    "FileChange",
    "Output",
    "OutputKind",
    "Plan",
    "Recalled",
    "Written",
    "accepted_labels",
    "extractor_accepted",
    "plan_output",
    "plan_restore",
    "plan_together",
    "possible_outputs",
    "recall",
    "repair",
    "restore",
    "table_beside",
]
