"""Decisions on cells, written to where the recording came from and to other programs.

    decisions ──plan_output──▶ Plan ──write──▶ Written ──restore──▶ as it was before

A plan says what will be written where, and writes all of it or nothing. What it replaces is kept
beside it, and one call puts it back.
"""

from __future__ import annotations

from napari_xcebra.io.decisions.labels import accepted_labels
from napari_xcebra.io.decisions.originally import extractor_accepted
from napari_xcebra.io.decisions.outputs import (
    OUTPUT_KINDS,
    Output,
    OutputKind,
    plan_output,
    possible_outputs,
)
from napari_xcebra.io.decisions.plan import FileChange, Plan, Written, plan_together
from napari_xcebra.io.decisions.recalling import Recalled, recall
from napari_xcebra.io.decisions.restoring import plan_restore, restore
from napari_xcebra.io.decisions.suite2p import table_beside

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
    "restore",
    "table_beside",
]
