"""What decisions on a recording can be written as."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.io.decisions import caiman, imagej, nwb, suite2p, table
from napari_xcebra.io.decisions.decided import Decided
from napari_xcebra.io.decisions.originally import extractor_accepted
from napari_xcebra.io.decisions.plan import Plan
from napari_xcebra.io.decisions.restoring import folders_near
from napari_xcebra.io.decisions.together import undo_interrupted
from napari_xcebra.io.discovery import format_of
from napari_xcebra.recording import Recording

if TYPE_CHECKING:
    import pandas as pd

OutputKind = Literal["suite2p", "caiman", "nwb", "csv", "imagej"]
OUTPUT_KINDS: tuple[OutputKind, ...] = get_args(OutputKind)

_WRITERS: dict[OutputKind, Any] = {
    "suite2p": suite2p,
    "caiman": caiman,
    "nwb": nwb,
    "csv": table,
    "imagej": imagej,
}
_NATIVE = ("suite2p", "caiman", "nwb")


@dataclass(frozen=True)
class Output:
    """One way to write decisions.

    Parameters
    ----------
    kind : {"suite2p", "caiman", "nwb", "csv", "imagej"}
    title : str
        For a menu.
    why_not : str
        A sentence if it is not possible for the recording; else empty.
    """

    kind: OutputKind
    title: str
    why_not: str = ""

    @property
    def possible(self) -> bool:
        """Whether the decisions can be written this way."""
        return not self.why_not


def possible_outputs(
    recording: Recording, source_path: str | PathLike[str] | None
) -> tuple[Output, ...]:
    """Every output, with the reason why it is not possible where it is not.

    Parameters
    ----------
    recording : Recording
    source_path : path or None
        What it was opened from; None for arrays and samples.
    """
    path = None if source_path is None else Path(source_path)
    return tuple(
        Output(kind, writer.TITLE, _why_not(kind, recording, path))
        for kind, writer in _WRITERS.items()
    )


def plan_output(
    kind: str,
    recording: Recording,
    source_path: str | PathLike[str] | None,
    accepted: np.ndarray,
    table: pd.DataFrame | None = None,
    scores: pd.DataFrame | None = None,
    destination: str | PathLike[str] | None = None,
    **options: Any,
) -> Plan:
    """What would be written where; `Plan.write` writes it.

    Parameters
    ----------
    kind : {"suite2p", "caiman", "nwb", "csv", "imagej"}
    recording : Recording
    source_path : path or None
        What the recording was opened from.
    accepted : (cells,) bool
    table : DataFrame, optional
        `Curation.table`: cell, status, by, tags, note, curator, time.
    scores : DataFrame, optional
        One row a cell and factor: cell, factor, score, and more such as z and q.
    destination : path, optional
        Where to write instead of beside or over the source.
    **options
        suite2p: ``together=False`` leaves planes and `combined` to themselves.
        nwb: ``in_place=True`` replaces the opened file.

    Returns
    -------
    Plan

    Raises
    ------
    InputError
        If it cannot be written; nothing has been written then.
    """
    path = None if source_path is None else Path(source_path)
    known: OutputKind | None = next((k for k in OUTPUT_KINDS if k == kind), None)
    if known is None:
        raise InputError(f"There is no output {kind!r}: {', '.join(OUTPUT_KINDS)} are known.")
    if why_not := _why_not(known, recording, path):
        raise InputError(why_not)
    if path is not None:
        undo_interrupted(folders_near(path.resolve()))
    extractor = extractor_accepted(recording, path)
    decided = Decided(recording, path, np.asarray(accepted), table, scores, extractor)
    plan: Callable[..., Plan] = _WRITERS[known].plan
    return plan(decided, None if destination is None else Path(destination), **options)


def _why_not(kind: OutputKind, recording: Recording, path: Path | None) -> str:
    if kind == "imagej" and recording.footprints is None:
        return "The recording has no footprints: there are no outlines to write."
    if kind not in _NATIVE:
        return ""
    title = _WRITERS[kind].TITLE.split(" (")[0]
    if path is None:
        return (
            f"The recording was not opened from a file of {title}: write a table (csv) or ROIs "
            "(imagej) instead."
        )
    try:
        found = format_of(path, "napari_xcebra.io.formats", "recording")
    except InputError as error:
        return str(error)
    if found.__name__.rsplit(".", 1)[-1] != kind:
        return f"{path} was opened as {found.NAME}, not {title}."
    return ""
