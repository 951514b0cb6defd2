"""Decisions on cells by hand, with undo, a journal, a queue, and agreement."""

from napari_xcebra.curation.changes import (
    ACCEPTED,
    REJECTED,
    STATUSES,
    UNDECIDED,
    Change,
    Status,
    Summary,
    summary_of,
)
from napari_xcebra.curation.continuing import (
    CellsInDoubt,
    merge_cells,
    open_curation,
    read_curation,
)
from napari_xcebra.curation.decisions import Agreement, Curation, agreement, between, with_model
from napari_xcebra.curation.journal import (
    Journal,
    JournalInUse,
    journal_path,
    journals_beside,
    journals_of,
)
from napari_xcebra.curation.order import ORDERS, CellFilter, Queue, centroids_of, ordered

__all__ = [
    "ACCEPTED",
    "ORDERS",
    "REJECTED",
    "STATUSES",
    "UNDECIDED",
    "Agreement",
    "CellFilter",
    "CellsInDoubt",
    "Change",
    "Curation",
    "Journal",
    "JournalInUse",
    "Queue",
    "Status",
    "Summary",
    "agreement",
    "between",
    "centroids_of",
    "journal_path",
    "journals_beside",
    "journals_of",
    "merge_cells",
    "open_curation",
    "ordered",
    "read_curation",
    "summary_of",
    "with_model",
]
