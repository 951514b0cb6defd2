"""What `curation` and `agreement` print."""

from __future__ import annotations

from pathlib import Path

from napari_xcebra.cli.report import table
from napari_xcebra.curation import (
    ACCEPTED,
    REJECTED,
    STATUSES,
    Curation,
    between,
    read_curation,
    summary_of,
)
from napari_xcebra.curation.lines import read_journal
from napari_xcebra.fingerprint import same_cells


def curation_tables(journal: Path) -> str:
    """What was decided in a journal: who and when, counts, tags, and what the user should know."""
    curation, summary = read_curation(journal), summary_of(journal)
    tags = [f"{tag} {int(curation.tagged(tag).sum())}" for tag in curation.all_tags]
    noted = sum(bool(curation.note(cell)) for cell in range(curation.n_cells))
    lines = [
        str(journal),
        summary.sentence if summary else "no decisions",
        "",
        _counts(curation),
        "",
        f"tags   {', '.join(tags) or 'none'}",
        f"notes  {noted or 'none'}",
    ]
    return "\n".join([*lines, *([""] if curation.notes else []), *curation.notes])


def agreement_tables(first: Path, second: Path) -> str:
    """Cohen's κ between the decisions by hand in two journals, and the table it comes from."""
    one, other = read_curation(first), read_curation(second)
    names = one.curator or first.stem, other.curator or second.stem
    if names[0] == names[1]:
        names = f"{names[0]} ({first.name})", f"{names[1]} ({second.name})"
    result = between(one, other, names)
    header = [names[0], *(f"{names[1]}: {each}" for each in result.table.columns)]
    rows = [[str(each), *map(str, row)] for each, row in result.table.iterrows()]
    notes = [*one.notes, *other.notes, *_other_cells(first, second)]
    return "\n".join([table(header, rows), "", result.sentence, *notes])


def _counts(curation: Curation) -> str:
    rows = []
    for status in (ACCEPTED, REJECTED):
        these = curation.status == status
        by_hand = int((these & curation.by_hand).sum())
        rows.append([STATUSES[status], str(by_hand), str(int(these.sum()) - by_hand)])
    return table(["cells", "by hand", "by threshold"], rows)


def _other_cells(first: Path, second: Path) -> list[str]:
    """A sentence where the two journals are not of the same cells."""
    try:
        headers = [read_journal(path).header or {} for path in (first, second)]
        one, other = (header["fingerprint"] for header in headers)
        same = same_cells(one, other)
    except (KeyError, TypeError):  # a first line that is damaged, which is told already
        return []
    if same:
        return []
    return [
        f"The two are of different extractions ({one['cells']} and {other['cells']} cells): a cell "
        "of one need not be the cell of the other that has the same id."
    ]
