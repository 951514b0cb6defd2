"""Decisions of an earlier extraction, taken over onto the cells there are now."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from napari_xcebra.errors import InputError
from napari_xcebra.io.decisions import recall, table_beside

if TYPE_CHECKING:
    from napari_xcebra.curation import Curation
    from napari_xcebra.widgets.curations import Curations


def earlier_table(curations: Curations) -> Path | None:
    """Table of decisions beside the recording, where there are none on these cells yet.

    suite2p, run again, has other ROIs, to which no journal belongs.
    """
    opened, curation = curations.session.current, curations.current
    if opened is None or opened.path is None or curation is None:
        return None
    decided = bool(curations.offers) or (curation.status != 0).any()
    return None if decided else table_beside(opened.path)


def take_over(curations: Curations, table: Path) -> None:
    """Take decisions from a table over onto cells that nobody has decided on by hand."""
    opened = curations.session.current
    if opened is None:
        return
    try:
        found = recall(table, opened.recording)
    except InputError as error:
        curations.said.emit(str(error), "problem", "")
        return
    taken: list[int] = []

    def step(curation: Curation) -> None:
        taken.append(found.onto(curation))

    curations.act(step)
    if taken:
        sentence = f"{taken[0]} decisions were taken over. {found.summary()}"
        curations.said.emit(sentence, "good", "")
